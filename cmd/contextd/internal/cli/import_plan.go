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
	// named is set on what the user named, rather than its folder: then it has to be a
	// transcript.
	named bool
	// err says why it cannot be imported if it is one.
	err error
}

// planImport lists the files that paths lead to, each once, folders in the order of
// their names. The ids begin with prefix, if there is one.
func planImport(paths []string, prefix string) []plannedFile {
	p := importPlan{paths: map[string]int{}, sessions: map[string]string{}}
	if prefix != "" {
		prefix += "/"
	}
	p.addAll(paths, prefix)
	return p.files
}

// planFiles is planImport for who makes no sessions of the files.
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
		// WalkDir does not follow the link that the folder may be.
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
	paths    map[string]int    // and their places in files
	sessions map[string]string // ids and whose they are; nil where ids may be shared
}

func (p *importPlan) walk(root, prefix string) {
	parts := map[string]bool{} // files of which several are one transcript
	// Errors are those of single entries, which are in the plan.
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

// sessionOf makes a session id of a file's name.
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

// lines is the ending that session ids do without, compressed or not.
const lines = ".jsonl"

// treeID makes a session id of a file's path below the folder that is imported: the same
// at every import, and another for every path, whatever else is in the folder. Only a file and
// its compressed copy beside it share one.
func treeID(rel string) string {
	folder, name := "", rel
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		folder, name = rel[:i+1], rel[i+1:]
	}
	end := ""
	if stem, ok := strings.CutSuffix(strings.TrimSuffix(name, ".gz"), lines); ok && stem != "" {
		name = stem
	} else if !strings.Contains(name, ".") {
		end = "@" // or "x" would have the id of "x.jsonl"
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

// idByte reports whether ids hold the byte as it is.
func idByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("._:-", b) >= 0
}

// escapeSegment writes a name with the bytes that ids may hold; different names become
// different ones.
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

// longestID leaves room in an id for what an import puts after it.
const longestID = 200

// shortened puts a hash of the path in the place of the end of an id that is too long.
func shortened(id, rel string) string {
	if len(id) <= longestID {
		return id
	}
	sum := sha256.Sum256([]byte(rel))
	hash := "@" + hex.EncodeToString(sum[:16])
	return strings.TrimRight(id[:longestID-len(hash)], "/") + hash
}
