package rules

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// canonical holds what is true of every line in every format: it is one JSON value,
// in UTF-8, without whitespace between its tokens.
func (r *report) canonical(line int, raw []byte) {
	var compact bytes.Buffer
	switch err := json.Compact(&compact, raw); {
	case err != nil:
		r.add(line, "json", "%v", err)
	case !bytes.Equal(compact.Bytes(), raw):
		r.add(line, "json", "whitespace between tokens")
	case !utf8.Valid(raw):
		r.add(line, "json", "no UTF-8")
	case halfPair(raw):
		r.add(line, "json", "half of a surrogate pair")
	}
}

// The escapes of which each is a character, and what is half of one.
var (
	wholeEscapes = regexp.MustCompile(`\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..`)
	halfEscape   = regexp.MustCompile(`\\u[dD][89a-fA-F]`)
)

// halfPair reports whether JSON escapes half of a surrogate pair, which is no character.
func halfPair(raw []byte) bool {
	return bytes.Contains(raw, []byte(`\u`)) && halfEscape.Match(wholeEscapes.ReplaceAll(raw, []byte(" ")))
}

// object is a JSON object by its members, of which none may be there twice.
type object map[string]json.RawMessage

// object reads an object that has the required members, perhaps the optional ones,
// and no others. It returns nil, having said so, for what is no object.
func (r *report) object(line int, where string, raw json.RawMessage, required, optional []string) object {
	o, ok := r.open(line, where, raw)
	if !ok {
		return nil
	}
	r.members(line, where, o, required, optional)
	return o
}

// members holds an object to the members that it requires and may have.
func (r *report) members(line int, where string, o object, required, optional []string) {
	for _, name := range required {
		if _, ok := o[name]; !ok {
			r.add(line, "members", "%s: no %q", where, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(required, name) && !slices.Contains(optional, name) {
			r.add(line, "members", "%s: unknown %q", where, name)
		}
	}
}

// open reads an object whatever its members are.
func (r *report) open(line int, where string, raw json.RawMessage) (object, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		r.add(line, "type", "%s: no object", where)
		return nil, false
	}
	o := object{}
	for d.More() {
		var value json.RawMessage
		name, err := d.Token()
		if err == nil {
			err = d.Decode(&value)
		}
		key, ok := name.(string)
		if err != nil || !ok {
			r.add(line, "json", "%s: %v", where, err)
			return nil, false
		}
		if _, twice := o[key]; twice {
			r.add(line, "members", "%s: %q twice", where, key)
		}
		o[key] = value
	}
	if _, err := d.Token(); err != nil {
		r.add(line, "type", "%s: no object", where)
		return nil, false
	}
	return o, true
}

// list reads an array; nil for what is none.
func (r *report) list(line int, where string, raw json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		r.add(line, "type", "%s: no array", where)
	}
	return items
}

// text reads the string that a member is. A member that is not there is the empty
// string: that it is required says the object.
func (r *report) text(line int, where string, raw json.RawMessage) string {
	var s string
	if raw != nil && (raw[0] != '"' || json.Unmarshal(raw, &s) != nil) {
		r.add(line, "type", "%s: no string", where)
	}
	return s
}

// flag reads the boolean that a member is; false for one that is not there.
func (r *report) flag(line int, where string, raw json.RawMessage) bool {
	var b bool
	if raw != nil && (raw[0] == 'n' || json.Unmarshal(raw, &b) != nil) {
		r.add(line, "type", "%s: no boolean", where)
	}
	return b
}

// base64 holds data to be base64 of something.
func (r *report) base64(line int, where, data string) {
	if decoded, err := base64.StdEncoding.DecodeString(data); err != nil || len(decoded) == 0 {
		r.add(line, "base64", "%s: %.20q is base64 of nothing", where, data)
	}
}

// address is a URI with a host, of characters that RFC 3986 has, or of other languages.
var address = regexp.MustCompile(`^([a-z]+)://[^/?#\x00-\x20\x7f"<>\\^{|}` + "`" + `]+[^\x00-\x20\x7f"<>\\^{|}` + "`" + `]*$`)

// isAddress reports whether a URI is an address of one of these schemes.
func isAddress(uri string, schemes ...string) bool {
	m := address.FindStringSubmatch(uri)
	return len(m) > 0 && slices.Contains(schemes, m[1])
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
