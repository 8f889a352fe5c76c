package projection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// What records list by the thousand is written as one string of small numbers: every
// request of a session writes such a record and reads the one before. Seqs are written
// as the distance to the one before, modulo 2^64, so whatever a list holds comes back.
// The lists of objects that earlier records hold are read as well.

// Ranges are runs of seqs. In JSON a run is the distance from the end of the one before,
// and behind "-" how many more events it has: "1 2-3" are event 1 and events 3 to 6.
type Ranges []Range

// Places are blocks of the log. In JSON a place is the distance to the event before and,
// if it is not 0, "." and the block.
type Places []Place

// Pointers are blocks that are not shown as they stand in the log. In JSON a pointer is
// written like a place, with ":" and what it reclaimed behind it and, where that is not
// as before, "/" and the index of what was done in Did.
type Pointers []Pointer

// MarshalJSON writes the ranges in short.
func (r Ranges) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	w := listWriter{'"'}
	before := eventlog.Seq(0)
	for _, one := range r {
		w.number(' ', uint64(one.From-before))
		if more := uint64(one.To - one.From); more != 0 {
			w.number('-', more)
		}
		before = one.To
	}
	return append(w, '"'), nil
}

// UnmarshalJSON reads ranges in short or as a list of objects.
func (r *Ranges) UnmarshalJSON(data []byte) error {
	*r = nil
	if !isShort(data) {
		return json.Unmarshal(data, (*[]Range)(r))
	}
	in := newListReader(data)
	*r = make(Ranges, 0, in.most())
	before := eventlog.Seq(0)
	for in.next() {
		one := Range{From: before + eventlog.Seq(in.number())}
		one.To = one.From
		if in.accept('-') {
			one.To += eventlog.Seq(in.number())
		}
		before = one.To
		*r = append(*r, one)
	}
	return in.err
}

// MarshalJSON writes the places in short.
func (p Places) MarshalJSON() ([]byte, error) {
	if p == nil {
		return []byte("null"), nil
	}
	w := listWriter{'"'}
	var before Place
	for _, one := range p {
		w.place(before, one)
		before = one
	}
	return append(w, '"'), nil
}

// UnmarshalJSON reads places in short or as a list of objects.
func (p *Places) UnmarshalJSON(data []byte) error {
	*p = nil
	if !isShort(data) {
		return json.Unmarshal(data, (*[]Place)(p))
	}
	in := newListReader(data)
	*p = make(Places, 0, in.most())
	var before Place
	for in.next() {
		before = in.place(before)
		*p = append(*p, before)
	}
	return in.err
}

// shortPointers is the JSON of pointers.
type shortPointers struct {
	Did []did
	At  json.RawMessage
}

// did is what many pointers have in common.
type did struct {
	Kind            reduce.EditKind
	Reducer, Reason string
}

// MarshalJSON writes the pointers in short.
func (p Pointers) MarshalJSON() ([]byte, error) {
	if p == nil {
		return []byte("null"), nil
	}
	var out shortPointers
	w := listWriter{'"'}
	var before Place
	last := 0
	for _, one := range p {
		place := Place{one.Seq, one.Block}
		w.place(before, place)
		w.number(':', one.Reclaimed)
		what := did{one.Kind, one.Reducer, one.Reason}
		if last >= len(out.Did) || out.Did[last] != what {
			if last = slices.Index(out.Did, what); last < 0 {
				out.Did = append(out.Did, what)
				last = len(out.Did) - 1
			}
			w.number('/', uint64(last))
		}
		before = place
	}
	out.At = json.RawMessage(append(w, '"'))
	return json.Marshal(out)
}

// UnmarshalJSON reads pointers in short or as a list of objects.
func (p *Pointers) UnmarshalJSON(data []byte) error {
	*p = nil
	if len(data) == 0 || data[0] != '{' {
		return json.Unmarshal(data, (*[]Pointer)(p))
	}
	var short shortPointers
	if err := json.Unmarshal(data, &short); err != nil {
		return err
	}
	if !isShort(short.At) {
		return &listError{0, "the pointers"}
	}
	in := newListReader(short.At)
	*p = make(Pointers, 0, in.most())
	var before Place
	what := uint64(0)
	for in.next() {
		before = in.place(before)
		one := Pointer{Seq: before.Seq, Block: before.Block}
		if !in.accept(':') {
			in.fail("what was reclaimed")
		}
		one.Reclaimed = in.number()
		if in.accept('/') {
			what = in.number()
		}
		if what >= uint64(len(short.Did)) {
			in.fail("what was done")
			continue
		}
		one.Kind, one.Reducer, one.Reason = short.Did[what].Kind, short.Did[what].Reducer, short.Did[what].Reason
		*p = append(*p, one)
	}
	return in.err
}

// listWriter is a JSON string as far as it is written.
type listWriter []byte

func (w *listWriter) number(mark byte, n uint64) {
	if len(*w) > 1 || mark != ' ' {
		*w = append(*w, mark)
	}
	*w = strconv.AppendUint(*w, n, 10)
}

func (w *listWriter) place(before, p Place) {
	w.number(' ', uint64(p.Seq-before.Seq))
	if p.Block != 0 {
		w.number('.', uint64(p.Block))
	}
}

// listError says what is missing in a list, and where.
type listError struct {
	at   int // bytes
	what string
}

func (e *listError) Error() string { return fmt.Sprintf("at byte %d: %s is missing", e.at, e.what) }

func isShort(data []byte) bool {
	return len(data) >= 2 && data[0] == '"' && data[len(data)-1] == '"'
}

// listReader reads a string of numbers. After the first error it yields nothing more.
type listReader struct {
	data []byte
	at   int
	err  error
}

func newListReader(quoted []byte) *listReader { return &listReader{data: quoted[1 : len(quoted)-1]} }

// most is how many entries there can be.
func (r *listReader) most() int {
	n := 0
	for _, b := range r.data {
		if b == ' ' {
			n++
		}
	}
	return min(n+1, len(r.data))
}

// next goes on to the next entry, if there is one.
func (r *listReader) next() bool {
	if r.err == nil && r.at > 0 && r.at < len(r.data) && !r.accept(' ') {
		r.fail("a space")
	}
	return r.err == nil && (r.at < len(r.data) || r.at > 0 && r.data[r.at-1] == ' ')
}

func (r *listReader) accept(b byte) bool {
	if r.at >= len(r.data) || r.data[r.at] != b {
		return false
	}
	r.at++
	return true
}

func (r *listReader) fail(what string) {
	if r.err == nil {
		r.err = &listError{r.at + 1, what}
	}
}

func (r *listReader) number() uint64 {
	start, n := r.at, uint64(0)
	for r.at < len(r.data) && r.data[r.at]-'0' <= 9 {
		n = n*10 + uint64(r.data[r.at]-'0')
		r.at++
	}
	if r.at == start || r.at-start > len("18446744073709551615") {
		r.fail("a number")
	}
	return n
}

func (r *listReader) place(before Place) Place {
	p := Place{Seq: before.Seq + eventlog.Seq(r.number())}
	if r.accept('.') {
		p.Block = int(r.number())
	}
	return p
}
