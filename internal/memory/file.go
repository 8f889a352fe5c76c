package memory

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxFileBytes exceeds the size of any operator's file of settings, tokens or keys.
const maxFileBytes = 64 << 20

// ReadFile reads an operator's file, which may be replaced by anything while the daemon runs.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w to user %d of group %d, who runs this", err, os.Geteuid(), os.Getegid())
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if len(content) > maxFileBytes {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxFileBytes>>20)
	}
	return content, err
}
