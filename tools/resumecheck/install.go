package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"
)

// pins are the pinned versions of the CLIs.
//
//go:embed */package.json */package-lock.json
var pins embed.FS

const installTimeout = 15 * time.Minute

// install installs the pinned CLI of a harness in the cache, unless it is there already, and returns the
// folder with its node_modules. Install scripts of packages do not run.
func install(ctx context.Context, cache, name string) (string, error) {
	dir := filepath.Join(cache, name)
	lock, err := pins.ReadFile(path.Join(name, "package-lock.json"))
	if err != nil {
		return "", err
	}
	stamp := filepath.Join(dir, ".installed")
	if done, err := os.ReadFile(stamp); err == nil && bytes.Equal(done, lock) {
		return dir, nil
	}
	manifest, err := pins.ReadFile(path.Join(name, "package.json"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for file, data := range map[string][]byte{"package.json": manifest, "package-lock.json": lock} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	if out, err := runGroup(cmd); err != nil {
		return "", fmt.Errorf("npm ci for %s: %w\n%s", name, err, tail(out))
	}
	return dir, os.WriteFile(stamp, lock, 0o644)
}

// pinned is the version of the CLI that the harness's package.json pins.
func pinned(name string) string {
	var manifest struct {
		Config struct {
			CLI string `json:"cli"`
		} `json:"config"`
		Dependencies map[string]string `json:"dependencies"`
	}
	data, err := pins.ReadFile(path.Join(name, "package.json"))
	if err != nil || json.Unmarshal(data, &manifest) != nil {
		return "?"
	}
	return manifest.Dependencies[manifest.Config.CLI]
}
