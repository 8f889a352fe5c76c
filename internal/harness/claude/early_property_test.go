package claude_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// genEarly draws a line with one of few ids, so that records follow, answer and repeat each other in every
// order.
func genEarly() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		uuid := rapid.SampledFrom([]string{"1", "2", "3", "4", "5", "6", "7", "8"})
		call := rapid.SampledFrom([]string{"x", "y", "z"})
		id, extra := uuid.Draw(t, "uuid"), ""
		if rapid.IntRange(0, 5).Draw(t, "follows") > 0 {
			extra = after(uuid.Draw(t, "parent"))
		}
		if rapid.IntRange(0, 3).Draw(t, "side") == 0 {
			extra += sidechain + `,"agentId":"g"`
		}
		switch rapid.IntRange(0, 10).Draw(t, "kind") {
		case 0:
			return user(id, `"go on"`, extra)
		case 1:
			return assistant(id, rapid.SampledFrom([]string{"m", "n"}).Draw(t, "reply"), hello, extra)
		case 2, 3, 4:
			return assistant(id, rapid.SampledFrom([]string{"m", "n"}).Draw(t, "reply"), calls(call.Draw(t, "call")), extra)
		case 5:
			return fmt.Sprintf(`{"type":"attachment","uuid":%q,"attachment":{}%s}`, id, extra)
		case 6:
			return fmt.Sprintf(`{"type":"system","subtype":"compact_boundary","uuid":%q,"compactMetadata":{"trigger":"auto"}%s}`, "c", extra)
		case 7:
			return fmt.Sprintf(`{"type":"progress","uuid":%q%s}`, id, extra)
		default:
			return user(id, fmt.Sprintf(`[{"type":"tool_result","tool_use_id":%q,"content":"body"}]`, call.Draw(t, "answered")), extra)
		}
	})
}

// shown are the messages of each session, and its results without calls.
func shown(tr transcript.Transcript) map[string][]string {
	out := map[string][]string{}
	for _, s := range tr.Sessions {
		of := s.Labels["claude.agent_id"]
		for _, e := range s.Events {
			if c, ok := e.Body.(*eventlog.Custom); ok && !strings.Contains(c.Type, "orphan") {
				continue
			}
			if _, ok := e.Body.(*eventlog.Compaction); ok {
				out[of] = append(out[of], "compaction "+e.ID) // what is written again later says more of it
				continue
			}
			out[of] = append(out[of], fmt.Sprintf("%s %x", e.ID, eventlog.Digest(e)))
		}
	}
	return out
}

// TestEarlyResultsAnyOrder: the events of a part of a file are the first ones of the whole file; and a file
// that is written from events is read as the same session.
func TestEarlyResultsAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(genEarly(), 1, 14).Draw(t, "lines")
		// At most one boundary: between two, a message that is written again with other content is at another
		// place in the second reading.
		boundaries := 0
		lines = slices.DeleteFunc(lines, func(line string) bool {
			if strings.Contains(line, "compact_boundary") {
				boundaries++
			}
			return boundaries > 1 && strings.Contains(line, "compact_boundary")
		})
		parse := func(lines []string) (transcript.Transcript, bool) {
			tr, err := claude.Harness.Read(strings.NewReader(strings.Join(lines, "\n")))
			var none *transcript.FormatError
			if err != nil && !errors.As(err, &none) {
				t.Fatal(err)
			}
			return tr, err == nil
		}
		tr, ok := parse(lines)
		if !ok {
			return
		}
		want := shown(tr)
		part, ok := parse(lines[:rapid.IntRange(1, len(lines)).Draw(t, "part")])
		if ok {
			for of, some := range shown(part) {
				if n := len(some); strings.HasPrefix(some[n-1], "compaction ") {
					some = some[:n-1] // a summary may come
				}
				if len(some) > len(want[of]) || !slices.Equal(some, want[of][:len(some)]) {
					t.Fatalf("a part of the file gives %q, the whole %q", some, want[of])
				}
			}
		}
		var file strings.Builder
		if _, err := claude.Harness.Write(&file, tr, transcript.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		again, ok := parse(strings.Split(file.String(), "\n"))
		if got := shown(again); !ok || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("written again it gives\n%q, and it was\n%q\nfrom\n%s\nto\n%s", got, want, strings.Join(lines, "\n"), file.String())
		}
	})
}
