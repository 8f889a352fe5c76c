package main

import (
	"os"
	"strings"
	"testing"
)

// The clients' packages have the number of VERSION.
func TestOneVersion(t *testing.T) {
	number, err := os.ReadFile("../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	for path, line := range map[string]string{
		"../../clients/python/pyproject.toml":   "version = \"%\"",
		"../../clients/typescript/package.json": "\"version\": \"%\"",
		"../../clients/rust/Cargo.toml":         "version = \"%\"",
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
