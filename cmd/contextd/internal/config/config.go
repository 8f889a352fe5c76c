// Package config holds what an operator can set: one struct with one set of defaults. A YAML file overrides
// the defaults, the environment the file, and flags the environment.
//
// A setting is declared once, in bind. Its flag is --some-name, its variable CONTEXTD_SOME_NAME and its key
// in the file some_name; all three take the same text.
package config

import (
	"io/fs"
	"log/slog"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/cmd/contextd/internal/limit"
	"github.com/contextd/contextd/internal/budget"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// The kinds of store.
const (
	StoreMemory   = "memory"
	StoreDisk     = "disk"
	StorePostgres = "postgres"
)

// The formats of the log.
const (
	LogText = "text"
	LogJSON = "json"
)

// Config is everything that can be set.
type Config struct {
	// Listen is the TCP address of the API; empty is none.
	Listen string
	// UnixSocket is the path of the API's unix socket; empty is none.
	UnixSocket string
	// UnixSocketMode is the file mode of the socket: who may connect.
	UnixSocketMode fs.FileMode
	// Auth says who may call.
	Auth auth.Options
	// WithoutAuthentication allows an address that others can reach although callers need not authenticate.
	// WithoutEncryption allows it although credentials would be sent unencrypted.
	WithoutAuthentication, WithoutEncryption bool
	// MetricsListen is the TCP address of metrics and probes; empty is none.
	MetricsListen string
	// InspectListen is the TCP address of the inspector; empty is none.
	InspectListen string
	// Pprof adds profiles to the address of metrics. Profiles may contain content of sessions.
	Pprof bool

	// Store is StoreMemory, StoreDisk or StorePostgres.
	Store string
	// DataDir is where StoreDisk keeps everything.
	DataDir string
	// EncryptionKeyFile is a file that holds the operator's keys for StoreDisk, EncryptionKeyCommand a
	// command that writes them to stdout. Without either nothing is encrypted.
	EncryptionKeyFile    string
	EncryptionKeyCommand []string
	// EncryptionKeysDir is where the keys of sessions are stored; empty for a folder in DataDir.
	EncryptionKeysDir string
	// DiskCacheBytes bounds StoreDisk's cache of its files.
	DiskCacheBytes uint64
	Disk           Disk
	Postgres       Postgres

	LogLevel  slog.Level
	LogFormat string

	// ShutdownTimeout bounds how long a stop waits for calls.
	ShutdownTimeout time.Duration
	// MaxConnections is how many clients may be connected to each listener. A further client replaces the one
	// that was idle for longest.
	MaxConnections uint64
	// MaxClientConnections is how many connections one client may have to each listener.
	MaxClientConnections uint64
	// ConnectionIdleTimeout is how long a client may stay connected without a call.
	ConnectionIdleTimeout time.Duration
	// MaxCalls is how many calls may run at once over all connections, MaxClientCalls how many of one client.
	MaxCalls, MaxClientCalls uint64
	// MaxCallRate is how many calls may begin per second, MaxClientCallRate how many of one client; 0 is no
	// limit.
	MaxCallRate, MaxClientCallRate uint64
	// MaxAssemblies is how many assemblies and other calls that need much processor time may run at once; 0
	// is the number of processors. MaxClientAssemblies is how many of one client; 0 is MaxAssemblies.
	MaxAssemblies, MaxClientAssemblies uint64
	// ReceiveTimeout bounds the time for a request to arrive, SendTimeout the time for the client to take an
	// answer.
	ReceiveTimeout, SendTimeout time.Duration
	// RequestMemory, AnswerMemory, WorkMemory and CacheMemory bound the bytes of requests, of answers, of the
	// work of calls, and of caches between calls.
	RequestMemory, AnswerMemory, WorkMemory, CacheMemory uint64
	// MaxStreams is how many calls a connection may have open at once.
	MaxStreams uint64
	// CacheSessions is how many sessions are cached between assemblies.
	CacheSessions uint64
	Limits        limit.Limits

	// DefaultPolicy is the policy where neither request nor session names one.
	DefaultPolicy string
	// Shadow is the policy whose contexts are computed for comparison with those in use; empty is none.
	Shadow string
	// DefaultBudget applies where neither request nor session has a budget.
	DefaultBudget *contextdv1.Budget
	// Policies are the named policies.
	Policies map[string]*contextdv1.Policy
	// Summarizers are the named summarizers in addition to the built-in one.
	Summarizers map[string]Summarizer
	// DefaultSummarizer is the summarizer of policies that name none.
	DefaultSummarizer string
	// ScrubPatterns are an operator's patterns of credentials, by name, in addition to the
	// built-in ones.
	ScrubPatterns map[string]string
	// ScrubAppends replaces credentials in events before they are stored.
	ScrubAppends bool
	// HookTimeout is the time for a hook whose subscriber sets none. HookOnTimeout is the answer that is
	// assumed when a hook takes longer: allow or block.
	HookTimeout   time.Duration
	HookOnTimeout string
	// Models extend the registry of models.
	Models []budget.Override
}

// Encrypted reports whether the disk store is to be encrypted.
func (c *Config) Encrypted() bool {
	return c.EncryptionKeyFile != "" || len(c.EncryptionKeyCommand) > 0
}

// Default returns the defaults.
func Default() Config {
	return Config{
		Listen:          "127.0.0.1:7171",
		Store:           StoreDisk,
		DataDir:         "contextd-data",
		DiskCacheBytes:  16 << 20,
		Disk:            defaultDisk(),
		Postgres:        defaultPostgres(),
		LogLevel:        slog.LevelInfo,
		LogFormat:       LogText,
		ShutdownTimeout: 20 * time.Second,
		UnixSocketMode:  0o600,
		MaxConnections:  1024,
		MaxStreams:      1024,
		MaxCalls:        1024,
		MaxClientCalls:  512,

		MaxClientConnections: 256,
		CacheSessions:        64,
		Limits:               limit.Default(),
		DefaultPolicy:        "default",
		HookTimeout:          5 * time.Second,
		HookOnTimeout:        "allow",

		ConnectionIdleTimeout: 30 * time.Minute,
		ReceiveTimeout:        30 * time.Second,
		SendTimeout:           time.Minute,
		RequestMemory:         32 << 20,
		AnswerMemory:          32 << 20,
		WorkMemory:            80 << 20,
		CacheMemory:           64 << 20,

		DefaultSummarizer: builtinSummarizer,
		DefaultBudget:     &contextdv1.Budget{Tokenizer: budget.TokenizerO200K},
	}
}
