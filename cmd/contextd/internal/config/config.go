// Package config holds what an operator can set: one struct with one set of
// defaults, filled from a YAML file, then the environment, then flags, each over
// the one before.
//
// A setting is declared once, in bind. Its flag is --some-name, its variable
// CONTEXTD_SOME_NAME and its key in the file some_name; all three take the same
// text.
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
	// UnixSocketMode is who may connect to it.
	UnixSocketMode fs.FileMode
	// Auth says who may call.
	Auth auth.Options
	// WithoutAuthentication lets the daemon listen where others can reach it although they
	// need not prove who they are, and WithoutEncryption although what they prove it with can
	// be read on the way.
	WithoutAuthentication, WithoutEncryption bool
	// MetricsListen is the TCP address of metrics and probes; empty is none.
	MetricsListen string
	// InspectListen is the TCP address of the inspector; empty is none.
	InspectListen string
	// Pprof adds profiles to them. They hold content.
	Pprof bool

	// Store is StoreMemory, StoreDisk or StorePostgres.
	Store string
	// DataDir is where StoreDisk keeps everything.
	DataDir string
	// EncryptionKeyFile names a file that holds, and EncryptionKeyCommand a command that writes,
	// the operator's keys for StoreDisk. Without either nothing is encrypted.
	EncryptionKeyFile    string
	EncryptionKeyCommand []string
	// EncryptionKeysDir is where the keys of sessions are; empty is in DataDir.
	EncryptionKeysDir string
	// DiskCacheBytes bounds what StoreDisk caches of its files.
	DiskCacheBytes uint64
	Disk           Disk
	Postgres       Postgres

	LogLevel  slog.Level
	LogFormat string

	// ShutdownTimeout bounds a stop.
	ShutdownTimeout time.Duration
	// MaxConnections is how many clients may be connected to each listener. One more
	// takes the place of the client that was idle for longest.
	MaxConnections uint64
	// MaxClientConnections is how often one client may be connected to a listener.
	MaxClientConnections uint64
	// ConnectionIdleTimeout is how long a client may stay connected without a call.
	ConnectionIdleTimeout time.Duration
	// MaxCalls is how many calls may run at once, over all connections, and MaxClientCalls how
	// many of one client.
	MaxCalls, MaxClientCalls uint64
	// MaxCallRate is how many calls may begin in a second, and MaxClientCallRate how many of
	// one client; 0 is no limit.
	MaxCallRate, MaxClientCallRate uint64
	// MaxAssemblies is how many assemblies, or other work that takes much of the processor, may
	// run at once, and MaxClientAssemblies how many of one client. 0 is as many as there are
	// processors, or MaxAssemblies.
	MaxAssemblies, MaxClientAssemblies uint64
	// ReceiveTimeout and SendTimeout are how long a request may take to arrive, and an
	// answer to be taken.
	ReceiveTimeout, SendTimeout time.Duration
	// RequestMemory, AnswerMemory, WorkMemory and CacheMemory are how many bytes requests,
	// answers, what calls work on, and what is kept between calls may hold.
	RequestMemory, AnswerMemory, WorkMemory, CacheMemory uint64
	// MaxStreams is how many calls a connection may have open at once.
	MaxStreams uint64
	// CacheSessions is how many sessions stay in memory between assemblies.
	CacheSessions uint64
	Limits        limit.Limits

	// DefaultPolicy names the policy that applies where nobody names one.
	DefaultPolicy string
	// Shadow names the policy whose contexts are computed beside those in use; empty is none.
	Shadow string
	// DefaultBudget applies where neither request nor session brings one.
	DefaultBudget *contextdv1.Budget
	// Policies are the named policies.
	Policies map[string]*contextdv1.Policy
	// Summarizers are the named summarizers in addition to the built-in one.
	Summarizers map[string]Summarizer
	// DefaultSummarizer names the one that policies use which name none.
	DefaultSummarizer string
	// ScrubPatterns are an operator's patterns of credentials, by name, in addition to the
	// built-in ones.
	ScrubPatterns map[string]string
	// ScrubAppends has credentials replaced in events before they are stored.
	ScrubAppends bool
	// HookTimeout is how long a hook may take whose subscriber does not say, and
	// HookOnTimeout what a hook that takes longer is taken to have said: allow or block.
	HookTimeout   time.Duration
	HookOnTimeout string
	// Models extend the registry of models.
	Models []budget.Override
}

// Encrypted reports whether the disk store is to be encrypted.
func (c *Config) Encrypted() bool {
	return c.EncryptionKeyFile != "" || len(c.EncryptionKeyCommand) > 0
}

// Default returns the configuration without any settings.
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
		RequestMemory:         40 << 20,
		AnswerMemory:          32 << 20,
		WorkMemory:            96 << 20,
		CacheMemory:           64 << 20,

		DefaultSummarizer: builtinSummarizer,
		DefaultBudget:     &contextdv1.Budget{Tokenizer: budget.TokenizerO200K},
	}
}
