package ledger

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/contextd/contextd/internal/quote"
)

// Member is one of a call's arguments, as the model wrote it.
type Member struct {
	// name and value are JSON without space between tokens. A value longer than a line may show is cut.
	name, value string
}

// folderName is the name of the member that Members makes of the folder in "cd FOLDER && COMMAND". It is no JSON
// string, so no real argument has it.
const folderName = "cd"

// mostMembers is more members than fit in a line in detail.
const mostMembers = 1024

// Members parses the arguments of a call, for Call.Members. It returns nil if they are no JSON object, or have too
// many members to compare with other calls. The folder of a shell command that begins with cd FOLDER && becomes a
// member of its own, so that it is written once if most calls share it.
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
		name = quote.Escape(name[strings.IndexByte(name, '"'):])
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

// compact returns JSON without space between tokens, cut to the length that a line can show.
func compact(raw json.RawMessage) string {
	const most = 2 * detailBytes
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return quote.Escape(Cut(string(raw), most))
	}
	return strings.Clone(Cut(quote.Escape(out.String()), most))
}

// cutFolder divides a shell command, as JSON, that begins with cd FOLDER && into the folder and the rest.
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

// usual are arguments that most calls of a tool share.
type usual []Member

// of returns the value that most calls have for a name.
func (u usual) of(name string) (string, bool) {
	for _, m := range u {
		if m.name == name {
			return m.value, true
		}
	}
	return "", false
}

// String returns the arguments as an object.
func (u usual) String() string {
	return object(u, detailArgumentBytes, detailBytes)
}

// shownWith writes the arguments of a call that differ from the usual ones: usual values are omitted, and a usual
// argument that the call does not have is null. Each value is cut to one bytes, all together to all bytes. If one
// text remains, it is written without its name, provided that it is one line and its name has no usual value.
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

// oneText returns the text of left if that is a single argument with a text of one line that cannot be mistaken for
// JSON.
func oneText(left []Member) (string, bool) {
	if len(left) != 1 || !strings.HasPrefix(left[0].value, `"`) {
		return "", false
	}
	var text string
	if json.Unmarshal([]byte(left[0].value), &text) != nil || text == "" || strings.ContainsAny(text[:1], `{["`) || strings.TrimSpace(text) != text {
		return "", false
	}
	if strings.ContainsFunc(text, func(r rune) bool {
		return quote.Unseen(r) || r == unicode.ReplacementChar
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
