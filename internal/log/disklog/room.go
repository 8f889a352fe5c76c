package disklog

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
)

const (
	// reservePieces is the number of files of the reserve. They are removed one by one when room is needed.
	reservePieces = 8
	reservePrefix = "RESERVE-"
	// The reserve takes at most one part in reserveShare of a small disk.
	reserveShare = 8
	// roomPause is how long a change that finds no room waits before it tries again.
	roomPause = 100 * time.Millisecond
	// roomPoll is how often the room on the disk is measured.
	roomPoll = time.Second
)

// Disk says how much room there is.
type Disk struct {
	// Free and Total are bytes of the file system; 0 if it does not say.
	Free, Total uint64
	// Reserve is how many bytes of the reserve are held.
	Reserve uint64
	// Full says that appends are refused until there is room again; Low, that less than Options.LowBytes is free.
	Full, Low bool
	// Erasing is how many deleted sessions still have bytes on the disk.
	Erasing int
	// Damaged is how many files were found damaged since the store was opened.
	Damaged int
}

// room tracks the free space. A change for which the disk has no room uses the reserve. So admitted batches are still
// written, and reading, deleting and opening go on, while new appends are refused.
type room struct {
	disk   vfs.FS
	dir    string
	piece  int64 // bytes of each file of the reserve; 0 if none is to be made
	low    uint64
	logger *slog.Logger
	// Closing either channel ends all waiting for room.
	halted, closing <-chan struct{}
	// halt cuts the disk off.
	halt func(cause error)
	// patient says that a change waits for room when its share of the reserve is used up.
	patient atomic.Bool
	full    atomic.Bool
	// deletions counts running deletions. Deletions, opening and closing may use all of the reserve, other work half
	// of it.
	deletions atomic.Int32

	mu    sync.Mutex
	held  [reservePieces]uint64 // bytes of each file of the reserve that exists
	short bool                  // there was little room at the last measurement
	place place
}

func newRoom(opts Options, dir string) *room {
	reserve := opts.ReserveBytes
	if usage, err := opts.FS.GetDiskUsage(dir); err == nil {
		reserve = min(reserve, usage.TotalBytes/reserveShare)
	}
	return &room{disk: opts.FS, dir: dir, piece: int64(reserve / reservePieces), low: opts.LowBytes, logger: opts.Logger}
}

func (r *room) path(i int) string {
	return r.disk.PathJoin(r.dir, fmt.Sprintf("%s%d", reservePrefix, i+1))
}

// isNoRoom reports whether the disk, or a user's quota, is full.
func isNoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// refuse returns a *FullError while new content is refused.
func (r *room) refuse() error {
	if r.full.Load() {
		return &eventlog.FullError{}
	}
	return nil
}

// refuseCopy returns a *FullError if content is refused and only the half of the reserve remains that deletions need.
func (r *room) refuseCopy() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := 0
	for _, h := range r.held {
		if h > 0 {
			held++
		}
	}
	if held > reservePieces/2 {
		return nil
	}
	return r.refuse()
}

// refuseNew begins to refuse new content.
func (r *room) refuseNew() {
	if !r.full.Swap(true) {
		r.logger.Error("the disk is full: nothing is taken in until there is room; reading and deleting go on", "dir", r.dir)
	}
}

// more reports whether to retry a change that failed with err. It makes room from the reserve, or waits a little.
func (r *room) more(err error) bool {
	if !isNoRoom(err) {
		return false
	}
	r.refuseNew()
	working := r.patient.Load() && !r.stopping()
	keep := 0
	if working && r.deletions.Load() == 0 {
		keep = reservePieces / 2
	}
	if r.give(keep) {
		return true
	}
	if working {
		wait(roomPause, r.halted, r.closing)
	}
	return working
}

func (r *room) stopping() bool {
	select {
	case <-r.halted:
		return true
	case <-r.closing:
		return true
	default:
		return false
	}
}

// give removes one file of the reserve, unless only keep files remain.
func (r *room) give(keep int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.held[:reservePieces-keep] {
		if r.held[i] == 0 {
			continue
		}
		if err := r.disk.Remove(r.path(i)); err != nil {
			r.logger.Warn("a piece of the disk's reserve cannot be given up", "error", err)
			continue
		}
		r.held[i] = 0
		return true
	}
	return false
}

// find counts the files of the reserve that an earlier process made. That process may have been killed before they
// were durable, so they are synced if the reserve is kept.
func (r *room) find() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.held {
		info, err := r.disk.Stat(r.path(i))
		if err != nil || r.piece > 0 && r.sync(i) != nil {
			continue
		}
		r.held[i] = uint64(info.Size())
	}
}

// sync makes a piece of the reserve durable.
func (r *room) sync(i int) error {
	f, err := r.disk.OpenReadWrite(r.path(i), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), durable.SyncDir(r.disk, r.dir))
}

// look measures the free space and refills the reserve. A power failure or other settings may have left pieces of
// another size. When the reserve is whole and half of its size is free in addition, appends are admitted again.
func (r *room) look() Disk {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gone := r.place.gone(r.disk); gone != "" {
		// Writes to the open files would still succeed, but nobody would ever read them.
		r.halt(fmt.Errorf("%s is gone: it was removed or moved while it was in use", gone))
		return Disk{}
	}
	usage, err := r.disk.GetDiskUsage(r.dir)
	known := err == nil
	whole := true
	for i := reservePieces - 1; i >= 0; i-- { // the files that are removed last come first
		had := r.held[i]
		if r.piece == 0 || had == uint64(r.piece) {
			continue
		}
		if known && usage.AvailBytes+had < 2*uint64(r.piece) || !r.hold(i) {
			whole = false
			break
		}
		usage.AvailBytes += had
		usage.AvailBytes -= min(usage.AvailBytes, uint64(r.piece))
	}
	if !whole {
		r.refuseNew()
	}
	if whole && r.full.Load() && (!known || usage.AvailBytes >= r.slack()) {
		r.full.Store(false)
		r.logger.Warn("there is room on the disk again", "dir", r.dir, "free_bytes", usage.AvailBytes)
	}
	var reserve uint64
	for _, held := range r.held {
		reserve += held
	}
	d := Disk{Free: usage.AvailBytes, Total: usage.TotalBytes, Reserve: reserve, Full: r.full.Load(), Low: known && usage.AvailBytes < r.low}
	if d.Low != r.short {
		r.short = d.Low
		if d.Low {
			r.logger.Warn("the disk is nearly full", "dir", r.dir, "free_bytes", d.Free, "warned_below", r.low)
		} else {
			r.logger.Info("there is room enough on the disk", "dir", r.dir, "free_bytes", d.Free)
		}
	}
	return d
}

// slack returns how many bytes must be free, besides the whole reserve, before appends are admitted again.
func (r *room) slack() uint64 { return uint64(r.piece) * reservePieces / 2 }

// hold makes a piece of the reserve, or replaces one of another size. mu is held.
func (r *room) hold(i int) bool {
	r.held[i] = 0
	f, err := r.disk.Create(r.path(i), vfs.WriteCategoryUnspecified)
	if err != nil {
		return false
	}
	switch err = f.Preallocate(0, r.piece); {
	case err == nil:
		_, err = f.WriteAt([]byte{0}, r.piece-1)
	case !isNoRoom(err):
		// The file system has no fallocate: writing zeros reserves the bytes, too.
		_, err = io.Copy(f, io.LimitReader(zeros{}, r.piece))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = durable.SyncDir(r.disk, r.dir)
	}
	if err != nil {
		if removeErr := r.disk.Remove(r.path(i)); removeErr != nil && !oserror.IsNotExist(removeErr) {
			r.logger.Warn("a part of the disk's reserve is left over", "error", removeErr)
		}
		return false
	}
	r.held[i] = uint64(r.piece)
	return true
}

// zeros reads as zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// watch measures the free space every roomPoll, until the store closes.
func (r *room) watch() {
	poll := time.NewTicker(roomPoll) //nolint:forbidigo // looks at the disk; no data depends on it
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
			r.look()
		case <-r.closing:
			return
		}
	}
}
