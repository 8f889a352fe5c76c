package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// position is a position in protojson's errors. It refers to JSON that was made from YAML, which nobody
// wrote.
var position = regexp.MustCompile(`(syntax error )?\(line \d+:\d+\): `)

// JSONError is an error of protojson without the package's name. Its whitespace, which protojson varies on
// purpose, is made regular.
func JSONError(err error) error {
	return errors.New(strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "proto:")), " "))
}

var (
	// wrongKind and noField match the YAML package's errors for a value of the wrong kind and for an unknown
	// key.
	wrongKind = regexp.MustCompile("^line (\\d+): cannot unmarshal !!(\\w+)( `.*`)? into (.+)$")
	noField   = regexp.MustCompile(`^line (\d+): field (.+) not found in type .+$`)
)

// yamlKinds are words for YAML's kinds of values.
var yamlKinds = map[string]string{"map": "a map", "seq": "a list", "null": "nothing"}

// unmarshal decodes the only document of a text. A second document is an error, since it would be ignored.
func unmarshal(content []byte, into any) error {
	documents := yaml.NewDecoder(bytes.NewReader(content))
	for err := documents.Decode(into); !errors.Is(err, io.EOF); {
		if err != nil {
			return yamlError(err)
		}
		var next yaml.Node
		if err = documents.Decode(&next); err == nil && next.Content[0].ShortTag() != "!!null" {
			return fmt.Errorf("line %d: another document begins here; everything must be in one", next.Content[0].Line)
		}
	}
	return nil
}

// yamlError rewrites an error of the YAML package without the names of Go types.
func yamlError(err error) error {
	types, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return errors.New("is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var all []string
	for _, text := range types.Errors {
		if m := wrongKind.FindStringSubmatch(text); m != nil {
			is := cmp.Or(yamlKinds[m[2]], strconv.Quote(strings.Trim(m[3], " `")))
			text = fmt.Sprintf("line %s: must be %s, not %s", m[1], kindOfType(m[4]), is)
		} else if m := noField.FindStringSubmatch(text); m != nil {
			text = fmt.Sprintf("line %s: there is no field %q", m[1], m[2])
		}
		all = append(all, text)
	}
	return errors.New(strings.Join(all, "; "))
}

// kindOfType says in words which YAML value a Go type takes.
func kindOfType(name string) string {
	switch {
	case strings.HasPrefix(name, "[]"):
		return "a list"
	case name == "bool":
		return "true or false"
	case name == "string":
		return "a text"
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"), strings.HasPrefix(name, "float"):
		return "a number"
	case name == "time.Duration":
		return "a duration with its unit, such as 30s"
	default:
		return "a map"
	}
}
