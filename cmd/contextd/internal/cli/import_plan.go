package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// plannedFile is a file that may be a transcript.
type plannedFile struct {
	path, session string
	// named is set on paths that the user named themselves. Such a file must be a transcript; a file found in
	// a folder need not be.
	named bool
	// err says why the file cannot be imported.
	err error
}

// planImport lists each file in paths once, folders in the order of their names. prefix, if there is one,
// begins the session ids of all files.
func planImport(paths []string, prefix string) []plannedFile {
	p := importPlan{paths: map[string]int{}, sessions: map[string]string{}}
	if prefix != "" {
		prefix += "/"
	}
	p.addAll(paths, prefix)
	return p.files
}

// planFiles is planImport for callers that need no session ids.
func planFiles(paths []string) []plannedFile {
	p := importPlan{paths: map[string]int{}}
	p.addAll(paths, "")
	return p.files
}

func (p *importPlan) addAll(paths []string, prefix string) {
	for _, path := range paths {
		if !isFolder(path) {
			p.add(plannedFile{path: path, session: prefix + sessionOf(path), named: true})
			continue
		}
		// The folder may be a symbolic link, which WalkDir does not follow.
		root, err := filepath.EvalSymlinks(path)
		if err != nil {
			p.add(plannedFile{path: path, named: true, err: err})
			continue
		}
		p.walk(root, prefix)
	}
}

type importPlan struct {
	files    []plannedFile
	paths    map[string]int    // the index in files by path
	sessions map[string]string // the path by session id; nil where ids need not be unique
}

func (p *importPlan) walk(root, prefix string) {
	parts := map[string]bool{} // the files that were added as parts of a folder's transcript
	// The errors of single entries are in the plan.
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			p.add(plannedFile{path: path, named: true, err: err})
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
			files := transcriptFiles(path)
			for _, file := range files {
				parts[file] = true
			}
			if len(files) > 0 {
				p.add(plannedFile{path: path, session: prefix + folderID(root, path)})
			}
		case d.Type().IsRegular() && !parts[path]:
			rel, err := filepath.Rel(root, path)
			p.add(plannedFile{path: path, session: prefix + treeID(filepath.ToSlash(rel)), err: err})
		}
		return nil
	})
}

func (p *importPlan) add(f plannedFile) {
	if whole, err := filepath.Abs(f.path); err == nil && f.path != "-" {
		if i, listed := p.paths[whole]; listed {
			p.files[i].named = p.files[i].named || f.named
			return
		}
		p.paths[whole] = len(p.files)
	}
	if other, taken := p.sessions[f.session]; taken && f.err == nil {
		f.err = fmt.Errorf("its session would be %s, which is that of %s; import them apart, with --session", f.session, other)
	} else if f.err == nil && p.sessions != nil {
		p.sessions[f.session] = f.path
	}
	p.files = append(p.files, f)
}

// sessionOf makes a session id from a file's name.
func sessionOf(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), ".gz")
	base = strings.TrimSuffix(base, filepath.Ext(base))
	id := strings.Map(func(r rune) rune {
		if r < 0x80 && idByte(byte(r)) || r == '@' {
			return r
		}
		return '_'
	}, base)
	id = strings.TrimLeft(id, ".:@-")
	if id == "" {
		return "stdin"
	}
	return id
}

// lines is the ending that session ids omit.
const lines = ".jsonl"

// treeID makes a session id from a file's path below the imported folder. The same path always gives the same
// id, and different paths give different ids. Only a file and its compressed copy next to it share one.
func treeID(rel string) string {
	folder, name := "", rel
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		folder, name = rel[:i+1], rel[i+1:]
	}
	end := ""
	if stem, ok := strings.CutSuffix(strings.TrimSuffix(name, ".gz"), lines); ok && stem != "" {
		name = stem
	} else if !strings.Contains(name, ".") {
		end = "@" // else "x" would have the id of "x.jsonl"
	}
	var id strings.Builder
	for _, segment := range strings.SplitAfter(folder, "/") {
		id.WriteString(escapeSegment(strings.TrimSuffix(segment, "/")))
		if segment != "" {
			id.WriteByte('/')
		}
	}
	id.WriteString(escapeSegment(name) + end)
	return shortened(id.String(), rel)
}

// idByte reports whether ids hold the byte unescaped.
func idByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("._:-", b) >= 0
}

// escapeSegment escapes the bytes of a name that ids may not hold; different names give different results.
func escapeSegment(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		first := i == 0 && strings.IndexByte(".:-", c) >= 0
		switch {
		case idByte(c) && !first:
			b.WriteByte(c)
		case i == 0:
			fmt.Fprintf(&b, "_@%02x", c)
		default:
			fmt.Fprintf(&b, "@%02x", c)
		}
	}
	return b.String()
}

// longestID leaves room in an id for the suffixes that an import adds.
const longestID = 200

// shortened replaces the end of an id that is too long by a hash of the path.
func shortened(id, rel string) string {
	if len(id) <= longestID {
		return id
	}
	sum := sha256.Sum256([]byte(rel))
	hash := "@" + hex.EncodeToString(sum[:16])
	return strings.TrimRight(id[:longestID-len(hash)], "/") + hash
}
