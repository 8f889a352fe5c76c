package ledger

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
)

// Member is one of a call's arguments, as the model wrote it.
type Member struct {
	// name and value are JSON, without space between tokens. A value that is longer than any
	// line shows is cut.
	name, value string
}

// folderName is the name of what Members makes of a command that begins by changing to a
// folder. Those of arguments are in quotes.
const folderName = "cd"

// mostMembers is more than a line in detail has room for.
const mostMembers = 1024

// Members are the arguments of a call, for Call; nil where they are no JSON object, or so many that
// they are better written by themselves than kept and compared with those of other calls. A shell
// command that begins with cd FOLDER && has the folder as a member of its own, so that it is
// said once where calls have it in common.
func Members(arguments string) []Member {
	decoder := json.NewDecoder(strings.NewReader(arguments))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var out []Member
	for decoder.More() {
		if len(out) >= mostMembers {
			return nil
		}
		start := decoder.InputOffset()
		if _, err := decoder.Token(); err != nil {
			return nil
		}
		name := arguments[start:decoder.InputOffset()]
		name = name[strings.IndexByte(name, '"'):]
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil {
			return nil
		}
		value := compact(raw)
		if folder, rest, ok := cutFolder(name, value); ok {
			out = append(out, Member{folderName, folder})
			value = rest
		}
		out = append(out, Member{name, value})
	}
	if _, err := decoder.Token(); err != nil || strings.TrimSpace(arguments[decoder.InputOffset():]) != "" {
		return nil
	}
	return out
}

// compact is JSON without space between tokens, cut above what any line shows.
func compact(raw json.RawMessage) string {
	const most = 2 * detailBytes
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return Cut(string(raw), most)
	}
	return strings.Clone(Cut(out.String(), most))
}

// cutFolder parts a shell command, as JSON, that begins with cd FOLDER && in folder and rest.
func cutFolder(name, value string) (folder, rest string, ok bool) {
	if name != `"command"` && name != `"cmd"` {
		return "", "", false
	}
	text, ok := strings.CutPrefix(value, `"cd `)
	if !ok {
		return "", "", false
	}
	folder, rest, ok = strings.Cut(text, " && ")
	if !ok || folder == "" || strings.ContainsAny(folder, "\\\" ;|&") {
		return "", "", false
	}
	return `"` + folder + `"`, `"` + rest, true
}

// usual are arguments that most calls of a tool have alike.
type usual []Member

// of returns the value that most calls have.
func (u usual) of(name string) (string, bool) {
	for _, m := range u {
		if m.name == name {
			return m.value, true
		}
	}
	return "", false
}

// String is an object of them.
func (u usual) String() string {
	return object(u, detailArgumentBytes, detailBytes)
}

// shownWith writes the arguments of a call beside those that are usual, each cut to one bytes
// and all of them to all: what is as usual is left out, and what is usual and not given is null.
// A single text that is left is written by itself where it is one line and its name has no
// usual value.
func (u usual) shownWith(members []Member, one, all int) string {
	var left []Member
	var folder string // of the next
	given := map[string]bool{}
	for _, m := range members {
		given[m.name] = true
		value, ok := u.of(m.name)
		switch as := ok && value == m.value; {
		case as && folder == "":
		case m.name == folderName:
			folder = strings.Trim(m.value, `"`)
		case folder != "":
			left = append(left, Member{m.name, `"cd ` + folder + " && " + m.value[1:]})
			folder = ""
		default:
			left = append(left, m)
		}
	}
	for _, m := range u {
		if !given[m.name] {
			left = append(left, Member{m.name, "null"})
		}
	}
	if len(left) == 0 {
		return ""
	}
	if _, ok := u.of(left[0].name); !ok {
		if text, ok := oneText(left); ok {
			return Cut(text, one)
		}
	}
	return object(left, one, all)
}

// oneText is the only one of some arguments where it is a text of one line that can be taken for
// nothing else.
func oneText(left []Member) (string, bool) {
	if len(left) != 1 || !strings.HasPrefix(left[0].value, `"`) {
		return "", false
	}
	var text string
	if json.Unmarshal([]byte(left[0].value), &text) != nil || text == "" || strings.ContainsAny(text[:1], `{["`) || strings.TrimSpace(text) != text {
		return "", false
	}
	if strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == unicode.ReplacementChar
	}) {
		return "", false
	}
	return text, true
}

// object writes members as a JSON object.
func object(members []Member, one, all int) string {
	var out strings.Builder
	out.WriteByte('{')
	for _, m := range members {
		if out.Len() >= all {
			return Cut(out.String()+cutMark, all)
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		name := m.name
		if name == folderName {
			name = `"cd"`
		}
		out.WriteString(name + ":" + Cut(m.value, one))
	}
	out.WriteByte('}')
	return Cut(out.String(), all)
}
