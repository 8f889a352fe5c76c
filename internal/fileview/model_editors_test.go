package fileview

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// set makes a text the one of a file.
func (m *model) set(name, text string) {
	if m.files[name] = strings.Split(strings.TrimSuffix(text, "\n"), "\n"); text == "" {
		m.files[name] = nil
	}
}

// read has the agent read lines of a file by a tool that numbers them.
func (m *model) read() {
	name := m.name()
	from, to, ok := m.span(name)
	if !ok {
		return
	}
	part := m.files[name][from:to]
	switch rapid.IntRange(0, 2).Draw(m.t, "read") {
	case 0:
		m.call("Read", map[string]any{"file_path": name, "offset": from + 1, "limit": to - from}, numberedLines("%6d→%s\n", from, part))
	case 1:
		m.call("str_replace_editor", map[string]any{"command": "view", "path": name, "view_range": []int{from + 1, to}}, "Here's the result of running `cat -n` on "+name+":\n"+numberedLines("%6d\t%s\n", from, part))
	case 2:
		m.call("read", map[string]any{"filePath": name, "offset": from + 1, "limit": to - from}, "<path>"+name+"</path>\n<type>file</type>\n<content>\n"+numberedLines("%d: %s\n", from, part)+"\n(End of file)\n</content>")
	}
}

// noted has the agent read lines by a tool that writes words of its own around them.
func (m *model) noted() {
	name := m.name()
	from, to, ok := m.span(name)
	if !ok {
		return
	}
	file := m.files[name]
	part, total, first := joined(file[from:to]), len(file), from+1
	if strings.TrimSpace(part) == "" {
		return
	}
	switch rapid.IntRange(0, 9).Draw(m.t, "noted") {
	case 0:
		m.call("read_file", map[string]any{"file_path": name, "offset": from, "limit": to - from}, fmt.Sprintf(
			"\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines %d-%d of %d total lines.\nAction: To read more of the file, you can use it.\n\n--- FILE CONTENT (truncated) ---\n%s", first, to, total, part))
	case 1:
		m.call("read_file", map[string]any{"file_path": name, "offset": from, "limit": to - from}, fmt.Sprintf("Showing lines %d-%d of %d total lines.\n\n---\n\n%s", first, to, total, part))
	case 2:
		m.call("read_file", map[string]any{"filePath": name, "startLine": first, "endLine": to}, fmt.Sprintf("File: %#q. Lines %d to %d (%d lines total): \n```go\n%s```", name, first, to, total, part))
	case 3:
		m.call("read_file", map[string]any{"filePath": name}, "```go\n"+joined(file)+"```\n")
	case 4:
		m.call("text_editor", map[string]any{"command": "view", "path": name, "view_range": []int{first, to}}, fmt.Sprintf("### %s (lines %d-%d)\n```go\n%s```\n\n[Showing lines %d-%d of %d. Use view_range to see more.]\n", name, first, to, numberedLines("%d: %s\n", from, file[from:to]), first, to, total))
	case 5:
		text, _ := json.Marshal(map[string]string{"contents": joined(file)})
		m.call("read_file", map[string]any{"target_file": name}, string(text))
	case 6:
		m.call("read_file", map[string]any{"path": name, "offset": from, "limit": to - from}, fmt.Sprintf("path: %s\ncontent: %s\noffset: %d\nlines_read: %d\nwas_truncated: False", name, part, from, to-from))
	case 7:
		m.call("read_file", map[string]any{"path": name, "offset": from, "length": to - from}, fmt.Sprintf("[Reading %d lines from line %d (total: %d lines, 1 remaining)]\n\n%s", to-from, from, total, part))
	case 8:
		if to == total {
			return
		}
		m.call("view", map[string]any{"path": name, "search_query_regex": "x"}, numberedLines("%6d\t%s\n", from, file[from:to])+"...\n"+numberedLines("%6d\t%s\n", total-1, file[total-1:]))
	case 9:
		m.call("read", map[string]any{"path": name, "offset": first, "limit": to - from}, part+fmt.Sprintf("\n[%d more lines in file. Use offset=%d to continue.]", total-to, to+1))
	}
}

// several has the agent read all files at once.
func (m *model) several() {
	var parts []string
	form := rapid.IntRange(0, 3).Draw(m.t, "several")
	var answers []map[string]any
	for _, name := range modelNames {
		text, numbered := joined(m.files[name]), numberedLines("%d | %s\n", 0, m.files[name])
		switch form {
		case 0:
			parts = append(parts, "--- "+name+" ---\n\n"+text+"\n\n")
		case 1:
			parts = append(parts, "File: "+name+"\n"+strings.TrimSuffix(numbered, "\n"))
		case 2:
			parts = append(parts, name+":\n"+text+"\n")
		case 3:
			answers = append(answers, map[string]any{"query": name, "result": numbered, "success": true})
		}
	}
	switch form {
	case 0:
		m.call("read_many_files", map[string]any{"include": []string{"src/*.go", "c.go"}}, strings.Join(append(parts, "\n--- End of content ---"), "\n"))
	case 1:
		m.call("read_file", map[string]any{"files": []map[string]any{{"path": modelNames[0]}, {"path": modelNames[1]}, {"path": modelNames[2]}}}, strings.Join(parts, "\n\n---\n\n"))
	case 2:
		m.call("read_multiple_files", map[string]any{"paths": modelNames}, strings.Join(parts, "\n---\n"))
	case 3:
		text, _ := json.Marshal(answers)
		m.call("read_files", map[string]any{"files": modelNames}, string(text))
	}
}

// edited has the agent change lines of a file by a tool whose result, or some of whose arguments, says more than what
// becomes what.
func (m *model) edited() {
	name := m.name()
	from, to, ok := m.span(name)
	put := m.lines(1, 4)
	if !ok {
		return
	}
	file, before := m.files[name], joined(m.files[name])
	old, text := strings.Join(file[from:to], "\n"), strings.Join(put, "\n")
	edit := map[string]any{"file_path": name, "old_string": old, "new_string": text}
	const done = "Successfully modified file."
	if strings.TrimSpace(old) == "" {
		return
	}
	places := strings.Count(before, old)
	if places == 1 && strings.Index(before, old) != strings.LastIndex(before, old) {
		return // at two places that overlap
	}
	switch rapid.IntRange(0, 9).Draw(m.t, "edited") {
	case 0: // all, by their number
		edit["expected_replacements"] = places
		m.set(name, strings.ReplaceAll(before, old, text))
		m.call("replace", edit, done)
	case 1: // the first, or all, of several that are known
		if strings.HasSuffix(old, "\n") {
			return
		}
		m.call("bash", map[string]any{"command": "cat " + name}, before)
		m.set(name, strings.Replace(before, old, text, rapid.SampledFrom([]int{1, -1}).Draw(m.t, "many")))
		m.call("edit", edit, done)
	case 2: // the one between two lines
		m.put(name, from, to, put)
		m.call("replace_file_content", map[string]any{"TargetFile": name, "StartLine": from + 1, "EndLine": to, "TargetContent": old, "ReplacementContent": text}, done)
	case 3: // a user changed it
		m.put(name, from, to, m.lines(1, 4))
		m.call("replace", edit, done+" User modified the `new_string` content to be: other.")
	case 4: // the whole file is shown after it
		m.put(name, from, to, m.lines(1, 4))
		m.call("replace_in_file", map[string]any{"path": name, "diff": "------- SEARCH\n" + old + "\n=======\n" + text + "\n+++++++ REPLACE"},
			"The content was saved. Here is the full, updated content of the file that was saved:\n\n<final_file_content path=\""+name+"\">\n"+strings.TrimSuffix(joined(m.files[name]), "\n")+"\n</final_file_content>\n\nIMPORTANT: it is.")
	case 5: // the change is shown after it
		top, bottom := max(from-2, 0), min(to+2, len(file))
		diff := fmt.Sprintf("Edited it:\n\n```diff\n@@ -%d,%d +%d,%d @@\n", top+1, bottom-top, top+1, bottom-top-(to-from)+len(put))
		for i, l := range file[top:bottom] {
			sign := " "
			if at := top + i; at >= from && at < to {
				sign = "-"
			}
			diff += sign + l + "\n"
			if top+i == to-1 {
				diff += "+" + strings.Join(put, "\n+") + "\n"
			}
		}
		m.put(name, from, to, put)
		m.call("edit_file", map[string]any{"target_file": name, "code_edit": "// ... existing code ..."}, diff+"```")
	case 6: // the lines around it are shown
		if places > 1 {
			return
		}
		m.put(name, from, to, put)
		top, bottom := max(from-2, 0), min(from+len(put)+2, len(m.files[name]))
		m.call("edit", edit, fmt.Sprintf("The file has been updated. Showing lines %d-%d of %d from the edited file:\n\n---\n\n%s", top+1, bottom, len(m.files[name]), strings.TrimSuffix(joined(m.files[name][top:bottom]), "\n")))
	case 7: // it is refused, or some are
		if rapid.Bool().Draw(m.t, "all") {
			m.call("edit", edit, rapid.SampledFrom([]string{"Error: there is no such text", "Failed to edit, 0 occurrences found for old_string", "The user denied this operation."}).Draw(m.t, "refused"))
			return
		}
		m.put(name, from, to, put)
		m.call("multiedit", map[string]any{"file_path": name, "edits": []any{edit, map[string]any{"old_string": "gone", "new_string": "x"}}}, "Applied 1 of 2 edits to file (1 edit(s) failed)")
	case 8: // the text was much the same
		if places > 1 {
			return
		}
		m.put(name, from, to, put)
		edit["old_string"], edit["new_string"] = strings.ReplaceAll(old, "\t", "  ")+" ", text+" // not as it is"
		m.call("replace", edit, done+" Here is the updated code:\n...\n"+strings.TrimSuffix(joined(m.files[name][max(from-2, 0):from+len(put)]), "\n")+"\n...")
	case 9: // lines, by their numbers
		m.put(name, from, to, put)
		m.call("edit_file", map[string]any{"path": name, "edits": []any{map[string]any{"start_line": from + 1, "end_line": to, "new_content": text}}}, done)
	}
}

// patched has the agent change lines of a file by two parts of a patch, each at the first place after the one before.
func (m *model) patched() {
	name := m.name()
	at, patch := 0, "*** Begin Patch\n*** Update File: "+name+"\n"
	for range 2 {
		file := m.files[name]
		if at >= len(file) {
			break
		}
		from := rapid.IntRange(at, len(file)-1).Draw(m.t, "from")
		old, put := file[from:min(from+2, len(file))], m.lines(1, 2)
		known := func(text string) bool { // of such texts it is taken for granted that there is one
			return len(strings.TrimSpace(text)) >= leastLine && strings.Index(joined(file), text) != strings.LastIndex(joined(file), text)
		}
		if known(strings.Join(old, "\n")) {
			break
		}
		anchor := ""
		if above := from - 1; above >= at && strings.TrimSpace(file[above]) != "" && !known(file[above]) && rapid.Bool().Draw(m.t, "anchor") {
			anchor = " " + file[above]
			for strings.TrimSpace(file[at]) != strings.TrimSpace(file[above]) {
				at++
			}
			at++
		}
		for strings.Join(file[at:at+len(old)], "\n") != strings.Join(old, "\n") {
			at++
		}
		patch += "@@" + anchor + "\n-" + strings.Join(old, "\n-") + "\n+" + strings.Join(put, "\n+") + "\n"
		m.put(name, at, at+len(old), put)
		at += len(put)
	}
	if !strings.Contains(patch, "\n@@") {
		return
	}
	m.call("apply_patch", map[string]any{"input": patch + "*** End Patch"}, "Success. Updated the following files:\nM "+name)
}

// other has the agent do something else with a file.
func (m *model) other() {
	name, to := m.name(), m.name()
	put := m.lines(1, 3)
	switch rapid.IntRange(0, 4).Draw(m.t, "other") {
	case 0:
		at := rapid.IntRange(0, len(m.files[name])).Draw(m.t, "at")
		m.put(name, at, at, put)
		m.call("editor", map[string]any{"path": name, "insert_line": at + 1, "new_text": strings.Join(put, "\n")}, "Inserted.")
	case 1:
		m.files[name] = nil
		m.call("delete_path", map[string]any{"path": name}, "Deleted.")
	case 2:
		if name == to {
			return
		}
		m.files[to], m.files[name] = m.files[name], nil
		m.call("move_path", map[string]any{"source_path": name, "destination_path": to}, "Moved.")
	case 3:
		m.files[name] = m.lines(0, 20)
		m.call(rapid.SampledFrom([]string{"format_file", "restore_file_from_disk"}).Draw(m.t, "tool"), map[string]any{"path": name}, "Done.")
	case 4:
		m.call("edit_file", map[string]any{"path": name, "edits": []any{map[string]any{"oldText": "}", "newText": "x"}}, "dryRun": true}, "```diff\n@@ -1 +1 @@\n-}\n+x\n```")
	}
}
