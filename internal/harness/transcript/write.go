package transcript

import "io"

// Writer writes a transcript as a harness keeps it on disk: one file, whole. What
// the harness cannot hold is left out and reported, never silently. The same
// transcript and options give the same bytes.
type Writer func(w io.Writer, t Transcript, o WriteOptions) (WriteReport, error)

// WriteOptions say what a transcript does not.
type WriteOptions struct {
	// SessionID is the id that the file gives its main session. Empty: the one that
	// the transcript's labels hold, or one made from its events.
	SessionID string
	// WorkingDirectory stands where no label says one. Empty: "/".
	WorkingDirectory string
}

// WriteReport says what became of a transcript.
type WriteReport struct {
	// Entries is how many the file holds, in the harness's own sense.
	Entries int
	// Compactions is how many boundaries it holds.
	Compactions int
	// Warnings say what the harness cannot hold; their lines are 0.
	Warnings []Warning
}
