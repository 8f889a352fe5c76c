package program

import (
	"regexp"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// pyInteger matches a number, such as how many places are replaced.
var pyInteger = regexp.MustCompile(`^\d+$`)

// sum returns the value of the expression that comes next: products joined by +. It stops at what it does not
// know, and never inside brackets.
func (p *pyProgram) sum(depth int) (pyValue, bool) {
	v, ok := p.product(depth)
	if !ok || !p.is(p.at, "+") {
		return v, ok
	}
	parts := []string{v.text}
	for p.is(p.at, "+") {
		p.at++
		next, known := p.product(depth)
		if !known || v.kind != pyText || next.kind != pyText {
			return pyValue{}, false
		}
		parts = append(parts, next.text)
	}
	text, ok := p.join(parts)
	return pyValue{kind: pyText, text: text}, ok
}

// join joins parts of a text; false if the program has built too much.
func (p *pyProgram) join(parts []string) (string, bool) {
	for _, part := range parts {
		p.built += len(part)
	}
	if p.built > mostBuilt {
		return "", false
	}
	return strings.Join(parts, ""), true
}

// product returns a literal, a variable, a file or a value in brackets, after the methods called on it.
func (p *pyProgram) product(depth int) (pyValue, bool) {
	if depth > mostNesting || p.at >= len(p.tokens) {
		return pyValue{}, false
	}
	v, ok := p.first(depth)
	for ok {
		switch {
		case p.is(p.at, ".") && p.kind(p.at+1) == word && p.is(p.at+2, "("):
			v, ok = p.method(v, depth)
		case p.is(p.at, ".") && p.kind(p.at+1) == word:
			return v, false
		case p.is(p.at, "/") && v.kind == pyFile && p.kind(p.at+1) == literal:
			v.text, ok = p.join([]string{strings.TrimSuffix(v.text, "/"), "/", p.tokens[p.at+1].text})
			p.at += 2
		default:
			return v, true
		}
	}
	return v, false
}

// first returns the value that methods are called on.
func (p *pyProgram) first(depth int) (pyValue, bool) {
	t := p.tokens[p.at]
	if t.kind == word && (t.text == "pathlib" || t.text == "io" || t.text == "codecs") && p.is(p.at+1, ".") && p.kind(p.at+2) == word {
		p.at += 2
		t = p.tokens[p.at]
	}
	switch {
	case t.kind == literal:
		var parts []string
		for ; p.kind(p.at) == literal; p.at++ {
			parts = append(parts, p.tokens[p.at].text)
		}
		text, ok := p.join(parts)
		return pyValue{kind: pyText, text: text}, ok
	case p.is(p.at, "("):
		p.at++
		given := p.arguments(depth)
		v := given.at(0, "")
		return v, len(given) == 1 && v.kind != 0
	case t.kind != word:
		return pyValue{}, false
	case t.text == "Path" && p.is(p.at+1, "("):
		p.at += 2
		given := p.arguments(depth)
		path := given.at(0, "").text
		if len(given) != 1 || path == "" {
			return pyValue{}, false
		}
		p.folders = append(p.folders, path)
		return pyValue{kind: pyFile, text: path}, true
	case t.text == "open" && p.is(p.at+1, "("):
		p.at += 2
		given := p.arguments(depth)
		return p.open(given.at(0, "file"), given.mode(1), given.plain(3))
	case pyInteger.MatchString(t.text):
		p.at++
		return pyValue{kind: pyNumber, text: t.text}, true
	}
	v, ok := p.known[t.text]
	if ok {
		p.at++
	}
	return v, ok
}

// pyArguments are the arguments of a call; unknown ones have the kind 0.
type pyArguments []pyArgument

type pyArgument struct {
	name  string
	value pyValue
}

// at returns the argument at an index, or with a name.
func (a pyArguments) at(i int, name string) pyValue {
	if n := slices.IndexFunc(a, func(g pyArgument) bool { return name != "" && g.name == name }); n >= 0 {
		return a[n].value
	}
	if i < len(a) && a[i].name == "" {
		return a[i].value
	}
	return pyValue{}
}

// has reports whether there is an argument at an index, or with a name.
func (a pyArguments) has(i int, name string) bool {
	return i < len(a) && a[i].name == "" || slices.ContainsFunc(a, func(g pyArgument) bool { return g.name == name })
}

// plain reports whether a file is read or written as UTF-8.
func (a pyArguments) plain(i int) bool {
	encoding := strings.ToLower(a.at(i, "encoding").text)
	return !a.has(i, "encoding") || encoding == "utf-8" || encoding == "utf8"
}

// mode returns the mode in which a file is opened; an unknown one may write.
func (a pyArguments) mode(i int) string {
	switch mode := a.at(i, "mode"); {
	case !a.has(i, "mode"):
		return "r"
	case mode.kind == pyText:
		return mode.text
	}
	return "+"
}

// arguments reads the arguments up to the closing bracket.
func (p *pyProgram) arguments(depth int) pyArguments {
	var out pyArguments
	for p.at < len(p.tokens) && p.kind(p.at) != lineBreak {
		if p.is(p.at, ")") {
			p.at++
			break
		}
		var given pyArgument
		if p.kind(p.at) == word && p.is(p.at+1, "=") && !p.is(p.at+2, "=") {
			given.name = p.tokens[p.at].text
			p.at += 2
		}
		value, ok := p.sum(depth + 1)
		if ok && (p.is(p.at, ",") || p.is(p.at, ")")) {
			given.value = value
		}
		p.use(value) // by what it is given to
		p.rest(depth)
		if p.is(p.at, ",") {
			p.at++
		}
		out = append(out, given)
	}
	return out
}

// rest skips to the comma or bracket after an argument.
func (p *pyProgram) rest(depth int) {
	for level := 0; p.at < len(p.tokens) && p.kind(p.at) != lineBreak; {
		t := p.tokens[p.at]
		switch {
		case t.kind != punctuation:
			p.step(depth + 1)
			continue
		case level == 0 && (t.text == "," || t.text == ")"):
			return
		case t.text == ":" && p.is(p.at+1, "=") && p.kind(p.at-1) == word:
			delete(p.known, p.tokens[p.at-1].text)
		case t.text == "(" || t.text == "[" || t.text == "{":
			level++
		case t.text == ")" || t.text == "]" || t.text == "}":
			level = max(level-1, 0)
		}
		p.at++
	}
}

// open returns the handle of a file that is opened. What is written in another encoding than UTF-8 is unknown.
func (p *pyProgram) open(file pyValue, mode string, plain bool) (pyValue, bool) {
	writes := strings.ContainsAny(mode, "wax+")
	if file.kind != pyText && file.kind != pyFile || file.text == "" {
		p.unclear = p.unclear || writes
		return pyValue{}, false
	}
	p.handles++
	v := pyValue{kind: pyHandle, text: file.text, mode: mode, handle: p.handles, effect: len(p.effects), after: p.written[file.text]}
	if writes {
		p.written[file.text]++ // it is empty from now on
		p.effects = append(p.effects, pyEffect{path: file.text, begun: !plain})
	}
	p.used[v.handle] = !plain
	return v, true
}

// method returns the value of a method call.
func (p *pyProgram) method(v pyValue, depth int) (pyValue, bool) {
	name := p.tokens[p.at+1].text
	p.at += 3
	given := p.arguments(depth)
	switch v.kind {
	case pyFile:
		switch name {
		case "read_text", "read_bytes":
			return pyValue{kind: pyContent, text: v.text, after: p.written[v.text]}, given.plain(0)
		case "open":
			return p.open(v, given.mode(0), given.plain(2))
		case "write_text", "write_bytes":
			handle, _ := p.open(v, "w", given.plain(1))
			p.write(handle, given.at(0, "data"))
		case "unlink", "rename", "replace":
			p.effects = append(p.effects, pyEffect{path: v.text})
			if to := given.at(0, "target"); to.kind == pyText || to.kind == pyFile {
				p.effects = append(p.effects, pyEffect{path: to.text})
			}
		}
	case pyHandle:
		switch {
		case name == "close" || name == "flush" || name == "fileno":
		case name == "write":
			p.write(v, given.at(0, ""))
		case name == "read" && !v.writes() && len(given) == 0 && !p.used[v.handle]:
			p.used[v.handle] = true
			return pyValue{kind: pyContent, text: v.text, after: p.written[v.text]}, true
		default:
			p.use(v)
		}
	case pyContent:
		if name == "replace" {
			return p.replace(v, given)
		}
	}
	return pyValue{}, false
}

// use records that something unknown is done with a value. An open file may be written by it.
func (p *pyProgram) use(v pyValue) {
	if v.kind == pyHandle {
		p.used[v.handle] = true
		p.write(v, pyValue{})
	}
}

// writes reports whether a handle may write.
func (v *pyValue) writes() bool { return strings.ContainsAny(v.mode, "wax+") }

// write records that a value is written to a file: its own edited content, or something unknown.
func (p *pyProgram) write(to, v pyValue) {
	if !to.writes() {
		return
	}
	effect := &p.effects[to.effect]
	effect.edits = nil
	effect.known = p.certain && !effect.begun && v.kind == pyContent && v.text == to.text && v.after == to.after && strings.HasPrefix(to.mode, "w") && !strings.Contains(to.mode, "+")
	effect.begun = true
	p.written[to.text]++
	if effect.known {
		for e := v.edits; e != nil; e = e.before {
			effect.edits = append(effect.edits, e.op)
		}
		slices.Reverse(effect.edits)
	}
}

// replace records an edit of a file's content: of all places of a text, or of the first.
func (p *pyProgram) replace(v pyValue, given pyArguments) (pyValue, bool) {
	from, to, most := given.at(0, ""), given.at(1, ""), given.at(2, "count")
	if from.kind != pyText || to.kind != pyText || len(given) > 2 && (most.kind != pyNumber || most.text != "1") {
		return pyValue{}, false
	}
	op, ok := fileop.Substitution(v.text, from.text, to.text)
	op.All = len(given) == 2
	v.edits = &pyEdit{op, v.edits}
	return v, ok
}
