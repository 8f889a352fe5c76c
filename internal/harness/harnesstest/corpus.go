package harnesstest

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Corpus returns the real sessions of a format, by file name. root is the repository's root, relative to the
// test. The test is skipped if the corpus is not next to the repository.
func Corpus(t testing.TB, root, format string) map[string][]byte {
	t.Helper()
	dir := filepath.Join(root, "..", "shared", "corpus")
	raw, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Skipf("SKIPPED: the corpus of real sessions is not next to the repository: %v", err)
	}
	var index []struct{ File, Format string }
	if err := json.Unmarshal(raw, &index); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, x := range index {
		if x.Format == format {
			files[x.File] = readFile(t, filepath.Join(dir, x.File))
		}
	}
	if len(files) == 0 {
		t.Fatalf("the corpus has no session of %s", format)
	}
	return files
}

// CorpusFile reads one file of the corpus by its name in the index.
func CorpusFile(t testing.TB, root, name string) []byte {
	t.Helper()
	return readFile(t, filepath.Join(root, "..", "shared", "corpus", name))
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
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

// Files reads the files that match a pattern, by name.
func Files(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		files[filepath.Base(name)] = readFile(t, name)
	}
	return files
}
