package cli

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/budget"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// noteModel writes a note that the daemon does not know a model; "" is none. A name to suggest comes from the
// configuration on this machine.
func (c *client) noteModel(cmd *cobra.Command, unknown string) {
	if unknown == "" || isQuiet(cmd) {
		return
	}
	names, _ := c.completeModel(cmd, nil, "")
	noteUnknown(cmd, unknown, names)
}

// noteBudget writes what there is to note of a budget's model where no answer says it: the daemon is asked.
func (c *client) noteBudget(cmd *cobra.Command, api api, b *contextdv1.Budget) {
	if b.GetModel() == "" || isQuiet(cmd) {
		return
	}
	c.noteFamily(cmd, b.GetModel())
	if resp, err := api.CountTokens(cmd.Context(), &contextdv1.CountTokensRequest{Model: b.GetModel()}); err == nil {
		c.noteModel(cmd, resp.GetUnknownModel())
	}
}

// noteUnknown writes a note that a model is not known: its name may be mistyped, and then its window may be
// assumed too large.
func noteUnknown(cmd *cobra.Command, name string, known []string) {
	meant := ""
	if near := config.Nearest(name, known); near != "" {
		meant = fmt.Sprintf("; did you mean %q?", near)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "note: model %q is not known, so its prices are those of \"default\", and its window and tokenizer where none are given (see \"contextd models\")%s\n", name, meant)
}

// noteFamily is noteName where a daemon, which may know more models, looks the name up.
func (c *client) noteFamily(cmd *cobra.Command, name string) {
	settings, err := c.settings()
	if err != nil {
		return
	}
	if models, err := settings.Registry(); err == nil {
		if _, known := models.Lookup(name); known {
			noteName(cmd, models, name)
		}
	}
}

// noteName writes a note if a model is not known, or is known only by a wide family although its name is
// close to a narrower one: a single mistyped letter may select other prices and another window.
func noteName(cmd *cobra.Command, models budget.Models, name string) {
	if name == "" || isQuiet(cmd) {
		return
	}
	if _, known := models.Lookup(name); !known {
		noteUnknown(cmd, name, modelNames(models))
	} else if family, near := nearFamily(models, name); near != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: model %q is known by its family %q alone (see \"contextd models\"); did you mean %q?\n", name, family, near)
	}
}

// modelNames lists the names of the registry; a family is listed by its prefix.
func modelNames(models budget.Models) (names []string) {
	for _, m := range models.All() {
		names = append(names, strings.TrimSuffix(m.Name, "*"))
	}
	return names
}

// nearFamily returns the family that matches a model's name. near is a narrower family that the name would
// match after correcting one letter in eight, or two in sixteen. Digits must agree, since another number is
// another model. Ends of words must agree too: "command-light" is not "command-r".
func nearFamily(models budget.Models, name string) (known, near string) {
	found, ok := models.Lookup(name)
	wide, isFamily := strings.CutSuffix(found.Name, "*")
	if !ok || !isFamily {
		return "", ""
	}
	base := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	best := 0
	for _, m := range models.All() {
		narrow := strings.TrimSuffix(m.Name, "*")
		rest, within := strings.CutPrefix(narrow, wide)
		if !within || rest == "" {
			continue
		}
		for end := range len(base) + 1 {
			if end < len(base) && !strings.ContainsRune("-.@:", rune(base[end])) {
				continue
			}
			distance := levenshtein.ComputeDistance(base[:end], narrow)
			if distance <= (len(rest)+4)/8 && digits(base[:end]) == digits(narrow) && (near == "" || distance < best || distance == best && len(m.Name) > len(near)) {
				near, best = m.Name, distance
			}
		}
	}
	return found.Name, near
}

func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}
