package daemon

import (
	"fmt"
	"log/slog"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
)

func openStore(c config.Config, logger *slog.Logger) (eventlog.Store, error) {
	switch c.Store {
	case config.StoreMemory:
		logger.Warn("sessions are kept in memory and lost when the daemon stops", "setting", "store")
		return memlog.New(), nil
	case config.StoreDisk:
		store, err := disklog.Open(c.DataDir, disklog.Options{Logger: logger, CacheBytes: int64(c.DiskCacheBytes)})
		if err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
		return store, nil
	default:
		return nil, fmt.Errorf("there is no store %q", c.Store)
	}
}
