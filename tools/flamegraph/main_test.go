package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// profileOf writes a profile of stacks, the outermost function first.
func profileOf(t *testing.T, stacks map[string]int64) string {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples"}, {Type: "cpu", Unit: "nanoseconds"}}}
	functions := map[string]*profile.Location{}
	location := func(name string) *profile.Location {
		if functions[name] == nil {
			f := &profile.Function{ID: uint64(len(functions) + 1), Name: name}
			functions[name] = &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
			p.Function, p.Location = append(p.Function, f), append(p.Location, functions[name])
		}
		return functions[name]
	}
	for frames, value := range stacks {
		s := &profile.Sample{Value: []int64{1, value}}
		for _, name := range strings.Split(frames, ";") {
			s.Location = append([]*profile.Location{location(name)}, s.Location...)
		}
		p.Sample = append(p.Sample, s)
	}
	file := filepath.Join(t.TempDir(), "append.pprof")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Write(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFlameGraph(t *testing.T) {
	file := profileOf(t, map[string]int64{
		"main.serve;example.com/count.Words;runtime.mallocgc": 30,
		"main.serve;example.com/count.Words":                  20,
		"main.serve;example.com/disk.(*Log[go.shape]).Sync":   25,
		"runtime.gcBgMarkWorker":                              15,
		"main.serve":                                          10,
	})
	steps := filepath.Join(t.TempDir(), "steps.txt")
	if err := os.WriteFile(steps, []byte("count\texample.com/count\nsync\texample.com/disk example.com/none\ncollect\truntime.gcBg\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(&out, steps, []string{file}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" 50.0 %  count\n", " 25.0 %  sync\n", " 15.0 %  collect\n", " 10.0 %  other\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	svg, err := os.ReadFile(strings.TrimSuffix(file, ".pprof") + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
	// The outermost function is at the bottom, above the root, and as wide as its share.
	for _, want := range []string{
		`<title>main.serve (85.00 %)</title><rect x="0.0" y="48" width="1190.0"`,
		`<title>example.com/count.Words (50.00 %)</title><rect x="0.0" y="32" width="700.0"`,
		`<title>runtime.mallocgc (30.00 %)</title><rect x="0.0" y="16" width="420.0"`,
		`>disk.(*Log[…]</text>`,
	} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
}

func TestStepsAreRefused(t *testing.T) {
	for _, text := range []string{"count", "count\t", "count example.com/count"} {
		if steps, err := readSteps(strings.NewReader(text)); err == nil {
			t.Errorf("%q is %v", text, steps)
		}
	}
}
