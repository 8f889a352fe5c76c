package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	makeTarget = regexp.MustCompile("(?m)(?:^ {4}|`)make ([a-z][a-z-]*)")
	// code is what is no prose, and so holds no links.
	code = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
)

// pages lists the Markdown files of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		if err == nil && d.IsDir() && (strings.HasPrefix(name, ".") && path != ".." || slices.Contains([]string{"bin", "testdata", "node_modules", "target"}, name)) {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".md") {
			out = append(out, path)
		}
		return err
	})
	if err != nil || len(out) < 5 {
		t.Fatalf("found %v: %v", out, err)
	}
	return out
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(code.ReplaceAll(text, nil), -1) {
			target, _, _ := strings.Cut(string(m[1]), "#")
			if target == "" || strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), target)); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
			}
		}
	}
}

func TestTargetsExist(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range makeTarget.FindAllSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^` + string(m[1]) + `:`).Match(makefile) {
				t.Errorf("%s: there is no target %s", page, m[1])
			}
		}
	}
}

// The index names every page of this folder.
func TestIndexNamesEveryPage(t *testing.T) {
	index, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob("*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(found, folders...) {
		if page != "README.md" && !strings.Contains(string(index), "("+page+")") {
			t.Errorf("the index does not name %s", page)
		}
	}
}
