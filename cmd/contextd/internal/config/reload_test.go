package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "contextd.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"CONTEXTD_MAX_SESSIONS": "7"}
	lookup := func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
	write("max_sessions: 5\npolicies: {a: {}, b: {}}\ndefault_policy: a\n")
	c := config.Default()
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Bind(f)
	if err := f.Parse([]string{"--config", path, "--listen", "127.0.0.1:9", "--max-event-bytes", "3MiB"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Load(f, lookup); err != nil {
		t.Fatal(err)
	}
	before := c

	same, err := config.Reload(f, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, same, protocmp.Transform()); diff != "" {
		t.Errorf("nothing changed, but (-loaded +reloaded):\n%s", diff)
	}
	if got := c.Differences(&same); len(got) > 0 {
		t.Errorf("nothing changed, but %v differ", got)
	}

	write("policies: {b: {}}\nlisten: 127.0.0.1:10\nstore: memory\n")
	next, err := config.Reload(f, lookup)
	if err != nil {
		t.Fatal(err)
	}
	if len(next.Policies) != 1 || next.DefaultPolicy != "default" || next.Listen != "127.0.0.1:9" || next.Limits.MaxSessions != 7 || next.Limits.MaxEventBytes != 3<<20 {
		t.Errorf("reloaded %+v", next)
	}
	if got := c.Differences(&next); !slices.Equal(got, []string{"store", "default_policy", "policies"}) {
		t.Errorf("%v differ", got)
	}

	write("default_policy: c\n")
	if _, err := config.Reload(f, lookup); err == nil {
		t.Error("a default that is missing was reloaded")
	}
	if diff := cmp.Diff(before, c, protocmp.Transform()); diff != "" {
		t.Errorf("reloading changed what was loaded:\n%s", diff)
	}
}
