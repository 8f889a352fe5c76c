package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOneVersion: the packages of all clients have the version in VERSION.
func TestOneVersion(t *testing.T) {
	number, err := os.ReadFile("../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	for path, line := range map[string]string{
		"../../clients/python/pyproject.toml":   "version = \"%\"",
		"../../clients/typescript/package.json": "\"version\": \"%\"",
		"../../clients/rust/Cargo.toml":         "version = \"%\"",
		"../../clients/java/pom.xml":            "<artifactId>contextd-proto</artifactId>\n  <version>%</version>",
		"../../clients/java/README.md":          "<artifactId>contextd-proto</artifactId>\n  <version>%</version>",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Replace(line, "%", strings.TrimSpace(string(number)), 1); !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", path, want)
		}
	}
}

// TestBuiltFrom: make puts what it knows of the sources into the program, even where the Go tool records
// nothing, as in an image build.
func TestBuiltFrom(t *testing.T) {
	const commit, date = "0123456789abcdef0123456789abcdef01234567", "2026-01-02T03:04:05Z"
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("SKIPPED: there is no make")
	}
	out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "--dry-run", "build", "VERSION=v1.2.3", "COMMIT="+commit, "COMMIT_DATE="+date).Output()
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile("-ldflags '([^']+)'").FindSubmatch(out)
	if flags == nil {
		t.Fatalf("make build has no -ldflags:\n%s", out)
	}
	program := filepath.Join(t.TempDir(), "contextd")
	compile := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", string(flags[1]), "-o", program, ".")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var got struct{ Version, Commit, Date string }
	if out, err = exec.CommandContext(t.Context(), program, "version", "--json").Output(); err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != "v1.2.3" || got.Commit != commit || got.Date != date {
		t.Errorf("the program says %+v", got)
	}
}
