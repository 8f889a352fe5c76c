package budget

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The formula for the schemas of tools in OpenAI's cookbook ("How to count tokens with tiktoken", section
// on tool calls): tokens for each function, list of properties, property, list of choices (enum) and
// choice, and once for all functions. functionTokensBefore is for the models before o200k_base.
const (
	functionTokens       = 7
	functionTokensBefore = 10
	propertiesTokens     = 3
	propertyTokens       = 3
	enumTokens           = -3
	enumItemTokens       = 3
	functionsTokens      = 12
)

// ToolsError says what is wrong with the JSON of tools.
type ToolsError struct{ Reason string }

func (e *ToolsError) Error() string { return "tools_json: " + e.Reason }

// ToolSchemaTokens estimates the size of a request's tools in the gauge's format. toolsJSON is the request's list of
// tools. For OpenAI's formats it uses the documented formula, in which nested properties count like those at the top.
// Other providers document no formula: there it counts the JSON without whitespace and the text that the provider
// puts before it. The error is a *ToolsError.
func (g Gauge) ToolSchemaTokens(toolsJSON string) (Count, error) {
	var tools []json.RawMessage
	d := json.NewDecoder(strings.NewReader(toolsJSON))
	if err := d.Decode(&tools); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return Count{}, &ToolsError{"must be a JSON array, not a JSON " + wrong.Value}
		}
		return Count{}, &ToolsError{"must be a JSON array: " + err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Count{}, &ToolsError{"must be one JSON array and nothing else"}
	}
	sum := Count{Estimated: true}
	if len(tools) == 0 {
		return sum, nil
	}
	sum.Tokens = g.framing.Tools
	functions := false
	for i, raw := range tools {
		f, ok := function{}, false
		if g.framing.Functions {
			var err error
			if f, ok, err = readFunction(raw); err != nil {
				return Count{}, &ToolsError{fmt.Sprintf("[%d] %v", i, err)}
			}
		}
		if ok {
			functions = true
			sum.Tokens += g.functionTokens(f)
		} else {
			sum.Tokens += g.jsonTokens(raw)
		}
	}
	if functions {
		sum.Tokens += functionsTokens
	}
	return sum, nil
}

// jsonTokens counts JSON without whitespace between its tokens.
func (g Gauge) jsonTokens(raw json.RawMessage) int {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return g.counter.Count(string(raw)).Tokens
	}
	return g.counter.Count(out.String()).Tokens
}

// function is a function tool of OpenAI's APIs.
type function struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Parameters  schema `json:"parameters"`
}

// schema is the part of a JSON Schema that the formula uses.
type schema struct {
	Type        json.RawMessage   `json:"type"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Properties  map[string]schema `json:"properties"`
	Items       *schema           `json:"items"`
	AnyOf       []schema          `json:"anyOf"`
}

// readFunction reads a function tool. In Chat Completions the function is a member of the tool, in Responses it is
// the tool itself.
func readFunction(raw json.RawMessage) (f function, ok bool, err error) {
	var tool struct {
		Type     string          `json:"type"`
		Function json.RawMessage `json:"function"`
	}
	if err := json.Unmarshal(raw, &tool); err != nil {
		return f, false, errors.New("must be an object, and its type a string")
	}
	if len(tool.Function) > 0 {
		raw = tool.Function
	} else if tool.Type != "function" {
		return f, false, nil // one of the provider's own tools
	}
	// A schema in a form that the formula does not cover is counted as text.
	ok = json.Unmarshal(raw, &f) == nil
	return f, ok, nil
}

func (g Gauge) functionTokens(f function) int {
	n := functionTokensBefore
	if g.counter.Name() == TokenizerO200K {
		n = functionTokens
	}
	n += g.counter.Count(f.Name + ":" + strings.TrimSuffix(f.Description, ".")).Tokens
	return n + g.propertiesTokens(f.Parameters)
}

// propertiesTokens counts the properties of a schema, including nested ones.
func (g Gauge) propertiesTokens(s schema) int {
	n := 0
	if len(s.Properties) > 0 {
		n += propertiesTokens
	}
	for name, p := range s.Properties {
		n += propertyTokens + g.counter.Count(name+":"+typeOf(p.Type)+":"+strings.TrimSuffix(p.Description, ".")).Tokens
		if len(p.Enum) > 0 {
			n += enumTokens
			for _, item := range p.Enum {
				n += enumItemTokens + g.counter.Count(typeOf(item)).Tokens
			}
		}
		n += g.propertiesTokens(p)
	}
	if s.Items != nil {
		n += g.propertiesTokens(*s.Items)
	}
	for _, other := range s.AnyOf {
		n += g.propertiesTokens(other)
	}
	return n
}

// typeOf returns a JSON string's text, and any other JSON unchanged.
func typeOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
