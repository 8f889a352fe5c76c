package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/contextd/contextd/internal/harness"
)

// transcriptFiles are the files in a folder that are one transcript; none if they are not. A folder that
// cannot be read is reported where its files are looked for.
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
	defer func() { _ = joined.Close() }() // it was only read
	beginning, _ := io.ReadAll(io.LimitReader(joined, recognised))
	if found, ok := harness.Detect(beginning); !ok || found != name {
		return nil
	}
	return files
}

// recognised is how much of a folder's files shows whose they are, in bytes.
const recognised = 64 << 10

// folderID makes a session id of the folder that a conversation is in, together with what is no event
// of it, such as its state.
func folderID(root, path string) string {
	conversation := filepath.Dir(path)
	if rel, err := filepath.Rel(root, conversation); err == nil && filepath.IsLocal(rel) && rel != "." {
		return treeID(filepath.ToSlash(rel) + lines)
	}
	return sessionOf(conversation + lines)
}

// folder goes on with the files of a folder that are one transcript.
func (t *transcriptInput) folder(path string) {
	files := &joinedFiles{left: transcriptFiles(path)}
	t.open = append(t.open, files)
	t.Reset(io.TeeReader(files, t.progress))
}

// joinedFiles are files of which each is a line. One that has several lines is a value of JSON, in which
// a blank is as good as a new line.
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

// Close closes the file that is read.
func (j *joinedFiles) Close() error {
	if j.file == nil {
		return nil
	}
	file := j.file
	j.file = nil
	return file.Close()
}
