package ledger

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/quote"
)

// Failures collects the failed calls that no later call repaired or repeated. A call repairs an earlier one if it
// succeeds with the same tool on the same file, or with the same command. If it fails, it replaces the earlier one.
// Calls that only look are ignored, because they need no repair.
type Failures struct {
	gauge budget.Gauge
	open  []*failure // oldest first; includes repaired ones until the next cleanup
	count int        // how many in open are not repaired
	// at indexes unrepaired failures by the keys under which a repairing call looks for them.
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

// failureKey is a tool with a subject, or with a program, its task and an object. object may be the constant whatever
// or none.
type failureKey struct{ tool, subject, program, task, object string }

// Every command is indexed under the object whatever, and a command without objects also under none;
// neither value can be a word of a command.
const whatever, none = "\x00", ""

// NewFailures returns an empty collection.
func NewFailures(gauge budget.Gauge) *Failures {
	return &Failures{gauge: gauge, at: map[failureKey][]*failure{}}
}

// interrupts matches arguments with which an agent ends its own program. It is no failure if that program then ends
// with an error.
var interrupts = regexp.MustCompile(`:\s*"(?:\\u000[34]|C-[cdz])"`)

// Add records a call with the text of its result.
func (f *Failures) Add(tool, arguments string, failed bool, body, pointer string) {
	if !failed && f.count == 0 {
		return
	}
	now, ok := newFailure(tool, arguments)
	if !ok || failed && interrupts.MatchString(arguments) {
		return
	}
	for _, key := range now.mayRepair() {
		for _, earlier := range f.at[key] {
			if !earlier.repaired && now.repairs(*earlier) {
				earlier.repaired = true
				f.count--
			}
		}
		delete(f.at, key) // now repairs all failures under its keys
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

// keys returns the keys under which a failure is indexed.
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

// mayRepair returns the keys of the failures that a call may repair.
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

// newFailure describes a call as a failure; false if the call only looks.
func newFailure(tool, arguments string) (failure, bool) {
	now := failure{tool: tool}
	members, ok := readArguments(arguments)
	if !ok {
		now.subject, now.what = quote.Line(Cut(arguments, allBytes)), Shorten(arguments)
		return now, true
	}
	if script, ok := commandIn(members); ok {
		now.command, ok = parseCommand(script)
		now.what = Cut(withoutFolder(quote.Line(script)), argumentBytes)
		return now, ok
	}
	if !ChangesFiles(tool) && looksOnly(tool) {
		return now, false
	}
	if file, ok := fileIn(members); ok {
		now.subject, now.what = file, quote.Escape(file)
		return now, true
	}
	now.what = Shorten(arguments)
	now.subject = now.what
	return now, true
}

// withoutFolder removes "cd FOLDER && " from the beginning of a script.
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

// repairs reports whether a call does what an earlier one should have done.
func (f failure) repairs(earlier failure) bool {
	if f.tool != earlier.tool {
		return false
	}
	if f.command.program != "" {
		return f.command.repairs(earlier.command)
	}
	return f.subject == earlier.subject
}

// telling matches lines that say why something failed.
var telling = regexp.MustCompile(`(?i)error|fail|panic|fatal|exception|not found|no such|cannot|denied|undefined|invalid|missing|refused`)

// saysLittle matches lines that say only that something failed, or what succeeded.
var saysLittle = regexp.MustCompile(`(?i)^(\W*(exit code|process exited with code|chunk id|wall time|original token count|output|ok|pass)\b|[✔✓]|=== |--- PASS)`)

// reasonIn returns the first line of a failed result that says why it failed, or else the first line that says
// anything.
func reasonIn(body string) string {
	const most, scanned = 140, 64 << 10 // bytes
	var first string
	for line := range strings.SplitSeq(Cut(body, scanned), "\n") {
		line = strings.Join(strings.Fields(line), " ")
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

// Write lists the unrepaired failures, oldest first: as many of the newest as fit in limit tokens, at most
// eight.
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
	text := quote.Name(f.tool) + " " + f.what
	if f.pointer != "" {
		text += " " + f.pointer
	}
	if f.reason != "" {
		text += fmt.Sprintf(": %q", f.reason)
	}
	return text + "\n"
}
