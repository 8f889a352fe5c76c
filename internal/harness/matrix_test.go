package harness_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/harnesstest"
)

// matrixHarnesses are those that sessions can be resumed in.
var matrixHarnesses = harness.Writers()

// loss is a row of testdata/matrix.json: what a session of one harness loses when
// it goes through another and back.
type loss struct {
	Of, Via string
	// Lost says, by dimension, how many files have something to lose, the fixtures
	// and the corpus taken together.
	Lost   map[string]int
	Reason string
}

// matrixData is testdata/matrix.json.
type matrixData struct {
	Losses []loss
	// Never names, by harness, the dimensions that its files cannot hold, or that no
	// file here shows.
	Never map[string]map[string]string
}

// TestMatrix sends every session of every harness through every other one and back.
func TestMatrix(t *testing.T) {
	raw, err := os.ReadFile("testdata/matrix.json")
	if err != nil {
		t.Fatal(err)
	}
	var data matrixData
	if err := json.Unmarshal(raw, &data); err != nil {
		t.Fatal(err)
	}
	for _, of := range matrixHarnesses {
		if !slices.Contains(harness.Writers(), of) {
			t.Errorf("%s has no writer", of)
			return
		}
	}
	m := &matrix{data: data, seen: map[string]map[string]bool{}, lost: map[string]int{}}
	for _, of := range matrixHarnesses {
		m.seen[of] = map[string]bool{}
		files, whole := matrixFiles(t, of)
		for _, via := range matrixHarnesses {
			if via == of {
				continue
			}
			t.Run(of+" via "+via, func(t *testing.T) {
				for name, file := range files {
					m.pair(t, of, via, name, file)
				}
			})
		}
		if whole {
			m.complete(t, of)
		}
	}
}

// matrixFiles are the fixtures of a harness and its sessions of the corpus; whole is
// false if there is no corpus here.
func matrixFiles(t *testing.T, name string) (files map[string][]byte, whole bool) {
	t.Helper()
	files = map[string][]byte{}
	fixtures, err := filepath.Glob(name + "/testdata/*.in.json*")
	if err != nil || len(fixtures) == 0 {
		t.Fatalf("no fixtures of %s: %v", name, err)
	}
	for _, f := range fixtures {
		if files[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(corpusDir, "index.json")); err != nil {
		t.Logf("SKIPPED for %s: the corpus of real sessions is not beside the repository; only fixtures are sent around", name)
		return files, false
	}
	for _, x := range corpus(t) {
		if readerOf[x.Format] == name {
			files[x.File] = corpusFile(t, x.File)
		}
	}
	return files, true
}

type matrix struct {
	data matrixData
	// seen are the dimensions of which some file of a harness had facts.
	seen map[string]map[string]bool
	// lost counts the files that lost something, by pair and dimension.
	lost map[string]int
}

func (m *matrix) pair(t *testing.T, of, via, name string, file []byte) {
	t.Helper()
	start, err := harness.Read(bytes.NewReader(file), of)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	there := send(t, name, start, via)
	harnesstest.Admitted(t, there)
	back := send(t, name, there, of)
	harnesstest.Admitted(t, back)
	want, got := factsOf(start), factsOf(back)
	for _, d := range dimensions {
		if len(want[d]) > 0 {
			m.seen[of][d] = true
		}
		diff := cmp.Diff(want[d], got[d])
		if diff == "" {
			continue
		}
		key := of + " via " + via + " " + d
		if m.lost[key]++; m.lost[key] <= m.allowed(of, via, d) {
			continue
		}
		t.Errorf("%s of %s (-before +after):\n%.1500s", d, name, diff)
	}
}

// send writes a transcript for a harness and reads it there.
func send(t *testing.T, name string, tr harness.Transcript, to string) harness.Transcript {
	t.Helper()
	var file bytes.Buffer
	if _, err := harness.Write(&file, tr, to, harness.WriteOptions{}); err != nil {
		t.Fatalf("%s for %s: %v", name, to, err)
	}
	if found, ok := harness.Detect(file.Bytes()[:min(file.Len(), 1<<20)]); !ok || found != to {
		t.Errorf("%s written for %s is taken for %q", name, to, found)
	}
	read, err := harness.Read(bytes.NewReader(file.Bytes()), to)
	if err != nil {
		t.Fatalf("%s written for %s: %v", name, to, err)
	}
	return read
}

// allowed is how many files may lose a dimension.
func (m *matrix) allowed(of, via, dimension string) int {
	n := 0
	for _, l := range m.data.Losses {
		if l.Of == of && l.Via == via {
			n += l.Lost[dimension]
		}
	}
	return n
}

// complete checks that each dimension was compared for some file, and that every exemption is needed.
func (m *matrix) complete(t *testing.T, of string) {
	t.Helper()
	for _, d := range dimensions {
		why, never := m.data.Never[of][d]
		switch seen := m.seen[of][d]; {
		case seen && never:
			t.Errorf("%s: some file has %s, although none is said to: %s", of, d, why)
		case !seen && !never:
			t.Errorf("%s: no file has %s", of, d)
		}
	}
	for _, via := range matrixHarnesses {
		for _, d := range dimensions {
			key := of + " via " + via + " " + d
			if n := m.allowed(of, via, d); m.lost[key] < n {
				t.Errorf("%s: %d files lose something, although %d are said to", key, m.lost[key], n)
			}
		}
	}
	for _, l := range m.data.Losses {
		if !slices.Contains(matrixHarnesses, l.Of) || !slices.Contains(matrixHarnesses, l.Via) || l.Reason == "" {
			t.Errorf("a loss of %q via %q has no harness or no reason", l.Of, l.Via)
		}
	}
}
