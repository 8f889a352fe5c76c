package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
)

// Case is a session and where it comes from.
type Case struct {
	Name string
	// Make gives the file to be resumed, for the working directory and under the id.
	Make func(ctx context.Context, c Contextd, id string) ([]byte, error)
	// Original is set where the file is the harness's own and keeps its id.
	Original bool
}

// casesOf are the cases of a harness: its fixtures written again, those of the others
// converted, the large ones shrunk, and recorded sessions if there is a corpus.
func casesOf(h Harness, corpus string) ([]Case, error) {
	var cases []Case
	fixtures, err := filepath.Glob(filepath.Join("internal", "harness", "*", "testdata", "*.in.json*"))
	if err != nil || len(fixtures) == 0 {
		return nil, fmt.Errorf("no fixtures of internal/harness: run it in the repository's root")
	}
	own, err := filepath.Glob(filepath.Join("tools", "resumecheck", "testdata", "*.in.json*"))
	if err != nil {
		return nil, err
	}
	for _, name := range append(fixtures, own...) {
		file, err := readFile(name)
		if err != nil {
			return nil, err
		}
		file = []byte(real.Replace(string(file)))
		format, ok := harness.Detect(file)
		if !ok {
			continue
		}
		label := format + "/" + strings.TrimSuffix(strings.SplitN(filepath.Base(name), ".in.", 2)[0], ".")
		cases = append(cases, rewritten(h, label, file))
		if strings.HasPrefix(name, "tools") {
			cases = append(cases, shrunk(h, label, file))
		}
	}
	recorded, err := corpusCases(h, corpus)
	return append(cases, recorded...), err
}

// real replaces what stands for images and models in the fixtures: the CLIs look into
// images, and leave out what a model has signed that they do not know.
var real = strings.NewReplacer(
	"AAEC", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
	"claude-x", "claude-opus-4-5-20251101", "claude-y", "claude-opus-4-5-20251101",
	"image/jpeg", "image/png", "/9j/", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
)

// rewritten is a transcript of any harness, written by contextd for this one.
func rewritten(h Harness, label string, file []byte) Case {
	name := "rewritten "
	if !strings.HasPrefix(label, h.Name()+"/") {
		name = "converted "
	}
	return Case{Name: name + label, Make: func(_ context.Context, _ Contextd, id string) ([]byte, error) {
		read, err := harness.Read(bytes.NewReader(file), "")
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		_, err = harness.Write(&out, read, h.Name(), harness.WriteOptions{SessionID: id, WorkingDirectory: "/src"})
		return out.Bytes(), err
	}}
}

// shrunk is a transcript with a compaction of contextd behind it.
func shrunk(h Harness, label string, file []byte) Case {
	return Case{Name: "shrunk " + label, Make: func(ctx context.Context, c Contextd, id string) ([]byte, error) {
		return c.Convert(ctx, file, h.Name(), "--session-id", id, "--cwd", "/src", "--as-compacted", "--max-tokens", "8k")
	}}
}

// corpusCases are the recorded sessions of a harness below a folder: as they are, and
// written again.
func corpusCases(h Harness, corpus string) ([]Case, error) {
	if corpus == "" {
		return nil, nil
	}
	names, err := filepath.Glob(filepath.Join(corpus, "*", "*.json*"))
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, name := range names {
		file, err := readFile(name)
		if err != nil {
			return nil, err
		}
		if format, ok := harness.Detect(file); !ok || format != h.Name() {
			continue
		}
		base := strings.SplitN(filepath.Base(name), ".", 2)[0]
		label := h.Name() + "/" + filepath.Base(filepath.Dir(name)) + "/" + base
		cases = append(cases,
			Case{Name: "original " + label, Original: true, Make: func(context.Context, Contextd, string) ([]byte, error) { return file, nil }},
			rewritten(h, label, file), shrunk(h, label, file))
	}
	return cases, nil
}

// session makes the file of a case.
func (c Case) session(ctx context.Context, program Contextd, h Harness) (Session, error) {
	s := Session{ID: "0195f7c2-7e1a-7a53-9b0c-3f6f0a4b6f10"}
	var err error
	if s.File, err = c.Make(ctx, program, s.ID); err != nil {
		return s, err
	}
	read, err := harness.Read(bytes.NewReader(s.File), h.Name())
	if err != nil {
		return s, err
	}
	if len(read.Sessions) == 0 {
		return s, fmt.Errorf("the file holds no session")
	}
	s.ID = read.Sessions[0].Labels[transcript.LabelSessionID]
	return s, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !strings.HasSuffix(name, ".gz") {
		return io.ReadAll(f)
	}
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return io.ReadAll(unpacked)
}

// byName finds a harness.
func byName(name string) (Harness, error) {
	i := slices.IndexFunc(harnesses, func(h Harness) bool { return h.Name() == name })
	if i < 0 {
		return nil, fmt.Errorf("no harness %q", name)
	}
	return harnesses[i], nil
}
