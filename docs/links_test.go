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

	block       = regexp.MustCompile("(?s)```.*?```")
	heading     = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	linkTarget  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
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
			target, anchor, _ := strings.Cut(string(m[1]), "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
			} else if anchor != "" && strings.HasSuffix(path, ".md") && !slices.Contains(anchors(t, path), anchor) {
				t.Errorf("%s: %s leads to no heading", page, m[1])
			}
		}
	}
}

// anchors are the names of a page's headings in links, as GitHub makes them.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range heading.FindAllSubmatch(block.ReplaceAll(text, nil), -1) {
		title := linkTarget.ReplaceAllString(strings.ToLower(string(m[1])), "$1")
		out = append(out, strings.ReplaceAll(notInAnchor.ReplaceAllString(title, ""), " ", "-"))
	}
	return out
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
