package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// script is what the agent says and does, by turns of its user.
type script struct {
	// Base is the revision that the script was written for; empty is HEAD.
	Base   string `yaml:"base"`
	System string `yaml:"system"`
	// Prepare are commands that run before the session and are not recorded, such as builds that would
	// otherwise print what they download.
	Prepare []string `yaml:"prepare"`
	Turns   []turn   `yaml:"turns"`
}

// turn is a message of the user, and the assistant messages that answer it.
type turn struct {
	User string `yaml:"user"`
	// After is the time since the last answer; absent is two minutes.
	After time.Duration `yaml:"after"`
	Steps []step        `yaml:"steps"`
}

// step is one assistant message; several calls are parallel calls.
type step struct {
	Say   string `yaml:"say"`
	Calls []call `yaml:"calls"`
}

// call is a call of one tool.
type call struct {
	Bash  *bash  `yaml:"bash"`
	Read  *read  `yaml:"read_file"`
	Edit  *edit  `yaml:"edit_file"`
	Write *write `yaml:"write_file"`
	// Fails says whether the call must fail. If it does not happen as stated, the script no longer fits the
	// repository.
	Fails bool `yaml:"fails"`
}

// parseScript parses a script strictly: it refuses fields that it does not know.
func parseScript(text []byte) (script, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var s script
	if err := decoder.Decode(&s); err != nil {
		return s, err
	}
	if s.System == "" || len(s.Turns) == 0 {
		return s, errors.New("a session needs system and turns")
	}
	for i, t := range s.Turns {
		if t.User == "" || len(t.Steps) == 0 {
			return s, fmt.Errorf("turns[%d]: needs user and steps", i)
		}
		for j, st := range t.Steps {
			if st.Say == "" && len(st.Calls) == 0 {
				return s, fmt.Errorf("turns[%d].steps[%d]: says and does nothing", i, j)
			}
			for k := range st.Calls {
				if st.Calls[k].tools() != 1 {
					return s, fmt.Errorf("turns[%d].steps[%d].calls[%d]: must name one tool", i, j, k)
				}
			}
		}
	}
	return s, nil
}

func (c *call) tools() int {
	n := 0
	for _, set := range []bool{c.Bash != nil, c.Read != nil, c.Edit != nil, c.Write != nil} {
		if set {
			n++
		}
	}
	return n
}

// tool returns the call's tool and its name.
func (c *call) tool() (string, tool) {
	switch {
	case c.Bash != nil:
		return "bash", c.Bash
	case c.Read != nil:
		return "read_file", c.Read
	case c.Edit != nil:
		return "edit_file", c.Edit
	default:
		return "write_file", c.Write
	}
}
