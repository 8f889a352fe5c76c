package cli

import (
	"errors"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// writeSecret writes a new file, durably, that only its owner can read. If it fails, there is none.
func writeSecret(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	return fillSecret(vfs.Default, path, content)
}

// fillSecret gives a file its content, and makes both durable.
func fillSecret(disk vfs.FS, path, content string) error {
	err := durable.Write(disk, path, content, true)
	if err == nil {
		err = durable.SyncDir(disk, disk.PathDir(path))
	}
	if err != nil {
		err = errors.Join(err, disk.Remove(path))
	}
	return err
}
