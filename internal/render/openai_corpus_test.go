package render_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// openAIFormats are the formats of OpenAI's two APIs.
func openAIFormats(t testing.TB) []*render.Format {
	var out []*render.Format
	for _, name := range []string{"openai_chat", "openai_responses"} {
		f, ok := render.FormatNamed(name)
		if !ok {
			t.Fatalf("no format %q", name)
		}
		out = append(out, f)
	}
	return out
}

// TestCorpusRendersForOpenAI renders every real session in full, at every seventh group
// or at as many sevenths as are allowed, and at the end, and holds it to OpenAI's rules.
func TestCorpusRendersForOpenAI(t *testing.T) {
	checked, prefixes := map[string]int{}, 0
	conversions := map[string]map[string]int{}
	corpusSessions(t, func(name string, c *reduce.Conversation) {
		v := reduce.NewView(gauge, c.Groups())
		stride := 7 * (1 + len(c.Groups())/(7*mostPrefixes))
		for _, f := range openAIFormats(t) {
			if conversions[f.Name] == nil {
				conversions[f.Name] = map[string]int{}
			}
			var fragments []render.Fragment
			var before []render.Encoded
			for g := range c.Groups() {
				for _, m := range render.GroupMessages(v, g) {
					fragments = append(fragments, f.Fragments(m)...)
				}
				if g%stride != stride-1 && g+1 != len(c.Groups()) {
					continue
				}
				prefixes++
				messages := f.Join(fragments)
				checkPrefix(t, before, messages)
				before = messages
				lines := linesOf(messages)
				checked[f.Name] += len(lines)
				for i, violation := range rules.Of(f.Name)(lines) {
					if i < 3 {
						t.Errorf("%s, %s, through group %d: %v\n%.400s", name, f.Name, g, violation, lines[max(0, violation.Line)])
					}
				}
			}
			for i := range fragments {
				for _, x := range fragments[i].Conversions {
					conversions[f.Name][conversionNames[x.Kind]]++
				}
			}
		}
	})
	for _, f := range openAIFormats(t) {
		t.Logf("%s: %d messages checked in %d prefixes; conversions: %v", f.Name, checked[f.Name], prefixes/2, conversions[f.Name])
	}
}

// checkPrefix holds messages to begin with those of a shorter context, but for its last
// one.
func checkPrefix(t rapid.TB, before, messages []render.Encoded) {
	t.Helper()
	for i := 0; i+1 < len(before); i++ {
		if i >= len(messages) || string(before[i].JSON) != string(messages[i].JSON) {
			t.Errorf("message %d of %d changed as the context grew", i, len(before))
			return
		}
	}
}
