package transcript

import (
	"bytes"
	"maps"
	"strconv"
	"strings"
	"unicode/utf16"
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

// cleanRecord makes a record valid UTF-8, with a warning if it was not. It also warns if decoding its strings
// will replace unpaired surrogates.
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

// halfSurrogate reports whether a \u escape in the JSON is one half of a surrogate pair without the other.
func halfSurrogate(record []byte) bool {
	if !bytes.Contains(record, []byte(`\u`)) {
		return false
	}
	first := false // the escape before is the first half of a pair
	for {
		at := bytes.IndexByte(record, '\\')
		if at < 0 || at+1 >= len(record) || first && at > 0 {
			return first
		}
		if record = record[at:]; len(record) >= 6 && record[1] == 'u' {
			if unit, err := strconv.ParseUint(string(record[2:6]), 16, 16); err == nil && utf16.IsSurrogate(rune(unit)) {
				if second := unit >= 0xDC00; second != first {
					return true
				}
				first, record = !first, record[6:]
				continue
			}
		}
		if first {
			return true
		}
		record = record[2:]
	}
}

// clean replaces, in every string of the entry, the characters that the API cannot transfer. It does not change
// binary data of media, and raw JSON, which is valid already.
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
		b.Mode, b.Strategy = c.str(b.Mode), c.str(b.Strategy)
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

// utf8 does the same as str, for strings that may contain NUL.
func (c *cleaner) utf8(s string) string {
	t := strings.ToValidUTF8(s, replacement)
	c.changed = c.changed || len(t) != len(s) || t != s
	return t
}

func (c *cleaner) labels(labels map[string]string) map[string]string {
	clean := maps.Clone(labels)
	for k, v := range labels {
		if text := c.str(v); text != v || c.str(k) != k {
			delete(clean, k)
			clean[c.str(k)] = text
		}
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
