package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	eventlog "github.com/contextd/contextd/internal/log"
)

// responsesTurn makes items of what a model said.
type responsesTurn struct {
	message Message
	// maker is the model that wrote it, as far as it is known.
	maker string
	// loose is set if some reasoning of the message is not carried with its id. Then no item has an id: the provider
	// would look for the missing reasoning by it.
	loose bool

	out []Fragment
	// made are the blocks that the items were made of.
	made []int
	// waiting are reasoning items, which may only come in front of the item to which they led.
	waiting []outputItem
	// noted are conversions of blocks that are no item.
	noted  []Conversion
	beside beside
}

func responsesPhase(raw string) bool { return raw == `"commentary"` || raw == `"final_answer"` }

func responsesNamespace(raw string) bool { return !hollow(textIn([]byte(raw))) }

func (t *responsesTurn) fragments() []Fragment {
	if t.message.ReturnReasoning {
		t.waiting = append(t.waiting, returnedItem(&t.message))
	}
	for i, block := range t.message.Blocks {
		if t.beside.hold(i, block, t.note) {
			continue
		}
		switch b := block.(type) {
		case eventlog.Text:
			t.text(i, b.Text)
		case eventlog.Thinking:
			t.reasoning(i, b)
		case eventlog.ToolCall:
			t.call(i, b)
		case eventlog.Media:
			t.describe(i, describeMedia(b))
		case eventlog.ProviderBlock:
			t.native(i, b)
		default:
			t.note(i, LeftOut, "tool result of the assistant")
		}
	}
	t.beside.leave(t.note)
	for _, r := range t.waiting {
		if r.block >= 0 {
			t.note(r.block, LeftOut, "reasoning that nothing follows")
		}
	}
	if len(t.out) == 0 {
		return nothing(t.message, t.noted)
	}
	last := &t.out[len(t.out)-1]
	last.Conversions = append(last.Conversions, t.noted...)
	return divided(t.message, t.out, t.items())
}

// items assigns each block to an item. A block without one goes with the next item, or, at the end, with the last,
// where its conversion is reported.
func (t *responsesTurn) items() []int {
	of := make([]int, len(t.message.Blocks))
	item := 0
	if t.message.ReturnReasoning {
		item = 1 // the first is the reasoning
	}
	for i := range of {
		if isReturned(&t.message, t.message.Blocks[i]) {
			continue
		}
		of[i] = item
		if t.made[item] == i && item+1 < len(t.made) {
			item++
		}
	}
	return of
}

func (t *responsesTurn) note(i int, kind ConversionKind, what string) {
	t.noted = append(t.noted, t.message.conversion(i, kind, what))
}

// emit appends the item of block i, after the reasoning that led to it.
func (t *responsesTurn) emit(i int, json []byte) {
	for _, r := range t.waiting {
		t.out = append(t.out, Fragment{Message: t.message, Speaker: "assistant", JSON: r.json, ID: r.id})
		t.made = append(t.made, r.block)
	}
	t.waiting = nil
	t.out = append(t.out, Fragment{Message: t.message, Speaker: "assistant", JSON: json, Conversions: t.noted})
	t.made = append(t.made, i)
	t.noted = nil
}

// emitNamed appends the item of block i that has an id.
func (t *responsesTurn) emitNamed(i int, id string, json []byte, kind string) {
	t.emit(i, json)
	last := &t.out[len(t.out)-1]
	last.ID, last.Elsewhere = id, saidItem(description(kind, t.message.place(i), t.message.Recall), &beside{})
}

// outputItem is an item's JSON and the block of the message that it was made of, or -1.
type outputItem struct {
	json  []byte
	id    string
	block int
}

// text appends a message of the model. Its content is a string, which needs no id.
func (t *responsesTurn) text(i int, text string) {
	if hollow(text) {
		if text != "" {
			t.note(i, LeftOut, "whitespace")
		}
		return
	}
	t.emit(i, saidItem(text, &t.beside))
}

// saidItem is a message of the model by its text, with what belongs to it.
func saidItem(text string, with *beside) []byte {
	const head = `{"type":"message","role":"assistant"`
	o := object{dst: append(make([]byte, 0, len(head)+len(text)+len(text)/16+16), head...), members: 2}
	with.take(&o, providerOpenAI, "phase", responsesPhase)
	o.always("content", text)
	return append(o.dst, '}')
}

func (t *responsesTurn) describe(i int, what string) {
	t.note(i, Described, what)
	t.text(i, description(what, t.message.place(i), t.message.Recall))
}

// reasoning keeps an item of reasoning that OpenAI sealed for what follows it.
func (t *responsesTurn) reasoning(i int, b eventlog.Thinking) {
	if isReturned(&t.message, b) {
		return
	}
	json, id, ok := reasoningItem(t.maker, b)
	ok = ok && !t.message.ReturnReasoning
	if !ok {
		t.note(i, LeftOut, reasoningOf(b, t.maker))
		return
	}
	t.waiting = append(t.waiting, outputItem{json, id, i})
}

// call appends a call. Its arguments are the string that the model wrote.
func (t *responsesTurn) call(i int, b eventlog.ToolCall) {
	p := &openAIParts{message: &t.message}
	id, name := openAICall(p, i, b)
	arguments := p.arguments(i, b.Arguments)
	t.noted = append(t.noted, p.conversions...)
	o := object{dst: []byte{'{'}}
	o.always("type", "function_call")
	o.always("call_id", id)
	t.beside.take(&o, providerOpenAI, "namespace", responsesNamespace)
	o.always("name", name)
	o.always("arguments", arguments)
	t.emit(i, append(o.dst, '}'))
}

// madeUpID is an id for an item that has to have one and came without.
func madeUpID(prefix string, m *Message, i int, json string) string {
	at := m.place(i)
	sum := sha256.Sum256([]byte(strconv.FormatUint(uint64(at.Seq), 10) + "." + strconv.Itoa(at.Block) + "\x00" + json))
	return prefix + hex.EncodeToString(sum[:])[:mappedDigits]
}
