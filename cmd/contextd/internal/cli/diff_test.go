package cli

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// contextOf makes a context of messages written as "seq:text"; "S:text" is a summary,
// and "R3:text" the reminder of event 3.
func contextOf(messages string) rendered {
	out := rendered{replay: &contextdv1.ReplayProjectionResponse{Same: true}}
	for i, part := range strings.Fields(messages) {
		at, text, _ := strings.Cut(part, ":")
		m := &contextdv1.RenderedMessage{Index: uint32(i), Json: []byte(text), Origin: contextdv1.Origin_ORIGIN_VERBATIM}
		var seq uint64
		switch {
		case at == "S":
			m.Origin = contextdv1.Origin_ORIGIN_SUMMARY
		case strings.HasPrefix(at, "R"):
			m.Origin = contextdv1.Origin_ORIGIN_REMINDER
			at = at[1:]
			fallthrough
		default:
			// Tests name events by a single digit.
			seq = uint64(at[0] - '0')
			m.SourceSeqs = []uint64{seq}
		}
		out.messages = append(out.messages, m)
	}
	return out
}

func changesText(changes []change) string {
	var parts []string
	for _, c := range changes {
		side := func(v *messageView) string {
			if v == nil {
				return ""
			}
			return fmt.Sprint(v.Index)
		}
		parts = append(parts, fmt.Sprintf("%s %s|%s", c.Change, side(c.From), side(c.To)))
	}
	return strings.Join(parts, ", ")
}

func TestChangesBetween(t *testing.T) {
	for name, test := range map[string]struct{ from, to, want string }{
		"nothing":            {"", "", ""},
		"the same":           {"1:a 2:b", "1:a 2:b", "same 0|0, same 1|1"},
		"new at the end":     {"1:a", "1:a 2:b", "same 0|0, new |1"},
		"stubbed":            {"1:a 2:b 3:c", "1:a 2:x 3:c", "same 0|0, changed 1|1, same 2|2"},
		"gone at the front":  {"1:a 2:b 3:c", "1:a 3:c", "same 0|0, gone 1|, same 2|1"},
		"summarised":         {"1:a 2:b 3:c", "1:a S:x 3:c", "same 0|0, gone 1|, new |1, same 2|2"},
		"summarised again":   {"1:a S:x 3:c 4:d", "1:a S:y 4:d", "same 0|0, changed 1|1, gone 2|, same 3|2"},
		"a reminder follows": {"1:a R2:r", "1:a 3:b R2:r", "same 0|0, new |1, same 1|2"},
		"moved":              {"1:a 2:b", "2:b 1:a", "gone 0|, same 1|0, new |1"},
		"twice of an event":  {"1:a 1:b", "1:a 1:c", "same 0|0, changed 1|1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := changesText(changesBetween(contextOf(test.from), contextOf(test.to))); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestChangesAreComplete checks that every message of both contexts is listed once, in order.
func TestChangesAreComplete(t *testing.T) {
	words := rapid.SliceOfN(rapid.StringMatching(`(S|R?[1-9]):[ab]`), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		from := contextOf(strings.Join(words.Draw(t, "from"), " "))
		to := contextOf(strings.Join(words.Draw(t, "to"), " "))
		i, j := 0, 0
		for _, c := range changesBetween(from, to) {
			if c.From != nil {
				if c.From.Index != uint32(i) {
					t.Fatalf("message %d of the first comes where %d belongs", c.From.Index, i)
				}
				i++
			}
			if c.To != nil {
				if c.To.Index != uint32(j) {
					t.Fatalf("message %d of the second comes where %d belongs", c.To.Index, j)
				}
				j++
			}
			if equal := c.From != nil && c.To != nil; equal != (c.Change == changeSame || c.Change == changeChanged) {
				t.Fatalf("%s has %v and %v", c.Change, c.From, c.To)
			}
		}
		if i != len(from.messages) || j != len(to.messages) {
			t.Fatalf("%d of %d and %d of %d messages are there", i, len(from.messages), j, len(to.messages))
		}
	})
}
