package disklog

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
)

// damage records damaged files. Pebble reads such files repeatedly, also in the background, where it makes no pauses.
type damage struct {
	logger *slog.Logger
	// urgent, while not 0, permits compactions to read damaged files without a pause.
	urgent atomic.Int32
	// failures counts the background work of Pebble that failed because of damage.
	failures atomic.Uint64
	// announced counts errors that Pebble will still report to its listener.
	announced atomic.Int64

	mu    sync.Mutex
	files map[string]*damagedFile
	// unreadable are the files that the disk failed to read, at least once.
	unreadable map[string]bool
}

type damagedFile struct {
	found int // how often
	waits int // how often a compaction was delayed because of it
}

const (
	// statsPause is how long the collection of tables' statistics, which never stops, waits before it tries again.
	statsPause = time.Second
	// A compaction of a damaged file is delayed, twice as long each time.
	firstPause = 200 * time.Millisecond
	lastPause  = time.Minute
)

func newDamage(logger *slog.Logger) *damage {
	return &damage{logger: logger, files: map[string]*damagedFile{}, unreadable: map[string]bool{}}
}

// note records that a file was found damaged, and logs it the first time.
func (d *damage) note(name, reason string) {
	d.mu.Lock()
	file := d.files[name]
	if file == nil {
		file = &damagedFile{}
		d.files[name] = file
	}
	file.found++
	first := file.found == 1
	d.mu.Unlock()
	if first {
		d.logger.Error("a file of the event log is damaged: sessions that need what is in it answer DATA_LOSS, others are served", "file", name, "reason", reason)
	}
}

// announce counts an error that a goroutine of Pebble will report while it holds the database's lock. pace must not
// wait then.
func (d *damage) announce(err error) {
	if err != nil {
		d.announced.Add(1)
	}
}

// pace counts a failure of Pebble's background work. If it was not announced, the goroutine holds no lock and retries
// forever, so pace makes it wait.
func (d *damage) pace(halted, closing <-chan struct{}) {
	d.failures.Add(1)
	if d.announced.Add(-1) >= 0 {
		return
	}
	d.announced.Add(1)
	wait(statsPause, halted, closing)
}

// count returns how many files were found damaged.
func (d *damage) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.files)
}

// any reports whether a file of a kind is damaged.
func (d *damage) any(suffix string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.files {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// DamagedTables returns the tables that were found damaged so far, as paths below the directory. If a table's index
// is lost, it is unknown which sessions' keys were in the table.
func (s *Store) DamagedTables() (tables []string) {
	d := s.disk.damage
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.files {
		if strings.HasSuffix(name, tableSuffix) {
			tables = append(tables, dataDir+"/"+name)
		}
	}
	slices.Sort(tables)
	return tables
}

// putOff waits before a compaction reads a file that is known to be damaged.
func (d *damage) putOff(name string, stops ...<-chan struct{}) {
	if d.urgent.Load() > 0 {
		return
	}
	d.mu.Lock()
	file := d.files[name]
	if file == nil {
		d.mu.Unlock()
		return
	}
	pause := min(firstPause<<min(file.waits, 20), lastPause)
	file.waits++
	d.mu.Unlock()
	wait(pause, stops[0], stops[1])
}

// wait waits, unless it is stopped.
func wait(pause time.Duration, halted, closing <-chan struct{}) {
	timer := time.NewTimer(pause) //nolint:forbidigo // spares the machine; no data depends on it
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-halted:
	case <-closing:
	}
}

// isDamage reports whether an error means that a file is not what was written. All files that are read were whole
// when they were closed, so an unexpected end of file is damage. It checks ErrNotFound first, because that is
// frequent and errors.Is is slow.
func isDamage(err error) bool {
	if err == pebble.ErrNotFound { //nolint:errorlint // Get returns it as it is
		return false
	}
	return pebble.IsCorruptionError(err) || errors.As(err, new(*damagedError)) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// reasonOf returns a description of damage in one line.
func reasonOf(err error) string {
	if damaged, ok := errors.AsType[*damagedError](err); ok {
		return damaged.Error()
	}
	reason, _, _ := strings.Cut(err.Error(), "\n")
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		name := info.Path[strings.LastIndexAny(info.Path, `/\`)+1:]
		return name + ": " + reason
	}
	return reason
}

// inSession adds the session's id to an error that reports damage.
func inSession(id string, err *error) {
	if corrupt, ok := errors.AsType[*eventlog.CorruptError](*err); ok && corrupt.Session == "" {
		named := *corrupt
		named.Session = id
		*err = &named
	}
}
