package shell

import (
	"regexp"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// enter follows a cd. Afterwards the folder is unknown if the cd may not run, may fail in silence, or names a
// folder that only the shell knows.
func (s *shell) enter(words []string) {
	certain := s.inOrder && !s.branches && !s.doubts.uncertain
	if !certain || len(words) != 2 || strings.HasPrefix(words[1], "-") {
		s.dir = ""
		return
	}
	if full := fileop.Join(s.dir, words[1]); full != "" {
		s.dir = full
		return
	}
	s.dir = words[1]
}

// moves matches a command that changes the folder.
var moves = regexp.MustCompile(`(?i)(?:^|[\s;&|({])(?:cd|chdir|sl|set-location|push-location|pop-location|pushd|popd)(?:[\s;&|)}]|$)`)

// stays returns dir if all commands of a script run there; empty if one changes the folder.
func stays(script, dir string) string {
	if moves.MatchString(script) {
		return ""
	}
	return dir
}
