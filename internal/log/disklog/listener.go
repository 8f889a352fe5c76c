package disklog

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleLogger is Pebble's logger. Pebble expects that Fatalf does not return. Here it halts the disk, so that Pebble
// can do no harm after it.
type pebbleLogger struct {
	logger *slog.Logger
	disk   *haltFS
}

func (l pebbleLogger) Infof(format string, args ...any) {
	l.logger.Debug("event log's database", "message", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.logger.Error("event log's database", "message", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	l.logger.Error("event log has failed", "error", err)
	l.disk.halt(err)
}

func (s *Store) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: s.backgroundError,
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.disk.damage.note(s.disk.PathBase(info.Path), reasonOf(info.Details))
		},
		CompactionEnd:      func(info pebble.CompactionInfo) { s.disk.damage.announce(info.Err) },
		FlushEnd:           func(info pebble.FlushInfo) { s.disk.damage.announce(info.Err) },
		BlobFileRewriteEnd: func(info pebble.BlobFileRewriteInfo) { s.disk.damage.announce(info.Err) },
		ManifestCreated: func(info pebble.ManifestCreateInfo) {
			if info.Err == nil {
				s.manifest.Store(uint64(info.FileNum))
			}
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			s.logger.Debug("writes wait for the disk", "reason", info.Reason)
		},
	}
}

// retryPause slows Pebble down in a failed store: it retries background work that can only fail.
const retryPause = 100 * time.Millisecond

// backgroundError is called for an error of Pebble's background work. Damaged files stay as they are and Pebble tries
// again. Sessions without content in these files are still served.
func (s *Store) backgroundError(err error) {
	if isDamage(err) || mayPass(err) {
		s.logger.Debug("the event log's database could not be tidied", "error", reasonOf(err))
		s.disk.damage.pace(s.disk.halted, s.closing)
		return
	}
	if s.disk.cause() == nil {
		s.logger.Error("event log has failed", "error", err)
		s.disk.halt(fmt.Errorf("in the background: %w", err))
		return
	}
	wait(retryPause, nil, s.closing)
}
