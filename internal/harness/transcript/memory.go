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

// The limits of one record. Real records are smaller. To read a record takes a known multiple of its bytes.
const (
	maxRecordBytes  = 32 << 20
	maxRecordValues = 250_000
	// maxRecordDepth is enough for the deepest arguments that the log admits, and the levels around them. A record of
	// more than deepBytes may have maxLongRecordDepth levels only, because each level is scanned.
	maxRecordDepth     = 9500
	maxLongRecordDepth = 250
	deepBytes          = 256 << 10
	// maxNoise is how many lines of a file may be invalid JSON.
	maxNoise = 10_000
)

// Estimates, by measurement, of the memory that reading takes in addition to the bytes themselves.
const (
	// readingFactor is how many copies of a record's bytes are in memory while it is read.
	readingFactor = 6
	valueCost     = 512
	recordCost    = 1 << 10 // for its ids in maps
	sessionCost   = 4 << 10
	eventCost     = 1 << 10
	blockCost     = 256
	labelCost     = 64
	envelopeCost  = 128
	// step is the smallest amount that an account reserves.
	step = 256 << 10
)

// limitMemory is LimitError.What if a Memory was exhausted.
const limitMemory = "bytes of memory for transcripts (import_memory)"

// LimitError says that a transcript exceeds a limit of the readers.
type LimitError struct {
	What   string
	Limit  uint64
	Actual uint64 // a lower bound
	Line   int    // 0 if no line is at fault
	// Busy says that the transcript can perhaps be read later, when other transcripts have been read.
	Busy bool
}

// Memory reports whether the limit is that of a Memory, not of a record.
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

// atLine adds the line of the record to a *LimitError without one.
func atLine(line int, err error) error {
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Line > 0 {
		return err
	}
	at := *limit
	at.Line = line
	return &at
}

// readers is how many transcripts may be read at the same time.
const readers = 4

// Memory is the budget of bytes that all reads of transcripts share.
type Memory struct {
	limit uint64
	slots *semaphore.Weighted

	mu   sync.Mutex
	used uint64
}

// NewMemory returns a budget of limit bytes.
func NewMemory(limit uint64) *Memory {
	return &Memory{limit: limit, slots: semaphore.NewWeighted(readers)}
}

// openWait is how long Open waits at most.
const openWait = 10 * time.Second

// Open waits until fewer than readers transcripts are being read, and opens an account for another. The error is a
// *LimitError, or ctx's.
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

// Account is what one transcript has reserved of a Memory. One goroutine may use it. A nil account sets no
// limit.
type Account struct {
	memory   *Memory
	held     uint64 // reserved in memory.used, in steps
	retained uint64 // by what was read and is kept
	reading  uint64 // by the record that is being read
	err      error  // the first one, which all later calls return
}

// Close releases everything that the account has reserved.
func (a *Account) Close() {
	m := a.memory
	m.mu.Lock()
	m.used -= a.held
	m.mu.Unlock()
	a.held = 0
	m.slots.Release(1)
}

// Retain reserves n bytes until Close.
func (a *Account) Retain(n uint64) error {
	if a == nil {
		return nil
	}
	a.retained += n
	return a.reserve()
}

// Retained returns how many bytes Retain has reserved in total.
func (a *Account) Retained() uint64 {
	if a == nil {
		return 0
	}
	return a.retained
}

// read reserves the memory for reading a record of this size, in place of the memory for the previous record.
func (a *Account) read(bytes, values int) error {
	if bytes > maxRecordBytes {
		return &LimitError{What: "bytes in a record", Limit: maxRecordBytes, Actual: uint64(bytes)}
	}
	if a == nil {
		return nil
	}
	a.reading = readingFactor*uint64(bytes) + valueCost*uint64(values)
	return a.reserve()
}

// reserve makes held as large as retained and reading together need, or sets err if there is not enough memory.
func (a *Account) reserve() error {
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

// weight estimates the memory that an event takes.
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

// Input is a buffered file that can be peeked into, with the account for reading it.
type Input struct {
	*bufio.Reader
	account *Account
}

// NewInput returns an input that reads from in. The memory for that counts for the account, which may be nil.
func NewInput(in *bufio.Reader, account *Account) *Input { return &Input{in, account} }

// Ahead returns the input itself if its buffer has at least size bytes, otherwise one with such a buffer.
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

// manyValues is the number of values, estimated from the punctuation, from which on a record's values are counted
// exactly. Fewer take too little memory to matter.
const manyValues = 10_000

// record checks a whole record against the limits, and reserves what reading it takes.
func (a *Account) record(record []byte) error {
	opened := bytes.Count(record, []byte("{")) + bytes.Count(record, []byte("["))
	values := 0
	if opened > maxLongRecordDepth || opened+bytes.Count(record, []byte(",")) > manyValues {
		var deepest int
		values, deepest = countValues(record)
		limit := uint64(maxRecordDepth)
		if len(record) > deepBytes {
			limit = maxLongRecordDepth
		}
		if uint64(deepest) > limit {
			return &LimitError{What: "levels of nesting in a record", Limit: limit, Actual: uint64(deepest)}
		}
		if values > maxRecordValues {
			return &LimitError{What: "values in a record", Limit: maxRecordValues, Actual: uint64(values)}
		}
	}
	return a.read(len(record), values)
}

// countValues returns the number of values in a record and the deepest nesting, up to the first byte that is
// not JSON.
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
