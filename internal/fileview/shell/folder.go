package shell

import (
	"regexp"
	"strings"

	"github.com/contextd/contextd/internal/fileview/fileop"
)

// enter follows a cd. The folder is unknown after one that may not run, that fails where nobody sees it, or
// whose folder depends on what is known to the shell alone.
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

// moves finds a command that changes the folder.
var moves = regexp.MustCompile(`(?i)(?:^|[\s;&|({])(?:cd|chdir|sl|set-location|push-location|pop-location|pushd|popd)(?:[\s;&|)}]|$)`)

// stays is the folder of all commands of a script that begins in one; empty where a command changes it.
func stays(script, dir string) string {
	if moves.MatchString(script) {
		return ""
	}
	return dir
}
