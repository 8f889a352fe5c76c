package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/durable"
	adminv1 "github.com/contextd/contextd/proto/contextd/admin/v1"
)

// backupTries is how many calls in a row may be ended by a deletion of sessions without having received a new
// file, until the command gives up.
const backupTries = 10

// busyPause is how long to wait where the daemon still works on a call that this command cancelled.
const busyPause = 500 * time.Millisecond

func newBackup(c *client) *cobra.Command {
	base := ""
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy all sessions into a new directory while the daemon works",
		Long: `Copy the daemon's data directory, as it is at one moment, into a new directory. Appends
go on meanwhile; where a session is deleted, the backup begins anew, so that it does not
have it, and keeps the files that are still the same. "contextd verify --embedded DIR" checks it, and "contextd restore" puts it back.

With --base, files that an earlier backup of the same daemon has are linked from there and
not sent again. Each backup is whole by itself: earlier ones may be removed.`,
		Example: `  contextd backup backups/monday
  contextd backup backups/tuesday --base backups/monday --json`,
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = c.run(func(cmd *cobra.Command, api api, args []string) error {
		b := backup{there: map[string]backupFile{}}
		if base != "" {
			var err error
			if b.base, err = readBackup(base); err != nil {
				return usageError{fmt.Errorf("--base: %w", err)}
			}
		}
		if err := mustBeNew(args[0]); err != nil {
			return usageError{err}
		}
		b.progress = newByteProgress(cmd)
		err := b.takeAll(cmd.Context(), api, args[0])
		b.progress.close()
		return b.finish(cmd, c.output, args[0], err)
	})
	cmd.Flags().StringVar(&base, "base", "", "`directory` of an earlier backup, from which unchanged files are linked")
	return cmd
}

// mustBeNew refuses a path that is neither an empty directory nor free to become one.
func mustBeNew(dir string) error {
	if dir == "" {
		return errors.New("the directory has no name")
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(dir); err == nil {
			return fmt.Errorf("%s is a link to nothing", dir)
		}
		return nil
	}
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: it has %s", dir, entries[0].Name())
	}
	return err
}

var errNotThere = errors.New("the daemon did not send a file that no earlier backup has")

// backup is a backup in progress.
type backup struct {
	dir  string          // where the files are collected until the backup is complete
	into bool            // whether that is within the final directory
	base *backupManifest // the earlier backup to link files from; nil if there is none
	made backupManifest
	// there are the files in dir by their names, also those from calls that failed.
	there    map[string]backupFile
	linked   int
	bytes    uint64
	progress *progress
}

// backupReport is the summary of a backup for --json.
type backupReport struct {
	Directory string    `json:"directory"`
	Time      time.Time `json:"time"`
	Files     int       `json:"files"`
	Linked    int       `json:"linked"`
	Bytes     uint64    `json:"bytes_received"`
}

// takeAll receives all files, in several calls where calls fail. They are collected in a temporary directory
// within dir if that exists, since it may be a volume of its own, and otherwise next to it.
func (b *backup) takeAll(ctx context.Context, api api, dir string) error {
	_, err := os.Stat(dir)
	b.into = err == nil
	if !b.into {
		dir = filepath.Dir(filepath.Clean(dir))
		if err := durable.MakeDir(vfs.Default, dir); err != nil {
			return err
		}
	}
	if b.dir, err = os.MkdirTemp(dir, ".contextd-backup-*"); err != nil {
		return err
	}
	again := false // a call was cancelled, and the daemon may not have noticed yet
	for tries := 1; tries <= backupTries; tries++ {
		before := len(b.there)
		err = b.take(ctx, api)
		st, ok := statusOf(err)
		switch {
		case errors.Is(err, errNotThere):
			b.base, again = nil, true
		case again && ok && reason(st) == apierr.ReasonStoreBusy:
			select {
			case <-time.After(busyPause):
			case <-ctx.Done():
				return ctx.Err()
			}
		case err == nil || !ok || reason(st) != apierr.ReasonBackupEnded:
			return err
		case len(b.there) > before:
			tries = 0
		}
	}
	return err
}

// take makes one call, which sends the files that are not there yet.
func (b *backup) take(ctx context.Context, api api) error {
	b.made, b.linked = backupManifest{}, 0
	req := &adminv1.BackupRequest{}
	if b.base != nil {
		req.Since = timestamppb.New(b.base.Time)
	}
	for name := range b.there {
		req.Have = append(req.Have, name)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := api.admin.Backup(ctx, req)
	if err != nil {
		return err
	}
	var file *receiving
	defer func() {
		if file != nil {
			_, _ = file.Close(), os.Remove(file.Name()) // it is not complete
		}
	}()
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the daemon sent no end: the backup is not whole")
		}
		if err != nil {
			return err
		}
		if data := resp.GetData(); len(data) > 0 {
			if file == nil {
				return errors.New("the daemon sent bytes of no file")
			}
			if _, err := io.MultiWriter(file, file.sum, b.progress).Write(data); err != nil {
				return err
			}
			continue
		}
		if err := b.done(file); err != nil {
			return err
		}
		file = nil
		if end := resp.GetEnd(); end != nil {
			b.made.Time = end.GetTime().AsTime()
			return errors.Join(b.tidy(), b.made.write(b.dir))
		}
		if file, err = b.begin(ctx, resp.GetFile()); err != nil {
			return err
		}
	}
}

// receiving is the file that is being received.
type receiving struct {
	*os.File
	of  backupFile
	sum hash.Hash
}

// tidy removes the files that the store no longer has.
func (b *backup) tidy() (err error) {
	for _, f := range b.made.Files {
		delete(b.there, f.Name)
	}
	for _, f := range b.there {
		err = errors.Join(err, os.Remove(f.in(b.dir)))
	}
	return err
}

// begin creates the file that the daemon sends next. It returns nil where no data follows: the file is there
// already, or is linked from the base.
func (b *backup) begin(ctx context.Context, f *adminv1.BackupFile) (*receiving, error) {
	if !filepath.IsLocal(filepath.FromSlash(f.GetName())) {
		return nil, fmt.Errorf("the daemon sent a file that is named %q", f.GetName())
	}
	of := backupFile{Name: f.GetName(), Size: f.GetSize(), ModifyTime: f.GetModifyTime().AsTime()}
	b.progress.at(of.Name)
	inBase, linked := b.base.find(of)
	if linked {
		info, err := os.Stat(inBase.in(b.base.dir))
		linked = err == nil && uint64(info.Size()) == of.Size // else it was removed or truncated
	}
	if there := b.there[of.Name]; f.GetHeld() && !linked {
		if !there.is(of) {
			delete(b.there, of.Name)
			return nil, errNotThere
		}
		b.made.Files = append(b.made.Files, there)
		return nil, nil
	}
	path := of.in(b.dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	delete(b.there, of.Name)
	if f.GetHeld() {
		b.linked++
		b.made.Files = append(b.made.Files, inBase)
		b.there[of.Name] = inBase
		return nil, linkOrCopy(ctx, inBase.in(b.base.dir), path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &receiving{file, of, sha256.New()}, nil
}

// done completes a received file and checks its size; f may be nil.
func (b *backup) done(f *receiving) error {
	if f == nil {
		return nil
	}
	size, err := f.Seek(0, io.SeekCurrent)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if uint64(size) != f.of.Size {
		return fmt.Errorf("the daemon sent %d bytes of %s instead of %d", size, f.of.Name, f.of.Size)
	}
	f.of.SHA256 = hex.EncodeToString(f.sum.Sum(nil))
	b.bytes += f.of.Size
	b.made.Files = append(b.made.Files, f.of)
	b.there[f.of.Name] = f.of
	return os.Chtimes(f.of.in(b.dir), time.Time{}, f.of.ModifyTime)
}

func linkOrCopy(ctx context.Context, from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	_, err := copyHashed(ctx, from, to)
	return err
}

// finish moves the backup to its final place, or after an error removes it.
func (b *backup) finish(cmd *cobra.Command, o outputFormat, dir string, err error) error {
	if err == nil {
		// All that it has is durable before it gets its name.
		err = syncDirs(b.dir)
	}
	if err == nil {
		err = b.place(dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(b.dir))
	}
	// The user may remove earlier backups now, so this one must survive a power failure.
	if err := syncDirs(dir); err != nil {
		return err
	}
	if o.structured() {
		return writeLines(cmd.OutOrStdout(), o, []backupReport{{dir, b.made.Time, len(b.made.Files), b.linked, b.bytes}})
	}
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s in %s, %d of them linked from the earlier backup; %s received\n",
		counted(len(b.made.Files), "file"), oneLine(dir, 0), b.linked, counted(b.bytes, "byte"))
	return err
}

// place moves the backup to its final place. Within an existing directory the manifest is moved first. With a
// manifest the directory is never mistaken for a data directory, and missing files are reported by name.
func (b *backup) place(dir string) error {
	if !b.into {
		return os.Rename(b.dir, dir)
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(there) > 1 {
		return fmt.Errorf("something else was put into %s meanwhile", dir)
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	names := []string{disklog.BackupFile}
	for _, entry := range entries {
		if entry.Name() != disklog.BackupFile {
			names = append(names, entry.Name())
		}
	}
	for _, name := range names {
		err := os.Rename(filepath.Join(b.dir, name), filepath.Join(dir, name))
		if err == nil && name == disklog.BackupFile {
			err = syncDir(dir) // a power failure must not lose it and keep the rest
		}
		if err != nil {
			return err
		}
	}
	return os.Remove(b.dir)
}
