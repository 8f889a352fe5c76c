// Command flamegraph draws CPU profiles as flame graphs, and prints the share of each step.
//
//	flamegraph [-steps FILE] PROFILE.pprof...
//
// It writes PROFILE.svg next to each profile. Each line of the file of steps has a step's name, a tab, and
// prefixes of functions' names, separated by spaces. A sample belongs to the step of its innermost function
// that has such a prefix.
package main

import (
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

func main() {
	steps := flag.String("steps", "", "file that names the steps")
	flag.Parse()
	if err := run(os.Stdout, *steps, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "flamegraph:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, stepsFile string, files []string) error {
	var all []step
	if stepsFile != "" {
		f, err := os.Open(stepsFile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // only read
		if all, err = readSteps(f); err != nil {
			return fmt.Errorf("%s: %w", stepsFile, err)
		}
	}
	for _, file := range files {
		stacks, err := readStacks(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		picture := filepath.Join(filepath.Dir(file), name+".svg")
		if err := os.WriteFile(picture, draw(name, stacks), 0o600); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n%s\n", picture, shares(stacks, all)); err != nil {
			return err
		}
	}
	return nil
}

// stack is a call stack, the outermost function first; value is how long it was sampled.
type stack struct {
	frames []string
	value  int64
}

// readStacks reads the last value of each sample in a profile, which is processor time in a CPU profile.
func readStacks(file string) ([]stack, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	p, err := profile.Parse(f)
	if err != nil {
		return nil, err
	}
	out := make([]stack, 0, len(p.Sample))
	for _, s := range p.Sample {
		st := stack{value: s.Value[len(s.Value)-1]}
		for _, l := range slices.Backward(s.Location) {
			for _, line := range slices.Backward(l.Line) {
				st.frames = append(st.frames, line.Function.Name)
			}
		}
		out = append(out, st)
	}
	return out, nil
}

type step struct {
	name     string
	prefixes []string
}

func readSteps(r io.Reader) (out []step, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, prefixes, ok := strings.Cut(lines.Text(), "\t")
		if !ok || strings.TrimSpace(prefixes) == "" {
			return nil, fmt.Errorf("%q is not a step, a tab and prefixes", lines.Text())
		}
		out = append(out, step{name, strings.Fields(prefixes)})
	}
	return out, lines.Err()
}

// other is the step of samples that match none.
const other = "other"

// stepOf is the step of a stack's innermost frame that matches one; if it matches several, the first in the
// file.
func stepOf(s stack, all []step) string {
	for _, frame := range slices.Backward(s.frames) {
		for _, st := range all {
			if slices.ContainsFunc(st.prefixes, func(p string) bool { return strings.HasPrefix(frame, p) }) {
				return st.name
			}
		}
	}
	return other
}

// shares is a table of each step's share, in the order of the file.
func shares(stacks []stack, all []step) string {
	if len(all) == 0 {
		return ""
	}
	of, total := map[string]int64{}, int64(0)
	for _, s := range stacks {
		of[stepOf(s, all)] += s.value
		total += s.value
	}
	var b strings.Builder
	for _, st := range append(slices.Clone(all), step{name: other}) {
		fmt.Fprintf(&b, "  %5.1f %%  %s\n", 100*float64(of[st.name])/float64(max(total, 1)), st.name)
	}
	return b.String()
}

// node is a function, and the functions that it called.
type node struct {
	name     string
	value    int64
	children map[string]*node
}

func tree(stacks []stack) *node {
	root := &node{name: "all", children: map[string]*node{}}
	for _, s := range stacks {
		at := root
		at.value += s.value
		for _, name := range s.frames {
			child := at.children[name]
			if child == nil {
				child = &node{name: name, children: map[string]*node{}}
				at.children[name] = child
			}
			child.value += s.value
			at = child
		}
	}
	return root
}

// sorted are the children of a node, the widest first.
func (n *node) sorted() []*node {
	out := make([]*node, 0, len(n.children))
	for _, c := range n.children {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *node) int { return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.name, b.name)) })
	return out
}
