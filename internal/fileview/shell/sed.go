package shell

import (
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// inPlace reports whether sed or perl edits files.
func inPlace(words []string) bool {
	if words[0] != "sed" && words[0] != "gsed" && words[0] != "perl" {
		return false
	}
	return slices.ContainsFunc(words[1:], func(w string) bool {
		if strings.HasPrefix(w, "--") {
			return strings.HasPrefix(w, "--in-place")
		}
		flags, _, _ := strings.Cut(w, "e")
		return strings.HasPrefix(w, "-") && strings.Contains(flags, "i") && !strings.ContainsAny(flags, " /")
	})
}

// scripted returns the files that sed or perl is given, and its scripts; none if one is unknown.
func scripted(words []string) (files, scripts []string) {
	given, known := false, true
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case !strings.HasPrefix(w, "-"):
			if w != "" { // of -i on some systems
				files = append(files, w)
			}
		case strings.HasSuffix(w, "e") && !strings.HasPrefix(w, "--") && i+1 < len(words):
			given = true
			i++
			scripts = append(scripts, words[i])
		case w == "-f":
			given, known = true, false
			i++
		case strings.HasPrefix(w, "--expression="), strings.HasPrefix(w, "-e"):
			given = true
			scripts = append(scripts, strings.TrimPrefix(strings.TrimPrefix(w, "--expression="), "-e"))
		}
	}
	if !given && len(files) > 0 {
		files, scripts = files[1:], files[:1]
	}
	if !known {
		scripts = nil
	}
	return files, scripts
}

// mostEdits bounds the substitutions of one command, each counted for each of its files.
const mostEdits = 1_000

// inPlaceEdits returns what sed or perl does to files: substitutions if its scripts are nothing else and few, or unknown
// changes.
func inPlaceEdits(words []string) []fileop.Operation {
	files, scripts := scripted(words)
	edits, ok := substitutions(words, scripts)
	ok = ok && len(edits)*len(files) <= mostEdits
	var out []fileop.Operation
	for _, file := range files {
		name, folder := matching(file)
		if !ok || folder {
			out = append(out, fileop.Operation{Kind: fileop.Change, Path: name, All: folder})
			continue
		}
		for _, op := range edits {
			op.Path = file
			out = append(out, op)
		}
	}
	return out
}

// substitutions returns the commands s/old/new/ of scripts for sed. They are known if old is a plain text and
// not a pattern, and all versions of sed read new alike.
func substitutions(words, scripts []string) (edits []fileop.Operation, ok bool) {
	flag := func(letters string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, letters)
		})
	}
	quietly := slices.ContainsFunc(words, func(w string) bool { return w == "--quiet" || w == "--silent" || w == "--null-data" })
	if !strings.HasSuffix(words[0], "sed") || len(scripts) == 0 || flag("nz") || quietly {
		return nil, false
	}
	extended := flag("Er") || slices.Contains(words, "--regexp-extended")
	for _, script := range scripts {
		for rest := strings.TrimSpace(script); rest != ""; rest = strings.TrimLeft(rest, "; \t\n") {
			s := sedCommand{rest: rest, special: `.*[]^$\`}
			if extended {
				s.special += "+?(){}|"
			}
			op, known := s.substitution()
			if !known {
				return nil, false
			}
			edits = append(edits, op)
			rest = s.rest
		}
	}
	return edits, true
}

// sedCommand is a command of sed.
type sedCommand struct {
	rest    string
	special string // characters that are not themselves in a pattern
}

// substitution returns what a command s does.
func (s *sedCommand) substitution() (fileop.Operation, bool) {
	if len(s.rest) < 2 || s.rest[0] != 's' || strings.IndexByte("\\\n \t;", s.rest[1]) >= 0 {
		return fileop.Operation{}, false
	}
	mark := s.rest[1]
	s.rest = s.rest[2:]
	old, ok := s.part(mark, s.special, "]")
	if !ok {
		return fileop.Operation{}, false
	}
	text, ok := s.part(mark, "&", `\.*[]^$(){}"'`)
	if !ok {
		return fileop.Operation{}, false
	}
	end := strings.IndexAny(s.rest, "; \t\n")
	if end < 0 {
		end = len(s.rest)
	}
	flags := s.rest[:end]
	s.rest = s.rest[end:]
	op, ok := fileop.Substitution("", old, text)
	op.All, op.ByLine = flags == "g", flags == ""
	return op, ok && (op.All || op.ByLine)
}

// part returns the text up to a separator, if it is certain: special characters must be after a backslash.
func (s *sedCommand) part(mark byte, special, plain string) (string, bool) {
	var out strings.Builder
	for i := 0; i < len(s.rest); i++ {
		c := s.rest[i]
		switch {
		case c == mark:
			s.rest = s.rest[i+1:]
			return out.String(), true
		case c == '\\':
			if i++; i == len(s.rest) {
				return "", false
			}
			if c = s.rest[i]; c != mark && strings.IndexByte(special+plain, c) < 0 || c == mark && c != '/' && strings.IndexByte(special+"+?(){}|", c) >= 0 {
				return "", false
			}
		case c == '\n' || strings.IndexByte(special, c) >= 0 && strings.IndexByte(plain, c) < 0:
			return "", false
		}
		out.WriteByte(c)
	}
	return "", false
}
