package summarize

import (
	"context"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize/prompt"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// TaskKind is the kind of artifacts with the state of the work, so that interrupted work is resumed after a crash and
// permanent failures are not retried.
const TaskKind = "summary_task"

// task is the state of the work on one span.
type task struct {
	Status status
	// Reason is why the last attempt failed; empty if none did.
	Reason string
	// Attempts counts the attempts, including a running one.
	Attempts int
	Proposal Proposal
}

// failure says why a proposal is not tried again.
func (t task) failure(p Proposal) error {
	return &FailedError{p.From, p.To, p.Summarizer, t.Attempts, t.Reason}
}

// status is the state of the work. A task is pending until it ends.
type status = storagev1.SummaryTaskStatus

const (
	pending = storagev1.SummaryTaskStatus_SUMMARY_TASK_STATUS_PENDING
	failed  = storagev1.SummaryTaskStatus_SUMMARY_TASK_STATUS_FAILED
	done    = storagev1.SummaryTaskStatus_SUMMARY_TASK_STATUS_DONE
)

// taskID returns the key of the proposal's task within its session.
func (p Proposal) taskID() string {
	return "t" + workKey(p.From, p.To, p.Summarizer, p.asked(), 8)
}

// requestID identifies a task among all sessions.
func (p Proposal) requestID() string {
	return "t" + workKey(p.From, p.To, p.Summarizer, p.asked()+"\n"+p.SessionID, 12)
}

// putTask stores a task, durable on return.
func putTask(ctx context.Context, store eventlog.Artifacts, p Proposal, t task) error {
	a, err := t.artifact(p)
	if err != nil {
		return err
	}
	return store.PutArtifacts(ctx, p.SessionID, a)
}

// artifact returns the artifact of a proposal's task.
func (t task) artifact(p Proposal) (eventlog.Artifact, error) {
	t.Proposal = p
	return artifact.Encode(eventlog.Artifact{Kind: TaskKind, Seq: p.To, ID: p.taskID(), Of: p.Of}, t.stored())
}

func (t task) stored() *storagev1.SummaryTask {
	p := t.Proposal
	return &storagev1.SummaryTask{
		Version: storedVersion, Status: t.Status, Reason: t.Reason, Attempts: uint32(t.Attempts),
		From: uint64(p.From), To: uint64(p.To), Extends: p.Extends, Summarizer: p.Summarizer,
		Instructions: p.Instructions.Text, InstructionsMode: string(p.Instructions.Mode),
		MaxInputTokens: p.MaxInputTokens, MaxOutputTokens: p.MaxOutputTokens, Sized: p.Sized, Tokenizer: p.Tokenizer, Trigger: p.Trigger,
	}
}

// getTask returns a proposal's task; zero if there is none.
func getTask(ctx context.Context, store eventlog.Artifacts, p Proposal) (task, error) {
	a, err := store.Artifact(ctx, p.SessionID, TaskKind, p.To, p.taskID())
	if ok, err := exists(err); !ok {
		return task{}, err
	}
	return decodeTask(p.SessionID, a)
}

// decodeTask decodes a task. Its proposal gets the session in which the task was found: a fork goes on with its
// parent's unfinished work.
func decodeTask(sessionID string, a eventlog.Artifact) (task, error) {
	m := &storagev1.SummaryTask{}
	if err := artifact.Decode(a, m, storedVersion); err != nil {
		return task{}, err
	}
	return task{
		Status: m.GetStatus(), Reason: m.GetReason(), Attempts: int(m.GetAttempts()),
		Proposal: Proposal{
			SessionID: sessionID, From: eventlog.Seq(m.GetFrom()), To: eventlog.Seq(m.GetTo()), Extends: m.GetExtends(), Summarizer: m.GetSummarizer(),
			Instructions:   prompt.Instructions{Text: m.GetInstructions(), Mode: prompt.Mode(m.GetInstructionsMode())},
			MaxInputTokens: m.GetMaxInputTokens(), MaxOutputTokens: m.GetMaxOutputTokens(), Sized: m.GetSized(), Tokenizer: m.GetTokenizer(), Trigger: m.GetTrigger(),
		},
	}, nil
}

// unfinished returns the pending tasks of a session, oldest first, without those whose span a summary already covers.
func unfinished(ctx context.Context, store eventlog.Artifacts, session eventlog.Session) ([]Proposal, error) {
	sessionID := session.ID
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
		t, err := decodeTask(sessionID, a)
		if err != nil {
			return nil, err
		}
		if t.Status == pending {
			t.Proposal.Of = session.Incarnation
			all = append(all, t.Proposal)
		}
	}
	return all, nil
}
