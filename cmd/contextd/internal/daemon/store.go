package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/log/pglog"
)

// openStore opens the store that the configuration names.
func (d *Daemon) openStore(ctx context.Context, o Options) (eventlog.Store, error) {
	c, logger := o.Config, o.Logger
	switch c.Store {
	case config.StoreMemory:
		logger.Warn("sessions are kept in memory and lost when the daemon stops", "setting", "store")
		return memlog.New(), nil
	case config.StoreDisk:
		return d.openDisk(ctx, o)
	case config.StorePostgres:
		dsn, err := c.Postgres.Address()
		if err != nil {
			return nil, err
		}
		store, err := pglog.Open(ctx, dsn, pglog.Options{
			Logger: logger, MaxConnections: int32(c.Postgres.MaxConnections), Timeout: c.Postgres.StatementTimeout, Migrate: c.Postgres.Migrate, Clock: o.Clock,
		})
		if err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
		d.full = store.Full
		return store, d.telemetry.ObserveDatabase(store, o.Clock)
	default:
		return nil, fmt.Errorf("there is no store %q", c.Store)
	}
}

func (d *Daemon) openDisk(ctx context.Context, o Options) (eventlog.Store, error) {
	d.syncs = &syncWatch{clock: o.Clock, slow: o.Config.Disk.SlowSync, logger: o.Logger}
	var err error
	if d.syncs.record, err = d.telemetry.NewSyncs(d.syncs.longest); err != nil {
		return nil, err
	}
	encryption, err := Encryption(ctx, o.Config)
	if err != nil {
		return nil, err
	}
	opts := disklog.Options{
		Logger: o.Logger, CacheBytes: int64(o.Config.DiskCacheBytes), Syncing: d.syncs.begin, ReadOnly: o.ReadOnly,
		ReserveBytes: o.Config.Disk.Reserve, LowBytes: o.Config.Disk.Low,
		Encryption: encryption,
	}
	if o.Lazy {
		opts.ReserveBytes, opts.LowBytes = 0, 0 // for a moment
	}
	store, err := d.opened(ctx, func() (*disklog.Store, error) { return disklog.Open(o.Config.DataDir, opts) })
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	d.disk, d.full = store, func() bool { return store.Disk().Full }
	return store, d.telemetry.ObserveDisk(store.Disk)
}

// opened returns the result of open, which cannot be interrupted. After ctx has ended, it waits for open no longer than
// a stop may take.
func (d *Daemon) opened(ctx context.Context, open func() (*disklog.Store, error)) (*disklog.Store, error) {
	type result struct {
		store *disklog.Store
		err   error
	}
	done := make(chan result, 1)
	go func() {
		store, err := open()
		done <- result{store, err}
	}()
	select {
	case r := <-done:
		return r.store, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		return r.store, r.err
	case <-time.After(max(d.stopAfter, leastStop)):
		return nil, ErrUnfinished
	}
}
