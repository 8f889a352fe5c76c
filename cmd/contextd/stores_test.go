package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var fillStore = flag.String("fill-store", "", "make testdata/stores/NAME with this build, for a new format of the data directory")

// stores has a data directory of every format, written by the first build with that format.
const stores = "testdata/stores"

// TestStores: data of earlier builds is read as those builds read it. The directories in testdata/stores are
// never rebuilt; NAME.txtar next to each checks its content.
func TestStores(t *testing.T) {
	scripts, err := filepath.Glob(stores + "/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no stores: %v", err)
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts,
		UpdateScripts:       *rewrite,
		RequireExplicitExec: true,
		Cmds:                testCommands,
		Setup: func(env *testscript.Env) error {
			name := filepath.Base(env.WorkDir)[len("script-"):]
			if err := os.CopyFS(filepath.Join(env.WorkDir, "data"), os.DirFS(filepath.Join(stores, name))); err != nil {
				return err
			}
			return setup(env)
		},
	})
}

// TestFillStore creates a data directory by running testdata/stores/fill/fill.txtar.
func TestFillStore(t *testing.T) {
	if *fillStore == "" {
		t.Skip("SKIPPED: no -fill-store=NAME given; the data directories stay as they are")
	}
	to := filepath.Join(stores, *fillStore)
	if _, err := os.Stat(to); err == nil {
		t.Fatalf("%s is there: the directory of a format is made once", to)
	}
	work := t.TempDir()
	ran := t.Run("fill", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Files:               []string{stores + "/fill/fill.txtar"},
			RequireExplicitExec: true,
			Cmds:                testCommands,
			Setup:               setup,
			WorkdirRoot:         work,
		})
	})
	if !ran {
		return
	}
	from := filepath.Join(work, "script-fill", "data")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
