package inspect

import (
	"context"
	"errors"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/semaphore"
)

// An answer is in memory as a whole, decoded and as JSON, until the browser has received it. The API's memory
// budgets no longer count it then, so it is counted here.
const (
	// answerRoom bounds all answers together, in bytes.
	answerRoom = 64 << 20
	// unknownAnswer is reserved before the size of an answer is known. An answer never counts for more than
	// this.
	unknownAnswer = 32 << 20
	// answerCopies is how many copies of an answer are in memory.
	answerCopies = 3
	// roomWait is how long a call waits until other answers were received.
	roomWait = 10 * time.Second
)

type room struct{ free *semaphore.Weighted }

func newRoom() room { return room{semaphore.NewWeighted(answerRoom)} }

type partKey struct{}

// part is what one call has reserved of a room.
type part struct {
	free *semaphore.Weighted
	held int64
}

// around releases a call's reservation after its answer was written.
func (r room) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p := &part{free: r.free}
		defer p.keep(0)
		next.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), partKey{}, p)))
	})
}

func partOf(ctx context.Context) *part { return ctx.Value(partKey{}).(*part) }

// take reserves unknownAnswer, and waits at most roomWait for it.
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

// keep reduces the reservation to what an answer of so many bytes needs.
func (p *part) keep(bytes int) {
	n := min(int64(bytes)*answerCopies, p.held)
	p.free.Release(p.held - n)
	p.held = n
}

// writePiece is how many bytes of an answer the browser must receive within the timeout.
const writePiece = 64 << 10

// timely ends an answer if the browser does not receive the next part in time.
type timely struct {
	http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
}

func newTimely(w http.ResponseWriter, within time.Duration) timely {
	t := timely{w, http.NewResponseController(w), within}
	t.begin() // replace the deadline of the last request
	return t
}

func (t timely) begin() {
	_ = t.control.SetWriteDeadline(time.Now().Add(t.within)) // fails only without a network connection
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
	_ = t.control.Flush() // the next Write reports the error too
}

// Unwrap is for http.ResponseController.
func (t timely) Unwrap() http.ResponseWriter { return t.ResponseWriter }
