package ledger

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
)

// Failures gathers the calls that failed and were not repaired since: none of the same tool
// succeeded on the same file, and no command that does the same. Calls that only look are
// none: what is not there needs no repair.
type Failures struct {
	gauge budget.Gauge
	open  []*failure // oldest first, and some that were repaired
	count int        // of those that were not
	// at has those that were not repaired by what a call has in common with what it repairs.
	at map[failureKey][]*failure
}

type failure struct {
	tool, subject string
	command       command
	what          string // the arguments in short
	pointer       string
	reason        string
	repaired      bool
}

// failureKey is a tool with what was done by it: something on a subject, or the task of a program on an
// object, on none or on whatever.
type failureKey struct{ tool, subject, program, task, object string }

// whatever is an object of each command, and none one of those that have no other; neither is a word.
const whatever, none = "\x00", ""

// NewFailures returns none.
func NewFailures(gauge budget.Gauge) *Failures {
	return &Failures{gauge: gauge, at: map[failureKey][]*failure{}}
}

// Add takes in a call with the text of its result.
func (f *Failures) Add(tool, arguments string, failed bool, body, pointer string) {
	if !failed && f.count == 0 {
		return
	}
	now, ok := newFailure(tool, arguments)
	if !ok {
		return
	}
	for _, key := range now.mayRepair() {
		for _, earlier := range f.at[key] {
			if !earlier.repaired && now.repairs(*earlier) {
				earlier.repaired = true
				f.count--
			}
		}
		delete(f.at, key) // whatever is found by a key is repaired
	}
	if failed {
		now.pointer, now.reason = pointer, reasonIn(body)
		f.open = append(f.open, &now)
		f.count++
		for _, key := range now.keys() {
			f.at[key] = append(f.at[key], &now)
		}
	}
	if len(f.open) > 2*f.count {
		f.open = slices.DeleteFunc(f.open, func(earlier *failure) bool { return earlier.repaired })
	}
}

// keys are where a failure is found by what may repair it.
func (f *failure) keys() []failureKey {
	bySubject := failureKey{tool: f.tool, subject: f.subject}
	if f.command.program == "" {
		return []failureKey{bySubject}
	}
	key := failureKey{tool: f.tool, program: f.command.program, task: f.command.task()}
	objects := f.command.objects()
	out := []failureKey{bySubject}
	for _, object := range append(objects[:len(objects):len(objects)], whatever) {
		key.object = object
		out = append(out, key)
	}
	if len(objects) == 0 {
		key.object = none
		out = append(out, key)
	}
	return out
}

// mayRepair are the keys of the failures that a call may repair.
func (f *failure) mayRepair() []failureKey {
	if f.command.program == "" {
		return []failureKey{{tool: f.tool, subject: f.subject}}
	}
	key := failureKey{tool: f.tool, program: f.command.program, task: f.command.task()}
	objects := f.command.objects()
	if len(objects) == 0 || slices.ContainsFunc(objects, func(w string) bool { return strings.HasSuffix(w, "...") }) {
		objects = []string{whatever}
	} else {
		objects = append(objects[:len(objects):len(objects)], none)
	}
	out := make([]failureKey, len(objects))
	for i := range objects {
		key.object = objects[i]
		out[i] = key
	}
	return out
}

// newFailure is what a call would be that failed; false where it only looks.
func newFailure(tool, arguments string) (failure, bool) {
	now := failure{tool: tool}
	members, ok := readArguments(arguments)
	if !ok {
		now.subject, now.what = oneLine(Cut(arguments, allBytes)), Shorten(arguments)
		return now, true
	}
	if script, ok := commandIn(members); ok {
		now.command, ok = parseCommand(script)
		now.what = Cut(withoutFolder(oneLine(script)), argumentBytes)
		return now, ok
	}
	if !ChangesFiles(tool) && looksOnly(tool) {
		return now, false
	}
	if file, ok := fileIn(members); ok {
		now.subject, now.what = file, file
		return now, true
	}
	now.what = Shorten(arguments)
	now.subject = now.what
	return now, true
}

// withoutFolder is a script without the folder that it first changes to.
func withoutFolder(script string) string {
	if rest, ok := strings.CutPrefix(script, "cd "); ok {
		if _, then, ok := strings.Cut(rest, " && "); ok {
			return then
		}
	}
	return script
}

// looksOnly reports whether a tool's name says that it changes nothing.
func looksOnly(tool string) bool {
	name := strings.ToLower(tool)
	return slices.ContainsFunc([]string{"read", "view", "open", "list", "ls", "glob", "find", "grep", "search", "fetch", "look"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

// repairs reports whether a call does again what an earlier one was to do.
func (f failure) repairs(earlier failure) bool {
	if f.tool != earlier.tool {
		return false
	}
	if f.command.program != "" {
		return f.command.repairs(earlier.command)
	}
	return f.subject == earlier.subject
}

// telling are the lines that say why something failed.
var telling = regexp.MustCompile(`(?i)error|fail|panic|fatal|exception|not found|no such|cannot|denied|undefined|invalid|missing|refused`)

// saysLittle are lines that only say that it did, or what did not.
var saysLittle = regexp.MustCompile(`(?i)^(\W*(exit code|process exited with code|chunk id|wall time|original token count|output|ok|pass)\b|[✔✓]|=== |--- PASS)`)

// reasonIn is the first line of a result that says why it is one of a failure, or its first.
func reasonIn(body string) string {
	const most, scanned = 140, 64 << 10 // bytes
	var first string
	for line := range strings.SplitSeq(Cut(body, scanned), "\n") {
		line = oneLine(line)
		if line == "" || saysLittle.MatchString(line) {
			continue
		}
		if telling.MatchString(line) {
			return Cut(line, most)
		}
		if first == "" {
			first = line
		}
	}
	return Cut(first, most)
}

// Write lists those that are open, oldest first, the newest as far as they fit in limit tokens.
func (f *Failures) Write(limit uint64) []budget.Piece {
	const most = 8
	lines := make([]budget.Piece, 0, most)
	sum := f.gauge.Sum()
	for i := len(f.open) - 1; i >= 0 && len(lines) < most; i-- {
		if f.open[i].repaired {
			continue
		}
		piece := f.gauge.Piece(f.open[i].String())
		next := *sum
		if next.Add(piece); next.Tokens() > limit {
			break
		}
		*sum = next
		lines = append(lines, piece)
	}
	slices.Reverse(lines)
	return lines
}

func (f failure) String() string {
	text := f.tool + " " + f.what
	if f.pointer != "" {
		text += " " + f.pointer
	}
	if f.reason != "" {
		text += fmt.Sprintf(": %q", f.reason)
	}
	return text + "\n"
}
