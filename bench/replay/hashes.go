package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// hashDigits is how many digits of each hash are stored: enough to notice a change.
const hashDigits = 12

// hashFile stores the hashes of all contexts of earlier runs, to check that a change of the code changes no
// byte of them. A line is one session under one policy, format and budget: tab-separated names, then one hash
// per step. Runs that are not in the file are added. A nil hashFile stores nothing.
type hashFile struct {
	path, corpus string

	mu    sync.Mutex
	lines map[string][]string
}

// openHashFile reads the file; a missing file is empty. An empty path gives nil.
func openHashFile(path, corpus string) (*hashFile, error) {
	if path == "" {
		return nil, nil
	}
	h := &hashFile{path: path, corpus: corpus, lines: map[string][]string{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		at := strings.LastIndexByte(line, '\t')
		if at < 0 {
			return nil, fmt.Errorf("%s: %q has no tab", path, line)
		}
		h.lines[line[:at]] = strings.Fields(line[at:])
	}
	return h, nil
}

// hold compares the hashes of a run with those in the file; they are one per step, empty where the context
// was refused. If the file has none for this run, they are added. changed is the first step with another
// hash, or -1.
func (h *hashFile) hold(s *session, policy *contextdv1.Policy, format string, tokens uint64, hashes []string) (changed int, err error) {
	if h == nil {
		return -1, nil
	}
	name, err := filepath.Rel(h.corpus, s.File)
	if err != nil {
		return -1, err
	}
	asked := "default"
	if policy != nil {
		json, err := protojson.Marshal(policy)
		if err != nil {
			return -1, err
		}
		asked = strings.Join(strings.Fields(string(json)), "") // protojson's spaces vary between builds
	}
	key := strings.Join([]string{filepath.ToSlash(name), s.Suffix, asked, format, fmt.Sprint(tokens)}, "\t")
	short := make([]string, len(hashes))
	for i, hash := range hashes {
		if short[i] = "refused"; hash != "" {
			short[i] = strings.TrimPrefix(hash, "sha256:")[:hashDigits]
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.lines[key]
	if !ok {
		h.lines[key] = short
		return -1, nil
	}
	for i := range max(len(known), len(short)) {
		if i >= len(known) || i >= len(short) || known[i] != short[i] {
			return i, nil
		}
	}
	return -1, nil
}

// close writes the file if runs were added.
func (h *hashFile) close() error {
	if h == nil {
		return nil
	}
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(h.lines)) {
		fmt.Fprintf(&out, "%s\t%s\n", key, strings.Join(h.lines[key], " "))
	}
	return os.WriteFile(h.path, []byte(out.String()), 0o644)
}
