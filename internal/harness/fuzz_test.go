package harness_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/contextd/contextd/internal/harness"
)

// fuzzReader gives a reader arbitrary bytes, with the golden inputs of all readers as seeds. Each answer is a
// valid transcript or a *FormatError, and the same each time.
func fuzzReader(f *testing.F, name string) {
	f.Helper()
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := harness.Read(bytes.NewReader(data), name)
		var format *harness.FormatError
		if err != nil && !errors.As(err, &format) {
			t.Fatalf("unexpected error %v", err)
		}
		checkTranscript(t, first)
		second, _ := harness.Read(bytes.NewReader(data), name)
		if !reflect.DeepEqual(first, second) {
			t.Error("read twice, the same bytes give two transcripts")
		}
	})
}

func seed(f *testing.F) {
	f.Helper()
	inputs, err := filepath.Glob("*/testdata/*.in.*")
	if err != nil || len(inputs) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, name := range inputs {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

func FuzzClaude(f *testing.F)      { fuzzReader(f, "claude") }
func FuzzChat(f *testing.F)        { fuzzReader(f, "chat") }
func FuzzCodex(f *testing.F)       { fuzzReader(f, "codex") }
func FuzzOpenCode(f *testing.F)    { fuzzReader(f, "opencode") }
func FuzzPi(f *testing.F)          { fuzzReader(f, "pi") }
func FuzzGemini(f *testing.F)      { fuzzReader(f, "gemini") }
func FuzzCopilot(f *testing.F)     { fuzzReader(f, "copilot") }
func FuzzCursor(f *testing.F)      { fuzzReader(f, "cursor") }
func FuzzVSCode(f *testing.F)      { fuzzReader(f, "vscode") }
func FuzzOpenHands(f *testing.F)   { fuzzReader(f, "openhands") }
func FuzzAider(f *testing.F)       { fuzzReader(f, "aider") }
func FuzzQwen(f *testing.F)        { fuzzReader(f, "qwen") }
func FuzzAtif(f *testing.F)        { fuzzReader(f, "atif") }
func FuzzAntigravity(f *testing.F) { fuzzReader(f, "antigravity") }
func FuzzDsh(f *testing.F)         { fuzzReader(f, "dsh") }
func FuzzKimi(f *testing.F)        { fuzzReader(f, "kimi") }
func FuzzOpenCode2(f *testing.F)   { fuzzReader(f, "opencode2") }

// FuzzDetect: an answer is one of Names, is the same each time, and Read takes it.
func FuzzDetect(f *testing.F) {
	seed(f)
	names := map[string]bool{}
	for _, n := range harness.Names() {
		names[n] = true
	}
	f.Fuzz(func(t *testing.T, prefix []byte) {
		name, ok := harness.Detect(prefix)
		if ok != names[name] {
			t.Errorf("Detect says %q, %v", name, ok)
		}
		if again, _ := harness.Detect(prefix); again != name {
			t.Errorf("Detect says %q and then %q", name, again)
		}
	})
}
