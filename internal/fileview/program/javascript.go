package program

import (
	"regexp"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// jsWrites are functions by which a program in JavaScript may change a file.
var jsWrites = regexp.MustCompile(`^(?:(?:writeFile|appendFile|rename|unlink|rm|copyFile|cp|truncate)(?:Sync)?|createWriteStream|writeTextFile|(?:exec|spawn|execFile)(?:Sync)?)$`)

// JavaScript are the changes that a program in JavaScript makes to files: if it changes any, each file
// may be that it names.
func JavaScript(text string) []fileop.Operation {
	tokens := scanJavaScript(text)
	for i, t := range tokens {
		called := i+1 < len(tokens) && tokens[i+1].text == "("
		if t.kind == word && called && (jsWrites.MatchString(t.text) || t.text == "write" && i > 1 && tokens[i-2].text == "Bun") {
			return fileop.Changes(fileNames(tokens))
		}
	}
	return nil
}

// fileNames are the literals of a program that may be names of files.
func fileNames(tokens []token) []string {
	const longest = 256 // bytes
	var out []string
	for _, t := range tokens {
		if t.kind == literal && len(t.text) <= longest && strings.ContainsAny(t.text, "./") && !strings.ContainsAny(t.text, " \t\r\n*?[{(<>=,\"'\\"+UnknownPart) && !strings.HasPrefix(t.text, "-") && !strings.Contains(t.text, "://") && strings.Trim(t.text, "./") != "" {
			out = append(out, t.text)
		}
	}
	return out
}
