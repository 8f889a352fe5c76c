package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
	"github.com/contextd/contextd/internal/fileview/program"
)

// quiet are programs that show nothing if they succeed, and change no file's text.
var quiet = map[string]bool{"cd": true, "set": true, "export": true, "unset": true, "mkdir": true, "touch": true, "chmod": true, "true": true, ":": true, "sleep": true}

// call reads a command with these words.
func (s *shell) call(words []string, at statement) {
	if op, ok := fileop.Windowed(words); ok {
		s.steps = append(s.steps, step{op: op})
		return
	}
	switch program := path.Base(words[0]); {
	case program == "cd":
		s.enter(words)
	case program == "pushd" || program == "popd":
		s.dir = ""
		s.show(fileop.Operation{Kind: fileop.Print}, at)
	case quiet[program]:
	case program == "rm":
		s.changed(removed(words)...)
	case program == "mv":
		s.changed(moved(words, fileop.Move)...)
	case program == "cp":
		s.changed(moved(words, fileop.Copy)...)
	case program == "git":
		s.changed(byGit(words)...)
		s.show(fileop.Operation{Kind: fileop.Print}, at)
	case program == "tee":
		s.changed(teed(words, at)...)
		s.show(fileop.Operation{Kind: fileop.Print}, at)
	case strings.HasPrefix(program, "powershell") || strings.HasPrefix(program, "pwsh"):
		if len(words) > 2 && shellFlag.MatchString(words[len(words)-2]) {
			s.powerShell(words[len(words)-1], map[string]string{}, false)
		} else {
			s.show(fileop.Operation{Kind: fileop.Print}, at)
		}
	case program == editor:
		op := edited(words)
		if op.Kind == fileop.Read {
			s.show(op, at)
			return
		}
		s.changed(op)
		s.show(fileop.Operation{Kind: fileop.Print}, at)
	case inPlace(words):
		s.changed(inPlaceEdits(words)...)
	default:
		if changes, ok := interpreted(words, at); ok {
			s.changed(changes...)
		}
		if text, ok := printed(words); ok {
			s.show(fileop.Operation{Kind: fileop.Print, New: text}, at)
		} else if op, ok := reader(words); ok {
			s.show(op, at)
		} else {
			s.show(fileop.Operation{Kind: fileop.Print}, at)
		}
	}
}

// written returns what a command does to the file that its output goes to.
func written(words []string, at statement) fileop.Operation {
	op := fileop.Operation{Kind: fileop.Change, Path: at.output}
	if len(words) == 0 {
		return op
	}
	text, ok := printed(words)
	cat := path.Base(words[0]) == "cat"
	if cat && len(words) == 1 {
		text, ok = at.input, at.input != ""
	}
	switch {
	case ok && at.adds:
		op.Kind, op.New = fileop.Append, text
	case ok:
		op.Kind, op.New = fileop.Write, text
	case cat && len(words) == 2 && !at.adds && !strings.HasPrefix(words[1], "-"):
		return fileop.Operation{Kind: fileop.Copy, Path: words[1], To: at.output}
	}
	return op
}

// printed returns the text that a command prints, if that is certain from its words alone.
func printed(words []string) (string, bool) {
	if len(words) < 2 {
		return "", false
	}
	switch words[0] {
	case "echo":
		text, end := words[1:], "\n"
		if text[0] == "-n" {
			text, end = text[1:], ""
		}
		if len(text) > 0 && (strings.HasPrefix(text[0], "-") && len(text[0]) == 2 || strings.Contains(strings.Join(text, ""), `\`)) {
			return "", false // what echo makes of these depends on the shell
		}
		return strings.Join(text, " ") + end, true
	case "printf":
		format, text := words[1], words[2:]
		switch {
		case len(text) == 0 && !strings.Contains(format, "%"):
			return program.Unescape(format), true
		case format == `%s\n`:
			return strings.Join(text, "\n") + "\n", true
		case format == "%s" && len(text) == 1:
			return text[0], true
		}
	}
	return "", false
}

// removed returns the files that rm removes. Patterns are ignored, because the files that match are unknown.
func removed(words []string) []fileop.Operation {
	var out []fileop.Operation
	recursive := slices.ContainsFunc(words[1:], func(w string) bool {
		return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "rR") || w == "--recursive"
	})
	for _, file := range operandsOf(words) {
		if !strings.ContainsAny(file, "*?[{") {
			out = append(out, fileop.Operation{Kind: fileop.Remove, Path: file, All: recursive})
		}
	}
	return out
}

// moved returns the files that mv moves, or that cp copies.
func moved(words []string, kind fileop.Kind) []fileop.Operation {
	files := operandsOf(words)
	if len(files) < 2 || slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-t") || strings.HasPrefix(w, "--target") }) {
		return nil
	}
	to := files[len(files)-1]
	files = files[:len(files)-1]
	var out []fileop.Operation
	for _, file := range files {
		if strings.ContainsAny(file, "*?[{") || file == "" || to == "" {
			continue
		}
		name := to
		if len(files) > 1 || strings.HasSuffix(to, "/") || to == "." || to == ".." || path.Ext(to) == "" && path.Ext(file) != "" {
			name = path.Join(to, path.Base(file)) // into a folder
		}
		out = append(out, fileop.Operation{Kind: kind, Path: file, To: name})
	}
	return out
}

// byGit returns the files that git restores, removes or moves.
func byGit(words []string) []fileop.Operation {
	words = words[1:]
	for len(words) > 1 && (words[0] == "-C" || words[0] == "-c") {
		words = words[2:]
	}
	if len(words) == 0 {
		return nil
	}
	everything := []fileop.Operation{{Kind: fileop.Change, Path: ".", All: true}}
	switch words[0] {
	case "rm":
		if !slices.Contains(words, "--cached") {
			return removed(words)
		}
	case "mv":
		return moved(words, fileop.Move)
	case "reset":
		if slices.Contains(words, "--hard") {
			return everything
		}
	case "stash":
		if len(words) > 1 && slices.Contains([]string{"list", "show", "drop", "clear", "create", "store", "branch"}, words[1]) {
			return nil
		}
		if at := slices.Index(words, "--"); at >= 0 {
			return putBack(words[at+1:])
		}
		return everything
	case "restore":
		if !slices.Contains(words, "--staged") || slices.Contains(words, "--worktree") {
			return putBack(operandsOf(words))
		}
	case "checkout":
		if at := slices.Index(words, "--"); at >= 0 {
			return putBack(words[at+1:])
		}
		if !slices.ContainsFunc(words, func(w string) bool { return w == "-b" || w == "-B" || w == "--orphan" }) {
			return putBack(operandsOf(words))
		}
	}
	return nil
}

// putBack returns changes of files, or of everything in folders, to a text that may never have been shown.
func putBack(files []string) []fileop.Operation {
	var out []fileop.Operation
	for _, file := range files {
		if file != "" && !strings.ContainsAny(file, "*?[{") {
			out = append(out, fileop.Operation{Kind: fileop.Change, Path: file, All: true})
		}
	}
	return out
}

// teed returns the files that tee writes.
func teed(words []string, at statement) []fileop.Operation {
	op := fileop.Operation{Kind: fileop.Change}
	switch adds := slices.Contains(words, "-a") || slices.Contains(words, "--append"); {
	case at.input == "":
	case adds:
		op.Kind, op.New = fileop.Append, at.input
	default:
		op.Kind, op.New = fileop.Write, at.input
	}
	var out []fileop.Operation
	for _, file := range operandsOf(words) {
		if !strings.HasPrefix(file, "/dev/") {
			op.Path = file
			out = append(out, op)
		}
	}
	return out
}
