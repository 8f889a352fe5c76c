// Package backup makes, checks and restores backups of a disk store, in directories. After a power failure or on a
// full disk, no incomplete backup looks complete.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/durable"
)

const (
	// version is raised when an older program would misread the manifest.
	version = 1
	// maxManifest exceeds the size of any manifest.
	maxManifest = 1 << 30
)

// Manifest lists the files of a backup.
type Manifest struct {
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	Files   []File    `json:"files"`

	dir string
}

// File is a file of a backup.
type File struct {
	Name       string    `json:"name"`
	Size       uint64    `json:"size"`
	ModifyTime time.Time `json:"modify_time"`
	SHA256     string    `json:"sha256"`
}

// in returns the path of the file in a directory.
func (f File) in(dir string) string { return filepath.Join(dir, filepath.FromSlash(f.Name)) }

// Is reports whether two entries are the same file, judging by the name, size and time that the daemon sent.
func (f File) Is(other File) bool {
	return f.Name == other.Name && f.Size == other.Size && f.ModifyTime.Equal(other.ModifyTime)
}

// Find returns the manifest's entry for a file, if it has the same one. A nil manifest has none.
func (m *Manifest) Find(like File) (File, bool) {
	if m != nil {
		for _, f := range m.Files {
			if f.Is(like) {
				return f, true
			}
		}
	}
	return File{}, false
}

// Has reports whether the backup still has a file of its manifest, with the same size.
func (m *Manifest) Has(fs vfs.FS, f File) bool {
	info, err := fs.Stat(f.in(m.dir))
	return err == nil && uint64(info.Size()) == f.Size
}

// Read reads the manifest of a backup.
func Read(fs vfs.FS, dir string) (*Manifest, error) {
	text, err := durable.Read(fs, fs.PathJoin(dir, disklog.BackupFile), maxManifest)
	if oserror.IsNotExist(err) {
		return nil, fmt.Errorf("%s is no backup: it has no %s", dir, disklog.BackupFile)
	}
	if err != nil {
		return nil, err
	}
	m := &Manifest{dir: dir}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		return nil, fmt.Errorf("%s of %s is damaged: %w", disklog.BackupFile, dir, err)
	}
	if m.Version != version {
		return nil, fmt.Errorf("%s is a backup of version %d, and this program knows version %d", dir, m.Version, version)
	}
	if len(m.Files) == 0 {
		return nil, fmt.Errorf("%s of %s is damaged: it lists no files", disklog.BackupFile, dir)
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return nil, fmt.Errorf("%s of %s names a file %q outside of it", disklog.BackupFile, dir, f.Name)
		}
	}
	return m, nil
}

func (m *Manifest) write(fs vfs.FS, dir string) error {
	m.Version = version
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return durable.Write(fs, fs.PathJoin(dir, disklog.BackupFile), string(text)+"\n", true)
}

// Faults compares the files of a backup with its manifest. A directory without one has no faults.
func Faults(ctx context.Context, fs vfs.FS, dir string) (faults []string, err error) {
	if _, err := fs.Stat(fs.PathJoin(dir, disklog.BackupFile)); oserror.IsNotExist(err) {
		return nil, nil
	}
	m, err := Read(fs, dir)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		sum, err := copyHashed(ctx, fs, f.in(dir), "")
		switch {
		case oserror.IsNotExist(err):
			faults = append(faults, f.Name+" is missing")
		case err != nil:
			return nil, err
		case sum != f.SHA256:
			faults = append(faults, f.Name+" is not what was backed up")
		}
	}
	return faults, nil
}

// copyHashed returns the SHA-256 of a file, and copies the file unless to is "". The copy's content is durable, its
// name is not.
func copyHashed(ctx context.Context, fs vfs.FS, from, to string) (sum string, err error) {
	file, err := fs.Open(from)
	if err != nil {
		return "", err
	}
	defer file.Close()
	in := untilDone{ctx, file}
	h := sha256.New()
	if to == "" {
		_, err = io.Copy(h, in)
		return hex.EncodeToString(h.Sum(nil)), err
	}
	out, err := fs.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return "", err
	}
	if _, err = io.Copy(io.MultiWriter(out, h), in); err == nil {
		err = out.Sync()
	}
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Close())
}

// untilDone stops reading when the context ends, since a file may be large.
type untilDone struct {
	ctx context.Context
	in  io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}
