// Package program builds contextd as it is released, for benchmarks that measure a process.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is the binary, for Main to remove.
var built string

// Path is the binary's path. The first call builds it.
var Path = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "contextd-bench")
	if err != nil {
		return "", err
	}
	built = filepath.Join(dir, "contextd")
	if out, err := exec.Command("go", "build", "-o", built, "github.com/contextd/contextd/cmd/contextd").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return built, nil
})

// Main is the TestMain of packages that call Path. It does not return.
func Main(m *testing.M) {
	code := m.Run()
	if built != "" {
		if err := os.RemoveAll(filepath.Dir(built)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
