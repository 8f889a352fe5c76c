package fileview

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// model is a file system that calls of agents change, with what it was after each call.
type model struct {
	t     *rapid.T
	files map[string][]string
	past  []map[string][]string // past[n] is after call n
	views *Views
	calls []string
	open  string // the file in SWE-agent's window
	top   int    // how many lines are above the window
	made  int
}

// windowLines is how many lines SWE-agent's window of the model has.
const windowLines = 7

var modelNames = []string{"/r/src/a.go", "/r/src/b.go", "/r/c.go"}

func newModel(t *rapid.T) *model {
	m := &model{t: t, files: map[string][]string{}, past: []map[string][]string{{}}, views: NewViews()}
	for _, name := range modelNames {
		m.files[name] = m.lines(0, 40)
	}
	return m
}

// lines are new ones, of which some are alike.
func (m *model) lines(least, most int) []string {
	out := make([]string, rapid.IntRange(least, most).Draw(m.t, "lines"))
	for i := range out {
		m.made++
		out[i] = rapid.SampledFrom([]string{"", "}", "	return nil, err", "	if err != nil {", fmt.Sprintf("func made%d(ctx context.Context) {", m.made), fmt.Sprintf("	step %d of the file", m.made)}).Draw(m.t, "line")
	}
	return out
}

func (m *model) name() string { return rapid.SampledFrom(modelNames).Draw(m.t, "file") }

// span is a range of lines of a file, counted from 0; false if it has none.
func (m *model) span(name string) (from, to int, ok bool) {
	file := m.files[name]
	if len(file) == 0 {
		return 0, 0, false
	}
	from = rapid.IntRange(0, len(file)-1).Draw(m.t, "from")
	return from, rapid.IntRange(from+1, min(len(file), from+8)).Draw(m.t, "to"), true
}

func (m *model) put(name string, from, to int, lines []string) {
	file := m.files[name]
	m.files[name] = slices.Concat(file[:from:from], lines, file[to:])
}

// call has the views take in a call that was made, and checks what they know.
func (m *model) call(tool string, arguments map[string]any, body string) {
	text, err := json.Marshal(arguments)
	if err != nil {
		m.t.Fatal(err)
	}
	m.calls = append(m.calls, fmt.Sprintf("%s %s\n%s", tool, text, body))
	m.views.Add(Call{Operations: Operations(tool, string(text)), Body: body})
	now := map[string][]string{}
	for name, lines := range m.files {
		now[name] = slices.Clone(lines)
	}
	m.past = append(m.past, now)
	m.check()
}

// check: each known line is the file's, at its place, unless the views say that a later call changed the file
// in a way that is not known; then it was the file's when it was shown.
func (m *model) check() {
	for _, f := range m.views.newest() {
		name := ""
		for _, known := range modelNames {
			if strings.HasSuffix("/"+known, "/"+f.name) || strings.HasSuffix(known, "/"+f.name) {
				name = known
			}
		}
		if name == "" {
			m.t.Fatalf("%q is no file of the model\n%s", f.name, strings.Join(m.calls, "\n\n"))
		}
		for _, r := range f.regions {
			for i, l := range r.lines {
				missed := f.stale(r.lines) || len(f.missed) > 0 && l.edited == l.touched // an edit is put where its text was known
				file, at := m.files[name], r.from-1+i
				switch {
				case r.from > 0 && !missed && (at >= len(file) || file[at] != l.text):
					m.t.Fatalf("line %d of %s is not %q\nthe file: %q\n%s", at+1, name, l.text, file, strings.Join(m.calls, "\n\n"))
				case (r.from == 0 || missed) && !m.had(l):
					m.t.Fatalf("%s had no line %q after call %d\n%s", name, l.text, l.touched, strings.Join(m.calls, "\n\n"))
				}
			}
		}
	}
}

// had reports whether a file had a line when that was shown, or since; any file, as copies have it from others. What an
// edit writes whose place is not known may be a part of a line.
func (m *model) had(l *line) bool {
	for _, then := range m.past[l.touched:] {
		for _, lines := range then {
			if slices.Contains(lines, l.text) || l.edited == l.touched && strings.Contains(joined(lines), l.text) {
				return true
			}
		}
	}
	return false
}

func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// numberedLines are lines of a file as a tool numbers them.
func numberedLines(format string, from int, lines []string) string {
	var out strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&out, format, from+i+1, l)
	}
	return out.String()
}

// shell has the agent run a command of some that show lines, in one of the ways in which harnesses show that.
func (m *model) shell() {
	var commands []string
	var out []string
	for range rapid.IntRange(1, 4).Draw(m.t, "commands") {
		name := m.name()
		file := m.files[name]
		from := rapid.IntRange(1, len(file)+3).Draw(m.t, "first")
		to := from + rapid.IntRange(0, 15).Draw(m.t, "more")
		part := file[min(from-1, len(file)):min(to, len(file))]
		switch rapid.IntRange(0, 7).Draw(m.t, "command") {
		case 0, 1, 2:
			commands = append(commands, fmt.Sprintf("sed -n '%d,%dp' %s", from, to, name))
			out = append(out, part...)
		case 3:
			commands = append(commands, fmt.Sprintf("nl -ba %s | sed -n '%d,%dp'", name, from, to))
			out = append(out, strings.Split(strings.TrimSuffix(numberedLines("%6d\t%s\n", from-1, part), "\n"), "\n")...)
			if len(part) == 0 {
				out = out[:len(out)-1]
			}
		case 4:
			commands = append(commands, "cat "+name)
			out = append(out, file...)
		case 5:
			commands = append(commands, fmt.Sprintf("tail -n %d %s", len(part)+1, name))
			out = append(out, file[max(0, len(file)-len(part)-1):]...)
		case 6:
			commands = append(commands, "rg -n 'step' /r")
			for _, name := range modelNames {
				for i, l := range m.files[name] {
					if strings.Contains(l, "step") {
						out = append(out, fmt.Sprintf("%s:%d:%s", name, i+1, l))
					}
				}
			}
		case 7:
			commands = append(commands, "echo '== next =='")
			out = append(out, "== next ==")
		}
	}
	command, text := strings.Join(commands, "; "), joined(out)
	switch rapid.IntRange(0, 3).Draw(m.t, "harness") {
	case 0:
		m.call("bash", map[string]any{"command": command}, text)
	case 1:
		m.call("exec_command", map[string]any{"cmd": command, "workdir": "/r"}, "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n"+m.shortened(text, len(out)))
	case 2:
		program := fmt.Sprintf("const r = await tools.exec_command({\"cmd\":%q}); text(r.output);", command)
		m.call("exec", map[string]any{"input": program}, "Script completed\nWall time 0.1 seconds\nOutput:\n\n"+m.shortened(text, len(out)))
	case 3:
		m.call("command", map[string]any{"command": command}, text+m.state())
	}
}

// shortened is an output of so many lines, without its middle if it is drawn so.
func (m *model) shortened(text string, lines int) string {
	if lines < 6 || !rapid.Bool().Draw(m.t, "shortened") {
		return text
	}
	from := rapid.IntRange(1, len(text)/2).Draw(m.t, "head")
	to := rapid.IntRange(len(text)/2+1, len(text)-1).Draw(m.t, "tail")
	return fmt.Sprintf("Warning: truncated output (original token count: 9)\nTotal output lines: %d\n\n%s…5 tokens truncated…%s", lines, text[:from], text[to:])
}

// state is what SWE-agent's shell says after each command.
func (m *model) state() string {
	open := m.open
	if open == "" {
		open = "n/a"
	}
	return fmt.Sprintf("(Open file: %s)\n(Current directory: /r)\nbash-$", open)
}

// window is what SWE-agent shows of the open file.
func (m *model) window() string {
	file := m.files[m.open]
	m.top = max(0, min(m.top, len(file)-windowLines))
	end := min(m.top+windowLines, len(file))
	out := fmt.Sprintf("[File: %s (%d lines total)]\n", m.open, len(file))
	if m.top > 0 {
		out += fmt.Sprintf("(%d more lines above)\n", m.top)
	}
	out += numberedLines("%d:%s\n", m.top, file[m.top:end])
	if end < len(file) {
		out += fmt.Sprintf("(%d more lines below)\n", len(file)-end)
	}
	return out
}

// windowed has the agent use a tool of SWE-agent that works on the open file.
func (m *model) windowed() {
	if m.open == "" || rapid.IntRange(0, 5).Draw(m.t, "open") == 0 {
		m.open = m.name()
		m.top = rapid.IntRange(0, 30).Draw(m.t, "top")
		m.call("command", map[string]any{"command": fmt.Sprintf("open %s %d", m.open, m.top+1)}, m.window()+m.state())
		return
	}
	from, to, ok := m.span(m.open)
	if !ok {
		return
	}
	put := m.lines(0, 4)
	switch rapid.IntRange(0, 4).Draw(m.t, "windowed") {
	case 0:
		m.top = from
		m.call("goto", map[string]any{"line_number": from + 1}, m.window())
	case 1:
		m.put(m.open, from, to, put)
		m.top = from - 1
		m.call("command", map[string]any{"command": fmt.Sprintf("edit %d:%d\n%send_of_edit", from+1, to, joined(put))}, m.window()+"File updated. Please review the changes.\n"+m.state())
	case 2:
		before := slices.Clone(m.files[m.open])
		m.put(m.open, from, to, put)
		applied := m.window()
		m.files[m.open] = before
		m.call("command", map[string]any{"command": fmt.Sprintf("edit %d:%d\n%send_of_edit", from+1, to, joined(put))},
			"Your proposed edit has introduced new syntax error(s).\n\nThis is how your edit would have looked if applied\n---\n"+applied+
				"---\n\nThis is the original code before your edit\n---\n"+m.window()+"---\nYour changes have NOT been applied.\n"+m.state())
	case 3:
		file, end := m.files[m.open], min(m.top+windowLines, len(m.files[m.open]))
		if m.top = min(m.top, max(0, len(file)-windowLines)); m.top >= end {
			return
		}
		shown := strings.Join(file[m.top:end], "\n")
		from := rapid.IntRange(0, len(shown)).Draw(m.t, "search")
		old := shown[from:rapid.IntRange(from, len(shown)).Draw(m.t, "end")]
		if old == "" || strings.Count(shown, old) > 1 {
			return
		}
		text := strings.Join(put, "\n")
		changed := strings.Split(strings.Replace(shown, old, text, 1), "\n")
		line := m.top + strings.Count(shown[:from], "\n")
		m.put(m.open, m.top, end, changed)
		m.top = line - 1
		m.call("edit", map[string]any{"search": old, "replace": text}, "Text replaced. Please review the changes.\n"+m.window())
	case 4:
		if len(put) == 0 {
			return
		}
		m.put(m.open, from, from, put)
		m.top = from - 1
		m.call("insert", map[string]any{"text": joined(put), "line": from}, m.window())
	}
}

// edit has the agent change a file by one of the tools that say how.
func (m *model) edit() {
	name := m.name()
	put := m.lines(1, 5)
	kind := rapid.IntRange(0, 9).Draw(m.t, "edit")
	switch kind {
	case 0:
		m.files[name] = put
		m.call("Write", map[string]any{"file_path": name, "content": joined(put)}, "File created successfully at: "+name)
		return
	case 1:
		m.files[name] = slices.Concat(m.files[name], put)
		m.call("bash", map[string]any{"command": "cat >> " + name + " <<'EOF'\n" + joined(put) + "EOF"}, "")
		return
	case 2:
		to := m.name()
		if to == name {
			return
		}
		m.files[to] = slices.Clone(m.files[name])
		m.call("bash", map[string]any{"command": "cp " + name + " " + to}, "")
		return
	case 3:
		m.files[name] = m.lines(0, 20)
		command := rapid.SampledFrom([]string{"gofmt -w %s && git checkout -- %s", "git checkout %s", "git stash -- %s", "sed -i 's/x.*/y/' %s"}).Draw(m.t, "unknown")
		m.call("bash", map[string]any{"command": strings.ReplaceAll(command, "%s", name)}, "")
		return
	case 4:
		m.files[name] = m.lines(0, 20)
		m.call("str_replace_editor", map[string]any{"command": "undo_edit", "path": name}, "Last edit undone successfully.")
		return
	}
	from, to, ok := m.span(name)
	if !ok {
		return
	}
	file := m.files[name]
	old := joined(file[from:to])
	if strings.TrimSpace(old) == "" || strings.Index(joined(file), old) != strings.LastIndex(joined(file), old) {
		return // a tool would refuse it
	}
	switch kind {
	case 5: // of a text without its line feed, which may begin within a line
		old := strings.Join(file[from:to], "\n")
		if old = old[rapid.IntRange(0, len(old)-1).Draw(m.t, "within"):]; strings.Index(joined(file), old) != strings.LastIndex(joined(file), old) {
			return
		}
		tool, gone := rapid.SampledFrom([]string{"Edit", "edit"}).Draw(m.t, "tool"), old
		text := rapid.SampledFrom([]string{"", strings.Join(put, "\n"), joined(put)}).Draw(m.t, "text")
		if tool == "Edit" && text == "" && !strings.HasSuffix(old, "\n") && strings.Contains(joined(file), old+"\n") {
			gone += "\n"
		}
		m.set(name, strings.Replace(joined(file), gone, text, 1))
		m.call(tool, map[string]any{"file_path": name, "old_string": old, "new_string": text}, "The file has been updated.")
	case 6:
		m.put(name, from, to, put)
		m.call("Edit", map[string]any{"file_path": name, "old_string": old, "new_string": joined(put)}, m.snippet(name, from))
	case 7:
		m.put(name, from, from, put)
		m.call("str_replace_editor", map[string]any{"command": "insert", "path": name, "insert_line": from, "new_str": strings.Join(put, "\n")}, m.snippet(name, from))
	case 8:
		patch := "*** Begin Patch\n*** Update File: " + name + "\n@@\n-" + strings.Join(file[from:to], "\n-") + "\n+" + strings.Join(put, "\n+") + "\n*** End Patch"
		m.put(name, from, to, put)
		m.call("apply_patch", map[string]any{"input": patch}, "Success. Updated the following files:\nM "+name)
	case 9:
		m.put(name, from, to, put)
		m.call("replace_in_file", map[string]any{"path": name, "diff": "------- SEARCH\n" + old + "=======\n" + joined(put) + "+++++++ REPLACE"}, "The content was successfully saved.")
	}
}

// snippet is what an editor says after an edit: maybe with the lines around a place.
func (m *model) snippet(name string, at int) string {
	if rapid.Bool().Draw(m.t, "snippet") {
		return "The file has been updated."
	}
	from, to := max(0, at-2), min(at+4, len(m.files[name]))
	return "The file " + name + " has been edited. Here's the result of running `cat -n` on a snippet of the edited file:\n" +
		numberedLines("%6d\t%s\n", from, m.files[name][from:to]) + "Review the changes and make sure they are as expected.\n"
}

// TestViewsOfAModel: whatever an agent does by the tools of several harnesses, what is known of files is so.
func TestViewsOfAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		for range rapid.IntRange(1, 15).Draw(t, "calls") {
			switch rapid.IntRange(0, 10).Draw(t, "call") {
			case 0, 1:
				m.shell()
			case 2:
				m.windowed()
			case 3, 4:
				m.edit()
			case 5:
				m.read()
			case 6:
				m.noted()
			case 7:
				m.several()
			case 8:
				m.edited()
			case 9:
				m.patched()
			case 10:
				m.other()
			}
		}
	})
}
