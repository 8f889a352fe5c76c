package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write golden files instead of comparing with them")

// repository creates a git repository with one commit and an uncommitted change.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "greet.sh"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("# Greets.\neco hello\n")
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."},
		{"-c", "user.name=dev", "-c", "user.email=dev@example.com", "commit", "-q", "-m", "first"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	put("# Greets.\nanother day\n")
	return dir
}

// recordScript records a script over a repository.
func recordScript(t *testing.T, repo, script string) ([]byte, error) {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := t.TempDir()
	name, out := filepath.Join(dir, "script.yaml"), filepath.Join(dir, "session.jsonl")
	if err := os.WriteFile(name, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-repo", repo, "-script", name, "-o", out}, t.Output())
	if left, readErr := os.ReadDir(temp); readErr != nil || len(left) > 0 {
		t.Errorf("not removed: %v %v", left, readErr)
	}
	if err != nil {
		if _, statErr := os.Stat(out); statErr == nil {
			t.Error("a failed recording wrote its file")
		}
		return nil, err
	}
	session, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return session, nil
}

func TestRecord(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("testdata", "small.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	repo := repository(t)
	got, err := recordScript(t, repo, string(script))
	if err != nil {
		t.Fatal(err)
	}
	again, err := recordScript(t, repo, string(script))
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("recorded twice, it differs: %v\n%s\n%s", err, got, again)
	}
	golden := filepath.Join("testdata", "small.golden.jsonl")
	if *rewrite {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("recorded:\n%s", got)
	}
	// The session works on a copy of the commit.
	text, err := os.ReadFile(filepath.Join(repo, "greet.sh"))
	if err != nil || string(text) != "# Greets.\nanother day\n" {
		t.Errorf("the repository was changed: %q %v", text, err)
	}
}

func TestScriptsThatDoNotFitAreRefused(t *testing.T) {
	const head = "system: s\nturns:\n  - user: u\n    steps:\n"
	repo := repository(t)
	for name, tt := range map[string]struct{ script, want string }{
		"fails where it must not": {head + "      - calls: [{bash: {command: 'exit 3'}}]", "turns[0].steps[0]: call_001 bash: failed is true"},
		"does not fail":           {head + "      - calls: [{bash: {command: 'true'}, fails: true}]", "failed is false and the script says true"},
		"killed":                  {head + "      - calls: [{bash: {command: 'kill -9 $$'}}]", "signal: killed"},
		"unknown member":          {head + "      - calls: [{bash: {cmd: ls}}]", "field cmd not found"},
		"no tool":                 {head + "      - calls: [{fails: true}]", "turns[0].steps[0].calls[0]: must name one tool"},
		"two tools":               {head + "      - calls: [{bash: {command: ls}, read_file: {path: x}}]", "must name one tool"},
		"empty step":              {head + "      - {}", "says and does nothing"},
		"no steps":                {"system: s\nturns: [{user: u}]", "turns[0]: needs user and steps"},
		"no system":               {"turns: []", "needs system and turns"},
		"preparation":             {"prepare: [nonsense-of-a-command]\n" + head + "      - say: x", "prepare: nonsense-of-a-command"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := recordScript(t, repo, tt.script); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to say %q", err, tt.want)
			}
		})
	}
}

func TestNoSuchRevision(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	err := run(t.Context(), []string{"-repo", repository(t), "-rev", "none", "-script", "testdata/small.yaml", "-o", out}, t.Output())
	if err == nil {
		t.Error("recorded a revision that does not exist")
	}
}

func TestClean(t *testing.T) {
	p := &place{cleaners: newCleaners(map[string]string{"/x/repo": "/repo", "/x": "/home/dev"})}
	for in, want := range map[string]string{
		"/x/repo/a.go:1 /x/y /xy":                     "/repo/a.go:1 /home/dev/y /xy",
		"ok  \tpkg\t(cached)\nok  \tpkg\t12.345s\n":   "ok  \tpkg\t0.010s\nok  \tpkg\t0.010s\n",
		"    --- FAIL: TestX/a (12.30s)":              "    --- FAIL: TestX/a (0.00s)",
		"goroutine 41 [running]:\nf(0xc00011a2b0, 3)": "goroutine 7 [running]:\nf(0xc000000000, 3)",
		"mode 0x1f took 1.5s":                         "mode 0x1f took 1.5s",
		"\xff":                                        "\uFFFD",
	} {
		if got := p.clean(in); got != want {
			t.Errorf("%q becomes %q, not %q", in, got, want)
		}
	}
}
