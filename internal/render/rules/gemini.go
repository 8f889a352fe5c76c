package rules

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// geminiBytes is how large a request with inline data may be, and geminiImages how many there may be.
const (
	geminiBytes  = 20 << 20
	geminiImages = 3600
)

var geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

// geminiCheck reads a request as Google's generateContent does.
type geminiCheck struct {
	*report
	ids map[string]bool
}

// geminiTurn is what of a content counts for its neighbours: its calls and responses,
// each as id and name.
type geminiTurn struct {
	line           int
	role           string
	calls, answers []string
}

func checkGemini(r *report, lines [][]byte) {
	c := &geminiCheck{report: r, ids: map[string]bool{}}
	for i, line := range lines {
		c.decoded(i, line, geminiDepth, true)
	}
	var turns []geminiTurn
	c.request(lines, geminiBytes, "systemInstruction", c.system, func(line int, o object) {
		turns = append(turns, c.content(line, o))
	})
	if c.images > geminiImages {
		c.add(-1, "size", "%d images, more than %d", c.images, geminiImages)
	}
	for i, t := range turns {
		var before geminiTurn
		if i > 0 {
			before = turns[i-1]
		}
		switch {
		case i == 0 && t.role != "user":
			c.add(t.line, "alternation", "the first content is the %s's", t.role)
		case t.role == before.role:
			c.add(t.line, "alternation", "two contents of the %s", t.role)
		}
		pairing(r, t.line, before.calls, t.answers)
	}
	if n := len(turns); n > 0 {
		pairing(r, turns[n-1].line, turns[n-1].calls, nil)
	}
}

func (c *geminiCheck) system(line int, prompt json.RawMessage) {
	o := c.object(line, "systemInstruction", prompt, []string{"parts"}, []string{"role"})
	parts := c.list(line, "parts", o["parts"])
	if len(parts) == 0 {
		c.add(line, "content", "no parts")
	}
	for i, raw := range parts {
		where := fmt.Sprintf("parts[%d]", i)
		part := c.object(line, where, raw, []string{"text"}, nil)
		if blank(c.text(line, where, part["text"])) {
			c.add(line, "text", "%s: empty", where)
		}
	}
}

func (c *geminiCheck) content(line int, o object) geminiTurn {
	c.members(line, "line", o, []string{"role", "parts"}, nil)
	t := geminiTurn{line: line, role: c.text(line, "role", o["role"])}
	if t.role != "user" && t.role != "model" {
		c.add(line, "role", "%q", t.role)
	}
	parts := c.list(line, "parts", o["parts"])
	if len(parts) == 0 {
		c.add(line, "content", "no parts")
	}
	kind, thought := "", false
	for i, raw := range parts {
		where := fmt.Sprintf("parts[%d]", i)
		before := kind
		kind, thought = c.part(line, where, raw, &t)
		if kind == "functionResponse" && before != "" && before != kind {
			c.add(line, "responses first", "%s: behind %s", where, before)
		}
	}
	if thought {
		c.add(line, "thought", "the last part is a thought")
	}
	return t
}

// geminiKinds are the kinds of part, and who may say them.
var geminiKinds = map[string]string{
	"text": "user model", "inlineData": "user model", "fileData": "user model", "functionCall": "model",
	"functionResponse": "user", "executableCode": "model", "codeExecutionResult": "model user",
	"toolCall": "model", "toolResponse": "model",
}

var (
	geminiBeside = append([]string{"thought", "thoughtSignature"}, geminiAbout...)
	geminiAbout  = []string{
		"videoMetadata", "mediaResolution", "partMetadata", "audioMetadata", "documentMetadata", "spreadsheetMetadata", "speechMetadata",
	}
)

func (c *geminiCheck) part(line int, where string, raw json.RawMessage, t *geminiTurn) (kind string, thought bool) {
	o, _ := c.open(line, where, raw)
	kinds := 0
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if who, ok := geminiKinds[name]; ok {
			kinds++
			kind = name
			if !slices.Contains(strings.Fields(who), t.role) {
				c.add(line, "place", "%s: %s of the %s", where, name, t.role)
			}
		} else if !slices.Contains(geminiBeside, name) {
			c.add(line, "members", "%s: unknown %q", where, name)
		}
	}
	if kinds != 1 {
		c.add(line, "part", "%s: %d kinds of data", where, kinds)
		return kind, false
	}
	signature, signed := o["thoughtSignature"]
	if signed {
		c.signature(line, where, c.text(line, where, signature), t.role)
	}
	thought = c.flag(line, where, o["thought"])
	if thought && (t.role != "model" || kind != "text") {
		c.add(line, "thought", "%s: %s of the %s is a thought", where, kind, t.role)
	}
	switch kind {
	case "text":
		if blank(c.text(line, where, o["text"])) && !signed {
			c.add(line, "text", "%s: empty", where)
		}
	case "functionCall":
		if !signed && len(t.calls) == 0 {
			c.add(line, "signature", "%s: the first call has none", where)
		}
		c.call(line, where, o[kind], t)
	case "functionResponse":
		c.response(line, where, o[kind], t)
	case "executableCode":
		code := c.object(line, where, o[kind], []string{"language", "code"}, []string{"id"})
		c.choice(line, where+".language", code["language"], "PYTHON", "LANGUAGE_UNSPECIFIED")
		c.text(line, where+".code", code["code"])
	case "codeExecutionResult":
		result := c.object(line, where, o[kind], []string{"outcome"}, []string{"output", "id"})
		c.choice(line, where+".outcome", result["outcome"], "OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED", "OUTCOME_UNSPECIFIED")
		c.text(line, where+".output", result["output"])
	case "inlineData":
		media := c.object(line, where, o[kind], []string{"mimeType", "data"}, []string{"displayName"})
		c.mime(line, where, c.text(line, where, media["mimeType"]))
		c.base64(line, where, eitherAlphabet.Replace(c.text(line, where, media["data"])))
	case "toolCall":
		c.tool(line, where, o[kind], "args")
	case "toolResponse":
		c.tool(line, where, o[kind], "response")
	case "fileData":
		media := c.object(line, where, o[kind], []string{"fileUri"}, []string{"displayName", "mimeType"})
		if mime := media["mimeType"]; mime != nil {
			c.mime(line, where, c.text(line, where, mime))
		}
		if uri := c.text(line, where, media["fileUri"]); !isAddress(uri, "https", "gs") {
			c.add(line, "source", "%s: %.40q", where, uri)
		}
	}
	c.beside(line, where, o)
	return kind, thought
}

// beside holds what is next to the data of a part to being objects.
func (c *geminiCheck) beside(line int, where string, o object) {
	for _, name := range geminiAbout {
		if raw, ok := o[name]; ok {
			c.open(line, where+"."+name, raw)
		}
	}
}

// tool holds a call of a tool that the provider runs itself, or its response, to its form.
func (c *geminiCheck) tool(line int, where string, raw json.RawMessage, body string) {
	o := c.object(line, where, raw, []string{"toolType"}, []string{body, "id"})
	if blank(c.text(line, where, o["toolType"])) {
		c.add(line, "text", "%s: toolType is empty", where)
	}
	if o[body] != nil {
		c.open(line, where+"."+body, o[body])
	}
}

// eitherAlphabet makes base64 for URLs, which the API reads too, that of the standard alphabet.
var eitherAlphabet = strings.NewReplacer("-", "+", "_", "/")

func (c *geminiCheck) signature(line int, where, signature, role string) {
	plain := eitherAlphabet.Replace(signature)
	if padded := len(plain) % 4; padded != 0 && !strings.HasSuffix(plain, "=") {
		plain += strings.Repeat("=", 4-padded)
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(plain); err != nil || plain == "" {
		c.add(line, "signature", "%s: %.20q is no base64", where, signature)
	}
	if role != "model" {
		c.add(line, "signature", "%s: of the %s", where, role)
	}
}
