package pi

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// line is one record of the file with its place in the tree.
type line struct {
	entry  transcript.Entry
	rec    record
	bad    error // why the record could not be decoded
	index  int   // counts the records from 0
	parent int   // index of the record that it follows; -1 for none
	child  bool  // another record follows it
	mine   bool  // it is part of a path already
}

// maxBranches bounds how many abandoned branches become sessions: each holds the
// whole way to its end.
const maxBranches = 32

// plant finds the parents. In version 1 each record follows the one before it. A
// parent must come before its children, so that there are no cycles: one that does
// not, or that is not in the file, is reported, and the record follows the one
// before it.
func (r *reader) plant() {
	byID := map[string]int{}
	last := -1
	for i := range r.lines {
		l := r.lines[i]
		l.parent = last
		if l.rec.Type == sessionType && l.bad == nil {
			continue
		}
		last = i
		id := l.rec.ID
		twin, repeated := byID[id]
		known := id != "" && id != redacted
		switch parent, stated := l.parentID(); {
		case known && repeated && bytes.Equal(r.lines[twin].rec.ParentID, l.rec.ParentID):
			// An id used twice: the second one comes after the first.
			l.parent = twin
		case !stated || parent == redacted:
		case parent == "":
			l.parent = -1
		default:
			if at, ok := byID[parent]; ok {
				l.parent = at
			} else {
				r.out.Warn(l.entry.Line, "parent %q is not before it; it follows the previous entry", parent)
				r.replant(l)
			}
		}
		if l.parent >= 0 {
			r.lines[l.parent].child = true
		}
		if known {
			byID[id] = i
		}
	}
}

// replant has the entry name the one that it follows: pi ends its way to the root where a
// parent is missing, and finds no end where parents go round in circles, so that an entry
// that is written again must not name such a one.
func (r *reader) replant(l *line) {
	parent := "null"
	if l.parent >= 0 && r.lines[l.parent].rec.ID != "" {
		parent = transcript.Quote(r.lines[l.parent].rec.ID)
	}
	native, err := transcript.Amend(l.entry.Native, []byte(`{"set":{"parentId":`+parent+`}}`))
	if err != nil {
		return // it is no object, and becomes no entry
	}
	l.entry.Native, l.rec.ParentID = native, jsontext.Value(parent)
}

// parentID is empty for a root; stated is false where the file has none.
func (l *line) parentID() (id string, stated bool) {
	if len(l.rec.ParentID) == 0 {
		return "", false
	}
	id, isText := transcript.Text(l.rec.ParentID)
	return id, isText || string(l.rec.ParentID) == "null"
}

// path returns the way from the root to a leaf, and of it what no path before had.
func (r *reader) path(leaf int) (all, own []int) {
	for i := leaf; i >= 0; i = r.lines[i].parent {
		all = append(all, i)
	}
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	for _, i := range all {
		if !r.lines[i].mine {
			own = append(own, i)
			r.lines[i].mine = true
		}
	}
	return all, own
}

// leaf is the file's last entry, where the harness goes on.
func (r *reader) leaf() int {
	for i := len(r.lines) - 1; i >= 0; i-- {
		if r.lines[i].rec.Type != sessionType || r.lines[i].bad != nil {
			return i
		}
	}
	return -1
}

// labelEntries says where in the file the entries are that only a branch has:
// runs of positions, such as "4-6,9-9".
const labelEntries = Name + ".entries"

func runs(indexes []int) string {
	var b strings.Builder
	for i := 0; i < len(indexes); {
		j := i
		for j+1 < len(indexes) && indexes[j+1] == indexes[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d-%d", indexes[i], indexes[j])
		i = j + 1
	}
	return b.String()
}

// positions undoes runs; at most n of them.
func positions(text string, n int) []int {
	var all []int
	for run := range strings.SplitSeq(text, ",") {
		first, last, _ := strings.Cut(run, "-")
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		for i := from; err1 == nil && err2 == nil && i >= 0 && i <= to && len(all) < n; i++ {
			all = append(all, i)
		}
	}
	return all
}
