package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Row is a row of a table with a key and a value. Text is converted to UTF-8; a blob stays as it is.
type Row struct {
	Key   string
	Value []byte // nil for NULL
}

// Rows gives the rows of a table whose keys have one of the prefixes, in the order of the row ids. An error
// comes last: a *DamageError, a *RefusedError if the table is not two plain columns, or the context's.
func (f *File) Rows(ctx context.Context, table string, prefixes ...string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		root, err := f.find(ctx, table)
		if err == nil {
			err = f.walk(ctx, root, func(p *payload) (bool, error) {
				row, ok, err := f.keyAndValue(p, prefixes)
				return err == nil && (!ok || yield(row, nil)), err
			})
		}
		if err != nil {
			yield(Row{}, err)
		}
	}
}

// find returns the root page of a table. It reads the schema as data only, and refuses anything but a plain
// table.
func (f *File) find(ctx context.Context, name string) (root uint32, err error) {
	other := map[string]bool{}
	err = f.walk(ctx, 1, func(p *payload) (bool, error) {
		entry, err := f.columns(p, 5, maxSchema)
		if err != nil {
			return false, err
		}
		if len(entry) > 0 && len(other) < maxTables {
			other[entry[1].string(f.text)] = true
		}
		if len(entry) == 0 || !strings.EqualFold(entry[1].string(f.text), name) {
			return true, nil
		}
		if kind := entry[0].string(f.text); kind != "table" {
			return false, &RefusedError{Reason: fmt.Sprintf("%s is a %.20q and not a table; it was not read", name, kind)}
		}
		page := entry[3].integer()
		if page <= 0 || page > int64(f.pages) || !plain(entry[4].string(f.text), name) {
			return false, &RefusedError{Reason: name + " is not a plain table of a key and a value; it was not read"}
		}
		root = uint32(page)
		return false, nil
	})
	if err == nil && root == 0 {
		err = &RefusedError{Reason: whose(other, name)}
	}
	return root, err
}

// maxTables is how many names of tables and indexes are looked at.
const maxTables = 64

// whose says what to do with a database of another program, by the names in its schema.
func whose(tables map[string]bool, name string) string {
	const none, begin = "the database has no table ", "; it looks like that of "
	switch {
	case tables["sessions"] && tables["messages"]:
		return none + name + begin + `Crush, or of OpenCode of before version 1: import what sqlite3 -json FILE ` +
			`"SELECT * FROM messages ORDER BY session_id, created_at" writes`
	case tables["session"] && tables["message"] && tables["part"]:
		return none + name + begin + `OpenCode: import what "opencode export" writes`
	}
	return none + name + ", in which Cursor's globalStorage/state.vscdb has chats; of another program, import what it exports"
}

// plain reports whether a CREATE TABLE statement defines a table of a key and a value, with no computed
// columns.
func plain(statement, name string) bool {
	quoted := func(name string) string { return "[\"'`\\[]?" + name + "[\"'`\\]]?" }
	return regexp.MustCompile(`(?is)^CREATE\s+TABLE\s+` + quoted(regexp.QuoteMeta(name)) +
		`\s*\(\s*` + quoted("key") + `\s+TEXT\b[^,()]*,\s*` + quoted("value") + `(\s+(BLOB|TEXT)\b[^,()]*)?\s*\)\s*$`).MatchString(statement)
}

// keyAndValue reads a row, and its value only if the key has one of the prefixes; ok is false for other rows.
func (f *File) keyAndValue(p *payload, prefixes []string) (Row, bool, error) {
	types, err := header(p, 2)
	if err != nil || len(types) == 0 {
		return Row{}, false, err
	}
	if !types[0].text() || types[0].size() > maxKey {
		return Row{}, false, nil
	}
	raw, err := p.read(types[0].size())
	if err != nil {
		return Row{}, false, err
	}
	key := f.text.utf8(raw)
	if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
		return Row{}, false, nil
	}
	row := Row{Key: key}
	if len(types) < 2 || types[1] == typeNull {
		return row, true, nil
	}
	if size := types[1].size(); size > MaxValue {
		return row, false, &RefusedError{Reason: fmt.Sprintf("the value of %.200s has %d bytes; the limit is %d", key, size, MaxValue)}
	}
	value, err := p.read(types[1].size())
	if err != nil {
		return Row{}, false, err
	}
	row.Value = column{types[1], value}.bytes(f.text)
	return row, true, nil
}

// columns reads the first n columns of a row; nil if the row is larger than limit or has fewer columns.
func (f *File) columns(p *payload, n int, limit uint64) ([]column, error) {
	if p.left > limit {
		return nil, nil
	}
	types, err := header(p, n)
	if err != nil || len(types) < n {
		return nil, err
	}
	out := make([]column, n)
	for i, t := range types {
		value, err := p.read(t.size())
		if err != nil {
			return nil, err
		}
		out[i] = column{t, value}
	}
	return out, nil
}

// header reads the types of up to n columns.
func header(p *payload, n int) ([]serialType, error) {
	if p.left == 0 {
		return nil, nil
	}
	// The header's size is a varint, of up to nine bytes; a row of few bytes may not have that many. One or
	// two bytes are enough for the sizes allowed here.
	first, err := p.read(1)
	if err != nil {
		return nil, err
	}
	size := uint64(first[0])
	read := uint64(1)
	if size >= 0x80 {
		second, err := p.read(1)
		if err != nil {
			return nil, err
		}
		if second[0] >= 0x80 {
			return nil, damaged("a row has more columns than a table may")
		}
		size, read = (size&0x7f)<<7|uint64(second[0]), 2
	}
	if size < read || size > maxHeader {
		return nil, damaged("a row is said to have a header of %d bytes", size)
	}
	rest, err := p.read(size - read)
	if err != nil {
		return nil, err
	}
	types := make([]serialType, 0, n)
	for len(rest) > 0 && len(types) < n {
		value, length := varint(rest)
		if length == 0 {
			return nil, damaged("the header of a row is cut off")
		}
		if value == 10 || value == 11 {
			return nil, damaged("a value is of a type that there is not")
		}
		types, rest = append(types, serialType(value)), rest[length:]
	}
	return types, nil
}

// column is a value and its type.
type column struct {
	kind  serialType
	value []byte
}

// serialType is SQLite's code for the type and the length of a value.
type serialType uint64

const typeNull serialType = 0

func (t serialType) text() bool { return t >= 13 && t%2 == 1 }

func (t serialType) size() uint64 {
	switch {
	case t >= 12:
		return uint64(t-12) / 2
	case t == 7:
		return 8
	}
	return [...]uint64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0}[t]
}

func (c column) string(e textEncoding) string {
	if !c.kind.text() {
		return ""
	}
	return e.utf8(c.value)
}

func (c column) integer() int64 {
	switch {
	case c.kind == 8 || c.kind == 9:
		return int64(c.kind) - 8
	case c.kind == 0 || c.kind > 6:
		return 0
	}
	var wide [8]byte
	if c.value[0] >= 0x80 {
		for i := range wide {
			wide[i] = 0xff
		}
	}
	copy(wide[8-len(c.value):], c.value)
	return int64(binary.BigEndian.Uint64(wide[:]))
}

// textEncoding is the encoding of a database's text.
type textEncoding int

const (
	textUTF8 textEncoding = iota
	textUTF16LE
	textUTF16BE
)

func newTextEncoding(header uint32) (textEncoding, error) {
	switch header {
	case 0, 1: // 0 in a database without tables
		return textUTF8, nil
	case 2:
		return textUTF16LE, nil
	case 3:
		return textUTF16BE, nil
	}
	return 0, damaged("its text is of an encoding that there is not")
}

func (e textEncoding) utf8(raw []byte) string {
	if e == textUTF8 {
		return string(raw)
	}
	var order binary.ByteOrder = binary.LittleEndian
	if e == textUTF16BE {
		order = binary.BigEndian
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = order.Uint16(raw[2*i:])
	}
	return string(utf16.Decode(units))
}

// bytes is the value as text in UTF-8; a blob stays as it is.
func (c column) bytes(e textEncoding) []byte {
	switch {
	case c.kind == 7:
		return strconv.AppendFloat(nil, math.Float64frombits(binary.BigEndian.Uint64(c.value)), 'g', -1, 64)
	case c.kind < 12:
		return strconv.AppendInt(nil, c.integer(), 10)
	case c.kind.text() && e != textUTF8:
		return []byte(e.utf8(c.value))
	}
	return append([]byte{}, c.value...)
}
