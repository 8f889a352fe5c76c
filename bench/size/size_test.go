package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the program's size into testdata/size.txt")

// TestProgramSize compares the released program for linux/amd64 with testdata/size.txt. It may be 2 % larger.
// If it is 2 % smaller, the file must be rewritten, so that the budget follows.
func TestProgramSize(t *testing.T) {
	if platform := runtime.GOOS + "/" + runtime.GOARCH; platform != "linux/amd64" {
		t.Skip("SKIPPED: the budget is that of linux/amd64, not of " + platform)
	}
	budgetFile, err := filepath.Abs("testdata/size.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	size, err := program(t.Context(), filepath.Join(t.TempDir(), "contextd"), "./cmd/contextd")
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(budgetFile, fmt.Appendf(nil, "%.1f MiB\n", mib(size)), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(budgetFile)
	if err != nil {
		t.Fatal(err)
	}
	var budget float64
	if _, err := fmt.Sscanf(string(data), "%f MiB", &budget); err != nil {
		t.Fatal(err)
	}
	if got := mib(size); got > budget*1.02 || got < budget*0.98 {
		t.Errorf("the program has %.1f MiB, its budget is %.1f MiB. go run ./bench/size says what is in it; if that is meant, "+
			"run go test ./bench/size -rewrite", got, budget)
	}
}

// TestPartsLink builds the programs of the table's rows.
func TestPartsLink(t *testing.T) {
	t.Chdir("../..")
	files, err := filepath.Glob(parts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := program(t.Context(), filepath.Join(t.TempDir(), "parts"), files...); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name, err := title(file); err != nil || name == "" || strings.HasPrefix(name, "package") {
			t.Errorf("%s does not begin with a comment that says what it links: %q, %v", file, name, err)
		}
	}
}
