package cli

import (
	"fmt"
	"slices"
	"strings"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// ownFormat is the name of contextd's own format in flags.
const ownFormat = "contextd"

// formatFlag is a flag for a format of the API by its short name, such as openai-chat.
type formatFlag struct{ to *contextdv1.Format }

func (formatFlag) Type() string { return "format" }

func (f formatFlag) String() string { return formatName(*f.to) }

func (f formatFlag) Set(name string) error {
	for number := range contextdv1.Format_name {
		// Accept openai_chat too: the packages for Python and TypeScript write it so.
		if known := contextdv1.Format(number); formatName(known) == strings.ReplaceAll(name, "_", "-") {
			*f.to = known
			return nil
		}
	}
	return mistyped(fmt.Errorf("must be one of %s", strings.Join(formatNames(), ", ")), name, formatNames())
}

func formatName(f contextdv1.Format) string {
	if f == contextdv1.Format_FORMAT_UNSPECIFIED {
		return ownFormat
	}
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(f.String(), "FORMAT_"), "_", "-"))
}

// formatNames lists the formats in the API's order.
func formatNames() []string {
	var numbers []int32
	for number := range contextdv1.Format_name {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	names := make([]string, len(numbers))
	for i, number := range numbers {
		names[i] = formatName(contextdv1.Format(number))
	}
	return names
}
