package disklog

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options are the store's settings. The zero value is good for a daemon next to one agent;
// it keeps the store's memory at about 40 MiB.
type Options struct {
	// Logger gets the store's diagnostics; nil discards them.
	Logger *slog.Logger
	// FS is the file system; nil is the machine's. Tests give another.
	FS vfs.FS
	// CacheBytes is the size of the cache of uncompressed blocks; 0 is 16 MiB.
	CacheBytes int64
	// MemTableBytes is how much is gathered in memory before it is written out as
	// a table. Up to three such buffers exist at once, and those that a read in progress still needs; 0 is 8 MiB.
	MemTableBytes uint64
	// SeparateBytes is the size from which values are kept apart from their keys,
	// where compactions do not rewrite them; 0 is 512 bytes.
	SeparateBytes int
	// DisableValueSeparation keeps all values with their keys.
	DisableValueSeparation bool
	// IdleSessions is how many unused sessions are kept in memory; 0 is 1024.
	IdleSessions int
	// IdleBytes bounds what sessions in memory, used or not, take for settings, labels, open calls and ids; 0 is 16
	// MiB.
	IdleBytes int64

	// ReserveBytes is the disk space that is set aside for when the disk is full. 0 makes no reserve, but uses up one
	// that an earlier process made. Without a reserve a full disk halts the store.
	ReserveBytes uint64
	// LowBytes is the free space, in bytes, below which a warning is logged.
	LowBytes uint64
	// ReadOnly opens an existing store and changes nothing in its directory: calls that would fail with
	// *eventlog.ReadOnlyError. No other process may write to the store meanwhile.
	ReadOnly bool
	// Copying, if set, names the store that is copied into this one. Where this one is empty, Open refuses it with another
	// or no name until Copied was called.
	Copying string
	// Syncing, if set, is called before each sync of appended data, and the function that it returns after the sync.
	Syncing func() (done func())
	// Encryption seals what sessions hold; nil leaves it as it is. A store that was once
	// encrypted stays so; one that was not seals what is written from then on.
	Encryption *Encryption

	// private is set for a store on the machine's own disk: its files are kept from other users.
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
