package projection

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Failed reports whether a call failed, by its result. A result is a failure if it is marked as an error, or its text
// is a JSON object whose status says so, or its text begins as errors do. Failures that are mentioned later in the
// text do not count: a log file reports failures but is none. A call without a result has not failed.
func Failed(c *reduce.Call) bool {
	if c.Interrupted {
		return false
	}
	return c.IsError || failedStatus(c.Body) || failedText(c.Body)
}

// failedStatuses are the statuses of failed results.
var failedStatuses = []string{"error", "failed", "rejected", "exception", "denied"}

func failedStatus(body string) bool {
	body = strings.TrimSpace(body)
	if !strings.HasPrefix(body, "{") || !strings.Contains(body, `"status"`) {
		return false
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(body), &object) != nil {
		return false
	}
	var status string
	if json.Unmarshal(object["status"], &status) != nil {
		return false
	}
	for _, s := range failedStatuses {
		if strings.EqualFold(status, s) {
			return true
		}
	}
	return false
}

func failedText(body string) bool {
	body = strings.TrimLeftFunc(body, unicode.IsSpace)
	if hasPrefixFold(body, "error:") || hasPrefixFold(body, "failed:") {
		return true
	}
	const toolError = "tool error"
	if !hasPrefixFold(body, toolError) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(body[len(toolError):])
	return !unicode.IsLetter(next) // not "tool errors are ..."
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// speaks reports whether a group says anything besides its calls, their results and its reasoning.
func speaks(g *reduce.Group) bool {
	for m := range g.Messages {
		if g.Messages[m].Role == eventlog.RoleTool {
			continue
		}
		for _, b := range g.Messages[m].Blocks {
			switch b := b.Block.(type) {
			case eventlog.ToolCall, eventlog.Thinking:
			case eventlog.Text:
				if strings.TrimSpace(b.Text) != "" {
					return true
				}
			default:
				return true
			}
		}
	}
	return false
}

// subject identifies what a call is about: its tool and its target. Calls with the same subject try the
// same thing. The target is every argument with a name such as path or command (namesTarget); if there is
// none, all the arguments.
func subject(c *reduce.Call) string {
	var out strings.Builder
	out.WriteString(c.Name)
	targets := false
	members(c.Arguments, func(name string, value json.RawMessage) {
		if !namesTarget(name) {
			return
		}
		targets = true
		out.WriteByte(0)
		out.WriteString(strings.ToLower(name))
		out.WriteByte('=')
		out.Write(value)
	})
	if !targets {
		out.WriteByte(0)
		out.WriteString(compacted(c.Arguments))
	}
	return out.String()
}

// targetNames are the last words of names of arguments that say what a call works on, not how.
var targetNames = map[string]bool{
	"path": true, "paths": true, "file": true, "files": true, "filename": true, "filepath": true,
	"dir": true, "directory": true, "folder": true, "cwd": true, "workdir": true,
	"cmd": true, "command": true, "commands": true, "script": true, "code": true,
	"url": true, "uri": true, "urls": true, "host": true, "endpoint": true,
	"id": true, "ids": true, "name": true, "key": true, "number": true, "ref": true, "symbol": true,
	"repo": true, "repository": true, "owner": true, "branch": true, "namespace": true, "table": true,
	"query": true, "pattern": true, "sql": true, "regex": true, "prompt": true, "target": true,
}

// namesTarget checks the last word of an argument's name, such as file_path, issueId or cmd.
func namesTarget(name string) bool {
	last := name[strings.LastIndexAny(name, "_-. ")+1:]
	if targetNames[strings.ToLower(last)] {
		return true
	}
	for i := len(last) - 1; i > 0; i-- {
		if last[i] >= 'A' && last[i] <= 'Z' {
			return targetNames[strings.ToLower(last[i:])]
		}
	}
	return false
}
