package program

import (
	"encoding/json"
	"strings"
)

// mostBuilt bounds the texts that a program builds, and mostNesting how deep its brackets are followed.
const (
	mostBuilt   = 4 << 20 // bytes
	mostNesting = 32
)

// ToolCall is a call of a tool in a program, with those of its arguments that are made of literals: an object,
// or one text.
type ToolCall struct {
	Tool    string
	Members map[string]any
	Text    string
}

// ToolCalls returns the tool calls of a JavaScript program, as Codex writes them: tools.NAME({...}) or
// tools.NAME("..."). printed is set if there is one call, and the program prints all that it returns and nothing
// else.
func ToolCalls(text string) (calls []ToolCall, printed bool) {
	p := newJSProgram(text)
	for p.at < len(p.tokens) {
		p.step()
	}
	return p.calls, len(p.calls) == 1 && p.prints == 1 && !p.edits
}

func newJSProgram(text string) jsProgram {
	return jsProgram{cursor: cursor{tokens: scanJavaScript(text)}, texts: map[string]value{}}
}

// jsProgram is what is known of a program up to a place in it.
type jsProgram struct {
	cursor
	texts  map[string]value // of variables
	calls  []ToolCall
	built  int // bytes
	prints int // of all that a tool said
	edits  bool
}

// value is a text, or a list of texts.
type value struct {
	text string
	list []string
}

// editing are words of programs that print something other than the whole output of a tool, or print it more
// than once.
var editing = map[string]bool{"for": true, "while": true, "map": true, "forEach": true, "filter": true, "slice": true, "split": true, "substring": true}

// step reads a statement, or a token of no interest.
func (p *jsProgram) step() {
	at := p.at
	p.at++
	if p.tokens[at].kind != word {
		return
	}
	switch name := p.tokens[at].text; {
	case name == "tools" && p.is(at+1, ".") && p.kind(at+2) == word && p.is(at+3, "("):
		p.at = at + 4
		p.call(p.tokens[at+2].text)
	case name == "text" && p.is(at+1, "(") && !p.is(at-1, "."):
		p.print(at)
	case editing[name]:
		p.edits = true
	case p.is(at-1, "."), p.is(at-1, "{"), p.is(at-1, ","):
		return // a member, not a variable
	case p.is(at+1, "=") && !p.is(at+2, "=") && !p.is(at+2, ">"):
		p.at = at + 2
		if v, ok := p.sum(0); ok {
			p.texts[name] = v
		} else {
			delete(p.texts, name)
		}
	case p.is(at+1, "+") && p.is(at+2, "="):
		p.at = at + 3
		was, known := p.texts[name]
		v, ok := p.sum(0)
		if ok = ok && known && was.list == nil && v.list == nil && p.build(len(was.text)+len(v.text)); ok {
			p.texts[name] = value{text: was.text + v.text}
		} else {
			delete(p.texts, name)
		}
	}
}

// print reads a call that prints. A second one under a condition is about a command that still runs, and does
// not count.
func (p *jsProgram) print(at int) {
	if p.is(at-1, ")") && p.prints > 0 {
		return
	}
	p.prints++
	whole := p.is(at+3, ")") || p.is(at+3, ".") && p.kind(at+4) == word && p.tokens[at+4].text == "output" && p.is(at+5, ")")
	json := p.kind(at+2) == word && p.tokens[at+2].text == "JSON" && p.is(at+5, "(") && (p.is(at+7, ")") || p.is(at+7, ","))
	call := p.kind(at+2) == word && p.tokens[at+2].text == "await"
	if !whole && !json && !call {
		p.edits = true
	}
}

// call reads a call of a tool; its first argument comes next.
func (p *jsProgram) call(tool string) {
	call := ToolCall{Tool: tool}
	if p.is(p.at, "{") {
		p.at++
		call.Members = map[string]any{}
		p.members(call.Members)
	} else if v, ok := p.sum(0); ok && v.list == nil && (p.is(p.at, ")") || p.is(p.at, ",")) {
		call.Text = v.text
	}
	p.calls = append(p.calls, call)
}

// members reads the members of an object that are literals, up to its end.
func (p *jsProgram) members(into map[string]any) {
	for p.at < len(p.tokens) && !p.is(p.at, "}") {
		name := p.tokens[p.at]
		p.at++
		if name.kind != word && name.kind != literal {
			p.skip()
			continue
		}
		v, ok := p.texts[name.text]
		if p.is(p.at, ":") {
			p.at++
			if raw, isPlain := p.plain(); isPlain {
				into[name.text] = raw
				p.skip()
				continue
			}
			v, ok = p.sum(0)
		}
		if ok = ok && (p.is(p.at, ",") || p.is(p.at, "}")); ok && v.list != nil {
			into[name.text] = v.list
		} else if ok {
			into[name.text] = v.text
		}
		p.skip()
	}
	p.at++
}

// plain returns a number, true or false.
func (p *jsProgram) plain() (any, bool) {
	if p.kind(p.at) != word {
		return nil, false
	}
	switch text := p.tokens[p.at].text; {
	case text == "true" || text == "false":
		return text == "true", true
	case json.Valid([]byte(text)) && text != "null":
		return json.Number(text), true
	}
	return nil, false
}

// skip skips what comes up to and with the next comma, or up to the end of the list or object.
func (p *jsProgram) skip() {
	for depth := 0; p.at < len(p.tokens); p.at++ {
		if p.tokens[p.at].kind != punctuation {
			continue
		}
		switch p.tokens[p.at].text {
		case ",":
			if depth == 0 {
				p.at++
				return
			}
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth < 0 {
				return
			}
		}
	}
}

// build reports whether the program may build this many bytes more.
func (p *jsProgram) build(bytes int) bool {
	p.built += bytes
	return p.built <= mostBuilt
}

// sum returns the value of the expression that comes next: products joined by +. It stops at what it does not
// know.
func (p *jsProgram) sum(depth int) (value, bool) {
	v, ok := p.product(depth)
	if !ok || !p.is(p.at, "+") {
		return v, ok
	}
	parts := []string{v.text}
	for size := len(v.text); p.is(p.at, "+"); {
		p.at++
		next, ok := p.product(depth)
		if size += len(next.text); !ok || v.list != nil || next.list != nil || !p.build(len(next.text)) || size > mostBuilt {
			return value{}, false
		}
		parts = append(parts, next.text)
	}
	return value{text: strings.Join(parts, "")}, true
}

// product returns a literal, a variable, a list or a value in brackets, after the methods called on it.
func (p *jsProgram) product(depth int) (value, bool) {
	var v value
	switch t := p.token(); {
	case depth > mostNesting:
		return v, false
	case t.kind == literal:
		v.text = t.text
		p.at++
	case t.kind == word && t.text == "String" && p.is(p.at+1, ".") && p.kind(p.at+3) == literal:
		v.text = p.tokens[p.at+3].text // String.raw`...`
		p.at += 4
	case t.kind == word:
		known, ok := p.texts[t.text]
		if !ok {
			return v, false
		}
		v = known
		p.at++
	case p.is(p.at, "("):
		p.at++
		inner, ok := p.sum(depth + 1)
		if !ok || !p.is(p.at, ")") {
			return v, false
		}
		v = inner
		p.at++
	case p.is(p.at, "["):
		p.at++
		v.list = []string{}
		for !p.is(p.at, "]") {
			item, ok := p.sum(depth + 1)
			if !ok || item.list != nil || !p.is(p.at, ",") && !p.is(p.at, "]") {
				return v, false
			}
			v.list = append(v.list, item.text)
			if p.is(p.at, ",") {
				p.at++
			}
		}
		p.at++
	default:
		return v, false
	}
	for p.is(p.at, ".") {
		method, ok := p.method(v, depth)
		if !ok {
			return v, false
		}
		v = method
	}
	return v, true
}

func (p *jsProgram) token() token {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return token{}
}

// method returns the value of a method call.
func (p *jsProgram) method(v value, depth int) (value, bool) {
	if p.kind(p.at+1) != word || !p.is(p.at+2, "(") {
		return v, false
	}
	name := p.tokens[p.at+1].text
	p.at += 3
	var given []string
	for !p.is(p.at, ")") {
		item, ok := p.sum(depth + 1)
		if !ok || item.list != nil {
			return v, false
		}
		given = append(given, item.text)
		if p.is(p.at, ",") {
			p.at++
		} else if !p.is(p.at, ")") {
			return v, false
		}
	}
	p.at++
	switch {
	case name == "join" && v.list != nil && len(given) == 1:
		size := len(given[0]) * len(v.list)
		for _, text := range v.list {
			size += len(text)
		}
		return value{text: strings.Join(v.list, given[0])}, size <= mostBuilt && p.build(size)
	case name == "trim" && v.list == nil && len(given) == 0:
		return value{text: strings.TrimSpace(v.text)}, p.build(len(v.text))
	case (name == "replace" || name == "replaceAll") && v.list == nil && len(given) == 2 && given[0] != "" && !strings.Contains(given[1], "$"):
		most := 1
		if name == "replaceAll" {
			most = strings.Count(v.text, given[0])
		}
		size := len(v.text) + most*len(given[1])
		if size > mostBuilt || !p.build(size) {
			return v, false
		}
		return value{text: strings.Replace(v.text, given[0], given[1], most)}, true
	}
	return v, false
}
