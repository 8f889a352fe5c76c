package transcript

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Probe is the shape of a file's beginning, by which readers recognise it. The beginning need not contain a
// complete record.
type Probe struct {
	// Records has, for each top-level JSON value, the paths of its members, such as "message.role" or
	// "messages[].parts[].type", each with the first scalar at that path as a text. For objects, lists and truncated
	// texts that is empty.
	Records []map[string]string
	// SQLite is the beginning of an SQLite database, which includes the definitions of its tables; nil if the
	// file is none.
	SQLite []byte
	// Cut says that the beginning ends within a text, so that it is unknown what follows that text.
	Cut bool
	// Wrong says why the file is not JSON; nil if the probed part is.
	Wrong error
	// Line is the first line that is not blank, if the file does not begin with JSON.
	Line string
}

// sqliteMagic is the beginning of every database.
const sqliteMagic = "SQLite format 3\x00"

// The probe stops at the first of these limits.
const (
	probeRecords = 24
	probeTokens  = 6000
	probeDepth   = 5
	maxProbeLine = 200
)

// NewProbe probes the first bytes of a file. It never fails: for bytes that are not JSON there are no
// Records.
func NewProbe(prefix []byte) Probe {
	var p Probe
	if bytes.HasPrefix(prefix, []byte(sqliteMagic)) {
		p.SQLite = prefix
		return p
	}
	if text := bytes.TrimLeft(prefix, blanks); len(text) > 0 && text[0] != '{' && text[0] != '[' {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		p.Line = string(line[:min(len(line), maxProbeLine)])
	}
	tokens := probeTokens
	dec := jsontext.NewDecoder(bytes.NewReader(prefix), lenient)
	for tokens > 0 && len(p.Records) < probeRecords {
		w := walker{dec: dec, paths: map[string]string{}, tokens: &tokens}
		whole := w.value("", 0)
		p.Cut, p.Wrong = w.cut, w.wrong
		if len(w.paths) > 0 {
			p.Records = append(p.Records, w.paths)
		}
		if !whole {
			break
		}
	}
	return p
}

// Has reports whether any record has all the paths.
func (p Probe) Has(paths ...string) bool {
	return slices.ContainsFunc(p.Records, func(record map[string]string) bool {
		return !slices.ContainsFunc(paths, func(path string) bool { _, ok := record[path]; return !ok })
	})
}

// Is reports whether any record has one of the values at the path.
func (p Probe) Is(path string, values ...string) bool {
	return slices.ContainsFunc(p.Records, func(record map[string]string) bool {
		have, ok := record[path]
		return ok && slices.Contains(values, have)
	})
}

// walker collects paths from one JSON value, which may be cut off.
type walker struct {
	dec    *jsontext.Decoder
	paths  map[string]string
	tokens *int
	// cut says that the file's beginning ended within a text.
	cut bool
	// wrong is the first error of its syntax.
	wrong error
}

func (w *walker) token() (t jsontext.Token, ok bool) {
	if *w.tokens--; *w.tokens < 0 {
		return t, false
	}
	text := w.dec.PeekKind() == '"'
	t, err := w.dec.ReadToken()
	w.cut = text && errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && w.wrong == nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		w.wrong = err
	}
	return t, err == nil
}

// value reads one value and reports whether it was complete.
func (w *walker) value(path string, depth int) bool {
	if depth > probeDepth {
		return w.dec.SkipValue() == nil
	}
	t, ok := w.token()
	if !ok && !w.cut {
		return false
	}
	kind := t.Kind()
	if _, seen := w.paths[path]; path != "" && !seen {
		w.paths[path] = ""
		if ok && strings.ContainsRune(`"0tf`, rune(kind)) {
			w.paths[path] = t.String()
		}
	}
	if !ok {
		return false
	}
	switch kind {
	case '{':
		for w.more() {
			name, ok := w.token()
			if !ok || !w.value(strings.TrimPrefix(path+"."+name.String(), "."), depth+1) {
				return false
			}
		}
	case '[':
		for w.more() {
			if !w.value(path+"[]", depth+1) {
				return false
			}
		}
	default:
		return true
	}
	_, ok = w.token()
	return ok
}

func (w *walker) more() bool {
	k := w.dec.PeekKind()
	return k != '}' && k != ']' && k != jsontext.KindInvalid
}
