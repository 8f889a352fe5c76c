package render

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// providerOpenAI names OpenAI in blocks that are carried as they came.
const providerOpenAI = "openai"

// openAIFraming is that of both APIs. The formula for functions is
// OpenAI's own, from "How to count tokens with tiktoken" in its cookbook.
var openAIFraming = budget.Framing{
	Call: 13, Result: 13, EstimatedCall: budget.EstimatedCallOverhead, EstimatedResult: 15, Functions: true,
}

// longestOpenAIName is the longest name of a function that OpenAI takes.
const longestOpenAIName = 64

// openAIParts gathers the parts of one content.
type openAIParts struct {
	message *Message
	// text and image are the kinds of parts that the API has for them.
	text string
	// media appends a part for a block, or reports that the API has none.
	media func(dst []byte, b eventlog.Media) ([]byte, bool)
	// native appends a provider block unchanged, or reports that it is not allowed here.
	native func(dst []byte, json string) ([]byte, bool)

	dst   []byte
	count int
	// only is the text, where all there is is one text.
	only        string
	conversions []Conversion
}

// note records a conversion of block i of the message.
func (p *openAIParts) note(i int, kind ConversionKind, what string) {
	p.conversions = append(p.conversions, p.message.conversion(i, kind, what))
}

func (m *Message) conversion(i int, kind ConversionKind, what string) Conversion {
	at := m.place(i)
	return Conversion{Seq: at.Seq, Block: at.Block, Kind: kind, What: what}
}

// add appends a part that is of block i of the message.
func (p *openAIParts) add(i int, block eventlog.Block) {
	switch b := block.(type) {
	case eventlog.Text:
		p.say(i, b.Text)
	case eventlog.Media:
		p.show(i, b)
	case eventlog.ProviderBlock:
		if b.Provider == providerOpenAI && p.native != nil {
			if dst, ok := p.native(p.next(), b.JSON); ok {
				p.took(dst, "")
				return
			}
		}
		p.others(i, b)
	}
}

// others appends what a block says that the API does not take as it is.
func (p *openAIParts) others(i int, b eventlog.ProviderBlock) {
	kind := nativeKind(b)
	switch text, ok := saidText(b); {
	case ok:
		p.note(i, LeftOut, "citations")
		p.say(i, text)
	case kind == thoughtSignature:
		p.note(i, LeftOut, "reasoning of gemini")
	default:
		p.describe(i, kind)
	}
}

// thoughtSignature names the block that seals what follows it for Gemini.
const thoughtSignature = "thoughtSignature"

// saidText is the text of a provider's block that is text with something more, such as
// citations.
func saidText(b eventlog.ProviderBlock) (string, bool) {
	var said struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if !eventlog.IsJSON(b.JSON) || json.Unmarshal([]byte(b.JSON), &said) != nil {
		return "", false
	}
	return said.Text, (said.Type == "text" || said.Type == "output_text") && !hollow(said.Text)
}

// say appends a text, unless it is blank.
func (p *openAIParts) say(i int, text string) {
	if hollow(text) {
		if text != "" {
			p.note(i, LeftOut, "whitespace")
		}
		return
	}
	o := object{dst: append(p.next(), '{')}
	o.always("type", p.text)
	o.always("text", text)
	p.took(append(o.dst, '}'), text)
}

// show appends a medium, or what it is.
func (p *openAIParts) show(i int, b eventlog.Media) {
	if p.media != nil {
		if dst, ok := p.media(p.next(), b); ok {
			p.took(dst, "")
			return
		}
	}
	if strings.HasPrefix(b.MIMEType, "text/") && utf8.ValidString(b.Data) && !hollow(b.Data) {
		p.note(i, Wrapped, describeMedia(b))
		p.say(i, b.Data)
		return
	}
	p.describe(i, describeMedia(b))
}

// describe appends a text that says what block i was.
func (p *openAIParts) describe(i int, what string) {
	p.note(i, Described, what)
	p.say(i, description(what, p.message.place(i), p.message.Recall))
}

// next is where the next part is appended to.
func (p *openAIParts) next() []byte {
	if p.count > 0 {
		return append(p.dst, ',')
	}
	return p.dst
}

func (p *openAIParts) took(dst []byte, text string) {
	p.dst, p.only = dst, text
	if p.count++; p.count > 1 {
		p.only = ""
	}
}

// content appends the parts as a content: one text as the string it is, anything else
// as a list.
func (p *openAIParts) content(dst []byte) []byte {
	if p.count == 0 || p.only != "" {
		return appendString(dst, p.only)
	}
	return append(append(append(dst, '['), p.dst...), ']')
}

// openAIImages are the images that both APIs take.
var openAIImages = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// openAIImage appends the URL of an image that OpenAI takes: that of its bytes, or its
// own. An address without a type is taken to be an image's, as in OpenAI's own parts it has
// none.
func openAIImage(dst []byte, b eventlog.Media) ([]byte, bool) {
	switch kind := mediaType(b); {
	case b.Data != "" && openAIImages[kind]:
		return appendDataURL(dst, kind, b.Data), true
	case b.Data == "" && (kind == "" || openAIImages[kind]) && onTheWeb(b.URI):
		return appendString(dst, b.URI), true
	}
	return dst, false
}

func onTheWeb(uri string) bool { return addressed(uri, "https", "http") }

// appendDataURL appends a JSON string that holds the data.
func appendDataURL(dst []byte, mime, data string) []byte {
	dst = append(append(append(dst, `"data:`...), mime...), `;base64,`...)
	return append(base64.StdEncoding.AppendEncode(dst, []byte(data)), '"')
}

// openAISystem reports how many of the fragments are the system prompt: the leading
// system messages that are there for good.
func openAISystem(fragments []Fragment) int {
	n := 0
	for n < len(fragments) && fragments[n].Role == eventlog.RoleSystem && !fragments[n].passing() {
		n++
	}
	return n
}
