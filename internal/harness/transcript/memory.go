package transcript

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"

	eventlog "github.com/contextd/contextd/internal/log"
)

// What one record may be: more than real ones are, and so little that reading it takes
// a known multiple of its bytes.
const (
	MaxRecordBytes  = 32 << 20
	MaxRecordValues = 250_000
	// MaxRecordDepth leaves room around the deepest arguments that the log takes. A record
	// of more than deepBytes has fewer levels: each of them is looked through.
	MaxRecordDepth     = 9500
	MaxLongRecordDepth = 250
	deepBytes          = 256 << 10
	// MaxNoise is how many lines of a file may be no JSON.
	MaxNoise = 10_000
)

// What reading takes beside the bytes themselves, by measure and rather too much.
const (
	// readingFactor is how often a record's bytes are held while it is read.
	readingFactor = 6
	valueCost     = 512
	recordCost    = 1 << 10 // of its ids in maps
	sessionCost   = 4 << 10
	eventCost     = 1 << 10
	blockCost     = 256
	labelCost     = 64
	envelopeCost  = 128
	// step is how much an account takes at once.
	step = 256 << 10
)

// limitMemory is what a LimitError names where the limit is that of Memory.
const limitMemory = "bytes of memory for transcripts (import_memory)"

// LimitError says that a transcript is beyond a limit of what is read.
type LimitError struct {
	What   string
	Limit  uint64
	Actual uint64 // at least
	Line   int    // 0 if no line is at fault
	// Busy says that the transcript may be read once others that are being read are done.
	Busy bool
}

// Memory reports whether it is the limit of Memory that was reached.
func (e *LimitError) Memory() bool { return e.What == limitMemory }

func (e *LimitError) Error() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf("line %d: ", e.Line)
	}
	if e.Busy {
		return fmt.Sprintf("%sother transcripts that are being read have left too little of the %d %s", where, e.Limit, e.What)
	}
	return fmt.Sprintf("%s%d %s are more than the limit of %d", where, e.Actual, e.What, e.Limit)
}

// atLine names the line of a record that is over a limit.
func atLine(line int, err error) error {
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Line > 0 {
		return err
	}
	at := *limit
	at.Line = line
	return &at
}

// readers is how many transcripts are read at once.
const readers = 4

// Memory is what all transcripts that are being read may take together.
type Memory struct {
	limit uint64
	slots *semaphore.Weighted

	mu   sync.Mutex
	used uint64
}

// NewMemory has so many bytes.
func NewMemory(limit uint64) *Memory {
	return &Memory{limit: limit, slots: semaphore.NewWeighted(readers)}
}

// openWait is how long a transcript waits for others at most.
const openWait = 10 * time.Second

// Open waits until few enough transcripts are being read to read another. The error is a
// *LimitError, or that of ctx.
func (m *Memory) Open(ctx context.Context) (*Account, error) {
	waiting, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	if m.slots.Acquire(waiting, 1) != nil {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, &LimitError{What: limitMemory, Limit: m.limit, Busy: true}
	}
	return &Account{memory: m}, nil
}

// Account is what one transcript takes, for one goroutine. Nil has no limit.
type Account struct {
	memory   *Memory
	held     uint64 // taken of the memory
	retained uint64 // by what was read
	reading  uint64 // by the record that is being read
	err      error  // the first one, which stays
}

// Close gives everything back.
func (a *Account) Close() {
	m := a.memory
	m.mu.Lock()
	m.used -= a.held
	m.mu.Unlock()
	a.held = 0
	m.slots.Release(1)
}

// Retain takes memory until Close.
func (a *Account) Retain(n uint64) error {
	if a == nil {
		return nil
	}
	a.retained += n
	return a.take()
}

// Retained is how much was taken.
func (a *Account) Retained() uint64 {
	if a == nil {
		return 0
	}
	return a.retained
}

// read takes what the reading of a record of so many bytes and values does, in the place
// of the one before.
func (a *Account) read(bytes, values int) error {
	if bytes > MaxRecordBytes {
		return &LimitError{What: "bytes in a record", Limit: MaxRecordBytes, Actual: uint64(bytes)}
	}
	if a == nil {
		return nil
	}
	a.reading = readingFactor*uint64(bytes) + valueCost*uint64(values)
	return a.take()
}

// take holds as much as is needed, or sets the error.
func (a *Account) take() error {
	need := a.retained + a.reading
	if a.err != nil || need <= a.held {
		return a.err
	}
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	more := (need-a.held)/step*step + step
	switch {
	case need > m.limit:
		a.err = &LimitError{What: limitMemory, Limit: m.limit, Actual: need}
	case m.used+more > m.limit+step:
		a.err = &LimitError{What: limitMemory, Limit: m.limit, Actual: m.used + more, Busy: true}
	default:
		m.used, a.held = m.used+more, a.held+more
	}
	return a.err
}

// weight is what an event takes.
func weight(e *eventlog.Event) uint64 {
	n := eventCost + eventlog.Size(*e)
	if m, ok := e.Body.(*eventlog.Message); ok {
		n += blockCost * uint64(blocks(m.Blocks))
	}
	for k, v := range e.Labels {
		n += labelCost + uint64(len(k)+len(v))
	}
	return n
}

func blocks(all []eventlog.Block) int {
	n := len(all)
	for _, b := range all {
		if r, ok := b.(eventlog.ToolResult); ok {
			n += blocks(r.Content)
		}
	}
	return n
}

// Input is a file that can be looked at ahead, and the account of what reading it takes.
type Input struct {
	*bufio.Reader
	account *Account
}

// NewInput reads from in on the account, which may be nil.
func NewInput(in *bufio.Reader, account *Account) *Input { return &Input{in, account} }

// Ahead is the input itself, or one with a buffer of so many bytes at least.
func Ahead(in io.Reader, size int) *Input {
	if i, ok := in.(*Input); ok && i.Size() >= size {
		return i
	}
	return &Input{bufio.NewReaderSize(in, size), accountOf(in)}
}

func accountOf(in io.Reader) *Account {
	if i, ok := in.(*Input); ok {
		return i.account
	}
	return nil
}

// manyValues is from how many on the values of a record are counted one by one; that many
// do not matter.
const manyValues = 10_000

// record holds a whole record to the limits of what one may be, and takes what reading it
// does.
func (a *Account) record(record []byte) error {
	opened := bytes.Count(record, []byte("{")) + bytes.Count(record, []byte("["))
	values := 0
	if opened > MaxLongRecordDepth || opened+bytes.Count(record, []byte(",")) > manyValues {
		var deepest int
		values, deepest = countValues(record)
		limit := uint64(MaxRecordDepth)
		if len(record) > deepBytes {
			limit = MaxLongRecordDepth
		}
		if uint64(deepest) > limit {
			return &LimitError{What: "levels of nesting in a record", Limit: limit, Actual: uint64(deepest)}
		}
		if values > MaxRecordValues {
			return &LimitError{What: "values in a record", Limit: MaxRecordValues, Actual: uint64(values)}
		}
	}
	return a.read(len(record), values)
}

// countValues counts the values of a record, and how deep they are, up to where it is no
// JSON.
func countValues(record []byte) (values, deepest int) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(record), lenient)
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return values, deepest
		}
		depth := dec.StackDepth()
		in, members := dec.StackIndex(depth)
		isName := in == '{' && members%2 == 1
		if kind := token.Kind(); kind != '}' && kind != ']' && !isName {
			values++
		}
		deepest = max(deepest, depth)
	}
}
