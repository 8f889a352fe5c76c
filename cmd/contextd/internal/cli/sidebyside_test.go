package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestFit checks that a cell has the width of its column, whatever its text, and marks where text was cut.
func TestFit(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 3, "   "},
		{"ab", 3, "ab "},
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"这里", 4, "这里"},
		{"这里有", 4, "这… "},
		{"a\x1b[2Jb\n", 8, "a [2Jb  "},
		{"  9  x", 6, "  9  x"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"},
	} {
		if got := fit(test.text, test.width); got != test.want {
			t.Errorf("%q in %d is %q; want %q", test.text, test.width, got, test.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 40).Draw(t, "width")
		got := fit(rapid.String().Draw(t, "text"), width)
		if n := uniseg.StringWidth(got); n != width {
			t.Fatalf("%q is %d wide; want %d", got, n, width)
		}
	})
}

// TestProgress checks that progress is shown at a terminal, and nothing anywhere else.
func TestProgress(t *testing.T) {
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetErr(&out)
	for _, p := range []*progress{newProgress(cmd), {}} {
		p.expect(1)
		p.at("session")
		p.done()
		p.close()
	}
	if out.Len() > 0 {
		t.Errorf("what is no terminal was shown %q", out.String())
	}
	p := showProgress(&out, 0, 0)
	p.expect(2)
	p.at("first")
	p.done()
	// The total grows on the way.
	p.expect(2)
	p.at("second")
	for range 3 {
		p.done()
	}
	p.close()
	for _, want := range []string{"first", "second", "3/4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
	if last := out.String()[strings.LastIndex(out.String(), "\r")+1:]; strings.TrimSpace(last) != "" {
		t.Errorf("%q stays", last)
	}
}

// TestProgressWithinAFile checks that the bar of a file moves while its model calls are measured.
func TestProgressWithinAFile(t *testing.T) {
	e := &evaluation{settings: config.Default(), budget: &contextdv1.Budget{MaxTokens: 8000, Tokenizer: "heuristic"}, flags: evalFlags{last: 5}}
	f := plannedFile{path: "../../../../internal/harness/claude/testdata/session.in.jsonl"}
	p := showProgress(io.Discard, -1, time.Hour)
	p.expect(f.size())
	part := &share{bar: p, bytes: f.size()}
	if _, _, err := e.measureFile(t.Context(), &cobra.Command{}, f, part); err != nil {
		t.Fatal(err)
	}
	measured, all := p.bar.State().CurrentNum, int64(f.size())
	if measured == 0 || measured >= all {
		t.Errorf("%d of %d bytes are done once the last call was measured", measured, all)
	}
	part.done(1, 1)
	if got := p.bar.State().CurrentNum; got != all {
		t.Errorf("%d of %d bytes are done in the end", got, all)
	}
}
