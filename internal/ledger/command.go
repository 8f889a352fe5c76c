package ledger

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// looking are programs that change nothing. Their failures need no repair: a grep fails if it finds nothing.
var looking = map[string]bool{
	"ls": true, "cat": true, "head": true, "tail": true, "less": true, "nl": true, "wc": true, "stat": true, "file": true, "tree": true,
	"grep": true, "egrep": true, "rg": true, "ag": true, "find": true, "fd": true, "sed": true, "awk": true, "cut": true, "sort": true, "diff": true, "jq": true,
	"which": true, "command": true, "type": true, "test": true, "[": true, "[[": true, "pwd": true, "cd": true, "echo": true, "printf": true,
	"export": true, "set": true, "true": true, "false": true, "sleep": true, "ps": true, "pgrep": true, "pkill": true, "kill": true, "lsof": true,
}

// before are words that may precede a program in a command.
var before = map[string]bool{"sudo": true, "time": true, "nohup": true, "env": true, "command": true, "exec": true}

// command is the first program of a shell command that does more than look, with its arguments.
type command struct {
	program string
	words   []string // its arguments except flags
}

// commandNames are the names of arguments with a shell command. The first that a call has counts.
var commandNames = []string{"command", "cmd", "script"}

func namesCommand(argument string) bool { return slices.Contains(commandNames, argument) }

// commandIn returns the shell command in a call's arguments.
func commandIn(members map[string]json.RawMessage) (script string, ok bool) {
	for _, name := range commandNames {
		raw := members[name]
		if json.Unmarshal(raw, &script) == nil && script != "" {
			return script, true
		}
		var words []string
		if json.Unmarshal(raw, &words) == nil && len(words) > 0 {
			return words[len(words)-1], true // ["bash", "-lc", SCRIPT]: the script is the last word
		}
	}
	return "", false
}

// asking are the subcommands that change nothing, by program.
var asking = map[string]map[string]bool{
	"git": {
		"status": true, "log": true, "diff": true, "show": true, "branch": true, "grep": true, "blame": true, "remote": true, "config": true,
		"rev-parse": true, "rev-list": true, "ls-tree": true, "ls-files": true, "ls-remote": true, "show-ref": true, "merge-base": true, "cat-file": true,
	},
}

// parseCommand finds the command of a script; false if the script only looks.
func parseCommand(script string) (command, bool) {
	script, _, _ = strings.Cut(script, "<<") // a here-document follows
	for _, words := range scriptWords(script) {
		for len(words) > 0 && (assigns(words[0]) || before[words[0]]) {
			words = words[1:]
		}
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		c := command{program: path.Base(words[0])}
		for _, w := range words[1:] {
			if w != "" && w[0] != '-' && !strings.ContainsAny(w, "<>&") {
				c.words = append(c.words, w)
			}
		}
		if !looking[c.program] && !c.asks() {
			return c, true
		}
	}
	return command{}, false
}

// asks reports whether one of the first two words is a subcommand that changes nothing. It checks two, because the
// first may be the value of a flag.
func (c command) asks() bool {
	return slices.ContainsFunc(c.words[:min(2, len(c.words))], func(w string) bool { return asking[c.program][w] })
}

// assigns reports whether a word of a script sets a variable.
func assigns(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	return ok && !strings.ContainsAny(name, "/-.")
}

// scriptWords returns the words of the commands of a script, without quotes.
func scriptWords(script string) [][]string {
	var out [][]string
	var words []string
	var word strings.Builder
	var quote rune
	end := func(command bool) {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
		if command && len(words) > 0 {
			out = append(out, words)
			words = nil
		}
	}
	var last rune
	for _, r := range script {
		switch {
		case last == '\\' && quote != '\'':
			word.WriteRune(r)
			r = 0
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote = r
		case r == '\\':
		case r == '\n' || r == ';' || r == '|' || r == '&' && last != '>':
			end(true)
		case r == ' ' || r == '\t' || r == '(' || r == ')':
			end(false)
		default:
			word.WriteRune(r)
		}
		last = r
	}
	end(true)
	return out
}

// repairs reports whether c does what a failed command should have done: it is the same program with the same task
// (see task), and they have an object in common or one of them has none. An object of c that ends in "..." matches
// all.
func (c command) repairs(failed command) bool {
	if c.program != failed.program || c.task() != failed.task() {
		return false
	}
	a, b := c.objects(), failed.objects()
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(w string) bool {
		return strings.HasSuffix(w, "...") || slices.Contains(b, w)
	})
}

// task returns the first argument if it names a task rather than an object, like test in "go test ./...".
func (c command) task() string {
	if len(c.words) == 0 || strings.ContainsAny(c.words[0], "/.$=@:") {
		return ""
	}
	return c.words[0]
}

// objects returns the words of the arguments after the task.
func (c command) objects() []string {
	if c.task() == "" {
		return c.words
	}
	return c.words[1:]
}
