package server

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// ListSummaries lists the summaries of a session, newest first.
func (c *compactions) ListSummaries(ctx context.Context, req *contextdv1.ListSummariesRequest) (*contextdv1.ListSummariesResponse, error) {
	after, id, err := decodeSummaryToken(req.GetPageToken())
	if err != nil {
		return nil, err
	}
	if _, err := c.server.existing(ctx, req.GetSessionId()); err != nil {
		return nil, err
	}
	if err := c.server.reserveEvent(ctx); err != nil {
		return nil, err
	}
	out := &contextdv1.ListSummariesResponse{}
	for _, s := range c.summarizers.Breakers() {
		out.Summarizers = append(out.Summarizers, &contextdv1.SummarizerState{
			Name: s.Summarizer, Breaker: string(s.Health), ConsecutiveFailures: uint32(s.Failures),
		})
	}
	room, last := maxPageBytes-proto.Size(out), summarize.Summary{}
	for s, err := range summarize.NewestFirst(ctx, c.server.store, req.GetSessionId(), after, id) {
		if err != nil {
			return nil, err
		}
		converted := summaryToProto(s)
		room -= proto.Size(converted) + entryOverhead
		if n := len(out.GetSummaries()); n == pageSize(req.GetPageSize()) || n > 0 && room < 0 {
			out.NextPageToken = encodePageToken(fmt.Sprintf("%d %s", last.To, last.ID))
			return out, nil
		}
		out.Summaries, last = append(out.GetSummaries(), converted), s
	}
	return out, nil
}

// decodeSummaryToken returns the last summary of the page before: where its span ends, and its id.
func decodeSummaryToken(token string) (to eventlog.Seq, id string, err error) {
	if token == "" {
		return 0, "", nil
	}
	after, err := decodePageToken(token)
	if err != nil {
		return 0, "", err
	}
	if n, err := fmt.Sscanf(after, "%d %s", &to, &id); err != nil || n != 2 || to == 0 {
		return 0, "", &eventlog.InvalidError{Field: "page_token", Reason: "must be the next_page_token of an earlier page"}
	}
	return to, id, nil
}
