package harness_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// resumable are the harnesses whose writers are tested with whatever their readers accept.
var resumable = []string{"claude", "codex"}

// checkResume: the harness's own writer writes what its reader made of a file, and the reader makes the same
// of the new file.
func checkResume(t reporter, tr harness.Transcript) {
	t.Helper()
	var file bytes.Buffer
	report, err := harness.Write(&file, tr, tr.Harness, harness.WriteOptions{})
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	if report.Compactions != tr.Compactions {
		t.Errorf("the report counts %d compactions of %d", report.Compactions, tr.Compactions)
	}
	again, err := harness.Read(bytes.NewReader(file.Bytes()), tr.Harness)
	if err != nil {
		t.Errorf("%v in\n%.2000s", err, file.Bytes())
		return
	}
	checkTranscript(t, again)
	sameFacts(t, "", tr, again)
	if len(again.Sessions) != len(tr.Sessions) {
		t.Errorf("%d sessions were written and %d are read", len(tr.Sessions), len(again.Sessions))
		return
	}
	for i := 1; i < len(tr.Sessions); i++ {
		was, is := tr, again
		was.Sessions, is.Sessions = tr.Sessions[i:i+1], again.Sessions[i:i+1]
		sameFacts(t, tr.Sessions[i].Suffix+": ", was, is)
	}
}

// sameFacts compares what two transcripts say.
func sameFacts(t reporter, of string, was, is harness.Transcript) {
	t.Helper()
	want, got := factsOf(was), factsOf(is)
	for _, d := range dimensions {
		if strings.Contains(strings.Join(want[d], "\n"), "call-line-") {
			continue // an id that the reader made of a position
		}
		if !reflect.DeepEqual(want[d], got[d]) {
			t.Errorf("%s%s were\n%.400q and are\n%.400q", of, d, want[d], got[d])
		}
	}
}

// TestMutationsResume runs checkResume on fixtures that are changed as in TestMutations.
func TestMutationsResume(t *testing.T) {
	for _, name := range resumable {
		inputs, err := filepath.Glob(name + "/testdata/*.in.jsonl")
		if err != nil || len(inputs) == 0 {
			t.Fatalf("no fixtures: %v", err)
		}
		for _, input := range inputs {
			raw, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(input, func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					var root any = parseAll(raw, true)
					for range rapid.IntRange(1, 8).Draw(rt, "mutations") {
						root = mutate(rt, root)
					}
					data := encodeAll(root, true)
					tr, err := harness.Read(bytes.NewReader(data), name)
					var format *harness.FormatError
					if errors.As(err, &format) {
						return
					}
					checkResume(rt, tr)
					if rt.Failed() {
						rt.Logf("from\n%s", data)
					}
				})
			})
		}
	}
}

// TestResumeBoundaries reads files with records between a boundary and its summary, and with a subagent's
// records in places where the session's own records must ignore them.
func TestResumeBoundaries(t *testing.T) {
	at := func(minute int, sidechain bool, record string) string {
		return fmt.Sprintf(`{"sessionId":"s","timestamp":"2026-04-01T10:%02d:00.000Z","isSidechain":%v,%s}`, minute, sidechain, record)
	}
	said := func(uuid, parent string) string {
		return fmt.Sprintf(`"type":"user","uuid":%q,"parentUuid":%q,"message":{"role":"user","content":"It is %s."}`, uuid, parent, uuid)
	}
	boundary := func(uuid, kept string) string {
		return fmt.Sprintf(`"type":"system","subtype":"compact_boundary","uuid":%q,"compactMetadata":{"trigger":"auto","preservedMessages":{"uuids":[%s]}}`, uuid, kept)
	}
	summary := func(uuid string) string { return said(uuid, "") + `,"isCompactSummary":true` }
	for name, c := range map[string]struct {
		lines      []string
		boundaries []string
	}{
		"a subagent's boundary between boundary and summary": {
			[]string{at(0, false, said("u1", "")), at(1, false, boundary("c1", "")), at(2, true, boundary("c2", "")), at(3, false, summary("s1"))},
			[]string{`1 c1 "It is s1." []`},
		},
		"a subagent's message between boundary and summary": {
			[]string{at(0, false, said("u1", "")), at(1, false, boundary("c1", "")), at(2, true, said("x1", "")), at(3, false, summary("s1"))},
			[]string{`1 c1 "It is s1." []`},
		},
		"a kept message whose record a subagent had first": {
			[]string{
				at(0, false, said("u1", "")), at(0, true, said("u2", "u1")), at(1, false, boundary("c1", `"u2"`)), at(0, false, said("u2", "u1")),
				at(1, false, summary("s1")), at(2, false, boundary("c2", `"u2"`)), at(2, false, summary("s2")),
			},
			[]string{`1 c1 "" []`, `3 s1 "It is s1." []`, `4 c2 "It is s2." [u2]`},
		},
		"a kept segment that ends with a subagent's message": {
			[]string{
				at(0, false, said("u1", "")), at(0, false, said("u2", "u1")),
				at(2, false, `"type":"system","subtype":"compact_boundary","uuid":"c1","compactMetadata":{"preservedSegment":{"headUuid":"u1","tailUuid":"x1"}}`),
				at(1, true, said("x1", "u2")), at(2, false, summary("s1")),
			},
			[]string{`2 c1 "It is s1." []`},
		},
		"a kept segment that ends behind the boundary": {
			[]string{
				at(0, false, said("u1", "")), at(0, false, said("u2", "u1")),
				at(2, false, `"type":"system","subtype":"compact_boundary","uuid":"c1","compactMetadata":{"preservedSegment":{"headUuid":"u1","tailUuid":"a3"}}`),
				at(1, false, `"type":"assistant","uuid":"a3","parentUuid":"u2"`), "true", at(3, false, said("u4", "")),
			},
			[]string{`4 c1 "" [u1 u2]`},
		},
		"a kept message that only its second record has": {
			[]string{
				at(0, false, said("u1", "")), at(0, false, `"type":"assistant","uuid":"a2","message":{"role":"assistant","id":"m2"}`),
				at(1, false, boundary("c1", `"u1","a2"`)), at(0, false, `"type":"assistant","uuid":"a2","message":{"role":"assistant","id":"m2","content":[{"type":"text","text":"Done."}]}`),
				at(3, false, said("u3", "")),
			},
			[]string{`3 c1 "" [u1 a2#2]`},
		},
		"a subagent's summary that is the session's too": {
			[]string{at(0, false, said("u1", "")), at(1, false, boundary("c1", "")), at(2, true, summary("s1")), at(3, false, summary("s1"))},
			[]string{`1 c1 "It is s1." []`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := harness.Read(strings.NewReader(strings.Join(c.lines, "\n")), "claude")
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for i, e := range tr.Sessions[0].Events {
				if b, ok := e.Body.(*eventlog.Compaction); ok {
					found = append(found, fmt.Sprintf("%d %s %q %v", i, e.ID, b.Summary, b.KeptEventIDs))
				}
			}
			if !slices.Equal(found, c.boundaries) {
				t.Errorf("boundaries are %q, want %q", found, c.boundaries)
			}
			checkResume(t, tr)
		})
	}
}

// TestResumeSidechains reads files in which a subagent's records come before those that they name as their
// parents.
func TestResumeSidechains(t *testing.T) {
	side := func(second int, uuid, parent string) string {
		return fmt.Sprintf(`{"sessionId":"s","timestamp":"2026-04-01T10:00:%02d.000Z","isSidechain":true,"type":"user","uuid":%q,"parentUuid":%q,"message":{"role":"user","content":"It is %s."}}`, second, uuid, parent, uuid)
	}
	main := `{"sessionId":"s","timestamp":"2026-04-01T10:00:02.000Z","type":"user","uuid":"m","message":{"role":"user","content":"Go."}}`
	for name, c := range map[string]struct {
		lines []string
		want  []string // the events of each session
	}{
		"alone":         {[]string{side(1, "a", "b"), side(0, "b", ""), side(1, "a", "b")}, []string{"a", "b a"}},
		"behind others": {[]string{main, side(3, "a", "b"), side(1, "b", ""), side(4, "c", "b")}, []string{"m", "a", "b c"}},
		"before others": {[]string{side(3, "a", "b"), side(1, "b", ""), main}, []string{"m", "a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := harness.Read(strings.NewReader(strings.Join(c.lines, "\n")), "claude")
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, s := range tr.Sessions {
				var ids []string
				for _, e := range s.Events {
					ids = append(ids, e.ID)
				}
				found = append(found, strings.Join(ids, " "))
			}
			if !slices.Equal(found, c.want) {
				t.Errorf("the sessions are %q, want %q", found, c.want)
			}
			checkResume(t, tr)
		})
	}
}

// TestResumeBareItems reads a rollout of an old version with a message whose parts have no known type: the
// writer must write its record unchanged.
func TestResumeBareItems(t *testing.T) {
	const said = `{"content":[{"text":"Go."},{"text":"On."}],"role":"assistant","type":"message"}`
	const file = said + "\n" + `{"id":"old-1","instructions":"Old prompt.","timestamp":"2025-05-01T00:00:00.000Z"}` + "\n"
	tr, err := harness.Read(strings.NewReader(file), "codex")
	if err != nil {
		t.Fatal(err)
	}
	checkResume(t, tr)
	var again bytes.Buffer
	if report, err := harness.Write(&again, tr, "codex", harness.WriteOptions{}); err != nil || len(report.Warnings) > 0 {
		t.Errorf("written with %v, %v", report.Warnings, err)
	}
	if again.String() != file {
		t.Errorf("it became\n%s", again.String())
	}
}

// FuzzResume is TestMutationsResume with arbitrary bytes.
func FuzzResume(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range resumable {
			if tr, err := harness.Read(bytes.NewReader(data), name); err == nil {
				checkResume(t, tr)
			}
		}
	})
}

// TestWriteByName: Write takes every name of a harness, and refuses unknown names.
func TestWriteByName(t *testing.T) {
	tr := foreign()
	for _, name := range []string{"claude", "claude-code", "codex", "codex-rollout"} {
		if _, err := harness.Write(&bytes.Buffer{}, tr, name, harness.WriteOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range harness.Names() {
		var format *harness.FormatError
		_, err := harness.Write(&bytes.Buffer{}, tr, name, harness.WriteOptions{})
		if has := slices.Contains(harness.Writers(), name); has == errors.As(err, &format) {
			t.Errorf("%s has a writer: %v, and writing gives %v", name, has, err)
		}
	}
}

// TestWriteOptions: the file has the session id and the working directory of the options.
func TestWriteOptions(t *testing.T) {
	const id, dir = "11111111-2222-4333-8444-555555555555", "/elsewhere"
	for _, name := range resumable {
		inputs, _ := filepath.Glob(name + "/testdata/*.in.jsonl")
		for _, tr := range append(readAll(t, inputs), foreign()) {
			var file bytes.Buffer
			if _, err := harness.Write(&file, tr, name, harness.WriteOptions{SessionID: id, WorkingDirectory: dir}); err != nil {
				t.Fatal(err)
			}
			again, err := harness.Read(bytes.NewReader(file.Bytes()), name)
			if err != nil {
				t.Fatal(err)
			}
			if got := again.Sessions[0].Labels["harness.session_id"]; got != id {
				t.Errorf("%s: the session is %q", name, got)
			}
			if old := tr.Sessions[0].Labels["harness.session_id"]; old != "" && strings.Contains(file.String(), `"sessionId":"`+old+`"`) {
				t.Errorf("%s: the old id %q stands in the file", name, old)
			}
			if tr.Harness == "" && again.Sessions[0].Labels["harness.cwd"] != dir {
				t.Errorf("%s: it ran in %q", name, again.Sessions[0].Labels["harness.cwd"])
			}
		}
	}
}

func readAll(t *testing.T, inputs []string) []harness.Transcript {
	t.Helper()
	var all []harness.Transcript
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := harness.Read(bytes.NewReader(data), "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tr)
	}
	return all
}
