package fileview

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
	"github.com/contextd/contextd/internal/fileview/program"
	"github.com/contextd/contextd/internal/fileview/shell"
)

// Operations lists what a call does to files, in order; none if its arguments do not show any. Tools are
// recognized by the names of their arguments, which harnesses choose alike; patches and shell commands by
// their form.
func Operations(tool, arguments string) []fileop.Operation {
	var members map[string]json.RawMessage
	if len(arguments) > mostBytes {
		_ = json.Unmarshal([]byte(arguments), &members) // what is no object names no file
		return fileop.NewArguments(members).Changed(tool)
	}
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return given(tool, "input", arguments)
	}
	a := fileop.NewArguments(members)
	if a.Elsewhere() {
		return nil
	}
	if searches(tool) && a.Has("pattern", "query", "regex") {
		return []fileop.Operation{{Kind: fileop.Search, Path: searched(a), Dir: a.Folder()}}
	}
	path := a.Path()
	if found := a.OnWindow(tool, path); len(found) > 0 {
		return found
	}
	if found := onFiles(tool, a, path); len(found) > 0 {
		return fileop.In(a.Folder(), found)
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if name == "command" || name == "cmd" || name == "script" {
			return commands(tool, a, name)
		}
		if found := given(tool, name, a.Text(name)); len(found) > 0 {
			if !runsCode(tool) {
				fileop.In(a.Folder(), found)
			}
			return found
		}
	}
	return nil
}

// onFiles are the operations of a call that names a file, or some.
func onFiles(tool string, a fileop.Arguments, path string) []fileop.Operation {
	if found := a.OnTwo(tool); len(found) > 0 {
		return found
	}
	if path != "" {
		return a.OnFile(tool, path)
	}
	if found := a.Listed(""); len(found) > 0 {
		return found
	}
	return a.OnFiles(tool)
}

// given are the operations of an argument that is neither a path nor a command. A patch counts only if it
// is an argument of a tool that applies patches: prompts, notes and plans quote patches, too.
func given(tool, argument, text string) []fileop.Operation {
	if runsCode(tool) && (argument == "input" || argument == "code") {
		return toolCalls(text)
	}
	if patching(tool) || argument == "patch" || argument == "diff" || argument == "input" && strings.HasPrefix(strings.TrimSpace(text), "*** Begin Patch") {
		return fileop.Patches(text)
	}
	return nil
}

// commands are the operations of an argument that is a shell script or a list of words of a command.
func commands(tool string, a fileop.Arguments, name string) []fileop.Operation {
	var words []string
	if !strings.HasPrefix(string(a[name]), "[") || json.Unmarshal(a[name], &words) != nil {
		return parted(shell.Commands(tool, a.Text(name), a.Folder()))
	}
	return parted(shell.Argv(words, a.Folder()))
}

// parted are operations that are a part of what a call does.
func parted(ops []fileop.Operation) []fileop.Operation {
	for i := range ops {
		ops[i].Part = true
	}
	return ops
}

// toolCalls are the operations of the tools that a program calls. What these show is in the result only if
// the program prints nothing itself.
func toolCalls(text string) []fileop.Operation {
	calls, printed := program.ToolCalls(text)
	var out []fileop.Operation
	for _, call := range calls {
		if arguments, ok := argumentsOf(call); ok && !runsCode(call.Tool) {
			out = append(out, Operations(call.Tool, arguments)...)
		}
	}
	if len(calls) > 1 {
		parted(out)
	}
	if !printed {
		out = slices.DeleteFunc(out, func(op fileop.Operation) bool { return op.Shows() })
	}
	return out
}

// argumentsOf are the arguments of a call in a program, in the form that a call in a log has; false if
// there are none.
func argumentsOf(call program.ToolCall) (string, bool) {
	members := call.Members
	if members == nil {
		name := "cmd"
		if patching(call.Tool) {
			name = "input"
		}
		members = map[string]any{name: call.Text}
	}
	text, err := json.Marshal(members)
	return string(text), err == nil && len(members) > 0
}

// runsCode reports whether a tool runs a program that calls tools.
func runsCode(tool string) bool { return tool == "exec" }

// patching reports whether a tool's name says that it changes files by what it is given.
func patching(tool string) bool {
	name := strings.ToLower(tool)
	return strings.Contains(name, "patch") && !strings.Contains(name, "dispatch") || strings.Contains(name, "diff") || strings.Contains(name, "edit")
}

// searches reports whether a tool's name says that its result is lines that were found in files. The name of an MCP
// server says nothing of that.
func searches(tool string) bool {
	name := strings.ToLower(tool[strings.LastIndex(tool, "__")+1:])
	return strings.Contains(name, "grep") && !strings.Contains(name, "web") || strings.Contains(name, "search_file_content") || name == "rg"
}

// searched is the one file that is searched; empty where it may be a folder.
func searched(a fileop.Arguments) string {
	path := a.Text("path")
	if strings.Contains(path[strings.LastIndexByte(path, '/')+1:], ".") {
		return path
	}
	return ""
}
