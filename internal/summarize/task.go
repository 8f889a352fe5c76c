package summarize

import (
	"context"
	"encoding/json"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

// TaskKind is the kind of artifact under which the work itself is kept, so that what
// a crash interrupted is taken up again and what failed for good is not.
const TaskKind = "summary_task"

// task is the state of the work on one span.
type task struct {
	Status status `json:"status"`
	// Reason is why the last attempt failed; empty if none did.
	Reason string `json:"reason,omitempty"`
	// Attempts counts how often a backend was asked, the one that is running
	// included.
	Attempts int            `json:"attempts"`
	Proposal storedProposal `json:"proposal"`
}

type status string

// A task is pending from before its first attempt until it ends.
const (
	pending status = "pending"
	failed  status = "failed"
	done    status = "done"
)

// storedProposal is a Proposal as it stands in the store. The session is the one
// that it is found in: a fork goes on with what its parent began.
type storedProposal struct {
	From            eventlog.Seq `json:"from"`
	To              eventlog.Seq `json:"to"`
	Extends         string       `json:"extends,omitempty"`
	Summarizer      string       `json:"summarizer"`
	Instructions    string       `json:"instructions,omitempty"`
	Mode            prompt.Mode  `json:"instructions_mode,omitempty"`
	MaxInputTokens  uint64       `json:"max_input_tokens,omitempty"`
	MaxOutputTokens uint64       `json:"max_output_tokens"`
	Tokenizer       string       `json:"tokenizer,omitempty"`
	Trigger         string       `json:"trigger,omitempty"`
}

// taskID is the key of the proposal's task within its session.
func (p Proposal) taskID() string {
	return "t" + workKey(p.From, p.To, p.Summarizer, p.Instructions.Fingerprint(), 8)
}

// requestID tells tasks of all sessions apart.
func (p Proposal) requestID() string {
	return "t" + workKey(p.From, p.To, p.Summarizer, p.Instructions.Fingerprint()+"\n"+p.SessionID, 12)
}

func (p Proposal) stored() storedProposal {
	return storedProposal{
		p.From, p.To, p.Extends, p.Summarizer, p.Instructions.Text, p.Instructions.Mode,
		p.MaxInputTokens, p.MaxOutputTokens, p.Tokenizer, p.Trigger,
	}
}

func (p storedProposal) in(sessionID string) Proposal {
	return Proposal{
		sessionID, p.From, p.To, p.Extends, p.Summarizer, prompt.Instructions{Text: p.Instructions, Mode: p.Mode},
		p.MaxInputTokens, p.MaxOutputTokens, p.Tokenizer, p.Trigger,
	}
}

// putTask is durable on return.
func putTask(ctx context.Context, store eventlog.Store, p Proposal, t task) error {
	t.Proposal = p.stored()
	value, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return store.PutArtifact(ctx, p.SessionID, eventlog.Artifact{Kind: TaskKind, Seq: p.To, ID: p.taskID(), Value: value})
}

// getTask returns the zero task if there is none.
func getTask(ctx context.Context, store eventlog.Store, p Proposal) (task, error) {
	a, err := store.Artifact(ctx, p.SessionID, TaskKind, p.To, p.taskID())
	if ok, err := exists(err); !ok {
		return task{}, err
	}
	return decodeTask(a)
}

func decodeTask(a eventlog.Artifact) (task, error) {
	var t task
	if err := json.Unmarshal(a.Value, &t); err != nil {
		return task{}, &eventlog.CorruptError{What: fmt.Sprintf("summary task %s", a.ID), Reason: err.Error()}
	}
	return t, nil
}

// unfinished returns the pending tasks of a session, oldest first, that no summary
// has overtaken.
func unfinished(ctx context.Context, store eventlog.Store, sessionID string) ([]Proposal, error) {
	var newest eventlog.Seq
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: ArtifactKind, Reverse: true}) {
		if err != nil {
			return nil, err
		}
		newest = a.Seq
		break
	}
	var all []Proposal
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: TaskKind, From: newest}) {
		if err != nil {
			return nil, err
		}
		t, err := decodeTask(a)
		if err != nil {
			return nil, err
		}
		if t.Status == pending {
			all = append(all, t.Proposal.in(sessionID))
		}
	}
	return all, nil
}
