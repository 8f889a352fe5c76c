package render_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
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
		t.Skipf("SKIPPED: the corpus of real sessions is not beside the repository: %v", err)
	}
	var index []struct{ File string }
	if err := json.Unmarshal(raw, &index); err != nil {
		t.Fatal(err)
	}
	sessions := 0
	for _, x := range index {
		data := corpusFile(t, x.File)
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

func corpusFile(t *testing.T, name string) []byte {
	f, err := os.Open(filepath.Join(corpusDir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestCorpusRendersForProviders renders every real session in full, at every seventh
// group and at the end, and holds it to the providers' rules.
func TestCorpusRendersForProviders(t *testing.T) {
	checked := map[string]int{}
	kinds := map[string]map[render.ConversionKind]int{}
	corpusSessions(t, func(name string, c *reduce.Conversation) {
		v := reduce.NewView(gauge, c.Groups())
		for _, f := range providerFormats() {
			if kinds[f.Name()] == nil {
				kinds[f.Name()] = map[render.ConversionKind]int{}
			}
			var fragments []render.Fragment
			for g := range c.Groups() {
				for _, m := range render.GroupMessages(v, g) {
					fragments = append(fragments, f.Fragments(m)...)
				}
				if g%7 != 6 && g+1 != len(c.Groups()) {
					continue
				}
				lines := linesOf(f.Join(fragments))
				checked[f.Name()] += len(lines)
				for i, violation := range rules.Check(f.Name(), lines) {
					if i < 3 {
						t.Errorf("%s, %s, through group %d: %v\n%.400s", name, f.Name(), g, violation, lines[max(0, violation.Line)])
					}
				}
			}
			for i := range fragments {
				for _, x := range fragments[i].Conversions {
					kinds[f.Name()][x.Kind]++
				}
			}
		}
	})
	for _, f := range providerFormats() {
		t.Logf("%s: %d messages checked; conversions by kind: %v", f.Name(), checked[f.Name()], kinds[f.Name()])
	}
}
