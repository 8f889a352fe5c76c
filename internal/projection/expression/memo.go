package expression

import "sync"

// maxMemo is how many compiled expressions are kept.
const maxMemo = 64

// memo keeps what Compile returned. Compiling is a pure function, so nothing depends
// on what is kept but the time.
type memo struct {
	mu    sync.Mutex
	made  map[string]compiled
	order []string // oldest first
}

type compiled struct {
	program *Program
	err     error
}

var kept = memo{made: map[string]compiled{}}

// Compiled is Compile, but keeps the latest programs. It may be called from any
// goroutine.
func Compiled(source string) (*Program, error) {
	kept.mu.Lock()
	found, ok := kept.made[source]
	kept.mu.Unlock()
	if ok {
		return found.program, found.err
	}
	p, err := Compile(source)
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if _, ok := kept.made[source]; !ok && len(source) <= 4*MaxChars {
		if len(kept.order) == maxMemo {
			delete(kept.made, kept.order[0])
			kept.order = kept.order[1:]
		}
		kept.made[source] = compiled{p, err}
		kept.order = append(kept.order, source)
	}
	return p, err
}
