package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// ownDisk is a directory with a file system of its own, of the given size.
func ownDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("SKIPPED: this needs a disk of its own, and none can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestReadOnlyDirectory reads a store on a read-only file system.
func TestReadOnlyDirectory(t *testing.T) {
	dir := ownDisk(t, "32m")
	script := filepath.Join(t.TempDir(), "readonly.txtar")
	if err := os.WriteFile(script, fmt.Appendf(nil, readOnlyScript, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"readonly": func(ts *testscript.TestScript, _ bool, _ []string) {
			ts.Check(syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
		},
		"writable": func(ts *testscript.TestScript, _ bool, _ []string) {
			ts.Check(syscall.Mount("", dir, "", syscall.MS_REMOUNT, ""))
		},
		"exits": exits,
		"count": count,
	}
	testscript.Run(t, testscript.Params{Files: []string{script}, RequireExplicitExec: true, Cmds: commands, Setup: setup})
}

const readOnlyScript = `env DIR=%s/data
stdin event.jsonl
exec contextd append s --embedded $DIR
readonly
exec contextd verify --embedded $DIR
stdout '^s +1 +chained'
exec contextd log s --embedded $DIR
stdout Hello
exec contextd sessions list --embedded $DIR
count 2 stdout
exec contextd assemble s --preview --embedded $DIR
stdout Hello
exits 4 contextd assemble s --embedded $DIR
stderr 'opened only to be read'
stdin event.jsonl
exits 4 contextd append s --embedded $DIR
stderr 'opened only to be read'
exits 4 contextd sessions delete s --embedded $DIR
exec contextd backup backup --embedded $DIR
exec contextd verify --embedded backup
exec contextd restore backup restored
exec contextd log s --embedded restored
stdout Hello
exec contextd repair --data-dir $DIR --dry-run
stdout 'nothing is wrong'
exits 1 contextd serve --data-dir $DIR --unix-socket $SOCK
stderr 'cannot be written to'
! stderr 'in use'
writable
exec rm $DIR/INVENTORY
readonly
exits 1 contextd repair --data-dir $DIR --dry-run
stdout 'INVENTORY is missing'
exits 1 contextd repair --data-dir $DIR
stderr 'cannot be written to'
-- event.jsonl --
{"message":{"role":"ROLE_USER","blocks":[{"text":{"text":"Hello"}}]}}
`
