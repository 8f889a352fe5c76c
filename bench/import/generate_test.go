package import_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// generator generates sessions of agents that read, edit and run programs. Results vary widely in size, and
// look like source code and logs.
type generator struct {
	random *rand.Rand
	names  []string
}

func newGenerator() *generator {
	g := &generator{random: rand.New(rand.NewPCG(7, 1))}
	syllables := strings.Fields("re con ser ver to ken in dex wri ter par se map val id ctx err len buf out pre fix tail head sum")
	for range 4000 {
		name := ""
		for range 2 + g.random.IntN(3) {
			s := syllables[g.random.IntN(len(syllables))]
			if name != "" && g.random.IntN(2) == 0 {
				s = strings.ToUpper(s[:1]) + s[1:]
			}
			name += s
		}
		g.names = append(g.names, name)
	}
	return g
}

func (g *generator) name() string {
	// Few names are used often, as in real programs.
	i := int(float64(len(g.names)) * g.random.Float64() * g.random.Float64() * g.random.Float64())
	return g.names[i]
}

// source is some lines of a program.
func (g *generator) source(lines int) string {
	var b strings.Builder
	for i := range lines {
		indent := strings.Repeat("\t", g.random.IntN(4))
		switch g.random.IntN(5) {
		case 0:
			fmt.Fprintf(&b, "%sif %s := %s(%s, %d); %s != nil {\n", indent, g.name(), g.name(), g.name(), g.random.IntN(4096), g.name())
		case 1:
			fmt.Fprintf(&b, "%s// %s holds the %s of each %s, which %s may not change.\n", indent, g.name(), g.name(), g.name(), g.name())
		case 2:
			fmt.Fprintf(&b, "%s%s.%s = append(%s, %q)\n", indent, g.name(), g.name(), g.name(), g.name())
		case 3:
			fmt.Fprintf(&b, "%d\t%sreturn %s{%s: %s}, fmt.Errorf(\"%s: %%w\", err)\n", i+1, indent, g.name(), g.name(), g.name(), g.name())
		default:
			b.WriteString(indent + "}\n")
		}
	}
	return b.String()
}

// lines is the length of a result in lines: most are short, some very long.
func (g *generator) lines() int {
	return 2 + int(400*g.random.Float64()*g.random.Float64()*g.random.Float64())
}

// session generates a session of about so many bytes.
func (g *generator) session(n, size int) harness.Session {
	at := time.Date(2026, 3, 1, 9, 0, n, 0, time.UTC)
	var events []eventlog.Event
	add := func(role eventlog.Role, group string, blocks ...eventlog.Block) int {
		at = at.Add(1500 * time.Millisecond)
		model := ""
		if role == eventlog.RoleAssistant {
			model = "model-1"
		}
		e := eventlog.Event{
			ID: fmt.Sprintf("%08x-0000-4000-8000-%012x", n, len(events)), Time: at,
			Body: &eventlog.Message{Role: role, Blocks: blocks, GroupID: group, Model: model},
		}
		events = append(events, e)
		return int(eventlog.Size(e))
	}
	for total, turn := 0, 0; total < size; turn++ {
		if turn%25 == 0 {
			total += add(eventlog.RoleUser, "", eventlog.Text{Text: "Please change " + g.name() + ":\n" + g.source(8)})
		}
		call := fmt.Sprintf("toolu_%04d_%06d", n, turn)
		path := fmt.Sprintf("/src/%s/%s.go", g.name(), g.name())
		arguments := fmt.Sprintf(`{"path":%q,"limit":%d}`, path, g.random.IntN(2000))
		total += add(eventlog.RoleAssistant, "msg_"+call,
			eventlog.Text{Text: "I look at " + path + ", which " + g.name() + " needs."},
			eventlog.ToolCall{CallID: call, Name: "Read", Arguments: arguments})
		total += add(eventlog.RoleTool, "", eventlog.ToolResult{
			CallID: call, ToolName: "Read", Content: []eventlog.Block{eventlog.Text{Text: g.source(g.lines())}},
		})
	}
	return harness.Session{Events: events, Labels: map[string]string{}}
}

// generate writes so many files, of so many bytes in total, in the harnesses' formats.
func generate(b *testing.B, sessions int, bytes int64) (dir string) {
	b.Helper()
	dir = b.TempDir()
	g := newGenerator()
	writers := harness.Writers()
	for n := range sessions {
		name := writers[n%len(writers)]
		folder := filepath.Join(dir, name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			b.Fatal(err)
		}
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("session-%04d.jsonl", n)))
		if err != nil {
			b.Fatal(err)
		}
		// The rest is the format's own bytes around the texts.
		s := g.session(n, int(float64(bytes)/float64(sessions)*0.8))
		_, err = harness.Write(f, harness.Transcript{Sessions: []harness.Session{s}}, name, harness.WriteOptions{WorkingDirectory: "/src"})
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}
