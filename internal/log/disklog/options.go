package disklog

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options are the store's settings. The zero value suits a daemon for one agent: the store then takes about 40 MiB of
// memory.
type Options struct {
	// Logger logs the store's diagnostics; nil logs nothing.
	Logger *slog.Logger
	// FS is the file system; nil is the machine's.
	FS vfs.FS
	// CacheBytes is the size of the cache of uncompressed blocks; 0 is 16 MiB.
	CacheBytes int64
	// MemTableBytes is how many bytes are collected in memory before they are written as a table; 0 is 8 MiB. Up to
	// three such buffers exist at once, and more while reads still need them.
	MemTableBytes uint64
	// SeparateBytes is the size from which on values are stored separate from their keys, so that compactions do not
	// rewrite them; 0 is 512 bytes.
	SeparateBytes int
	// DisableValueSeparation keeps all values with their keys.
	DisableValueSeparation bool
	// IdleSessions is how many unused sessions are kept in memory; 0 is 1024.
	IdleSessions int
	// IdleBytes is the most bytes that sessions in memory, used or not, take for settings, labels, open calls and
	// ids; 0 is 16 MiB.
	IdleBytes int64

	// ReserveBytes is the disk space that is reserved for the time when the disk is full. 0 makes no reserve, but
	// uses one that an earlier process made. Without a reserve a full disk halts the store.
	ReserveBytes uint64
	// LowBytes is the free space, in bytes, below which a warning is logged.
	LowBytes uint64
	// ReadOnly opens an existing store and changes nothing in its directory: calls that would change something fail
	// with *eventlog.ReadOnlyError. No other process may write to the store at the same time.
	ReadOnly bool
	// Copying, if set, names the store that is copied into this one. If this store is empty now, Open refuses it with
	// another name or none until Copied was called.
	Copying string
	// Syncing, if set, is called before each sync of appended data, and the function that it returns after the sync.
	Syncing func() (done func())
	// Encryption, if set, encrypts the content of sessions. A store that was encrypted once stays encrypted. In a
	// store that was not, only what is written from now on is encrypted.
	Encryption *Encryption

	// private is set for a store on the machine's own disk: other users get no access to its files.
	private bool
	// takeKeys accepts existing keys as this store's, although the store does not name their keyring yet.
	takeKeys bool
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FS == nil {
		o.FS, o.private = PrivateFS(), true
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 16 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 8 << 20
	}
	if o.SeparateBytes == 0 {
		o.SeparateBytes = 512
	}
	if o.IdleSessions == 0 {
		o.IdleSessions = 1024
	}
	if o.IdleBytes == 0 {
		o.IdleBytes = 16 << 20
	}
	return o
}
