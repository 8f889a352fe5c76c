package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// check tests a turn's context against the promises of the daemon.
func (r *replay) check(t *Turn, ours, all *received) {
	if !ours.hashOK {
		r.problem("turn %d: the messages hash to %s and the daemon says %s", t.Turn, ours.hash, ours.header.GetPrefixHash())
	}
	if !all.hashOK {
		r.problem("turn %d: the unreduced messages hash to %s and the daemon says %s", t.Turn, all.hash, all.header.GetPrefixHash())
	}
	if t.ProjectedTokens > t.TargetTokens {
		r.totals.OverTarget++
		r.problem("turn %d: %d tokens are over the target of %d", t.Turn, t.ProjectedTokens, t.TargetTokens)
	}
	if err := checkPairs(ours.messages); err != nil {
		r.totals.Orphans++
		r.problem("turn %d: %v", t.Turn, err)
	}
	if t.VisibleCalls != t.Calls {
		r.problem("turn %d: %d of %d calls are visible", t.Turn, t.VisibleCalls, t.Calls)
	}
	if ours.changed() != (t.ChangedBy != "") {
		r.problem("turn %d: %d of %d messages are unchanged, and the daemon says that %q rewrote them", t.Turn, ours.stable, ours.before, t.ChangedBy)
	}
	if all.changed() && !all.joined {
		r.problem("turn %d: the unreduced context is no prefix of the next", t.Turn)
	}
	if err := r.checkAnchor(ours.messages, all.messages); err != nil {
		r.problem("turn %d: %v", t.Turn, err)
	}
}

// checkAnchor compares the system prompt and the first human message with what was appended. Messages that
// the harness injected may be dropped, except for the system messages at the beginning. A first message that
// takes half of the target may be clipped.
func (r *replay) checkAnchor(ours, all []*contextdv1.RenderedMessage) error {
	begun := false
	for i, m := range all {
		role := m.GetMessage().GetRole()
		begun = begun || role != contextdv1.Role_ROLE_SYSTEM
		if begun && r.injected(m) {
			continue
		}
		if role == contextdv1.Role_ROLE_ASSISTANT {
			break // no human message came first
		}
		at := slices.IndexFunc(ours, func(o *contextdv1.RenderedMessage) bool { return slices.Equal(o.GetSourceSeqs(), m.GetSourceSeqs()) })
		if at < 0 {
			return fmt.Errorf("message %d of the anchor is not in the context", i)
		}
		if ours[at].GetOrigin() != contextdv1.Origin_ORIGIN_CLIPPED && !proto.Equal(ours[at].GetMessage(), m.GetMessage()) {
			return fmt.Errorf("message %d of the anchor was changed", i)
		}
		if role == contextdv1.Role_ROLE_USER {
			break
		}
	}
	return nil
}

// injected reports whether a message was injected by the harness as a whole.
func (r *replay) injected(m *contextdv1.RenderedMessage) bool {
	return len(m.GetSourceSeqs()) > 0 && !slices.ContainsFunc(m.GetSourceSeqs(), func(seq uint64) bool {
		return seq == 0 || seq > uint64(len(r.appended)) || r.appended[seq-1].GetLabels()["harness.injected"] != "true"
	})
}

// verify has the daemon rebuild every recorded projection, and resolves every pointer in the last context.
func (r *replay) verify(ctx context.Context) error {
	if r.last == nil {
		return nil
	}
	if err := r.verifyProjections(ctx); err != nil {
		return err
	}
	return r.verifyPointers(ctx)
}

func (r *replay) verifyProjections(ctx context.Context) error {
	req := &contextdv1.ListProjectionsRequest{SessionId: sessionID}
	for {
		page, err := r.api.ListProjections(ctx, req)
		if err != nil {
			return err
		}
		for _, p := range page.GetProjections() {
			again, err := r.api.ReplayProjection(ctx, &contextdv1.ReplayProjectionRequest{SessionId: sessionID, ProjectionId: p.GetProjectionId()})
			if err != nil {
				return err
			}
			if !again.GetSame() {
				r.problem("projection %s was not rebuilt: %s", p.GetProjectionId(), again.GetDifference())
				continue
			}
			r.totals.Replayed++
		}
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			break
		}
	}
	if r.totals.Replayed != r.totals.Turns {
		r.problem("%d of %d projections were rebuilt with the same bytes", r.totals.Replayed, r.totals.Turns)
	}
	return nil
}

func (r *replay) verifyPointers(ctx context.Context) error {
	pointers := maps.Clone(r.evicted)
	for _, m := range r.last.messages {
		if m.GetOrigin() == contextdv1.Origin_ORIGIN_SUMMARY {
			_, named := ledgerOf(textOf(m.GetMessage()))
			for _, p := range named {
				pointers[p] = "ledger"
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(pointers)) {
		if err := r.resolve(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// resolve compares the body that a pointer gives with what was appended.
func (r *replay) resolve(ctx context.Context, pointer string) error {
	r.totals.Pointers++
	resp, err := r.api.ResolvePointer(ctx, &contextdv1.ResolvePointerRequest{SessionId: sessionID, Pointer: pointer})
	if err != nil {
		return fmt.Errorf("%s: %w", pointer, err)
	}
	seq := resp.GetEvent().GetSeq()
	if seq == 0 || seq > uint64(len(r.appended)) {
		r.problem("%s leads to event %d", pointer, seq)
		return nil
	}
	original := r.appended[seq-1].GetMessage()
	if !proto.Equal(resp.GetEvent().GetMessage(), original) || !slices.ContainsFunc(original.GetBlocks(), func(b *contextdv1.Block) bool {
		return proto.Equal(b, resp.GetBlock())
	}) {
		r.problem("%s does not give back what was appended", pointer)
		return nil
	}
	r.totals.Resolved++
	return nil
}
