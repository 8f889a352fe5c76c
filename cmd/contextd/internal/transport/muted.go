package transport

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// failuresLogged is how many lines calls of one kind that fail have in each logEvery. A client that is
// not even let in could fill the disk with them otherwise.
const failuresLogged = 10

// failureKind is what is alike of calls that fail. There are few of them.
type failureKind struct {
	method string
	code   codes.Code
}

// failures counts the lines of calls that fail.
type failures struct {
	mu    sync.Mutex
	kinds map[failureKind]*failureCount
}

type failureCount struct {
	since         time.Time
	logged, muted int
}

func newFailures() *failures { return &failures{kinds: map[failureKind]*failureCount{}} }

// take reports whether another line may be written now, and how many were not since the last.
func (f *failures) take(kind failureKind, now time.Time) (ok bool, muted int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.kinds[kind]
	if n == nil {
		n = &failureCount{since: now}
		f.kinds[kind] = n
	}
	if now.Sub(n.since) >= logEvery {
		n.since, n.logged = now, 0
	}
	if n.logged == failuresLogged {
		n.muted++
		return false, 0
	}
	muted, n.muted = n.muted, 0
	n.logged++
	return true, muted
}
