package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// fileTree is a directory that COPY copies from.
type fileTree struct {
	root    string
	ignored *patternmatcher.PatternMatcher // nil ignores nothing
}

// buildContext is dir without the files that its .dockerignore names.
func buildContext(dir string) (fileTree, error) {
	tree := fileTree{root: dir}
	file, err := os.Open(filepath.Join(dir, ".dockerignore"))
	if errors.Is(err, fs.ErrNotExist) {
		return tree, nil
	}
	if err != nil {
		return tree, err
	}
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		return tree, err
	}
	tree.ignored, err = patternmatcher.New(patterns)
	return tree, err
}

// copyTo copies a file, or the content of a directory, as COPY does. source is an absolute path within the
// tree.
func (t fileTree) copyTo(source, dest string, intoDir bool) error {
	from := filepath.Join(t.root, source)
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if ignored, err := t.ignores(from); ignored || err != nil {
		return errors.Join(err, fmt.Errorf("%s is ignored by .dockerignore", source))
	}
	if !info.IsDir() {
		if intoDir {
			dest = filepath.Join(dest, filepath.Base(source))
		}
		return copyFile(from, dest)
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		ignored, err := t.ignores(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(dest, rel)
		switch {
		case ignored && entry.IsDir() && !t.ignored.Exclusions():
			return filepath.SkipDir
		case ignored:
			return nil
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case entry.Type().IsRegular():
			return copyFile(path, target)
		default:
			return &fs.PathError{Op: "copy", Path: path, Err: errors.New("is neither a file nor a directory")}
		}
	})
}

func (t fileTree) ignores(path string) (bool, error) {
	rel, err := filepath.Rel(t.root, path)
	if err != nil || t.ignored == nil || rel == "." {
		return false, err
	}
	return t.ignored.MatchesOrParentMatches(strings.TrimPrefix(filepath.ToSlash(rel), "/"))
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}
