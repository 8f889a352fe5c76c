package transcript

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Editors are a harness's own tools that change files. They map a tool's name to the arguments that may name
// such a file.
type Editors map[string][]string

// Files returns the files that a call of the tool will change; none if the tool is no editor.
func (e Editors) Files(tool string, arguments []byte) []string {
	names := e[tool]
	if len(names) == 0 || !Valid(arguments) {
		return nil
	}
	input := parseLevels(arguments, 1)
	var files []string
	for _, name := range names {
		if member := input.find([]byte(name), first()); member != nil && input.kind == '{' {
			if file, ok := Text(member.raw); ok && file != "" {
				files = append(files, file)
			}
		}
	}
	return files
}

// patchHeads begin the lines of a patch that name a file.
var patchHeads = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}

// PatchFiles returns the files that a patch for the tool apply_patch names.
func PatchFiles(patch string) []string {
	var files []string
	for l := range strings.Lines(patch) {
		for _, head := range patchHeads {
			if file, ok := strings.CutPrefix(strings.TrimRight(l, "\r\n"), head); ok {
				files = append(files, file)
			}
		}
	}
	return files
}

// FilesChanged returns the value of LabelFilesChanged for these files, without repetitions; "" if there are none
// or too many for a label.
func FilesChanged(files []string) string {
	var each []string
	for _, file := range files {
		if file = Clean(file); file != "" && !slices.Contains(each, file) {
			each = append(each, file)
		}
		if len(each) > MaxLabelValue {
			return ""
		}
	}
	all := strings.Join(each, "\n")
	if utf8.RuneCountInString(all) > MaxLabelValue {
		return ""
	}
	return all
}

// WithFilesChanged returns the labels with LabelFilesChanged added. The map that it gets may be nil and is
// not changed.
func WithFilesChanged(labels map[string]string, files []string) map[string]string {
	value := FilesChanged(files)
	if value == "" {
		return labels
	}
	out := map[string]string{LabelFilesChanged: value}
	for k, v := range labels {
		out[k] = v
	}
	return out
}

// OpenEdits has the files that unanswered calls will change, by the calls' original ids. Of several calls with the
// same id the oldest is answered first.
type OpenEdits map[string][][]string

// Call adds a call. Calls of other tools must be added too, with no files.
func (o OpenEdits) Call(id string, files []string) { o[id] = append(o[id], files) }

// Result removes the call that a result answers, and returns its files.
func (o OpenEdits) Result(id string) []string {
	open := o[id]
	if len(open) == 0 {
		return nil
	}
	if len(open) == 1 {
		delete(o, id)
	} else {
		o[id] = open[1:]
	}
	return open[0]
}
