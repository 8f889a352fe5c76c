package codex_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/codex"
	"github.com/contextd/contextd/internal/harness/transcript"
)

// TestUsage: running totals become the usage of each request.
func TestUsage(t *testing.T) {
	counts := func(in, cached, out int) string {
		return fmt.Sprintf(`{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d}`, in, cached, out)
	}
	info := func(total, last string) string {
		return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":%s,"last_token_usage":%s}}}`, total, last)
	}
	lastOnly := func(last string) string {
		return fmt.Sprintf(`{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":%s}}}`, last)
	}
	tests := []struct {
		name  string
		lines []string
		want  []string // prompt, cached, output
	}{
		{"differences", []string{info(counts(10, 4, 2), counts(10, 4, 2)), info(counts(30, 20, 5), counts(20, 16, 3))}, []string{"10 4 2", "20 16 3"}},
		{"a request that has no record of its own", []string{info(counts(10, 4, 2), counts(10, 4, 2)), info(counts(60, 40, 9), counts(20, 16, 3))}, []string{"10 4 2", "50 36 7"}},
		{"written again", []string{info(counts(10, 4, 2), counts(10, 4, 2)), info(counts(10, 4, 2), counts(10, 4, 2))}, []string{"10 4 2"}},
		{"begun anew", []string{info(counts(10, 4, 2), counts(10, 4, 2)), info(counts(7, 0, 1), counts(6, 0, 1))}, []string{"10 4 2", "6 0 1"}},
		{"no totals", []string{lastOnly(counts(10, 4, 2)), lastOnly(counts(10, 4, 2)), lastOnly(counts(12, 4, 2))}, []string{"10 4 2", "12 4 2"}},
		{"nothing", []string{`{"type":"event_msg","payload":{"type":"token_count","info":null}}`, `{"type":"event_msg","payload":{"type":"token_count"}}`}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}}` + "\n" + strings.Join(tt.lines, "\n")
			tr, err := codex.Harness.Read(strings.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range tr.Sessions[0].Events {
				if prompt := e.Labels[transcript.LabelPromptTokens]; prompt != "" {
					got = append(got, prompt+" "+e.Labels[transcript.LabelCacheReadTokens]+" "+e.Labels[transcript.LabelOutputTokens])
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if n := len(tr.Sessions[0].Events); n != len(tt.lines)+1 {
				t.Errorf("%d events are kept of %d records", n, len(tt.lines)+1)
			}
		})
	}
}
