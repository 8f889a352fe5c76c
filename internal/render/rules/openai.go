package rules

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// What OpenAI's two APIs have in common.
var (
	openAIName   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	openAIImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	openAIDetail = []string{"auto", "low", "high", "original"}
)

// longestChatCallID is the longest id of a call in Chat Completions; Responses take 64
// characters.
const (
	longestChatCallID      = 40
	longestResponsesCallID = 64
)

// filled holds a member to being a string of something.
func (r *report) filled(line int, where string, raw json.RawMessage) {
	if s := r.text(line, where, raw); raw != nil && blank(s) {
		r.add(line, "empty", "%s: nothing but whitespace", where)
	}
}

// arguments reads what a model wrote as the arguments of a call: any string but none, and not too
// long, although a model may write more.
func (r *report) arguments(line int, where string, raw json.RawMessage) {
	s := r.text(line, where, raw)
	if raw != nil && s == "" {
		r.add(line, "empty", "%s: no arguments", where)
	}
	if n := utf8.RuneCountInString(s); n > openAIArguments {
		r.add(line, "size", "%s: %d characters, more than %d", where, n, openAIArguments)
	}
}

// choice reads a member that has to be one of some strings.
func (r *report) choice(line int, where string, raw json.RawMessage, of ...string) string {
	s := r.text(line, where, raw)
	if raw != nil && !slices.Contains(of, s) {
		r.add(line, "value", "%s: %q is none of %s", where, s, strings.Join(of, ", "))
	}
	return s
}

// Limits of a request of either API.
const (
	openAIBytes     = 50 << 20
	openAIArguments = 1 << 20
	openAIMany      = 1500
)

// openAISize holds a request to how large it may be, and to how many images it may have.
func (r *report) openAISize(lines [][]byte) {
	total := 0
	for _, line := range lines {
		total += len(line)
	}
	if total > openAIBytes {
		r.add(-1, "size", "%d bytes, more than %d", total, openAIBytes)
	}
	if r.images > openAIMany {
		r.add(-1, "size", "%d images, more than %d", r.images, openAIMany)
	}
}

// imageURL holds an image's URL: on the web, or data of an image.
func (r *report) imageURL(line int, where string, raw json.RawMessage) {
	r.images++
	url := r.text(line, where, raw)
	if isAddress(url, "https", "http") {
		return
	}
	r.dataURL(line, where, url, openAIImages)
}

// dataURL holds a URL to hold data, of one of the types if there are any.
func (r *report) dataURL(line int, where, url string, types []string) {
	rest, ok := strings.CutPrefix(url, "data:")
	mime, data, found := strings.Cut(rest, ";base64,")
	switch {
	case !ok || !found:
		r.add(line, "media", "%s: neither an address on the web nor a data URL", where)
	case types != nil && !slices.Contains(types, mime):
		r.add(line, "media", "%s: %q is none of %s", where, mime, strings.Join(types, ", "))
	default:
		r.base64(line, where, data)
	}
}

// toolName holds a function's name.
func (r *report) toolName(line int, where string, raw json.RawMessage) {
	if name := r.text(line, where, raw); raw != nil && !openAIName.MatchString(name) {
		r.add(line, "name", "%s: %q has other characters than letters, digits, _ and -, or not 1 to 64", where, name)
	}
}

// calls follows which calls were made and which are to be answered.
type calls struct {
	made map[string]bool
	open []string
}

func newCalls() *calls { return &calls{made: map[string]bool{}} }

func (c *calls) call(r *report, line int, id string, longest int) {
	if id == "" || len(id) > longest {
		r.add(line, "call id", "%q has not 1 to %d characters", id, longest)
	}
	if c.made[id] {
		r.add(line, "call id", "%q is the id of an earlier call", id)
	}
	c.made[id] = true
	c.open = append(c.open, id)
}

// answer takes a result; the calls are answered in any order.
func (c *calls) answer(r *report, line int, id string) {
	at := slices.Index(c.open, id)
	if at < 0 {
		r.add(line, "pairs", "a result for %q, which no call before it waits for", id)
		return
	}
	c.open = slices.Delete(c.open, at, at+1)
}

// closed checks that nothing waits for a result any more.
func (c *calls) closed(r *report, line int) {
	if len(c.open) > 0 {
		r.add(line, "pairs", "no result for %s", strings.Join(c.open, ", "))
		c.open = nil
	}
}

// kind reads the type of a part or an item, whatever else it holds.
func (r *report) kind(line int, where string, raw json.RawMessage) string {
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &head) != nil || head.Type == "" {
		r.add(line, "type", "%s: an object without a type", where)
	}
	return head.Type
}

// audio holds the data of an audio part.
func (r *report) audio(line int, where string, raw json.RawMessage) {
	o := r.object(line, where, raw, []string{"data", "format"}, nil)
	r.choice(line, where+".format", o["format"], "wav", "mp3")
	if _, err := base64.StdEncoding.DecodeString(r.text(line, where+".data", o["data"])); err != nil {
		r.add(line, "base64", "%s.data: %v", where, err)
	}
}
