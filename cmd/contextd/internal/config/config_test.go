package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/policy"
)

func load(t *testing.T, env map[string]string, args ...string) (config.Config, error) {
	t.Helper()
	c := config.Default()
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Bind(f)
	if err := f.Parse(args); err != nil {
		return c, err
	}
	err := c.Load(f, func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	})
	return c, err
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "contextd.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// everything returns a value other than the default for every setting, as flags, variables and YAML.
func everything(t *testing.T) (args []string, env map[string]string, yaml string) {
	t.Helper()
	c := config.Default()
	env = map[string]string{}
	c.Settings().VisitAll(func(f *pflag.Flag) {
		value, ok := other[f.Name]
		if !ok || value == f.DefValue {
			t.Fatalf("the test has no other value for %s", f.Name)
		}
		args = append(args, "--"+f.Name+"="+value)
		env[config.EnvName(f.Name)] = value
		yaml += fmt.Sprintf("%s: %s\n", config.FileKey(f.Name), value)
	})
	if len(args) != len(other) {
		t.Fatalf("%d settings and %d values", len(args), len(other))
	}
	return args, env, yaml
}

// TestThreeWays sets every setting by flag, by variable and in the file. The results must be equal, and
// without any of them the defaults must apply.
func TestThreeWays(t *testing.T) {
	args, env, yaml := everything(t)
	byFlag, err := load(t, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	byEnv, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	byFile, err := load(t, nil, "--config", file(t, yaml))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(byFlag, byEnv, protocmp.Transform()); diff != "" {
		t.Errorf("flags and environment differ:\n%s", diff)
	}
	if diff := cmp.Diff(byFlag, byFile, protocmp.Transform()); diff != "" {
		t.Errorf("flags and file differ:\n%s", diff)
	}
	byFlag.Settings().VisitAll(func(f *pflag.Flag) {
		if f.DefValue != other[f.Name] {
			t.Errorf("%s became %s; want %s", f.Name, f.DefValue, other[f.Name])
		}
	})
	untouched, err := load(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), untouched, protocmp.Transform()); diff != "" {
		t.Errorf("defaults (-Default +loaded):\n%s", diff)
	}
	byEmptyFile, err := load(t, nil, "--config", file(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), byEmptyFile, protocmp.Transform()); diff != "" {
		t.Errorf("an empty file changes something:\n%s", diff)
	}
}

func TestPrecedence(t *testing.T) {
	path := file(t, "data_dir: file\nlog_level: warn\nmax_sessions: 1\n")
	env := map[string]string{"CONTEXTD_CONFIG": path, "CONTEXTD_DATA_DIR": "env", "CONTEXTD_LOG_LEVEL": "error"}
	c, err := load(t, env, "--data-dir", "flag")
	if err != nil {
		t.Fatal(err)
	}
	if c.DataDir != "flag" || c.LogLevel.String() != "ERROR" || c.Limits.MaxSessions != 1 {
		t.Errorf("got %s, %s and %d", c.DataDir, c.LogLevel, c.Limits.MaxSessions)
	}
	// A flag overrides the environment even if it repeats the default.
	c, err = load(t, env, "--data-dir", "contextd-data")
	if err != nil || c.DataDir != "contextd-data" {
		t.Errorf("got %s, %v", c.DataDir, err)
	}
	// An empty variable is a value: it turns TCP off.
	c, err = load(t, map[string]string{"CONTEXTD_LISTEN": "", "CONTEXTD_UNIX_SOCKET": "/x"})
	if err != nil || c.Listen != "" {
		t.Errorf("got %q, %v", c.Listen, err)
	}
}

func TestYAML(t *testing.T) {
	c, err := load(t, nil, "--config", file(t, `
# Sizes and lists as people write them.
max_event_bytes: 8MiB
max_batch_bytes: 16777216
shutdown_timeout: 1m30s
default_policy: coder
default_budget:
  model: gpt-4o
  max_tokens: 32000
  tier_caps: {tool_results: 0.5}
policies:
  coder:
    tool_results:
      default: {turns: 6, min_tokens: 100}
      by_tool:
        "read_*": {last: 5}
    cache: {cache_ttl: 3600s}
  plain: {}
  empty:
models:
  - name: house-large
    window: 64000
  - {name: "house-*", tokenizer: cl100k_base, margin: 0, prices: {input: 3, cache_read: 0.2, min_cached_tokens: 1024}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits.MaxEventBytes != 8<<20 || c.Limits.MaxBatchBytes != 16<<20 || c.ShutdownTimeout.Seconds() != 90 {
		t.Errorf("limits are %+v, timeout %s", c.Limits, c.ShutdownTimeout)
	}
	if c.DefaultBudget.GetTierCaps()["tool_results"] != 0.5 || c.DefaultBudget.GetModel() != "gpt-4o" {
		t.Errorf("budget is %v", c.DefaultBudget)
	}
	set, err := c.PolicySet()
	if err != nil {
		t.Fatal(err)
	}
	p, err := set.Resolve(policy.Overlay{}, policy.Overlay{})
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Reduction; r.ToolResults.ByTool["read_*"].Last != 5 || r.ToolResults.Default.MinTokens != 100 || r.Cache.TTL.Hours() != 1 {
		t.Errorf("policy is %+v", r)
	}
	if got := strings.Join(set.Names(), " "); got != "balanced coder default empty faithful frugal plain" {
		t.Errorf("policies are %s", got)
	}
	models, err := c.Registry()
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := models.Lookup("house-large"); m.Window != 64000 {
		t.Errorf("model is %+v", m)
	}
	prices := budget.Prices{Input: 3, CacheRead: 0.2, CacheWrite: 1.25, MinCachedTokens: 1024}
	if m, _ := models.Lookup("house-small"); m.Tokenizer != "cl100k_base" || m.Margin != 0 || m.Prices != prices {
		t.Errorf("model is %+v", m)
	}
}

func TestRefused(t *testing.T) {
	tests := map[string]struct {
		args []string
		env  map[string]string
		yaml string
		// want are parts of the error: what is wrong, and where.
		want []string
	}{
		"open to all":               {args: []string{"--listen=:7171"}, want: []string{"listen :7171", "insecure_listen_without_authentication"}},
		"open, by a name":           {args: []string{"--listen=host:7171"}, want: []string{"listen host:7171"}},
		"open, with TLS alone":      {args: []string{"--listen=:7171", "--tls-cert=c", "--tls-key=k"}, want: []string{"anybody"}},
		"tokens in plain text":      {args: []string{"--listen=[::]:7171", "--auth-tokens=t"}, want: []string{"can be read on the way", "tls_cert"}},
		"a socket for all":          {args: []string{"--unix-socket=/x", "--unix-socket-mode=0666"}, want: []string{"unix_socket_mode 0666", "unix_socket_peers"}},
		"a key alone":               {args: []string{"--tls-key=k"}, want: []string{"tls_cert and tls_key"}},
		"clients without TLS":       {args: []string{"--tls-client-ca=c"}, want: []string{"tls_client_ca", "tls_cert"}},
		"tenants without clients":   {args: []string{"--tls-client-tenants={a: a}"}, want: []string{"tls_client_tenants", "tls_client_ca"}},
		"a tenant that is none":     {env: map[string]string{"CONTEXTD_TLS_CLIENT_TENANTS": "{a: /}"}, want: []string{"CONTEXTD_TLS_CLIENT_TENANTS", "tenant"}},
		"a peer that is nobody":     {env: map[string]string{"CONTEXTD_UNIX_SOCKET_PEERS": "[{tenant: a}]"}, want: []string{"CONTEXTD_UNIX_SOCKET_PEERS", "uid"}},
		"keys without an issuer":    {args: []string{"--jwt-keys=k", "--jwt-audience=a"}, want: []string{"jwt_issuer"}},
		"an issuer without keys":    {args: []string{"--jwt-issuer=i"}, want: []string{"jwt_keys"}},
		"keys in plain text":        {args: []string{"--jwt-keys=http://h/k", "--jwt-audience=a", "--jwt-issuer=i"}, want: []string{"jwt_keys", "https"}},
		"profiles for all":          {args: []string{"--pprof", "--metrics-listen=:1"}, want: []string{"pprof", "loopback"}},
		"profiles nowhere":          {args: []string{"--pprof"}, want: []string{"pprof", "metrics_listen"}},
		"an inspector for all":      {args: []string{"--inspect-listen=:1"}, want: []string{"inspect_listen :1", "anybody", "auth_tokens"}},
		"an inspector in plain":     {args: []string{"--inspect-listen=:1", "--auth-tokens=t"}, want: []string{"inspect_listen :1", "can be read on the way"}},
		"an inspector for nobody":   {args: []string{"--inspect-listen=127.0.0.1:1", "--tls-cert=c", "--tls-key=k", "--tls-client-ca=a"}, want: []string{"inspect_listen", "auth_tokens"}},
		"no listener":               {args: []string{"--listen="}, want: []string{"listen", "unix_socket"}},
		"a list for a text":         {yaml: "data_dir: [a, b]", want: []string{"data_dir: must be a text, not a list"}},
		"a map for a text":          {yaml: "store: {disk: yes}", want: []string{"store: must be a text, not a map"}},
		"a list for a number":       {yaml: "max_calls: [5]", want: []string{"max_calls: must be a whole number"}},
		"a store by an alias":       {yaml: "log_format: &a tape\nstore: *a", want: []string{"store", "tape"}},
		"a store that is none":      {yaml: "store: tape", want: []string{"store", "tape"}},
		"no data_dir":               {args: []string{"--data-dir="}, want: []string{"data_dir"}},
		"a size that is none":       {env: map[string]string{"CONTEXTD_MAX_EVENT_BYTES": "big"}, want: []string{"CONTEXTD_MAX_EVENT_BYTES", "16MiB"}},
		"a size beyond all":         {args: []string{"--max-event-bytes=99999999999GiB"}, want: []string{"max-event-bytes"}},
		"a level that is none":      {yaml: "log_level: loud", want: []string{"log_level", "debug, info"}},
		"a format that is none":     {yaml: "log_format: xml", want: []string{"log_format", "xml"}},
		"a negative timeout":        {args: []string{"--shutdown-timeout=-1s"}, want: []string{"shutdown_timeout"}},
		"no connections":            {args: []string{"--max-connections=0"}, want: []string{"max_connections"}},
		"no streams":                {args: []string{"--max-streams=0"}, want: []string{"max_streams"}},
		"no cache":                  {args: []string{"--cache-sessions=0"}, want: []string{"cache_sessions"}},
		"a cache beyond all":        {args: []string{"--disk-cache-bytes=2048GiB"}, want: []string{"disk_cache_bytes"}},
		"no sync in time":           {args: []string{"--slow-sync=0s"}, want: []string{"slow_sync"}},
		"no window":                 {args: []string{"--stream-window=0"}, want: []string{"stream_window"}},
		"a batch below an event":    {args: []string{"--max-batch-bytes=1MiB"}, want: []string{"max_batch_bytes", "max_event_bytes"}},
		"a batch beyond all":        {args: []string{"--max-batch-bytes=2GiB"}, want: []string{"max_batch_bytes"}},
		"an unknown key":            {yaml: "datadir: x", want: []string{"contextd.yaml", "datadir"}},
		"a key in the flag's form":  {yaml: "data-dir: x", want: []string{"contextd.yaml", "data-dir"}},
		"a file that is no YAML":    {yaml: "a: [", want: []string{"contextd.yaml"}},
		"a file that is missing":    {args: []string{"--config=/does/not/exist"}, want: []string{"/does/not/exist"}},
		"a shadow policy missing":   {yaml: "shadow: lean", want: []string{"shadow", "lean", "frugal"}},
		"a default policy missing":  {yaml: "default_policy: lean", want: []string{"default_policy", "lean"}},
		"a policy's field unknown":  {yaml: "policies: {a: {soup: 1}}", want: []string{"policies", "a:", "soup"}},
		"a policy's rule broken":    {yaml: "policies: {a: {clipping: {max_tokens: 1, head_tokens: 2}}}", want: []string{"policies", "clipping"}},
		"a policy that is no map":   {yaml: "policies: [a]", want: []string{"policies"}},
		"a budget that leaves none": {yaml: "default_budget: {max_tokens: 10, output_reserve: 10}", want: []string{"default_budget"}},
		"a budget's tokenizer":      {yaml: "default_budget: {safety_margin: 2}", want: []string{"default_budget", "safety_margin"}},
		"a budget that is no map":   {yaml: "default_budget: 7", want: []string{"default_budget"}},
		"a pattern of nothing":      {yaml: "scrub_patterns: {all: x*}", want: []string{"scrub_patterns", "all"}},
		"a model without a name":    {yaml: "models: [{window: 1}]", want: []string{"models", "name"}},
		"a model's prices":          {yaml: "models: [{name: a, prices: {cache_read: 2}}]", want: []string{"models", "models[0].prices.cache_read", "at most 1"}},
		"a model's field unknown":   {yaml: "models: [{name: a, windw: 1}]", want: []string{"models", "windw"}},
		"two at once":               {env: map[string]string{"CONTEXTD_MAX_STREAMS": "x"}, yaml: "log_level: y", want: []string{"CONTEXTD_MAX_STREAMS", "log_level"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.yaml != "" {
				test.args = append(test.args, "--config="+file(t, test.yaml))
			}
			_, err := load(t, test.env, test.args...)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not speak of %s", err, want)
				}
			}
		})
	}
}

func FuzzSize(f *testing.F) {
	for _, s := range []string{"0", "1", "16MiB", "1GiB", "3KiB", "x", "-1", "1 MiB", "18446744073709551615"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parse := func(text string) (string, error) {
			c := config.Default()
			flags := pflag.NewFlagSet("fuzz", pflag.ContinueOnError)
			c.Bind(flags)
			size := flags.Lookup("max-session-bytes").Value
			err := size.Set(text)
			return size.String(), err
		}
		shown, err := parse(text)
		if err != nil {
			return
		}
		if again, err := parse(shown); err != nil || again != shown {
			t.Errorf("%q is shown as %q, which is %q, %v", text, shown, again, err)
		}
	})
}

// TestSocketAlone: with a unix socket no TCP port is opened unless one is asked for, in any of the three
// forms.
func TestSocketAlone(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"neither":          {nil, nil, "127.0.0.1:7171"},
		"a socket":         {[]string{"--unix-socket=/x"}, nil, ""},
		"by a variable":    {nil, map[string]string{"CONTEXTD_UNIX_SOCKET": "/x"}, ""},
		"by a file":        {[]string{"--config=" + file(t, "unix_socket: /x\n")}, nil, ""},
		"with a port":      {[]string{"--unix-socket=/x", "--listen=127.0.0.1:1"}, nil, "127.0.0.1:1"},
		"with the default": {[]string{"--unix-socket=/x", "--listen=127.0.0.1:7171"}, nil, "127.0.0.1:7171"},
		"port by variable": {[]string{"--unix-socket=/x"}, map[string]string{"CONTEXTD_LISTEN": "127.0.0.1:1"}, "127.0.0.1:1"},
		"port by file":     {[]string{"--config=" + file(t, "unix_socket: /x\nlisten: 127.0.0.1:1\n")}, nil, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := load(t, test.env, test.args...)
			if err != nil || c.Listen != test.want {
				t.Errorf("it listens at %q, %v; want %q", c.Listen, err, test.want)
			}
		})
	}
}

// TestListening: addresses that others can reach are accepted if callers must authenticate, or if a setting
// allows it explicitly.
func TestListening(t *testing.T) {
	for name, args := range map[string][]string{
		"loopback":                {"--listen=127.0.0.1:7171"},
		"loopback by name":        {"--listen=localhost:7171"},
		"loopback, IPv6":          {"--listen=[::1]:7171"},
		"tokens with TLS":         {"--listen=:7171", "--auth-tokens=t", "--tls-cert=c", "--tls-key=k"},
		"certificates":            {"--listen=:7171", "--tls-client-ca=a", "--tls-cert=c", "--tls-key=k"},
		"open in words":           {"--listen=:7171", "--insecure-listen-without-authentication"},
		"plain tokens in words":   {"--listen=:7171", "--auth-tokens=t", "--insecure-listen-without-encryption"},
		"a socket for all, known": {"--unix-socket=/x", "--unix-socket-mode=0666", "--unix-socket-peers=[{uid: 7}]"},
		"a port by its name":      {"--listen=127.0.0.1:http"},
		"profiles":                {"--pprof", "--metrics-listen=127.0.0.1:1"},
	} {
		if _, err := load(t, nil, args...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, setting := range []string{"listen", "metrics-listen", "inspect-listen"} {
		for _, address := range []string{"127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", "http://127.0.0.1:7171", "7171"} {
			want := strings.ReplaceAll(setting, "-", "_") + " " + strconv.Quote(address) + " must be host:port"
			if _, err := load(t, nil, "--"+setting+"="+address); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("--%s=%s is answered %v, want %q", setting, address, err, want)
			}
		}
	}
}
