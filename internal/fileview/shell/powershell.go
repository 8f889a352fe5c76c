package shell

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// cmdlets are texts of which every PowerShell script that works on files has at least one.
var cmdlets = []string{"-Content", "-content", "Out-File", "out-file", "-Item", "Select-String", "WriteAllText"}

// forPowerShell reports whether a script is for PowerShell, by the name of its tool or by its commands.
func forPowerShell(tool, script string) bool {
	name := strings.ToLower(tool)
	if strings.Contains(name, "powershell") || strings.Contains(name, "pwsh") {
		return true
	}
	return !strings.Contains(script, "<<") && slices.ContainsFunc(cmdlets, func(w string) bool { return strings.Contains(script, w) })
}

// powerShell returns what a PowerShell script does to files.
func powerShell(script, dir string) []fileop.Operation {
	s := shell{inOrder: true, dir: dir}
	s.powerShell(script, map[string]string{}, true)
	return s.operations()
}

// powerShell reads a script. It may contain another script, which must not contain a further one.
func (s *shell) powerShell(script string, texts map[string]string, outer bool) {
	scanner := psScanner{text: script}
	scanner.scan()
	s.inOrder = s.inOrder && !scanner.branches
	for _, p := range scanner.out {
		if p.assigns != "" {
			delete(texts, p.assigns)
			if len(p.commands) == 1 && len(p.commands[0]) == 1 {
				if text, ok := psValue(p.commands[0][0], texts); ok {
					texts[p.assigns] = text
				}
			}
			if len(p.commands) == 0 || len(p.commands[0]) == 1 {
				continue
			}
		}
		at := statement{hidden: p.assigns != "", silent: p.assigns != ""}
		for i, words := range p.commands {
			at.piped = i > 0
			if i == 0 && len(words) == 1 && (words[0].kind == psText || words[0].kind == psVariable) {
				text, _ := psValue(words[0], texts)
				at.input = text
				shown := ""
				if len(text) > 0 {
					shown = text + "\n"
				}
				s.show(fileop.Operation{Kind: fileop.Print, New: shown}, at)
				continue
			}
			c := psCall{words: words, at: at, texts: texts}
			c.parse()
			s.cmdlet(&c, outer)
			at.input = ""
		}
	}
}

// psValue returns the text of a word.
func psValue(w psWord, texts map[string]string) (string, bool) {
	switch w.kind {
	case psText:
		return w.text, true
	case psVariable:
		text, ok := texts[w.text]
		return text, ok
	}
	return "", false
}

// psCall is a command with its arguments.
type psCall struct {
	words []psWord
	at    statement
	texts map[string]string
	name  string
	// flags maps flags to their values; switches have none.
	flags    map[string]psWord
	switches map[string]bool
	operands []psWord
}

// psSwitches are the flags without a value, without their first character.
var psSwitches = map[string]bool{"raw": true, "force": true, "nonewline": true, "append": true, "recurse": true, "noclobber": true, "passthru": true, "wait": true, "allmatches": true, "simplematch": true, "casesensitive": true, "noprofile": true, "nologo": true, "noninteractive": true}

// psNames are other names of commands.
var psNames = map[string]string{
	"gc": "get-content", "cat": "get-content", "type": "get-content", "sc": "set-content", "ac": "add-content",
	"ri": "remove-item", "rm": "remove-item", "del": "remove-item", "erase": "remove-item", "mi": "move-item", "mv": "move-item", "move": "move-item",
	"ci": "copy-item", "cpi": "copy-item", "cp": "copy-item", "copy": "copy-item", "ren": "rename-item", "sls": "select-string", "select": "select-object",
	"%": "foreach-object", "sl": "set-location", "echo": "write-output", "write-host": "write-output", "cd": "set-location",
}

func (c *psCall) parse() {
	c.flags, c.switches = map[string]psWord{}, map[string]bool{}
	if c.words[0].kind == psBare {
		c.name = strings.ToLower(c.words[0].text)
		if name, ok := psNames[c.name]; ok {
			c.name = name
		}
	}
	for i := 1; i < len(c.words); i++ {
		w := c.words[i]
		flag, ok := strings.CutPrefix(w.text, "-")
		flag = strings.ToLower(flag)
		switch {
		case w.kind == psBare && strings.HasPrefix(w.text, ">"):
			c.redirect(i)
			return
		case w.kind == psBare && (strings.HasPrefix(w.text, "2>") || strings.HasPrefix(w.text, "*>")):
			if w.text == "2>" {
				i++
			}
		case w.kind != psBare || !ok:
			c.operands = append(c.operands, w)
		case psSwitches[flag], i+1 == len(c.words), c.words[i+1].kind == psBare && len(c.words[i+1].text) > 1 && c.words[i+1].text[0] == '-':
			c.switches[flag] = true
		default:
			i++
			c.flags[flag] = c.words[i]
		}
	}
}

// redirect reads the file that the output goes to.
func (c *psCall) redirect(i int) {
	name := strings.TrimLeft(c.words[i].text, ">")
	if name == "" && i+1 < len(c.words) {
		name = c.path(c.words[i+1])
	}
	c.at.hidden, c.at.silent = true, true
	c.at.output = name
}

// value returns the value of the first of these flags, or of an operand.
func (c *psCall) value(operand int, flags ...string) (string, bool) {
	for _, flag := range flags {
		if w, ok := c.flags[flag]; ok {
			if w.kind == psBare {
				return w.text, true
			}
			return psValue(w, c.texts)
		}
	}
	if operand < 0 || operand >= len(c.operands) {
		return "", false
	}
	if w := c.operands[operand]; w.kind != psBare {
		return psValue(w, c.texts)
	}
	return c.operands[operand].text, true
}

// path returns the one file that a word names; empty if that is not certain.
func (c *psCall) path(w psWord) string {
	text, ok := w.text, w.kind == psBare
	if !ok {
		text, ok = psValue(w, c.texts)
	}
	if !ok || strings.ContainsAny(text, "*?[,\n") {
		return ""
	}
	return text
}

// file returns the file that a command works on.
func (c *psCall) file(operand int, flags ...string) string {
	text, ok := c.value(operand, flags...)
	if !ok {
		return ""
	}
	return c.path(psWord{text, psText})
}

func (c *psCall) number(flags ...string) int {
	text, _ := c.value(-1, flags...)
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// numbering matches how a script puts numbers before lines.
var numbering = regexp.MustCompile(`\{0(?:,-?\d+)?(?::[dD]\d+)?\}(?:: ?| ?\| ?|\t|` + "`t" + `).*-f`)

// cmdlet reads a command.
func (s *shell) cmdlet(c *psCall, outer bool) {
	unknown := fileop.Operation{Kind: fileop.Print}
	if c.at.output != "" {
		s.changed(fileop.Operation{Kind: fileop.Change, Path: c.at.output})
	}
	switch c.name {
	case "set-location", "out-null", "push-location", "pop-location":
		if c.name == "out-null" {
			s.show(fileop.Operation{}, statement{piped: c.at.piped})
		}
	case "get-content":
		op := fileop.Operation{Kind: fileop.Read, Path: c.file(0, "path", "literalpath", "filepath"), From: 1, Lines: c.number("totalcount", "first", "head")}
		op.All = op.Lines == 0
		if c.number("tail", "last") > 0 {
			op.From, op.All = 0, false
		}
		if op.Path == "" || len(c.operands) > 1 {
			op = unknown
		}
		s.show(op, c.at)
	case "select-object":
		op := fileop.Operation{Kind: fileop.Read, From: 1 + c.number("skip"), Lines: c.number("first")}
		if c.number("last") > 0 {
			op.From = 0
		}
		if len(c.operands) > 0 || op.Lines == 0 && op.From == 1 {
			op = unknown
		}
		s.show(op, c.at)
	case "foreach-object":
		op := unknown
		if len(c.operands) == 1 && c.operands[0].kind == psGroup && numbering.MatchString(c.operands[0].text) && strings.Contains(c.operands[0].text, "$_") {
			op = fileop.Operation{Kind: fileop.Read, From: 1, All: true}
		}
		s.show(op, c.at)
	case "select-string":
		op := unknown
		if !c.at.piped {
			op = fileop.Operation{Kind: fileop.Search}
		}
		s.show(op, c.at)
	case "set-content", "out-file", "add-content", "new-item":
		s.changed(c.written())
		s.show(fileop.Operation{}, c.at)
	case "remove-item":
		s.changed(fileop.Operation{Kind: fileop.Remove, Path: c.file(0, "path", "literalpath"), All: c.switches["recurse"]})
	case "move-item", "copy-item", "rename-item":
		s.relocate(c)
	case "write-output":
		text, ok := c.value(0, "object", "message")
		if ok && len(c.operands) < 2 {
			s.show(fileop.Operation{Kind: fileop.Print, New: text + "\n"}, c.at)
		} else {
			s.show(unknown, c.at)
		}
	case "powershell", "pwsh", "powershell.exe", "pwsh.exe":
		script, ok := c.value(len(c.operands)-1, "command", "c")
		switch {
		case !outer || !ok && !c.switches["command"]:
			s.show(unknown, c.at)
		case c.at.input != "" && (script == "-" || c.switches["command"]):
			s.show(fileop.Operation{}, c.at)
			s.powerShell(c.at.input, map[string]string{}, false)
		default:
			s.powerShell(script, map[string]string{}, false)
		}
	default:
		s.other(c)
	}
}

// written returns what a command does that writes a file.
func (c *psCall) written() fileop.Operation {
	op := fileop.Operation{Kind: fileop.Change, Path: c.file(0, "filepath", "path", "literalpath")}
	text, ok := c.value(1, "value", "inputobject")
	if c.at.piped {
		text, ok = c.at.input, c.at.input != ""
	}
	if !ok && c.name == "new-item" {
		return fileop.Operation{}
	}
	if ok {
		op.Kind, op.New = fileop.Write, text
		if !c.switches["nonewline"] && c.name != "new-item" {
			op.New += "\n"
		}
		if c.name == "add-content" || c.switches["append"] {
			op.Kind = fileop.Append
		}
	}
	return op
}

// relocate reads a command that moves or copies a file.
func (s *shell) relocate(c *psCall) {
	from, to := c.file(0, "path", "literalpath"), c.file(1, "destination", "newname")
	if from == "" || to == "" {
		return
	}
	kind := fileop.Move
	if c.name == "copy-item" {
		kind = fileop.Copy
	}
	from, to = fileop.Slashed(from), fileop.Slashed(to)
	if at := strings.LastIndexByte(from, '/'); c.name == "rename-item" && at >= 0 {
		to = from[:at+1] + to
	}
	s.changed(moved([]string{"mv", from, to}, kind)...)
}

// other reads a command that is not a cmdlet: a program, or a method.
func (s *shell) other(c *psCall) {
	if w := c.words; len(w) == 3 && w[1].kind == psBare && strings.HasPrefix(w[1].text, "::") && w[2].kind == psGroup {
		s.method(strings.ToLower(w[1].text), c)
		return
	}
	var words []string
	for i, w := range c.words {
		if w.kind != psBare && (w.kind != psText || i == 0) { // a text that is first has operators after it
			s.show(fileop.Operation{Kind: fileop.Print}, c.at)
			return
		}
		words = append(words, w.text)
	}
	s.call(words, c.at)
}

// method reads a call of [System.IO.File]::WriteAllText(path, text) or of a similar method.
func (s *shell) method(name string, c *psCall) {
	group := c.words[2].text
	arguments := psScanner{text: group[1 : len(group)-1], lists: true}
	arguments.scan()
	if len(arguments.out) != 1 || len(arguments.out[0].commands) != 1 {
		return
	}
	given := psCall{texts: c.texts, operands: arguments.out[0].commands[0]}
	op := fileop.Operation{Kind: fileop.Change, Path: given.file(0)}
	text, ok := given.value(1)
	switch {
	case name == "::writealltext" && ok:
		op.Kind, op.New = fileop.Write, text
	case name == "::appendalltext" && ok:
		op.Kind, op.New = fileop.Append, text
	case name != "::writealltext" && name != "::appendalltext" && name != "::writealllines":
		return
	}
	s.changed(op)
}
