package qwen_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/qwen"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, harnesstest.Subject{Harness: qwen.Harness, Fixtures: harnesstest.Files(t, "testdata/*.in.jsonl"), Lined: true})
}

// TestRewind: exactly the messages that a rewind dropped count as abandoned.
func TestRewind(t *testing.T) {
	const (
		user   = `{"uuid":"%","parentUuid":"","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"%"}]}}`
		rewind = `{"uuid":"r#","parentUuid":"%","sessionId":"s","type":"system","subtype":"rewind","systemPayload":{"truncatedCount":1}}`
		note   = `{"uuid":"%","parentUuid":"","sessionId":"s","type":"system","subtype":"custom_title","systemPayload":{}}`
	)
	for _, tc := range []struct {
		name  string
		lines []string
		left  []string
	}{
		{"none", []string{user, "a", user, "b"}, nil},
		{"to a message", []string{user, "a", user, "b", user, "c", rewind, "a", user, "d"}, []string{"b", "c"}},
		{"to a note after one", []string{user, "a", note, "n", user, "b", rewind, "n", user, "c"}, []string{"b"}},
		{"to the beginning", []string{user, "a", user, "b", rewind, "", user, "c"}, []string{"a", "b"}},
		{"twice", []string{user, "a", user, "b", rewind, "a", user, "c", rewind, "a", user, "d"}, []string{"b", "c"}},
	} {
		var file bytes.Buffer
		for i := 0; i < len(tc.lines); i += 2 {
			file.WriteString(strings.NewReplacer("%", tc.lines[i+1], "#", strconv.Itoa(i)).Replace(tc.lines[i]) + "\n")
		}
		tr, err := qwen.Harness.Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for id := range qwen.Harness.Branches.Left(tr.Sessions[0].Events) {
			left = append(left, id)
		}
		slices.Sort(left)
		if diff := cmp.Diff(tc.left, left); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
