package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"             //nolint:depguard // real sessions have to be read by something; render itself does not import it
	"github.com/contextd/contextd/internal/harness/harnesstest" //nolint:depguard // likewise
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// corpusDir holds real sessions beside the repository; they are not part of it.
const corpusDir = "../../../shared/corpus"

// corpusSessions gives each real session of the corpus to the test, or skips it where
// there is no corpus.
func corpusSessions(t *testing.T, use func(name string, c *reduce.Conversation)) {
	raw, err := os.ReadFile(filepath.Join(corpusDir, "index.json"))
	if err != nil {
		t.Skipf("SKIPPED: the corpus of real sessions is not next to the repository: %v", err)
	}
	var index []struct{ File string }
	if err := json.Unmarshal(raw, &index); err != nil {
		t.Fatal(err)
	}
	sessions := 0
	for _, x := range index {
		data := harnesstest.CorpusFile(t, "../..", x.File)
		if _, ok := harness.Detect(data); !ok {
			continue
		}
		transcript, err := harness.Read(bytes.NewReader(data), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range transcript.Sessions {
			_, events, err := eventlog.Head{}.Admit(part.Events)
			if err != nil {
				t.Fatal(err)
			}
			c := reduce.NewConversation(gauge)
			for _, e := range events {
				c.Append(e)
			}
			sessions++
			use(x.File+" "+part.Suffix, c)
		}
	}
	if sessions < 50 {
		t.Errorf("the corpus has %d sessions only", sessions)
	}
}

// mostPrefixes bounds how many prefixes of a session are rendered: what checks them
// grows with the square of their number. A replay with -formats has them all.
const mostPrefixes = 3

// TestCorpusRendersForProviders renders every real session in full, at every seventh
// group or at as many sevenths as are allowed, and at the end, and checks it against the
// providers' rules.
func TestCorpusRendersForProviders(t *testing.T) {
	checked := map[string]int{}
	kinds := map[string]map[string]int{}
	seals := map[string]int{}
	corpusSessions(t, func(name string, c *reduce.Conversation) {
		v := reduce.NewView(gauge, c.Groups())
		stride := 7 * (1 + len(c.Groups())/(7*mostPrefixes))
		for _, f := range providerFormats() {
			if kinds[f.Name] == nil {
				kinds[f.Name] = map[string]int{}
			}
			var fragments []render.Fragment
			for g := range c.Groups() {
				for _, m := range render.GroupMessages(v, g) {
					some := f.Fragments(m)
					seals[f.Name] += checkCarried(t, name, f, m, some)
					fragments = append(fragments, some...)
				}
				if g%stride != stride-1 && g+1 != len(c.Groups()) {
					continue
				}
				lines := linesOf(f.Join(fragments))
				checked[f.Name] += len(lines)
				for i, violation := range rules.Of(f.Name)(lines) {
					if i < 3 {
						t.Errorf("%s, %s, through group %d: %v\n%.400s", name, f.Name, g, violation, lines[max(0, violation.Line)])
					}
				}
			}
			for i := range fragments {
				for _, x := range fragments[i].Conversions {
					kinds[f.Name][kindNames[x.Kind]]++
				}
			}
		}
	})
	for _, f := range providerFormats() {
		t.Logf("%s: %d messages checked; %d seals carried; conversions: %v", f.Name, checked[f.Name], seals[f.Name], kinds[f.Name])
	}
	if seals["anthropic"] == 0 {
		t.Error("no reasoning of Anthropic's models came through with its seal")
	}
}

// checkCarried checks that the arguments of calls are in the fragments as they came,
// but for whitespace, and that a provider's own seals do, where something follows them. It
// returns how many of these there are.
func checkCarried(t *testing.T, name string, f *render.Format, m render.Message, fragments []render.Fragment) (seals int) {
	var all []byte
	for i := range fragments {
		all = append(all, fragments[i].JSON...)
	}
	for _, b := range m.Blocks {
		switch b := b.(type) {
		case eventlog.ToolCall:
			var compact bytes.Buffer
			if json.Compact(&compact, []byte(b.Arguments)) == nil && !bytes.Contains(all, compact.Bytes()) {
				t.Errorf("%s, %s: arguments %.200s are not in %.400s", name, f.Name, b.Arguments, all)
			}
		case eventlog.Thinking:
			if b.Signature == "" || provider.OfBlock(b, m.Model).String() != f.Name || len(fragments) == 0 {
				continue
			}
			if !bytes.Contains(all, []byte(b.Signature)) {
				if !strings.Contains(fmt.Sprint(fragments[0].Conversions), "reasoning that nothing follows") {
					t.Errorf("%s, %s: a seal is missing in %.400s", name, f.Name, all)
				}
				continue
			}
			seals++
		}
	}
	return seals
}
