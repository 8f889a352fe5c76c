package transcript

import (
	"bytes"
	"maps"
	"strings"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
)

const replacement = "\uFFFD"

// Clean returns s with NUL and every run of bytes that is not UTF-8 replaced by
// U+FFFD.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}

// cleanRecord makes a record valid UTF-8 and warns if it was not, or if decoding
// its strings will replace half surrogate pairs.
func cleanRecord(record []byte, line int, warn Warn) []byte {
	if !utf8.Valid(record) {
		warn(line, "invalid UTF-8 replaced by U+FFFD")
		record = bytes.ToValidUTF8(record, []byte(replacement))
	}
	if halfSurrogate(record) {
		warn(line, "half of a surrogate pair replaced by U+FFFD")
	}
	return record
}

// halfSurrogate reports whether a \u escape in the JSON is one half of a pair
// without the other.
func halfSurrogate(record []byte) bool {
	if !bytes.Contains(record, []byte(`\u`)) {
		return false
	}
	for i := 0; ; {
		at := bytes.IndexByte(record[i:], '\\')
		if at < 0 || i+at+1 >= len(record) {
			return false
		}
		i += at
		first, ok := escapedSurrogate(record[i:])
		switch {
		case !ok:
			i += 2
		case first >= 0xDC00:
			return true
		default:
			second, ok := escapedSurrogate(record[i+6:])
			if !ok || second < 0xDC00 {
				return true
			}
			i += 12
		}
	}
}

// escapedSurrogate reads \uD800 to \uDFFF.
func escapedSurrogate(b []byte) (uint16, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var v uint16
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		v = v<<4 | uint16(c)
	}
	return v, v >= 0xD800 && v <= 0xDFFF
}

// clean replaces what the wire cannot carry in every string of the entry. Binary
// data of media and raw JSON, which is valid already, stay as they are.
func (s *SessionBuilder) clean(e *Entry) {
	c := cleaner{}
	e.ID = c.str(e.ID)
	e.Labels = c.labels(e.Labels)
	switch b := e.Body.(type) {
	case *eventlog.Message:
		m := *b
		m.GroupID, m.Model = c.str(m.GroupID), c.str(m.Model)
		m.Blocks = c.blocks(m.Blocks)
		e.Body = &m
	case *eventlog.Compaction:
		b.Summary = c.str(b.Summary)
		b.Mode = c.str(b.Mode)
	case *eventlog.Custom:
		b.Type = c.str(b.Type)
	}
	if c.changed {
		s.builder.Warn(e.Line, "NUL or invalid UTF-8 in a string replaced by U+FFFD")
	}
}

type cleaner struct{ changed bool }

func (c *cleaner) str(s string) string {
	t := Clean(s)
	if len(t) != len(s) || t != s {
		c.changed = true
	}
	return t
}

// utf8 is str for what may hold NUL.
func (c *cleaner) utf8(s string) string {
	t := strings.ToValidUTF8(s, replacement)
	c.changed = c.changed || len(t) != len(s) || t != s
	return t
}

func (c *cleaner) labels(labels map[string]string) map[string]string {
	before := c.changed
	c.changed = false
	for k, v := range labels {
		c.str(k)
		c.str(v)
	}
	if !c.changed {
		c.changed = before
		return labels
	}
	clean := make(map[string]string, len(labels))
	for k, v := range maps.All(labels) {
		clean[c.str(k)] = c.str(v)
	}
	return clean
}

func (c *cleaner) blocks(blocks []eventlog.Block) []eventlog.Block {
	out := make([]eventlog.Block, len(blocks))
	for i, block := range blocks {
		switch b := block.(type) {
		case eventlog.Text:
			b.Text = c.str(b.Text)
			block = b
		case eventlog.Thinking:
			b.Text, b.Signature, b.EncryptedContent = c.str(b.Text), c.str(b.Signature), c.str(b.EncryptedContent)
			block = b
		case eventlog.ToolCall:
			b.CallID, b.Name, b.Arguments = c.str(b.CallID), c.str(b.Name), c.utf8(b.Arguments)
			block = b
		case eventlog.ToolResult:
			b.CallID, b.ToolName = c.str(b.CallID), c.str(b.ToolName)
			b.Content = c.blocks(b.Content)
			block = b
		case eventlog.Media:
			b.MIMEType, b.URI = c.str(b.MIMEType), c.str(b.URI)
			block = b
		}
		out[i] = block
	}
	return out
}
