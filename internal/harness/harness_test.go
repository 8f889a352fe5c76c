package harness_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/contextd/contextd/internal/harness"
)

func TestReadByName(t *testing.T) {
	const list = `[{"role":"user","content":"hi"}]`
	for _, name := range []string{"chat", "openai", "anthropic", "tau-bench", "tau2-bench", "mini-swe-agent", "swe-agent", ""} {
		tr, err := harness.Read(strings.NewReader(list), name)
		if err != nil || tr.Harness != "chat" || len(tr.Sessions) != 1 {
			t.Errorf("Read as %q: %+v, %v", name, tr, err)
		}
	}
	for _, name := range []string{"claude", "claude-code", "codex", "pi", "opencode", "gemini", "copilot", "openhands", "aider", "cursor", "vscode", "nobody"} {
		_, err := harness.Read(strings.NewReader(list), name)
		var format *harness.FormatError
		if !errors.As(err, &format) {
			t.Errorf("a chat list read as %q gives %v", name, err)
		}
	}
	const parts = `{"uuid":"1","type":"user","message":{"role":"user","parts":[{"text":"hi"}]}}`
	const lone = `{"id":"e","timestamp":"2026-02-09T16:26:42","source":"user","kind":"PauseEvent"}`
	for _, in := range []string{"", "# Markdown", "{}", "[]", `{"a":1}`, "\xff\xfe", parts, lone} {
		_, err := harness.Read(strings.NewReader(in), "")
		var format *harness.FormatError
		if !errors.As(err, &format) || format.Harness != "" {
			t.Errorf("%q gives %v", in, err)
		}
	}
}

// TestReadStreams: neither the sizes of the input's reads nor a byte order mark change the result, and an
// error of the input is not taken for its end.
func TestReadStreams(t *testing.T) {
	inputs, err := filepath.Glob("*/testdata/*.in.*")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken pipe")
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		want, err := harness.Read(bytes.NewReader(data), "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := harness.Read(iotest.OneByteReader(bytes.NewReader(data)), "")
		if err != nil || !reflect.DeepEqual(want, got) {
			t.Errorf("%s read byte by byte differs: %v", input, err)
		}
		got, err = harness.Read(io.MultiReader(strings.NewReader("\xEF\xBB\xBF"), bytes.NewReader(data)), "")
		if err != nil || !reflect.DeepEqual(want, got) {
			t.Errorf("%s with a byte order mark differs: %v", input, err)
		}
		half := io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(broken))
		if _, err := harness.Read(half, want.Harness); !errors.Is(err, broken) {
			t.Errorf("%s from a reader that fails gives %v", input, err)
		}
	}
}

// TestDamagedLine: a line with an escape that JSON does not have is lost or mended, with a warning that names it, and the
// lines after it are read.
func TestDamagedLine(t *testing.T) {
	inputs, err := filepath.Glob("*/testdata/*.in.jsonl")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		at := slices.IndexFunc(lines[1:], func(line []byte) bool { return bytes.Contains(line, []byte(`":"`)) }) + 1
		if at == 0 || at+1 == len(lines) {
			continue
		}
		lines[at] = bytes.Replace(lines[at], []byte(`":"`), []byte(`":"\x`), 1)
		tr, err := harness.Read(bytes.NewReader(bytes.Join(lines, nil)), filepath.Dir(filepath.Dir(input)))
		if err != nil {
			t.Fatal(input, err)
		}
		if !slices.ContainsFunc(tr.Warnings, func(w harness.Warning) bool {
			return w.Line == at+1 && (strings.HasPrefix(w.Message, "not JSON, ") || strings.HasPrefix(w.Message, "an escape that JSON does not have"))
		}) {
			t.Errorf("%s: no warning names line %d: %v", input, at+1, tr.Warnings)
		}
	}
	_, err = harness.Read(strings.NewReader("[{\"traj\":[\n{\"role\":\"user\",\"content\":x}]}]"), "chat")
	if err == nil || !strings.Contains(err.Error(), "there is no conversation in it; see line 2") {
		t.Errorf("a file that is lost as a whole is answered %v", err)
	}
}

// TestDetectEarly: half of a file, cut anywhere, is enough to recognise it.
func TestDetectEarly(t *testing.T) {
	inputs, err := filepath.Glob("*/testdata/*.in.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		want := filepath.Dir(filepath.Dir(input))
		for _, n := range []int{len(data), len(data) * 3 / 4, len(data) / 2} {
			if got, ok := harness.Detect(data[:n]); !ok || got != want {
				t.Errorf("%d bytes of %s are taken for %q", n, input, got)
			}
		}
	}
}
