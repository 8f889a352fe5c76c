package memory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string, size int64) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte("a: 1"), 0o600), os.Truncate(path, size)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if text, err := ReadFile(path("small", 4)); err != nil || string(text) != "a: 1" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := ReadFile(path("most", maxFileBytes)); err != nil || len(text) != maxFileBytes {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	large := path("large", 1<<40)
	if _, err := ReadFile(large); err == nil || !strings.Contains(err.Error(), large+" is larger than 64 MiB") {
		t.Error(err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
