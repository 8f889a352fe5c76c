package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/contextd/contextd/internal/harness"
)

// transcriptFiles lists the files of a folder that together are one transcript; none if they are not one. A
// folder that cannot be read gives none: the walk over its files reports that.
func transcriptFiles(path string) []string {
	entries, _ := os.ReadDir(path)
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	name, files := harness.FolderOf(filepath.Base(path), names)
	for i, file := range files {
		files[i] = filepath.Join(path, file)
	}
	joined := &joinedFiles{left: files}
	defer func() { _ = joined.Close() }() // only read
	beginning, _ := io.ReadAll(io.LimitReader(joined, recognised))
	if found, ok := harness.Detect(beginning); !ok || found != name {
		return nil
	}
	return files
}

// recognised is how many bytes of a folder's files are read to detect the harness.
const recognised = 64 << 10

// folderID makes a session id from the folder of a conversation, which holds the folder of its events next to
// other files, such as its state.
func folderID(root, path string) string {
	conversation := filepath.Dir(path)
	if rel, err := filepath.Rel(root, conversation); err == nil && filepath.IsLocal(rel) && rel != "." {
		return treeID(filepath.ToSlash(rel) + lines)
	}
	return sessionOf(conversation + lines)
}

// folder continues with the joined files of a folder.
func (t *transcriptInput) folder(path string) {
	files := &joinedFiles{left: transcriptFiles(path)}
	t.open = append(t.open, files)
	t.Reset(io.TeeReader(files, t.progress))
}

// joinedFiles reads files as JSON lines, one per file. Newlines within a file become blanks, which mean the
// same in JSON.
type joinedFiles struct {
	left []string
	file *os.File
}

// Read implements io.Reader.
func (j *joinedFiles) Read(p []byte) (n int, err error) {
	if j.file == nil {
		if len(j.left) == 0 {
			return 0, io.EOF
		}
		if j.file, err = os.Open(j.left[0]); err != nil {
			return 0, err
		}
		j.left = j.left[1:]
	}
	n, err = j.file.Read(p)
	for i, c := range p[:n] {
		if c == '\n' || c == '\r' {
			p[i] = ' '
		}
	}
	if errors.Is(err, io.EOF) && n < len(p) {
		p[n] = '\n'
		n, err = n+1, j.Close()
	}
	return n, err
}

// Close closes the current file.
func (j *joinedFiles) Close() error {
	if j.file == nil {
		return nil
	}
	file := j.file
	j.file = nil
	return file.Close()
}
