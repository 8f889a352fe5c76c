package cli

import (
	"errors"
	"os"
	"path/filepath"
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
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
