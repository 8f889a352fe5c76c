package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/backup"
)

func (p Program) newRestore() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore BACKUP DIR",
		Short: "Make a data directory of a backup",
		Long: `Copy a backup into a directory that is empty or does not exist, for a daemon to be
started there. Each file is compared with what was backed up; if one differs, nothing is
left in the directory. If the command is killed, no daemon starts there until it is run
again. Clients that know more of a session than the backup has are told with LOG_LOST.`,
		Example: "  contextd restore backups/tuesday /var/lib/contextd",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			disk := disklog.PrivateFS()
			m, err := backup.Read(disk, args[0])
			if err == nil {
				err = refuseStorePath(args[1])
			}
			if err != nil {
				return usageError{err}
			}
			bar := newByteProgress(cmd)
			for _, f := range m.Files {
				bar.expect(int(f.Size))
			}
			err = m.Restore(cmd.Context(), disk, args[1], func(f backup.File, done bool) {
				if done {
					bar.add(int(f.Size))
				} else {
					bar.at(f.Name)
				}
			})
			bar.close()
			if err != nil {
				return placeError(err)
			}
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s of %s restored in %s\n", counted(len(m.Files), "file"), m.Time.Format(time.RFC3339), oneLine(args[1], 0))
			return err
		},
	}
	bindQuiet(cmd.Flags())
	return cmd
}

// placeError is an error of writing to a directory that was given.
func placeError(err error) error {
	if _, ok := errors.AsType[*backup.NotEmptyError](err); ok {
		return usageError{err}
	}
	return err
}
