package fileview

import (
	"path"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// interpreters are the programs that run scripts in these languages, by their names without versions.
var interpreters = map[string]func(text string) []Operation{"python": python, "pypy": python, "node": javaScript, "bun": javaScript}

// versions are what ends the name of an interpreter.
const versions = ".0123456789"

// runners are programs that run the one that they are given.
var runners = map[string]bool{"uv": true, "poetry": true, "pipenv": true, "env": true, "time": true, "timeout": true}

// takesOne are flags of interpreters that a value follows which is no script.
var takesOne = regexp.MustCompile(`^-[XWr]$|^--require$|^--import$`)

// evaluates are the flags that a script follows.
var evaluates = regexp.MustCompile(`^-[a-zA-Z]*[cep]$|^--eval$|^--print$`)

// interpreted are the changes that a script makes which a command runs: one of its words, what it is
// given, or a file.
func interpreted(words []string, at statement) (ops []Operation, ok bool) {
	first := 0
	for runners[words[0]] && first+1 < len(words) && interpreters[nameOf(words[first])] == nil {
		first++
	}
	run := interpreters[nameOf(words[first])]
	if run == nil {
		return nil, false
	}
	for rest := words[first+1:]; len(rest) > 0; rest = rest[1:] {
		switch flag := rest[0]; {
		case flag == "-":
			return fed(run, at), true
		case flag == "-m":
			return nil, true
		case evaluates.MatchString(flag) && len(rest) > 1:
			return run(rest[1]), true
		case takesOne.MatchString(flag) && len(rest) > 1:
			rest = rest[1:]
		case !strings.HasPrefix(flag, "-") && flag != "":
			return []Operation{{Kind: Run, Path: flag}}, true
		}
	}
	return fed(run, at), true
}

// fed are the changes that the script makes which a command is given.
func fed(run func(string) []Operation, at statement) []Operation {
	if at.input != "" {
		return run(at.input)
	}
	ops := run(at.script)
	for i := range ops {
		ops[i] = uncertain(ops[i])
	}
	return ops
}

// unknown takes in a command of which some words are not known: it edits files in place, or runs a script.
func (s *shell) unknown(words []string, at statement) {
	var ops []Operation
	if inPlace(words) {
		ops = inPlaceEdits(words)
	} else {
		ops, _ = interpreted(words, at)
	}
	for _, op := range ops {
		op = uncertain(op)
		if known(op.Path) != "" {
			s.changed(op)
			continue
		}
		for _, item := range s.items {
			op.Path, op.All = matching(item)
			s.changed(op)
		}
	}
}

// matching is a file, or the folder of those that a pattern matches.
func matching(name string) (file string, folder bool) {
	if strings.ContainsAny(name, "*?[{") {
		return path.Dir(name), true
	}
	return name, false
}

// loop takes in what the variable of a loop is.
func (s *shell) loop(node *syntax.ForClause) {
	if words, ok := node.Loop.(*syntax.WordIter); ok {
		s.items = append(s.items, literals(words.Items)...)
	}
}

// uncertain is a change of which the text is not certain.
func uncertain(op Operation) Operation {
	switch op.Kind {
	case Substitute:
		return Operation{Kind: Change, Path: op.Path}
	case Run:
		op.All = true
	}
	return op
}

func nameOf(program string) string { return strings.TrimRight(path.Base(program), versions) }

// scriptIn are the changes that the script in a file makes.
func scriptIn(name, text string) []Operation {
	switch path.Ext(name) {
	case ".py":
		return python(text)
	case ".js", ".mjs", ".cjs":
		return javaScript(text)
	}
	return nil
}

// jsWrites are functions by which a program in JavaScript may change a file.
var jsWrites = regexp.MustCompile(`^(?:(?:writeFile|appendFile|rename|unlink|rm|copyFile|cp|truncate)(?:Sync)?|createWriteStream|writeTextFile|(?:exec|spawn|execFile)(?:Sync)?)$`)

// javaScript are the changes that a program in JavaScript makes to files: if it changes any, each file
// may be that it names.
func javaScript(text string) []Operation {
	tokens := scan(text)
	for i, t := range tokens {
		called := i+1 < len(tokens) && tokens[i+1].text == "("
		if t.kind == word && called && (jsWrites.MatchString(t.text) || t.text == "write" && i > 1 && tokens[i-2].text == "Bun") {
			return changesOf(fileNames(tokens))
		}
	}
	return nil
}

// fileNames are the literals of a program that may be names of files.
func fileNames(tokens []token) []string {
	const longest = 256 // bytes
	var out []string
	for _, t := range tokens {
		if t.kind == literal && len(t.text) <= longest && strings.ContainsAny(t.text, "./") && !strings.ContainsAny(t.text, " \t\r\n*?[{(<>=,\"'\\"+unknownPart) && !strings.HasPrefix(t.text, "-") && !strings.Contains(t.text, "://") && strings.Trim(t.text, "./") != "" {
			out = append(out, t.text)
		}
	}
	return out
}

// changesOf are changes of files, or of what is in folders, each once.
func changesOf(names []string) []Operation {
	var out []Operation
	once := map[string]bool{}
	for _, name := range names {
		if name != "" && !once[name] {
			once[name] = true
			out = append(out, Operation{Kind: Change, Path: name, All: true})
		}
	}
	return out
}
