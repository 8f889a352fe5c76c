package config

import (
	"github.com/spf13/pflag"

	"github.com/contextd/contextd/cmd/contextd/internal/auth"
)

// FileFlag is the flag for the YAML file; EnvName gives its variable. It is not a setting: a file cannot name
// another.
const FileFlag = "config"

// Bind adds a flag for every setting, with c's values as defaults, and the flag for the file.
func (c *Config) Bind(f *pflag.FlagSet) {
	f.String(FileFlag, "", "YAML `file` with settings; also "+EnvName(FileFlag))
	c.bind(f)
}

// TopicCallers is the topic of the flags that BindCallers adds.
const TopicCallers = "Who may call over TCP"

// topicKey is the annotation that holds a flag's topic.
const topicKey = "topic"

// BindUnder adds flags by bind, and gives them a topic.
func BindUnder(f *pflag.FlagSet, topic string, bind func(*pflag.FlagSet)) {
	own := pflag.NewFlagSet(topic, pflag.ContinueOnError)
	own.SortFlags = false
	bind(own)
	own.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[topicKey] = []string{topic}
		f.AddFlag(flag)
	})
}

// Topic is a flag's topic; empty if it has none.
func Topic(f *pflag.Flag) string {
	if topic := f.Annotations[topicKey]; len(topic) > 0 {
		return topic[0]
	}
	return ""
}

// bind declares every setting, by topic. The text in backquotes is the value's name in the help.
func (c *Config) bind(f *pflag.FlagSet) {
	for _, topic := range []struct {
		name string
		bind func(*pflag.FlagSet)
	}{
		{"Addresses", c.bindAddresses},
		{TopicCallers, c.BindCallers},
		{"The store", c.bindStore},
		{"The disk store", c.bindDisk},
		{"The postgres store", c.Postgres.bind},
		{"Policies, budgets and models", c.bindPolicies},
		{"Summaries and hooks", c.bindSummaries},
		{"Credentials in content", c.bindScrubbing},
		{"Limits of size", c.bindSizes},
		{"Calls and connections", c.bindCalls},
		{"Memory", c.bindMemory},
		{"The log and stopping", c.bindProcess},
	} {
		BindUnder(f, topic.name, topic.bind)
	}
}

func (c *Config) bindAddresses(f *pflag.FlagSet) {
	f.StringVar(&c.Listen, "listen", c.Listen, "TCP `address` of the API; empty for none, the default if unix_socket is set")
	f.StringVar(&c.UnixSocket, "unix-socket", c.UnixSocket, "`path` of the API's unix socket; empty for none")
	f.Var(modeValue{&c.UnixSocketMode}, "unix-socket-mode", "who may connect to the unix socket, as an octal file `mode`")
	f.Var(yamlValue[[]auth.Peer]{&c.Auth.Peers, validPeers}, "unix-socket-peers", "processes that may use the unix socket, as a YAML list of uid, gid, tenant; empty for all that its mode admits")
	f.StringVar(&c.MetricsListen, "metrics-listen", c.MetricsListen, "TCP `address` of /metrics for Prometheus and of the probes /livez and /readyz, over HTTP; empty for none")
	f.StringVar(&c.InspectListen, "inspect-listen", c.InspectListen, "TCP `address` of the inspector, a page for browsers that shows sessions and changes nothing; empty for none")
	f.BoolVar(&c.Pprof, "pprof", c.Pprof, "serve Go's profiles at metrics_listen, which must then be a loopback address; they contain parts of sessions")
}

// BindCallers adds the flags that say who may call over TCP.
func (c *Config) BindCallers(f *pflag.FlagSet) {
	f.StringVar(&c.Auth.TokenFile, "auth-tokens", c.Auth.TokenFile, "`file` with bearer tokens; each call over TCP must bring one of them; see docs/security.md")
	f.StringVar(&c.Auth.JWT.Keys, "jwt-keys", c.Auth.JWT.Keys, "`file` or https URL with the public keys, a JWK set, of JSON Web Tokens that calls may bring as bearer tokens")
	f.StringVar(&c.Auth.JWT.Issuer, "jwt-issuer", c.Auth.JWT.Issuer, "`issuer` that JSON Web Tokens must be from")
	f.StringVar(&c.Auth.JWT.Audience, "jwt-audience", c.Auth.JWT.Audience, "`audience` that JSON Web Tokens must be for")
	f.StringVar(&c.Auth.JWT.TenantClaim, "jwt-tenant-claim", c.Auth.JWT.TenantClaim, "`claim` that names the tenant; empty for no tenants")
	f.StringVar(&c.Auth.CertFile, "tls-cert", c.Auth.CertFile, "PEM `file` with the certificate for TLS 1.3 at the API's TCP address")
	f.StringVar(&c.Auth.KeyFile, "tls-key", c.Auth.KeyFile, "PEM `file` with the key of tls_cert")
	f.StringVar(&c.Auth.ClientCAFile, "tls-client-ca", c.Auth.ClientCAFile, "PEM `file` with certificate authorities; each call over TCP then needs a client's certificate of one of them")
	f.Var(yamlValue[auth.ClientTenants]{&c.Auth.ClientTenants, auth.ClientTenants.Validate}, "tls-client-tenants", "tenants by the URIs and DNS names in clients' certificates, as a YAML map; empty for no tenants")
	f.BoolVar(&c.WithoutAuthentication, "insecure-listen-without-authentication", c.WithoutAuthentication, "allow an address that other machines can reach although no token or certificate is asked for")
	f.BoolVar(&c.WithoutEncryption, "insecure-listen-without-encryption", c.WithoutEncryption, "allow an address that other machines can reach although the connection is not encrypted")
}

func (c *Config) bindStore(f *pflag.FlagSet) {
	f.StringVar(&c.Store, "store", c.Store, "`kind` of store that sessions are kept in: memory, disk or postgres")
	f.StringVar(&c.DataDir, "data-dir", c.DataDir, "`directory` of the disk store")
}

func (c *Config) bindDisk(f *pflag.FlagSet) {
	f.StringVar(&c.EncryptionKeyFile, "encryption-key-file", c.EncryptionKeyFile, "`file` with the key that the disk store is encrypted with, and earlier keys after it; see contextd keygen")
	f.Var(yamlValue[[]string]{to: &c.EncryptionKeyCommand}, "encryption-key-command", "command that writes such keys, as a YAML list of its words; those of the file come before them")
	f.StringVar(&c.EncryptionKeysDir, "encryption-keys-dir", c.EncryptionKeysDir, "`directory` of the keys of sessions; empty for keys in data_dir")
	f.Var(sizeValue(&c.DiskCacheBytes), "disk-cache-bytes", "memory for what the disk store caches, such as 16MiB")
	c.Disk.bind(f)
}

func (c *Config) bindPolicies(f *pflag.FlagSet) {
	f.StringVar(&c.DefaultPolicy, "default-policy", c.DefaultPolicy, "`name` of the policy that applies where none is named")
	f.Var(policiesValue{&c.Policies}, "policies", "named policies, as a YAML map from name to contextd.v1.Policy's fields")
	f.StringVar(&c.Shadow, "shadow", c.Shadow, "`name` of a second policy whose contexts are computed, counted and recorded, but not sent; empty for none; see docs/evaluating.md")
	f.Var(budgetValue{&c.DefaultBudget}, "default-budget", "budget that applies where none is given, as a YAML map of contextd.v1.Budget's fields")
	f.Var(modelsValue{&c.Models}, "models", "models to add or change, as a YAML list of name, provider, window, tokenizer, margin, prices, return_reasoning")
}

func (c *Config) bindSummaries(f *pflag.FlagSet) {
	f.StringVar(&c.DefaultSummarizer, "default-summarizer", c.DefaultSummarizer, "`name` of the summarizer for policies that name none")
	f.Var(summarizersValue{&c.Summarizers}, "summarizers", "named summarizers, as a YAML map from name to settings; see docs/summarizers.md")
	f.DurationVar(&c.HookTimeout, "hook-timeout", c.HookTimeout, "how long a runtime may take to answer a hook, unless it sets another time")
	f.StringVar(&c.HookOnTimeout, "hook-on-timeout", c.HookOnTimeout, "`answer` in place of one that takes longer: allow or block the compaction")
}

func (c *Config) bindScrubbing(f *pflag.FlagSet) {
	f.Var(yamlValue[map[string]string]{to: &c.ScrubPatterns}, "scrub-patterns", "patterns of credentials in addition to the built-in ones, as a YAML map from name to RE2 expression")
	f.BoolVar(&c.ScrubAppends, "scrub-appends", c.ScrubAppends, "replace credentials in events before they are stored")
}

func (c *Config) bindSizes(f *pflag.FlagSet) {
	l := &c.Limits
	f.Var(sizeValue(&l.MaxEventBytes), "max-event-bytes", "largest content of an event")
	f.Uint64Var(&l.MaxBatchEvents, "max-batch-events", l.MaxBatchEvents, "most `events` of one append")
	f.Var(sizeValue(&l.MaxBatchBytes), "max-batch-bytes", "largest content of one append")
	f.Uint64Var(&l.MaxSessionEvents, "max-session-events", l.MaxSessionEvents, "most `events` of one session; 0 for no limit")
	f.Var(sizeValue(&l.MaxSessionBytes), "max-session-bytes", "largest content of one session's log; 0 for no limit")
	f.Uint64Var(&l.MaxSessions, "max-sessions", l.MaxSessions, "most `sessions` of a tenant; 0 for no limit")
	f.Uint64Var(&l.MaxStoreSessions, "max-store-sessions", l.MaxStoreSessions, "most `sessions` of all tenants; 0 for no limit")
	f.Var(sizeValue(&l.MaxTenantBytes), "max-tenant-bytes", "largest content of all logs of a tenant and of what is derived from them; 0 for no limit")
	f.Var(sizeValue(&l.MaxStoreBytes), "max-store-bytes", "largest content of the logs of all tenants and of what is derived from them; 0 for no limit")
	f.Var(sizeValue(&l.MaxPolicyBytes), "max-policy-bytes", "largest policy, with the budget, of a session or a request")
	f.Var(sizeValue(&l.MaxImportBytes), "max-import-bytes", "largest transcript that is imported")
}

func (c *Config) bindCalls(f *pflag.FlagSet) {
	f.Uint64Var(&c.MaxConnections, "max-connections", c.MaxConnections, "`connections` that each listener may have; one more closes the one that is idle for longest")
	f.Uint64Var(&c.MaxClientConnections, "max-client-connections", c.MaxClientConnections, "`connections` that a client may have to each listener")
	f.DurationVar(&c.ConnectionIdleTimeout, "connection-idle-timeout", c.ConnectionIdleTimeout, "how long a client may stay connected without a call")
	f.Uint64Var(&c.MaxStreams, "max-streams", c.MaxStreams, "`calls` that one connection may have open at once")
	f.Uint64Var(&c.MaxCalls, "max-calls", c.MaxCalls, "`calls` that may run at once, over all connections")
	f.Uint64Var(&c.MaxClientCalls, "max-client-calls", c.MaxClientCalls, "`calls` of a client that may run at once")
	f.Uint64Var(&c.MaxCallRate, "max-call-rate", c.MaxCallRate, "`calls` that may begin in a second; 0 for no limit")
	f.Uint64Var(&c.MaxClientCallRate, "max-client-call-rate", c.MaxClientCallRate, "`calls` of a client that may begin in a second; 0 for no limit")
	f.Uint64Var(&c.MaxAssemblies, "max-assemblies", c.MaxAssemblies, "`assemblies`, and other long computations, that may run at once; 0 for the number of processors")
	f.Uint64Var(&c.MaxClientAssemblies, "max-client-assemblies", c.MaxClientAssemblies, "`assemblies` of a client that may run at once; 0 for no limit")
	f.Uint64Var(&c.Limits.StreamWindow, "stream-window", c.Limits.StreamWindow, "`appends` of one stream that may wait for the disk at once")
	f.DurationVar(&c.ReceiveTimeout, "receive-timeout", c.ReceiveTimeout, "how long a request, or the next part of an upload, may take to arrive")
	f.DurationVar(&c.SendTimeout, "send-timeout", c.SendTimeout, "how long a client may wait before it reads the next part of an answer")
}

func (c *Config) bindMemory(f *pflag.FlagSet) {
	f.Var(sizeValue(&c.RequestMemory), "request-memory", "memory for requests above 64 KiB, until their calls end; requests that do not fit wait")
	f.Var(sizeValue(&c.AnswerMemory), "answer-memory", "memory for answers above 64 KiB, until clients have read them; answers that do not fit wait")
	f.Var(sizeValue(&c.WorkMemory), "work-memory", "memory for what calls read from logs and compute from it; calls that do not fit wait")
	f.Var(sizeValue(&c.Limits.ImportMemory), "import-memory", "memory for transcripts that are being read, all together")
	f.Var(sizeValue(&c.CacheMemory), "cache-memory", "memory for sessions and contexts that stay between calls")
	f.Uint64Var(&c.CacheSessions, "cache-sessions", c.CacheSessions, "`sessions` that stay in memory between assemblies")
}

func (c *Config) bindProcess(f *pflag.FlagSet) {
	f.Var(levelValue{&c.LogLevel}, "log-level", "lowest `level` that is logged: debug, info, warn or error")
	f.StringVar(&c.LogFormat, "log-format", c.LogFormat, "`format` of the log on stderr: text or json")
	f.DurationVar(&c.ShutdownTimeout, "shutdown-timeout", c.ShutdownTimeout, "how long the daemon may take to stop; calls that still run shortly before are ended")
}
