package bpe

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/budget"
)

// Encoding is a budget.Counter for one of the encodings that Names lists.
type Encoding struct {
	name    string
	split   splitter
	classes *classTable
	merges  *mergeTable
	idle    chan *worker
}

var encodings = map[string]func() (*Encoding, error){
	budget.TokenizerO200K:  sync.OnceValues(func() (*Encoding, error) { return load(budget.TokenizerO200K, splitO200K) }),
	budget.TokenizerCL100K: sync.OnceValues(func() (*Encoding, error) { return load(budget.TokenizerCL100K, splitCL100K) }),
}

// Names lists the encodings that Open knows.
func Names() []string { return []string{budget.TokenizerO200K, budget.TokenizerCL100K} }

// Open returns the encoding with a name. The first call for a name builds its tables, which takes some hundredths of
// a second. Other calls for the name wait for that, and get the same Encoding.
func Open(name string) (*Encoding, error) {
	open, ok := encodings[name]
	if !ok {
		return nil, fmt.Errorf("unknown encoding %q: it is none of %s", name, strings.Join(Names(), ", "))
	}
	return open()
}

func load(name string, split splitter) (*Encoding, error) {
	classes, err := loadClasses()
	if err != nil {
		return nil, err
	}
	merges, err := loadMerges(name)
	if err != nil {
		return nil, fmt.Errorf("vocabulary of %s: %w", name, err)
	}
	e := &Encoding{name: name, split: split, classes: classes, merges: merges}
	e.idle = make(chan *worker, runtime.GOMAXPROCS(0))
	for range cap(e.idle) {
		e.idle <- &worker{cache: new(pieceCache)}
	}
	return e, nil
}

// Name implements budget.Counter.
func (e *Encoding) Name() string { return e.name }

// Count implements budget.Counter. Special tokens such as <|endoftext|> are text like any other. The count is an
// estimate only if a piece without a split point is longer than a few KiB and no sound way to cut it was found.
func (e *Encoding) Count(text string) budget.Count {
	if !utf8.ValidString(text) {
		text = replaceInvalid(text)
	}
	var w *worker
	select {
	case w = <-e.idle:
		defer func() { e.idle <- w }()
	default:
		w = &worker{} // all are busy; this one is not kept
	}
	var total budget.Count
	for p := 0; p < len(text); {
		end := e.split(e.classes, text, p)
		n, estimated := w.count(e.merges, text, p, end)
		total.Tokens += n
		total.Estimated = total.Estimated || estimated
		p = end
	}
	return total
}

// Cost implements budget.Counter.
func (e *Encoding) Cost(text string) uint64 { return uint64(e.Count(text).Tokens) }

// PerToken implements budget.Counter.
func (*Encoding) PerToken() uint64 { return 1 }

// replaceInvalid replaces every byte that is not part of a character by U+FFFD, as a conversion to runes does.
func replaceInvalid(text string) string {
	size := 0
	for _, r := range text {
		size += utf8.RuneLen(r)
	}
	var b strings.Builder
	b.Grow(size)
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}

// worker is the memory of one count at a time. As many workers as there are processors are kept, with their caches,
// so that the caches need no lock and their memory is bounded. A count that finds no idle worker uses a new one
// without a cache.
type worker struct {
	cache *pieceCache // or nil
	short shortParts
	long  *longParts
}

// count counts the piece text[p:end].
func (w *worker) count(m *mergeTable, text string, p, end int) (tokens int, estimated bool) {
	switch size := end - p; {
	case size == 1:
		return 1, false
	case size == 2:
		if m.bytePairs[pair(text[p], text[p+1])] != noToken {
			return 1, false
		}
		return 2, false
	case size <= maxCached && w.cache != nil:
		return w.cached(m, text, p, end), false
	case size <= maxShort:
		return m.mergeShort(text[p:end], &w.short), false
	default:
		if w.long == nil {
			w.long = &longParts{heap: make([]uint64, 0, longWindow)}
		}
		return w.long.countLong(m, text[p:end], longWindow, &w.short)
	}
}

func (w *worker) cached(m *mergeTable, text string, p, end int) int {
	if end-p <= maxCachedShort {
		key, at := w.cache.short(text, p, end)
		if n := at.count(key); n > 0 {
			return n
		}
		n := m.mergeShort(text[p:end], &w.short)
		at.set(key, n)
		return n
	}
	key, at := w.cache.long(text, p, end)
	if n := at.count(key); n > 0 {
		return n
	}
	n := m.mergeShort(text[p:end], &w.short)
	at.set(key, n)
	return n
}
