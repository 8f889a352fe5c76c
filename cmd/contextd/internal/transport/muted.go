package transport

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// failuresLogged is how many lines are written in each logEvery for failed calls of one kind. Otherwise even a
// client that is refused could fill the disk.
const failuresLogged = 10

// failureKind is what failed calls have in common. There are few kinds.
type failureKind struct {
	method string
	code   codes.Code
}

// failures counts the lines for failed calls.
type failures struct {
	mu    sync.Mutex
	kinds map[failureKind]*failureCount
}

type failureCount struct {
	since         time.Time
	logged, muted int
}

func newFailures() *failures { return &failures{kinds: map[failureKind]*failureCount{}} }

// take reports whether another line may be written now, and how many lines were not written since the last one.
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
