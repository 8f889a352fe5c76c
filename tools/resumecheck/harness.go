package main

import "context"

// Harness is a CLI that resumes sessions. To add one: a file with its implementation, a
// folder of its name with package.json and package-lock.json, and a line in harnesses.
type Harness interface {
	// Name is that of the harness in internal/harness, and of the folder here.
	Name() string
	// Format is contextd's name of the format whose messages the CLI sends.
	Format() string
	// Place writes a session, and the configuration, where the CLI looks for them.
	Place(h Home, s Session) error
	// Command resumes the session in Home with a new prompt.
	Command(h Home, s Session, prompt string) Command
	// Turns takes the conversation out of the body of a request, or of a member of the
	// view: both are in Format. It fails for what it does not know, so that nothing is
	// passed over.
	Turns(body []byte) ([]Turn, error)
	// Own reports whether the CLI writes such a turn of itself.
	Own(t Turn) bool
	// Interrupted is what the CLI says in the place of the result of a call that has
	// none; empty if it leaves such calls out.
	Interrupted() string
}

// Preparer is a harness that needs more than Place before it resumes, such as a command
// that imports the file.
type Preparer interface {
	Prepare(ctx context.Context, h Home, s Session, run func(Command) error) error
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

// harnesses in the order in which they are checked.
var harnesses = []Harness{codexCLI{}}
