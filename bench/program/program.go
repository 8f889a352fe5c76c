// Package program builds contextd as it is shipped, for benchmarks that measure a
// process.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is what Main removes.
var built string

// Path is where the binary lies; it is built once, by whoever asks first.
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

// Main is the TestMain of a package that calls Path. It does not return.
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
