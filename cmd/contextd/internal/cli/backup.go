package cli

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/contextd/contextd/internal/log/disklog/backup"
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
What a backup into the same directory left that was interrupted is replaced.

With --base, files that an earlier backup of the same daemon has are linked from there and
not sent again. Each backup is whole by itself: earlier ones may be removed.`,
		Example: `  contextd backup backups/monday
  contextd backup backups/tuesday --base backups/monday --json`,
		Args: cobra.ExactArgs(1),
	}
	cmd.RunE = c.run(func(cmd *cobra.Command, api api, args []string) error {
		b := taking{disk: disklog.PrivateFS(), there: map[string]backup.File{}}
		var err error
		if base != "" {
			if b.base, err = backup.Read(b.disk, base); err != nil {
				return usageError{fmt.Errorf("--base: %w", err)}
			}
		}
		if err := refusePath(args[0]); err != nil {
			return usageError{err}
		}
		if b.draft, err = backup.Begin(b.disk, args[0]); err != nil {
			return placeError(err)
		}
		b.progress = newByteProgress(cmd)
		err = b.takeAll(cmd.Context(), api)
		b.progress.close()
		return b.finish(cmd, c.output, args[0], err)
	})
	cmd.Flags().StringVar(&base, "base", "", "`directory` of an earlier backup, from which unchanged files are linked")
	return cmd
}

// refusePath refuses a path at which no directory can be made: an empty one, or a symbolic link to nothing.
func refusePath(dir string) error {
	if dir == "" {
		return errors.New("the directory has no name")
	}
	_, linkErr := os.Lstat(dir)
	if _, err := os.Stat(dir); linkErr == nil && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is a link to nothing", dir)
	}
	return nil
}

// refuseStorePath refuses a path at which no store can be made, or that is within a store or a backup and would go with
// it. A backup may be within a store: a container may have no other place for it.
func refuseStorePath(dir string) error {
	if around := disklog.Around(dir); around != "" {
		return fmt.Errorf("%s is within %s, which is a data directory or a backup", dir, around)
	}
	return refusePath(dir)
}

var errNotThere = errors.New("the daemon did not send a file that no earlier backup has")

// taking is a backup in progress.
type taking struct {
	disk  vfs.FS
	draft *backup.Draft
	base  *backup.Manifest // the earlier backup to link files from; nil if there is none
	made  backup.Manifest
	// there are the draft's files by their names, also those from calls that failed.
	there    map[string]backup.File
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

// takeAll receives all files, in several calls where calls fail.
func (b *taking) takeAll(ctx context.Context, api api) (err error) {
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
func (b *taking) take(ctx context.Context, api api) error {
	b.made, b.linked = backup.Manifest{}, 0
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
	var file *backup.Receiving
	defer func() {
		if file != nil {
			_ = file.Abandon() // it is not complete
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
			if _, err := io.MultiWriter(file, b.progress).Write(data); err != nil {
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
			return b.tidy()
		}
		if file, err = b.begin(ctx, resp.GetFile()); err != nil {
			return err
		}
	}
}

// tidy removes the files that the store no longer has.
func (b *taking) tidy() (err error) {
	for _, f := range b.made.Files {
		delete(b.there, f.Name)
	}
	for _, f := range b.there {
		err = errors.Join(err, b.draft.Remove(f.Name))
	}
	return err
}

// begin creates the file that the daemon sends next. It returns nil where no data follows: the file is there
// already, or is linked from the base.
func (b *taking) begin(ctx context.Context, f *adminv1.BackupFile) (*backup.Receiving, error) {
	if !filepath.IsLocal(filepath.FromSlash(f.GetName())) {
		return nil, fmt.Errorf("the daemon sent a file that is named %q", f.GetName())
	}
	of := backup.File{Name: f.GetName(), Size: f.GetSize(), ModifyTime: f.GetModifyTime().AsTime()}
	b.progress.at(of.Name)
	inBase, linked := b.base.Find(of)
	linked = linked && b.base.Has(b.disk, inBase) // else it was removed or truncated
	if there := b.there[of.Name]; f.GetHeld() && !linked {
		if !there.Is(of) {
			delete(b.there, of.Name)
			return nil, errNotThere
		}
		b.made.Files = append(b.made.Files, there)
		return nil, nil
	}
	delete(b.there, of.Name)
	if f.GetHeld() {
		b.linked++
		b.made.Files = append(b.made.Files, inBase)
		b.there[of.Name] = inBase
		return nil, b.draft.Link(ctx, b.base, inBase)
	}
	return b.draft.Create(of)
}

// done completes a received file; f may be nil.
func (b *taking) done(f *backup.Receiving) error {
	if f == nil {
		return nil
	}
	of, err := f.Finish()
	if err != nil {
		return err
	}
	b.bytes += of.Size
	b.made.Files = append(b.made.Files, of)
	b.there[of.Name] = of
	return nil
}

// finish moves the backup to its final place, or after an error removes it.
func (b *taking) finish(cmd *cobra.Command, o outputFormat, dir string, err error) error {
	if err == nil {
		err = b.draft.Finish(&b.made)
	}
	if err != nil {
		return errors.Join(err, b.draft.Abandon())
	}
	if o.structured() {
		return writeLines(cmd.OutOrStdout(), o, []backupReport{{dir, b.made.Time, len(b.made.Files), b.linked, b.bytes}})
	}
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s in %s, %d of them linked from the earlier backup; %s received\n",
		counted(len(b.made.Files), "file"), oneLine(dir, 0), b.linked, counted(b.bytes, "byte"))
	return err
}
