package budget_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
)

const weatherTool = `[{"type": "function", "function": {"name": "get_current_weather",
	"description": "Get the current weather in a given location",
	"parameters": {"type": "object", "properties": {
		"location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
		"unit": {"type": "string", "description": "The unit of temperature to return", "enum": ["celsius", "fahrenheit"]}},
	"required": ["location"]}}}]`

// The framings of formats that count functions by the formula, and of one that has a prompt.
var functions, prompted = budget.Framing{Functions: true}, budget.Framing{Tools: 346}

// TestToolSchemaTokensAsBilled: the cookbook shows what the API counted for this request.
func TestToolSchemaTokensAsBilled(t *testing.T) {
	messages := []string{
		"system", "You are a helpful assistant that can answer to questions about the weather.",
		"user", "What's the weather like in San Francisco?",
	}
	for tokenizer, billed := range map[string]uint64{budget.TokenizerO200K: 101, budget.TokenizerCL100K: 105} {
		encoding, err := bpe.Open(tokenizer)
		if err != nil {
			t.Fatal(err)
		}
		a := budget.NewGauge(encoding).Framed("openai_chat", functions)
		count, err := a.ToolSchemaTokens(weatherTool)
		if err != nil {
			t.Fatal(err)
		}
		const answer = 3 // tokens that begin the answer
		got := uint64(count.Tokens) + answer
		for i, text := range messages {
			got += a.Text(text)
			if i%2 == 0 {
				got += budget.MessageOverhead - a.Text(text) // of which the role is a part
			}
		}
		if got != billed {
			t.Errorf("%s: %d tokens, and %d were billed", tokenizer, got, billed)
		}
	}
}

func TestToolSchemaTokens(t *testing.T) {
	flat := strings.NewReplacer(`"function": {`, ``, `}}}]`, `}}]`, `"type": "function", `, `"type": "function", `).Replace(weatherTool)
	for _, c := range []struct {
		name    string
		framing budget.Framing
		tools   string
		want    int
	}{
		{"none", functions, `[]`, 0},
		{"none of Anthropic", prompted, `[]`, 0},
		// name:description, two properties, two choices.
		{"chat", functions, weatherTool, 7 + 8 + 3 + (3 + 8) + (3 + 6) - 3 + (3 + 1) + (3 + 1) + 12},
		{"responses", functions, flat, 7 + 8 + 3 + (3 + 8) + (3 + 6) - 3 + (3 + 1) + (3 + 1) + 12},
		{"nested", functions, `[{"type":"function","function":{"name":"f","parameters":{"properties":{
			"list":{"type":"array","items":{"properties":{"a":{"type":["string","null"],"enum":["x",1]}}}}}}}}]`,
			7 + 1 + 3 + (3 + 1) + 3 + (3 + 1) - 3 + 2*(3+1) + 12},
		{"any of two", functions, `[{"type":"function","function":{"name":"f","parameters":{"anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}}}]`,
			7 + 1 + 2*(3+3+1) + 12},
		{"no parameters", functions, `[{"type":"function","function":{"name":"f"}}]`, 7 + 1 + 12},
		{"the provider's own", functions, `[{"type": "web_search"}]`, 1},
		{"a schema of another form", functions, `[{"type":"function","function":{"name":"f","parameters":{"properties":true}}}]`, 1},
		{"anthropic", prompted, `[{"name": "f", "input_schema": {"type": "object"}}]`, 346 + 1},
		{"a function of anthropic", prompted, `[{"type": "function", "name": "f"}]`, 346 + 1},
		{"gemini", budget.NoFraming, `[{"functionDeclarations": [{"name": "a b"}]}]`, 2},
	} {
		got, err := budget.NewGauge(words{budget.TokenizerO200K}).Framed("f", c.framing).ToolSchemaTokens(c.tools)
		if err != nil || got.Tokens != c.want || !got.Estimated {
			t.Errorf("%s: %+v, %v, want %d", c.name, got, err, c.want)
		}
	}
	for tools, want := range map[string]string{
		``:      "must be a JSON array: ",
		`{}`:    "must be a JSON array, not a JSON object",
		`[`:     "must be a JSON array: ",
		`[] []`: "must be one JSON array and nothing else",
		`"x"`:   "must be a JSON array, not a JSON string",
		`[1]`:   "must be an object",
	} {
		var wrong *budget.ToolsError
		if got, err := budget.NewGauge(words{}).Framed("f", functions).ToolSchemaTokens(tools); !errors.As(err, &wrong) || got.Tokens != 0 || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %+v, %v", tools, got, err)
		}
	}
}

func FuzzToolSchemaTokens(f *testing.F) {
	f.Add(true, weatherTool)
	f.Add(true, `[{"type":"function","name":"f","parameters":{"properties":{"a":{"items":{"anyOf":[{}]}}}}}]`)
	f.Add(false, `[null, 1e400, "\ud800"]`)
	f.Fuzz(func(t *testing.T, functions bool, tools string) {
		got, err := budget.NewGauge(words{budget.TokenizerO200K}).Framed("f", budget.Framing{Functions: functions}).ToolSchemaTokens(tools)
		if (err != nil) == got.Estimated || got.Tokens < 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
