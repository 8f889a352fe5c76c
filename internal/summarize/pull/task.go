package pull

import (
	"fmt"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Task is a request as a worker sees it.
type Task struct {
	ID, SessionID string
	// From and To are the span that the text will replace.
	From, To eventlog.Seq
	// System and Prompt are for the model unchanged.
	System, Prompt  string
	MaxOutputTokens uint64
	// Expires is when the task may be handed to another worker.
	Expires time.Time
}

// Completion is what a worker brings back: Text, or Error if there is none.
type Completion struct {
	TaskID      string
	Text, Error string
	// InputTokens and OutputTokens are the model's own count; 0 if it gave none.
	InputTokens, OutputTokens uint64
	Model                     string
}

// WorkerError is what a worker said instead of bringing a text.
type WorkerError struct{ Worker, Reason string }

func (e *WorkerError) Error() string { return fmt.Sprintf("worker %q failed: %s", e.Worker, e.Reason) }
