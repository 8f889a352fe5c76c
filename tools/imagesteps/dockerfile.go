package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// instruction is an instruction of a Dockerfile, with continuation lines joined.
type instruction struct {
	line  int // of its first line, from 1
	name  string
	flags map[string]string // --name=value, in front of the arguments
	args  string            // the rest, as written
}

// known are the supported instructions, with the flags that may be given. Others are refused, since they
// would not be tested.
var known = map[string][]string{
	"FROM":       {"platform"},
	"ARG":        nil,
	"ENV":        nil,
	"WORKDIR":    nil,
	"COPY":       {"from", "chown"},
	"RUN":        {"mount"},
	"USER":       nil,
	"LABEL":      nil,
	"VOLUME":     nil,
	"EXPOSE":     nil,
	"ENTRYPOINT": nil,
	"CMD":        nil,
}

func parse(dockerfile string) ([]instruction, error) {
	var parsed []instruction
	var pending strings.Builder
	start := 0
	for i, line := range strings.Split(dockerfile, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if pending.Len() == 0 {
			start = i + 1
		}
		if head, continued := strings.CutSuffix(line, `\`); continued {
			pending.WriteString(head)
			continue
		}
		pending.WriteString(line)
		in, err := parseInstruction(start, pending.String())
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, in)
		pending.Reset()
	}
	if pending.Len() > 0 {
		return nil, fmt.Errorf("line %d: ends in the middle of an instruction", start)
	}
	return parsed, nil
}

func parseInstruction(line int, text string) (instruction, error) {
	name, rest, _ := strings.Cut(text, " ")
	in := instruction{line: line, name: strings.ToUpper(name), flags: map[string]string{}}
	allowed, ok := known[in.name]
	if !ok {
		return in, in.errorf("not known here")
	}
	in.args = strings.TrimSpace(rest)
	for strings.HasPrefix(in.args, "--") {
		flag, rest, _ := strings.Cut(in.args, " ")
		key, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if !slices.Contains(allowed, key) {
			return in, in.errorf("flag --%s is not known here", key)
		}
		in.flags[key] = value
		in.args = strings.TrimSpace(rest)
	}
	if in.args == "" {
		return in, in.errorf("has no arguments")
	}
	return in, nil
}

// execForm parses the JSON form of ENTRYPOINT and CMD. The shell form is refused: the final image has no
// shell.
func (in instruction) execForm() ([]string, error) {
	var argv []string
	if err := json.Unmarshal([]byte(in.args), &argv); err != nil || len(argv) == 0 {
		return nil, in.errorf("must be a JSON list of arguments: the image has no shell")
	}
	return argv, nil
}

func (in instruction) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s: %w", in.line, in.name, fmt.Errorf(format, args...))
}
