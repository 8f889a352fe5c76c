package daemon

import (
	"fmt"
	"math"
	"syscall"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/transport"
	"github.com/contextd/contextd/internal/log/disklog"
)

// files is how many files and connections the process may have open at once. Each use gets a part of them, so that
// clients cannot take those that the store needs.
type files uint64

const (
	// leastFiles is the fewest with which a daemon works.
	leastFiles = 128
	// reservedFiles are for files that are always open, and for writes of the store, summarizers, hooks and the
	// database.
	reservedFiles = 48
	// asideShare is the divisor that gives the files of a listener beside the API's from those for clients.
	asideShare = 8
)

// openFiles returns the limit of the process.
func openFiles() files {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return files(min(limit.Cur, math.MaxInt32))
}

// check returns an error if there are too few.
func (f files) check() error {
	if f < leastFiles {
		return fmt.Errorf("the process may have %d files open, and needs %d: raise the limit (ulimit -n)", uint64(f), leastFiles)
	}
	return nil
}

// clients returns how many are for connections of clients.
func (f files) clients() uint64 {
	return uint64(f) - min(uint64(f), disklog.MaxTables(uint64(f))+reservedFiles)
}

// api returns how many clients may connect to each listener of the API.
func (f files) api(c config.Config) uint64 {
	var listeners, aside uint64
	for _, address := range []string{c.Listen, c.UnixSocket} {
		if address != "" {
			listeners++
		}
	}
	for _, address := range []string{c.MetricsListen, c.InspectListen} {
		if address != "" {
			aside++
		}
	}
	return transport.Within(f.clients() * (asideShare - aside) / asideShare / max(listeners, 1))
}

// limitsAside returns the limits of a listener beside the API's: most connections, or as many as there are descriptors
// for.
func limitsAside(most uint64) transport.ConnectionLimits {
	most = min(most, transport.Within(openFiles().clients()/asideShare))
	return transport.ConnectionLimits{Max: most, MaxPerClient: most}
}
