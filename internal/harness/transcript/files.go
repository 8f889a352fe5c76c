package transcript

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Editors are a harness's own tools that change the files which their arguments name: the
// members that may do so, by the tool's name.
type Editors map[string][]string

// Files are the files that a call of the tool is to change; none if it is no editor.
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

// patchHeads are how a patch names the files that it is about.
var patchHeads = []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "}

// PatchFiles are the files that a patch of the tool apply_patch is about.
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

// FilesChanged is the value of LabelFilesChanged for the files, each once; "" if there are
// none or too many for a label.
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

// WithFilesChanged adds the label to others, which may be nil and stay as they are.
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

// OpenEdits are the files that calls without a result yet are to change, by the calls' own
// ids. Of calls that share an id the oldest is answered first.
type OpenEdits map[string][][]string

// Call takes note of a call, whether an editor's or not.
func (o OpenEdits) Call(id string, files []string) { o[id] = append(o[id], files) }

// Result are the files of the call that a result answers.
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
