package harness_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// TestGolden reads the small transcripts in the readers' testdata, which show every shape of their format. It
// does not name the format, and compares the dump with the text file next to the input.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("*/testdata/*.in.*")
	if err != nil || len(inputs) < len(harness.Names()) {
		t.Fatalf("only %d golden inputs: %v", len(inputs), err)
	}
	for _, input := range inputs {
		t.Run(input, func(t *testing.T) {
			data, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			tr, err := harness.Read(bytes.NewReader(data), "")
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Dir(filepath.Dir(input)); tr.Harness != want {
				t.Errorf("read by %s instead of %s", tr.Harness, want)
			}
			checkTranscript(t, tr)
			base, _, _ := strings.Cut(input, ".in.")
			golden := base + ".golden"
			got := dump(tr)
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("differs from %s (-rewrite accepts it):\n%s", golden, firstDifference(got, string(want)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\n got: %s\nwant: %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines instead of %d", len(g), len(w))
}

// dump writes a transcript as text that a reviewer can read.
func dump(tr harness.Transcript) string {
	var b strings.Builder
	fmt.Fprintf(&b, "harness %s, duplicates dropped %d, ids renamed %d, compactions %d\n",
		tr.Harness, tr.DroppedDuplicates, tr.RenamedIDs, tr.Compactions)
	for _, w := range tr.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	for _, s := range tr.Sessions {
		fmt.Fprintf(&b, "\nsession %q", s.Suffix)
		if s.ParentCallID != "" {
			fmt.Fprintf(&b, " of call %s", s.ParentCallID)
		}
		fmt.Fprintf(&b, " %s\n", labels(s.Labels))
		besides(&b, s, "")
		for _, e := range s.Events {
			at := "-"
			if !e.Time.IsZero() {
				at = e.Time.Format("15:04:05.999")
			}
			fmt.Fprintf(&b, "%s %s %s%s\n", e.ID, at, body(e.Body), labels(e.Labels))
			besides(&b, s, e.ID)
		}
	}
	return b.String()
}

// besides writes the envelopes of an event, or of the session.
func besides(b *strings.Builder, s harness.Session, event string) {
	for _, e := range s.Envelopes {
		if e.Event == event {
			fmt.Fprintf(b, "    besides %s%s\n", strings.TrimPrefix(e.Part+" ", " "), e.Difference)
		}
	}
}

func labels(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, " %s=%q", k, m[k])
	}
	return b.String()
}

func body(b eventlog.Body) string {
	switch b := b.(type) {
	case *eventlog.Message:
		s := b.Role.String()
		if b.GroupID != "" {
			s += " group=" + b.GroupID
		}
		if b.Model != "" {
			s += " model=" + b.Model
		}
		return s + blocks(b.Blocks, "\n    ")
	case *eventlog.Compaction:
		s := fmt.Sprintf("compaction trigger=%d mode=%q kept=%q", b.Trigger, b.Mode, b.KeptEventIDs)
		if b.PreTokens != nil {
			s += fmt.Sprintf(" pre=%d", *b.PreTokens)
		}
		return s + fmt.Sprintf("\n    summary %q\n    native %s", b.Summary, b.NativeJSON)
	case *eventlog.Custom:
		return "custom " + b.Type + " " + b.JSON
	}
	return fmt.Sprintf("%T", b)
}

func blocks(list []eventlog.Block, indent string) string {
	var s strings.Builder
	for _, b := range list {
		s.WriteString(indent)
		switch b := b.(type) {
		case eventlog.Text:
			fmt.Fprintf(&s, "text %q", b.Text)
		case eventlog.Thinking:
			fmt.Fprintf(&s, "thinking %q signature=%q redacted=%q encrypted=%q", b.Text, b.Signature, b.RedactedData, b.EncryptedContent)
		case eventlog.ToolCall:
			fmt.Fprintf(&s, "call %s %s %s", b.CallID, b.Name, b.Arguments)
		case eventlog.ToolResult:
			fmt.Fprintf(&s, "result %s %s error=%v", b.CallID, b.ToolName, b.IsError)
			s.WriteString(blocks(b.Content, indent+"    "))
		case eventlog.Media:
			fmt.Fprintf(&s, "media %s %q %s", b.MIMEType, b.Data, b.URI)
		case eventlog.ProviderBlock:
			fmt.Fprintf(&s, "block of %s %s", b.Provider, b.JSON)
		}
	}
	return s.String()
}
