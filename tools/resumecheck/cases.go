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

// Case is a session to resume, and its origin.
type Case struct {
	Name string
	// Make returns the file to resume. The session has the given id.
	Make func(ctx context.Context, c Contextd, id string) ([]byte, error)
	// Original is the file as the harness itself wrote it; nil if the harness did not.
	Original []byte
}

// casesOf are the cases of a harness: its fixtures rewritten by contextd, other harnesses' fixtures
// converted, large ones compacted, and recorded sessions if there is a corpus.
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
		file = []byte(genuine.Replace(string(file)))
		format, ok := harness.Detect(file)
		if !ok {
			continue
		}
		label := format + "/" + strings.TrimSuffix(strings.SplitN(filepath.Base(name), ".in.", 2)[0], ".")
		if strings.HasPrefix(name, "tools") || strings.HasPrefix(filepath.Base(name), "resume.") {
			cases = append(cases, all(h, label, file)...)
		} else {
			cases = append(cases, rewritten(h, label, file))
		}
	}
	recorded, err := corpusCases(h, corpus)
	return append(cases, recorded...), err
}

// genuine replaces placeholders for images and models in fixtures. The CLIs decode images, and omit reasoning
// that is signed by a model that they do not know.
var genuine = strings.NewReplacer(
	"AAEC", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
	"claude-x", "claude-opus-4-5-20251101", "claude-y", "claude-opus-4-5-20251101",
	"image/jpeg", "image/png", "/9j/", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
)

// all are the cases of one transcript: unchanged if it is the harness's own, and written by contextd, in full
// and compacted.
func all(h Harness, label string, file []byte) []Case {
	cases := []Case{rewritten(h, label, file), shrunk(h, label, file)}
	if strings.HasPrefix(label, h.Name()+"/") {
		original := func(context.Context, Contextd, string) ([]byte, error) { return file, nil }
		cases = append([]Case{{Name: "original " + label, Make: original}}, cases...)
		for i := range cases {
			cases[i].Original = file
		}
	}
	return cases
}

// rewritten is a case of a transcript that contextd writes for this harness.
func rewritten(h Harness, label string, file []byte) Case {
	name, original := "rewritten ", file
	if !strings.HasPrefix(label, h.Name()+"/") {
		name, original = "converted ", nil
	}
	return Case{Name: name + label, Original: original, Make: func(_ context.Context, _ Contextd, id string) ([]byte, error) {
		read, err := harness.Read(bytes.NewReader(file), "")
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		_, err = harness.Write(&out, read, h.Name(), harness.WriteOptions{SessionID: id, WorkingDirectory: "/src"})
		return out.Bytes(), err
	}}
}

// shrunk is a case of a transcript with a compaction by contextd, as `contextd convert --as-compacted` writes
// it.
func shrunk(h Harness, label string, file []byte) Case {
	return Case{Name: "shrunk " + label, Make: func(ctx context.Context, c Contextd, id string) ([]byte, error) {
		return c.Convert(ctx, file, h.Name(), "--session-id", id, "--cwd", "/src", "--as-compacted", "--max-tokens", "8k")
	}}
}

// corpusCases are cases of a harness's recorded sessions in a folder: unchanged, and rewritten by contextd.
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
		cases = append(cases, all(h, label, file)...)
	}
	return cases, nil
}

// session makes a case's file and reads the session's id from it.
func (c Case) session(ctx context.Context, program Contextd, h Harness) (Session, error) {
	const id = "0195f7c2-7e1a-7a53-9b0c-3f6f0a4b6f10"
	file, err := c.Make(ctx, program, id)
	if err != nil {
		return Session{}, err
	}
	return sessionOf(h, file)
}

// sessionOf is a session with the id that its file has.
func sessionOf(h Harness, file []byte) (Session, error) {
	if u, ok := h.(Upgrader); ok {
		file = u.Upgrade(file)
	}
	read, err := harness.Read(bytes.NewReader(file), h.Name())
	if err != nil {
		return Session{}, err
	}
	if len(read.Sessions) == 0 {
		return Session{}, fmt.Errorf("the file holds no session")
	}
	return Session{ID: read.Sessions[0].Labels[transcript.LabelSessionID], File: file}, nil
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

// byName returns the constructor of a harness.
func byName(name string) (func() Harness, error) {
	i := slices.IndexFunc(harnesses, func(fresh func() Harness) bool { return fresh().Name() == name })
	if i < 0 {
		return nil, fmt.Errorf("no harness %q", name)
	}
	return harnesses[i], nil
}
