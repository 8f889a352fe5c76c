package antigravity_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/antigravity"
	"github.com/contextd/contextd/internal/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, harnesstest.Subject{Harness: antigravity.Harness, Fixtures: harnesstest.Files(t, "testdata/*.in.jsonl"), Lined: true})
}

// TestRewind: a user's message whose step is no new one takes back the messages from that step on.
func TestRewind(t *testing.T) {
	const line = `{"step_index":%,"source":"USER_EXPLICIT","type":"USER_INPUT","content":"#"}` + "\n"
	for _, tc := range []struct {
		name, steps string
		left        []string
	}{
		{"none", "012", nil},
		{"to a message", "0121", []string{"line-2", "line-3"}},
		{"to the beginning", "010", []string{"line-1", "line-2"}},
		{"twice", "01211", []string{"line-2", "line-3", "line-4"}},
	} {
		var file strings.Builder
		for i, step := range tc.steps {
			file.WriteString(strings.NewReplacer("%", string(step), "#", string(rune('a'+i))).Replace(line))
		}
		tr, err := antigravity.Harness.Read(strings.NewReader(file.String()))
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for id := range antigravity.Harness.Branches.Left(tr.Sessions[0].Events) {
			left = append(left, id)
		}
		slices.Sort(left)
		if diff := cmp.Diff(tc.left, left); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
