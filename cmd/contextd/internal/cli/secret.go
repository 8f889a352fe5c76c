package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// writeSecret writes a new file, durably, that only its owner can read. If it fails, there is none.
func writeSecret(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = durable.SyncDir(vfs.Default, filepath.Dir(path))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
