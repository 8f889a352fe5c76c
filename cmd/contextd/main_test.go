package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/contextd/contextd/cmd/contextd/internal/auth/authtest"
	"github.com/contextd/contextd/internal/log/pglog/pgtest"
	"github.com/contextd/contextd/internal/records"
)

var (
	rewrite = flag.Bool("rewrite", false, "rewrite the expected output in testdata/script")
	seed    = flag.Uint64("seed", 1, "what tests of faults draw from")
)

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"contextd": main})
}

// TestScripts runs the program as a user does.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *rewrite,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(name string) (bool, error) {
			switch name {
			case "race":
				return raced, nil
			case "postgres":
				return pgtest.Installed(), nil
			default:
				return false, fmt.Errorf("no condition %q", name)
			}
		},
		Cmds:  testCommands,
		Setup: setup,
	})
}

func setup(env *testscript.Env) error {
	// The scripts must not use a daemon that the developer is running.
	env.Setenv("CONTEXTD_ADDR", "unix://"+env.WorkDir+"/c.sock")
	env.Setenv("SOCK", env.WorkDir+"/c.sock")
	harnesses, err := filepath.Abs("../../internal/harness")
	if err != nil {
		return err
	}
	env.Setenv("HARNESSES", harnesses)
	// With the race detector a program waits a second at its end for late reports, and scripts run hundreds
	// of programs.
	env.Setenv("GORACE", "atexit_sleep_ms=20")
	return nil
}

var testCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits":  exits,
	"ready":  ready,
	"hashed": hashed,
	"count":  count,

	"certificates": certificates,
	"postgres":     postgres,
}

// postgres STATEMENTS... starts a database for the script, runs the statements, and sets the daemon's
// variable for its address.
func postgres(ts *testscript.TestScript, _ bool, args []string) {
	server, err := pgtest.Start()
	ts.Check(err)
	ts.Defer(server.Stop)
	for _, sql := range args {
		server.Exec(scriptTB{ts: ts}, server.DSN(""), sql)
	}
	ts.Setenv("CONTEXTD_POSTGRES_DSN", server.DSN(""))
}

// exits CODE PROGRAM ARGS... runs a program and expects its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code is %d; want %d", got, want)
	}
}

// ready waits until the daemon at $SOCK reports that it is ready.
func ready(ts *testscript.TestScript, _ bool, _ []string) {
	conn, err := grpc.NewClient("unix://"+ts.Getenv("SOCK"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	ts.Check(err)
	defer conn.Close()
	ts.Check(awaitReady(context.Background(), conn))
}

// certificates writes an authority and certificates for a daemon on loopback and two clients, and sets $PORT
// to a free port.
func certificates(ts *testscript.TestScript, _ bool, _ []string) {
	t := scriptTB{ts: ts}
	authority := authtest.NewAuthority(t, ts.MkAbs("."))
	authority.Issue(t, ts.MkAbs("cert.pem"), ts.MkAbs("key.pem"), "127.0.0.1")
	authority.Issue(t, ts.MkAbs("client.pem"), ts.MkAbs("client.key"), "spiffe://example/a")
	authority.Issue(t, ts.MkAbs("other.pem"), ts.MkAbs("other.key"), "spiffe://example/other")
	_, port, err := net.SplitHostPort(freeAddress(t))
	ts.Check(err)
	ts.Setenv("PORT", port)
}

// scriptTB makes test helpers fail the script that calls them.
type scriptTB struct {
	testing.TB
	ts *testscript.TestScript
}

func (scriptTB) Helper() {}

func (scriptTB) Context() context.Context { return context.Background() }

func (t scriptTB) Fatal(args ...any) { t.ts.Fatalf("%s", fmt.Sprint(args...)) }

func (t scriptTB) Fatalf(format string, args ...any) { t.ts.Fatalf(format, args...) }

// hashed FILE TEXT expects that TEXT holds the prefix hash of the messages in
// FILE, one per line.
func hashed(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: hashed FILE TEXT")
	}
	h := records.NewHasher()
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		h.Add([]byte(strings.TrimSuffix(line, "\n")))
	}
	if !strings.Contains(ts.ReadFile(args[1]), h.Sum()) {
		ts.Fatalf("%s does not hold %s, the hash of %s", args[1], h.Sum(), args[0])
	}
}

// count N FILE expects a number of lines.
func count(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: count N FILE")
	}
	if got := fmt.Sprint(strings.Count(ts.ReadFile(args[1]), "\n")); got != args[0] {
		ts.Fatalf("%s has %s lines; want %s", args[1], got, args[0])
	}
}

// TestNoEngine: imported files may be databases, so no engine that would execute what they contain may be
// linked.
func TestNoEngine(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const own = "github.com/contextd/contextd/internal/harness/cursor/sqlite"
	if !strings.Contains(string(out), own+"\n") {
		t.Fatalf("the program does not have %s: this test shows nothing", own)
	}
	for pkg := range strings.Lines(string(out)) {
		if pkg = strings.TrimSpace(pkg); pkg != own && strings.Contains(pkg, "sqlite") || strings.HasPrefix(pkg, "modernc.org/") {
			t.Errorf("the program has %s", pkg)
		}
	}
}

// raced is set when the race detector is on.
var raced bool
