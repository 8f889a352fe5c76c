package main

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
)

// vectors are the tools that the Go client gives a runtime, by format. The client's tests use the same file.
const vectors = "../../../client/testdata/recall.json"

// formats decode tools into the types of a format's SDK, and return what the SDK would send.
var formats = map[string]func([]byte) ([]byte, error){
	"anthropic":        through[[]anthropic.ToolUnionParam],
	"openai_chat":      through[[]openai.ChatCompletionToolUnionParam],
	"openai_responses": through[[]responses.ToolUnionParam],
	"gemini":           through[[]*genai.Tool],
}

func through[T any](tools []byte) ([]byte, error) {
	var typed T
	if err := json.Unmarshal(tools, &typed); err != nil {
		return nil, err
	}
	return json.Marshal(typed)
}

// TestTools checks that each SDK sends the tools as the client gave them.
func TestTools(t *testing.T) {
	data, err := os.ReadFile(vectors)
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ Tools map[string]json.RawMessage }
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Tools) != len(formats) {
		t.Fatalf("tools of %d formats, and %d are checked", len(v.Tools), len(formats))
	}
	for format, tools := range v.Tools {
		t.Run(format, func(t *testing.T) {
			sent, err := formats[format](tools)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := values(t, sent), values(t, tools); !reflect.DeepEqual(got, want) {
				t.Errorf("the SDK would send\n%s\nfor\n%s", sent, tools)
			}
			// An unknown field must get lost in the types, or this test would detect nothing.
			wrong := values(t, tools).([]any)
			wrong[0].(map[string]any)["none_such"] = true
			changed, err := json.Marshal(wrong)
			if err != nil {
				t.Fatal(err)
			}
			if sent, err := formats[format](changed); err == nil && reflect.DeepEqual(values(t, sent), values(t, changed)) {
				t.Error("the types take a member that no tool has: the test shows nothing")
			}
		})
	}
}

func values(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
