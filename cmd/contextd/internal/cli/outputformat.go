package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// outputFormat is how a command writes what it found. It implements pflag.Value.
type outputFormat string

const (
	outputTable outputFormat = "table"
	outputWide  outputFormat = "wide"
	outputJSON  outputFormat = "json"
	outputYAML  outputFormat = "yaml"
)

func outputFormats() []string {
	return []string{string(outputTable), string(outputWide), string(outputJSON), string(outputYAML)}
}

func (o *outputFormat) bind(f *pflag.FlagSet) {
	*o = outputTable
	f.VarP(o, "output", "o", "`format` of the output: table, wide, json or yaml")
	o.bindJSON(f)
}

// bindJSON is bind for commands whose -o names a file.
func (o *outputFormat) bindJSON(f *pflag.FlagSet) {
	f.BoolFunc("json", "write JSON, one value per line", func(text string) error {
		switch on, err := strconv.ParseBool(text); {
		case err != nil:
			return errors.New("must be true or false")
		case on:
			*o = outputJSON
		}
		return nil
	})
}

// Set implements pflag.Value.
func (o *outputFormat) Set(name string) error {
	switch f := outputFormat(name); f {
	case outputTable, outputWide, outputJSON, outputYAML:
		*o = f
		return nil
	default:
		return fmt.Errorf("must be table, wide, json or yaml")
	}
}

// String implements pflag.Value.
func (o *outputFormat) String() string { return string(*o) }

// Type implements pflag.Value.
func (*outputFormat) Type() string { return "format" }

// structured reports whether programs read the output.
func (o outputFormat) structured() bool { return o == outputJSON || o == outputYAML }

// write writes a message for programs, with the field names of the API.
func (o outputFormat) write(w io.Writer, m proto.Message) error {
	if o != outputYAML {
		return writeJSON(w, m)
	}
	line, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return err
	}
	return writeYAML(w, line)
}

// writeLines writes values for programs.
func writeLines[T any](w io.Writer, o outputFormat, values []T) error {
	w = inertOn(w)
	for _, v := range values {
		var line bytes.Buffer
		enc := json.NewEncoder(&line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return err
		}
		write := func(line []byte) error { _, err := w.Write(line); return err }
		if o == outputYAML {
			write = func(line []byte) error { return writeYAML(w, line) }
		}
		if err := write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes one message on one line. protojson varies its whitespace on purpose; this removes it.
func writeJSON(w io.Writer, m proto.Message) error {
	loose, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, loose); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err = inertOn(w).Write(line.Bytes())
	return err
}

// writeYAML writes a JSON value as a YAML document, keeping the order of members and the digits of numbers.
func writeYAML(w io.Writer, value []byte) error {
	node, err := yamlNode(jsontext.NewDecoder(bytes.NewReader(value)))
	if err != nil {
		return err
	}
	w = inertOn(w)
	if _, err := io.WriteString(w, "---\n"); err != nil {
		return err
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return err
	}
	return enc.Close()
}

func yamlNode(d *jsontext.Decoder) (*yaml.Node, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: token.String()}
	switch token.Kind() {
	case '"':
		node.SetString(token.String())
	case '{', '[':
		node = &yaml.Node{Kind: yaml.MappingNode}
		if token.Kind() == '[' {
			node.Kind = yaml.SequenceNode
		}
		for k := d.PeekKind(); k != '}' && k != ']'; k = d.PeekKind() {
			child, err := yamlNode(d)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err = d.ReadToken()
	}
	return node, err
}
