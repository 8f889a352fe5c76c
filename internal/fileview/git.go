package fileview

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// subcommand are the words of a call of git from its subcommand on.
func subcommand(words []string) []string {
	words = words[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		if words[0] == "-C" || words[0] == "-c" {
			words = words[min(1, len(words)-1):] // and what is given to it
		}
		words = words[1:]
	}
	return words
}

// byGit are the files that git puts back, removes or moves.
func byGit(words []string) []Operation {
	if len(words) == 0 {
		return nil
	}
	everything := []Operation{{Kind: Change, Path: ".", All: true}}
	switch words[0] {
	case "rm":
		if !slices.Contains(words, "--cached") {
			return removed(words)
		}
	case "mv":
		return moved(words, Move)
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

// putBack are changes of files, or of what is in folders, to a text that may never have been seen.
func putBack(files []string) []Operation {
	var out []Operation
	for _, file := range files {
		if file != "" && !strings.ContainsAny(file, "*?[{") {
			out = append(out, Operation{Kind: Change, Path: file, All: true})
		}
	}
	return out
}

// elsewhere are the flags of git diff by which it shows no lines of files as they are, or those of
// the index.
var elsewhere = regexp.MustCompile(`^(?:--cached|--staged|--no-index|-R|--stat.*|--numstat|--shortstat|--dirstat.*|--summary|--name-.*|--raw|--check|--color-words.*|--word-diff.*|-w|-b|--ignore-.*|-I.*|-s|--no-patch|--color(?:=always)?|--output.*|--line-prefix.*|--quiet)$`)

// named is a name with an ending, as files have.
var named = regexp.MustCompile(`\.[A-Za-z]\w*$`)

// comparesWorkTree reports whether git shows how files differ from one revision or the index: then
// the new lines are those that the files have now.
func comparesWorkTree(words []string) bool {
	if len(words) == 0 || words[0] != "diff" || slices.ContainsFunc(words, elsewhere.MatchString) {
		return false
	}
	end := slices.Index(words, "--")
	if end < 0 {
		end = len(words)
	}
	revisions := 0
	for _, w := range operandsOf(words[:end]) {
		if strings.Contains(strings.ReplaceAll(w, "../", ""), "..") {
			return false
		}
		if !strings.HasSuffix(w, "/") && !named.MatchString(w) {
			revisions++
		}
	}
	return revisions <= 1
}

// isDiff reports whether a text is what git diff shows.
func isDiff(text string) bool {
	return strings.HasPrefix(text, "diff --git ") || strings.Contains(text, "\ndiff --git ")
}

// hunkHeader says where lines are: how many there are before, and from which line on and how many after.
var hunkHeader = regexp.MustCompile(`^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// compared takes in the new lines that a diff shows.
func (v *Views) compared(text string) {
	name, files := "", 0
	var run region
	before, after := 0, 0 // lines of the hunk to come
	end := func() {
		if len(run.lines) > 0 {
			f := v.file(name)
			f.found = v.now()
			v.show(f, run)
		}
		run, before, after = region{}, 0, 0
	}
	lines := strings.Split(text, "\n")
	for _, l := range lines[:min(len(lines), mostShown)] {
		if before > 0 || after > 0 {
			if l == "" {
				l = " " // of which the blank was lost
			}
			switch l[0] {
			case ' ':
				before, after = before-1, after-1
			case '-':
				before--
				continue
			case '+':
				after--
			case '\\':
				continue
			default:
				before, after = 0, 0
				continue
			}
			run.lines = append(run.lines, v.fresh([]string{l[1:]}, false)...)
			continue
		}
		end()
		if strings.HasPrefix(l, "diff --git ") {
			name = ""
		} else if strings.HasPrefix(l, "+++ ") {
			if name = diffName(l); name == nowhere || strings.HasPrefix(name, `"`) {
				name = ""
			}
			if files++; files > mostFound {
				return
			}
		} else if m := hunkHeader.FindStringSubmatch(l); m != nil && name != "" {
			before, run.from, after = countOf(m[1]), countOf(m[2]), countOf(m[3])
		}
	}
	end()
}

// countOf is a number of lines in the header of a hunk; one where there is none.
func countOf(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 1
	}
	return n
}
