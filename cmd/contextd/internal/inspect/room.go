package inspect

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/semaphore"
)

// An answer is in memory whole, decoded and as JSON, until the browser has taken it. The bounds of
// the API do not count it any more.
const (
	// answerRoom is for all answers at once.
	answerRoom = 64 << 20
	// unknownAnswer is set aside for one whose size is not known yet. What takes more counts as this.
	unknownAnswer = 32 << 20
	// answerCopies is how often an answer is in memory.
	answerCopies = 3
	// roomWait is how long a call waits for others to be taken.
	roomWait = 10 * time.Second
)

type room struct{ free *semaphore.Weighted }

func newRoom() room { return room{semaphore.NewWeighted(answerRoom)} }

type partKey struct{}

// part is what one call has of a room.
type part struct {
	free *semaphore.Weighted
	held int64
}

// around has a call keep its part until its answer was written.
func (r room) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p := &part{free: r.free}
		defer p.keep(0)
		next.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), partKey{}, p)))
	})
}

func partOf(ctx context.Context) *part { return ctx.Value(partKey{}).(*part) }

// take waits until there is room for an answer of any size.
func (p *part) take(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, roomWait)
	defer cancel()
	switch {
	case p.free.Acquire(within, unknownAnswer) == nil:
		p.held = unknownAnswer
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return connect.NewError(connect.CodeResourceExhausted, errors.New("browsers have not taken the answers of other calls yet; try again"))
	}
}

// keep gives back all but what an answer of so many bytes takes.
func (p *part) keep(bytes int) {
	n := min(int64(bytes)*answerCopies, p.held)
	p.free.Release(p.held - n)
	p.held = n
}

// writePiece is how much of an answer has to be taken within the time for it.
const writePiece = 64 << 10

// timely ends an answer of which no part is taken in time.
type timely struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
}

func newTimely(w http.ResponseWriter, within time.Duration) timely {
	t := timely{w, http.NewResponseController(w), within}
	t.begin() // a deadline of the request before is over
	return t
}

func (t timely) begin() {
	_ = t.control.SetWriteDeadline(time.Now().Add(t.within)) // where there is none, there is no network
}

func (t timely) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		piece := p[:min(len(p), writePiece)]
		p = p[len(piece):]
		t.begin()
		var written int
		written, err = t.ResponseWriter.Write(piece)
		n += written
	}
	return n, err
}

// Flush implements http.Flusher, which streams need.
func (t timely) Flush() {
	t.begin()
	_ = t.control.Flush() // the next Write fails as well
}

// Unwrap is for http.ResponseController.
func (t timely) Unwrap() http.ResponseWriter { return t.ResponseWriter }
