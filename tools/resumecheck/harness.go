package main

import (
	"context"
	"os"
	"path/filepath"
)

// Harness is a CLI that resumes sessions. To add one, write a file with its implementation, a folder of its
// name with package.json and package-lock.json, and add it to harnesses.
type Harness interface {
	// Name is the harness's name in internal/harness, and the name of its folder here.
	Name() string
	// Place writes the session and the configuration to where the CLI looks for them.
	Place(h Home, s Session) error
	// Command is the command that resumes the session with a new prompt.
	Command(h Home, s Session, prompt string) Command
	// Turns parses the conversation in the body of a request. It returns an error for anything that it does
	// not know, so that nothing is skipped.
	Turns(body []byte) ([]Turn, error)
	// Own describes a turn in a few words if it is one that the CLI adds itself; otherwise it returns "".
	Own(t Turn) string
	// Sends is the form in which the CLI sends a turn of the view, if it cannot send the turn unchanged;
	// false if it does not send it. Each implementation explains its rules.
	Sends(t Turn) (Turn, bool)
}

// Preparer is a harness that needs more than Place before it resumes, such as a command that imports the
// file.
type Preparer interface {
	Prepare(ctx context.Context, h Home, s Session, run func(Command) error) error
}

// Reviser is a harness whose rules for what it sends need more than one turn, or other content of the file.
// Revise runs before Sends.
type Reviser interface {
	Revise(view []Turn, s Session) []Turn
}

// Upgrader is a harness whose versions send the same file differently.
type Upgrader interface {
	Upgrade(file []byte) []byte
}

// Home is the part of the machine that a CLI may use.
type Home struct {
	// Dir is its HOME, Work its working directory. Both are new and empty.
	Dir, Work string
	// Installed is the folder with node_modules.
	Installed string
	// URL is the fake provider's address, without path and final slash.
	URL string
}

// Session is a file to resume.
type Session struct {
	// ID is the session's id in the harness.
	ID   string
	File []byte
}

// Command is a program with its arguments and environment.
type Command struct {
	Args []string
	// Env is added to PATH, HOME and the proxy settings, which are the whole environment otherwise.
	Env []string
}

// harnesses are constructors, called once per case, in the order of the checks.
var harnesses = []func() Harness{
	func() Harness { return codexCLI{} },
	func() Harness { return claudeCLI{} },
	func() Harness { return opencodeCLI{&opencodeModel{}, map[string]bool{}} },
	func() Harness { return piCLI{&piModel{}} },
}

// writeFiles writes files below a folder.
func writeFiles(dir string, files map[string][]byte) error {
	for name, data := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
