package render

import (
	"encoding/json"
	"strings"
)

// Tool is a tool that a model may call.
type Tool struct {
	Name, Description string
	// Schema describes the arguments, an object.
	Schema Schema
}

// Schema is as much of JSON Schema as every provider takes.
type Schema struct {
	Type        string            `json:"type"`
	Description string            `json:"description,omitempty"`
	Minimum     int               `json:"minimum,omitempty"`
	Maximum     int               `json:"maximum,omitempty"`
	Properties  map[string]Schema `json:"properties,omitempty"`
	Required    []string          `json:"required,omitempty"`
}

// JSON is the schema with no other arguments allowed. Members of objects are in the order
// of their names.
func (s Schema) JSON() []byte {
	return marshal(struct {
		Schema
		Additional bool `json:"additionalProperties"`
	}{s, false})
}

// capital is the schema with its types in capitals.
func (s Schema) capital() Schema {
	s.Type = strings.ToUpper(s.Type)
	if s.Properties != nil {
		of := make(map[string]Schema, len(s.Properties))
		for name, p := range s.Properties {
			of[name] = p.capital()
		}
		s.Properties = of
	}
	return s
}

func anthropicTools(tools []Tool) []byte {
	return toolList(tools, func(t Tool) any {
		return struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}{t.Name, t.Description, t.Schema.JSON()}
	})
}

// openAIFunction is a function of both of OpenAI's APIs. It is not strict, since strict
// schemas know no optional arguments.
type openAIFunction struct {
	Type        string          `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

func openAIChatTools(tools []Tool) []byte {
	return toolList(tools, func(t Tool) any {
		return struct {
			Type     string         `json:"type"`
			Function openAIFunction `json:"function"`
		}{"function", openAIFunction{"", t.Name, t.Description, t.Schema.JSON(), false}}
	})
}

func openAIResponsesTools(tools []Tool) []byte {
	return toolList(tools, func(t Tool) any {
		return openAIFunction{"function", t.Name, t.Description, t.Schema.JSON(), false}
	})
}

// geminiTools are one tool with all functions. Types are in the capitals of Gemini's enum.
func geminiTools(tools []Tool) []byte {
	type function struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Parameters  Schema `json:"parameters"`
	}
	functions := make([]function, len(tools))
	for i, t := range tools {
		functions[i] = function{t.Name, t.Description, t.Schema.capital()}
	}
	return marshal([]any{struct {
		Functions []function `json:"functionDeclarations"`
	}{functions}})
}

func toolList(tools []Tool, shape func(Tool) any) []byte {
	list := make([]any, len(tools))
	for i, t := range tools {
		list[i] = shape(t)
	}
	return marshal(list)
}

// marshal writes a value that json can always write.
func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a type of this file that has no JSON
	}
	return data
}
