package main

import (
	"context"
	"os"
	"path/filepath"
)

// Harness is a CLI that resumes sessions. To add one: a file with its implementation, a
// folder of its name with package.json and package-lock.json, and a line in harnesses.
type Harness interface {
	// Name is that of the harness in internal/harness, and of the folder here.
	Name() string
	// Place writes a session, and the configuration, where the CLI looks for them.
	Place(h Home, s Session) error
	// Command resumes the session in Home with a new prompt.
	Command(h Home, s Session, prompt string) Command
	// Turns takes the conversation out of the body of a request. It fails for what it
	// does not know, so that nothing is passed over.
	Turns(body []byte) ([]Turn, error)
	// Own says what such a turn is if the CLI writes it of itself, in a few words; "" if it
	// does not.
	Own(t Turn) string
	// Sends is what the CLI makes of a turn of the view where it cannot send it as it
	// is, and false where it sends nothing of it. The implementation gives the reason for
	// every rule.
	Sends(t Turn) (Turn, bool)
}

// Preparer is a harness that needs more than Place before it resumes, such as a command
// that imports the file.
type Preparer interface {
	Prepare(ctx context.Context, h Home, s Session, run func(Command) error) error
}

// Reviser is a harness whose rules for what it sends look at more than one turn, or at what
// the file says besides; it is asked before Sends.
type Reviser interface {
	Revise(view []Turn, s Session) []Turn
}

// Upgrader is a harness whose versions send the same file differently.
type Upgrader interface {
	Upgrade(file []byte) []byte
}

// Home is all that a CLI has of the machine.
type Home struct {
	// Dir is its HOME, Work its working directory; both are new and empty.
	Dir, Work string
	// Installed is the folder that has node_modules.
	Installed string
	// URL is the fake provider, without a path and a slash at the end.
	URL string
}

// Session is a file to be resumed.
type Session struct {
	// ID is the harness's own.
	ID   string
	File []byte
}

// Command is a program and what it gets.
type Command struct {
	Args []string
	// Env is added to the PATH, the HOME and the proxy settings, which are all that it
	// has otherwise.
	Env []string
}

// harnesses make one for each case, in the order in which they are checked.
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
