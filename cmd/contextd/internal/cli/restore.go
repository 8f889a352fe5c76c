package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// backupVersion is raised when an older program would misread the manifest.
const backupVersion = 1

// backupManifest lists the files of a backup.
type backupManifest struct {
	Version int          `json:"version"`
	Time    time.Time    `json:"time"`
	Files   []backupFile `json:"files"`

	dir string
}

type backupFile struct {
	Name       string    `json:"name"`
	Size       uint64    `json:"size"`
	ModifyTime time.Time `json:"modify_time"`
	SHA256     string    `json:"sha256"`
}

// in is the path of the file in a directory.
func (f backupFile) in(dir string) string { return filepath.Join(dir, filepath.FromSlash(f.Name)) }

// is reports whether two entries are the same file, judging by the name, size and time that the daemon sent.
func (f backupFile) is(other backupFile) bool {
	return f.Name == other.Name && f.Size == other.Size && f.ModifyTime.Equal(other.ModifyTime)
}

// find returns the manifest's entry for a file, if it has the same one.
func (m *backupManifest) find(like backupFile) (backupFile, bool) {
	if m != nil {
		for _, f := range m.Files {
			if f.is(like) {
				return f, true
			}
		}
	}
	return backupFile{}, false
}

func (m *backupManifest) write(dir string) error {
	m.Version = backupVersion
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, disklog.BackupFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDirs makes durable the entries of all directories below dir, and dir's own entry in its parent.
func syncDirs(dir string) error {
	return errors.Join(syncDir(filepath.Dir(filepath.Clean(dir))), filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = syncDir(path)
		}
		return err
	}))
}

// syncDir makes a directory's entries durable, where the file system supports it.
func syncDir(dir string) error { return durable.SyncDir(vfs.Default, dir) }

// readBackup reads the manifest of a backup.
func readBackup(dir string) (*backupManifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, disklog.BackupFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no backup: it has no %s", dir, disklog.BackupFile)
	}
	if err != nil {
		return nil, err
	}
	m := &backupManifest{dir: dir}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s of %s is damaged: %w", disklog.BackupFile, dir, err)
	}
	if m.Version != backupVersion {
		return nil, fmt.Errorf("%s is a backup of version %d, and this program knows version %d", dir, m.Version, backupVersion)
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

// backupFaults compares the files of a backup with its manifest. A directory without one has no faults.
func backupFaults(ctx context.Context, dir string) (faults []string, err error) {
	if _, err := os.Stat(filepath.Join(dir, disklog.BackupFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m, err := readBackup(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		sum, err := copyHashed(ctx, f.in(dir), "")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			faults = append(faults, f.Name+" is missing")
		case err != nil:
			return nil, err
		case sum != f.SHA256:
			faults = append(faults, f.Name+" is not what was backed up")
		}
	}
	return faults, nil
}

// copyHashed returns the SHA-256 of a file, and copies the file unless to is "".
func copyHashed(ctx context.Context, from, to string) (sum string, err error) {
	file, err := os.Open(from)
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
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.MultiWriter(out, h), in)
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Sync(), out.Close())
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

func (p Program) newRestore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore BACKUP DIR",
		Short: "Make a data directory of a backup",
		Long: `Copy a backup into a directory that is empty or does not exist, for a daemon to be
started there. Each file is compared with what was backed up; if one differs, nothing is
left in the directory. Clients that know more of a session than the backup has are told
with LOG_LOST.`,
		Example: "  contextd restore backups/tuesday /var/lib/contextd",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := readBackup(args[0])
			if err == nil {
				err = mustBeNew(args[1])
			}
			if err != nil {
				return usageError{err}
			}
			if err := durable.MakeDir(vfs.Default, args[1]); err != nil {
				return err
			}
			bar := newByteProgress(cmd)
			err = m.restore(cmd.Context(), args[1], bar)
			bar.close()
			if err != nil {
				return errors.Join(err, empty(args[1]))
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s of %s restored in %s\n", counted(len(m.Files), "file"), m.Time.Format(time.RFC3339), oneLine(args[1], 0))
			return err
		},
	}
	bindQuiet(cmd.Flags())
	return cmd
}

// restore copies the files of a backup into a data directory. The last one makes it a store, so all others are durable
// before: a power failure never leaves a store that lacks some.
func (m *backupManifest) restore(ctx context.Context, dir string, bar *progress) error {
	for _, f := range m.Files {
		bar.expect(int(f.Size))
	}
	for i, f := range m.Files {
		bar.at(f.Name)
		if i == len(m.Files)-1 {
			if err := syncDirs(dir); err != nil {
				return err
			}
		}
		if err := f.restore(ctx, m.dir, dir); err != nil {
			return err
		}
		bar.add(int(f.Size))
	}
	return syncDirs(dir)
}

// restore copies a file of a backup into a data directory.
func (f backupFile) restore(ctx context.Context, backup, dir string) error {
	to := f.in(dir)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	sum, err := copyHashed(ctx, f.in(backup), to)
	if err == nil && sum != f.SHA256 {
		err = fmt.Errorf("%s in %s is not what was backed up", f.Name, backup)
	}
	return err
}

// empty removes everything in a directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}
