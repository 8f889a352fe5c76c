package cursor

import (
	"bytes"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// row is a row of the table that belongs to a chat.
type row struct {
	key   string
	line  int // 0 in a database
	value jsontext.Value
}

// table holds the rows of all chats, in the file's order. Rows may come in any order, so that chats are read
// at the end.
type table struct {
	out       *transcript.Builder
	composers []row
	bubbles   map[string]map[string]row  // by composer and bubble
	agent     *transcript.SessionBuilder // an agent's transcript, which has neither ids nor times
}

func newTable(out *transcript.Builder) *table {
	return &table{out: out, bubbles: map[string]map[string]row{}}
}

// readRows reads rows as JSON: objects with a key and a value, in a list or one a line, or a single object
// that maps keys to values. Lines with a role are an agent's transcript.
func (t *table) readRows(in io.Reader) error {
	doc := transcript.NewDocument(in, t.out.Warn)
	return doc.Each(func(kind byte) (bool, error) {
		switch kind {
		case '[':
			return true, doc.Rest(t.object)
		case '{':
			return true, t.members(doc)
		}
		t.out.Warn(doc.Line(), "neither a row nor a list of rows; not read")
		return true, nil
	})
}

func (t *table) object(value jsontext.Value, line int) {
	if len(value) == 0 || value[0] != '{' {
		t.out.Warn(line, "a row is not an object and was not read")
		return
	}
	var r struct {
		Key   *string        `json:"key"`
		Value jsontext.Value `json:"value"`
	}
	if err := transcript.Decode(value, &r); err != nil || r.Key == nil {
		t.line(value, line)
		return
	}
	t.row(*r.Key, r.Value, line)
}

// members reads the open object.
func (t *table) members(doc *transcript.Document) error {
	var one bytes.Buffer
	one.WriteByte('{')
	first := doc.Line()
	for doc.More() {
		name, err := doc.Key()
		if err != nil {
			return err
		}
		value, line, err := doc.Value()
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, composerPrefix) || strings.HasPrefix(name, bubblePrefix) {
			t.row(name, value, line)
			continue
		}
		if one.Len() > 1 {
			one.WriteByte(',')
		}
		one.WriteString(transcript.Quote(name) + ":")
		one.Write(value)
	}
	one.WriteByte('}')
	if one.Len() > len("{}") {
		t.object(one.Bytes(), first)
	}
	return doc.Close()
}

// row adds a row; its value is JSON, or a string with JSON in it.
func (t *table) row(key string, value jsontext.Value, line int) {
	if text, ok := transcript.Text(value); ok {
		value = jsontext.Value(text)
	}
	family, rest, _ := strings.Cut(key, ":")
	switch {
	case family+":" != composerPrefix && family+":" != bubblePrefix:
		t.out.Skip("row " + family)
	case len(bytes.TrimSpace(value)) == 0 || string(value) == "null":
		t.out.Skip("row without a value")
	case !transcript.Valid(value):
		t.out.Warn(line, "the value of %.200s is not JSON and was not read", key)
	case family+":" == composerPrefix:
		t.composers = append(t.composers, row{rest, line, bytes.TrimSpace(value)})
	default:
		composer, bubble, _ := strings.Cut(rest, ":")
		if t.bubbles[composer] == nil {
			t.bubbles[composer] = map[string]row{}
		}
		t.bubbles[composer][bubble] = row{bubble, line, bytes.TrimSpace(value)}
	}
}

// line reads a line of an agent's transcript.
func (t *table) line(raw jsontext.Value, line int) {
	var l struct {
		Role    string `json:"role"`
		Type    string `json:"type"`
		Message struct {
			Content jsontext.Value `json:"content"`
		} `json:"message"`
	}
	if err := transcript.Decode(raw, &l); err != nil {
		t.out.Warn(line, "unexpected shape, not read: %v", err)
		return
	}
	if l.Role == "" {
		t.out.Skip("line " + l.Type)
		return
	}
	if t.agent == nil {
		t.agent = t.out.Session("")
		t.agent.Label(transcript.LabelHarness, "cursor-agent")
	}
	entry := transcript.Entry{Line: line, ID: "line-" + transcript.Count(line).String(), Native: bytes.Clone(raw)}
	blocks, err := content.AnthropicBlocks(l.Message.Content)
	if err != nil {
		t.agent.Unreadable(entry, err)
		return
	}
	switch l.Role {
	case "user":
		added, said := asked(blocks)
		if len(added) > 0 {
			context := entry
			context.Label(transcript.LabelInjected, "true")
			context.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: added}
			if len(said) == 0 {
				t.agent.Append(context)
				return
			}
			context.ID += "/context"
			t.agent.Append(context)
		}
		entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: said}
	case "assistant":
		entry.Body = &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: blocks}
	default:
		t.agent.Keep(entry, "role-"+l.Role)
		return
	}
	t.agent.Append(entry)
}

// tags are the elements that Cursor writes in user messages; the user's own text is in another one.
var tags = transcript.Tags(
	"user_info", "git_status", "rules", "agent_skills", "project_layout", "additional_data", "system_reminder",
	"system_notification", "attached_files", "open_and_recently_viewed_files", "environment_details",
)

// asked splits off what Cursor added before the user's words, and removes the element around these.
func asked(blocks []eventlog.Block) (added, said []eventlog.Block) {
	for _, b := range blocks {
		text, ok := b.(eventlog.Text)
		before, query, isQuery := transcript.Asked(text.Text, "user_query")
		switch {
		case isQuery && (before == "" || len(said) == 0):
			if before != "" {
				added = append(added, eventlog.Text{Text: before})
			}
			query = strings.TrimSuffix(strings.TrimPrefix(query, "<user_query>"), "</user_query>")
			said = append(said, eventlog.Text{Text: strings.Trim(query, "\n")})
		case ok && len(said) == 0 && transcript.Inserted(text.Text, tags, holding(text.Text)):
			added = append(added, b)
		default:
			said = append(said, b)
		}
	}
	return added, said
}

// holding are the elements that may hold what looks like their end: all, where a text has no words of the user's.
func holding(text string) map[string]bool {
	if strings.Contains(text, "<user_query>") {
		return nil
	}
	return tags
}
