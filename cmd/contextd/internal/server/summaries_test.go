package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestSummariesComeInPages checks that a page ends before it gets large, that one summary that is large has a page of
// its own, and that all pages have each summary once, the newest first.
func TestSummariesComeInPages(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		store := open(t)
		a := serve(t, store)
		a.append(t, "s", longSession(6, 10)...)
		var want []string
		for i, size := range []int{10, 400 << 10, 400 << 10, 400 << 10, 2 << 20, 10} {
			// The last two are of one span.
			s := summarize.Summary{ID: fmt.Sprintf("s-%d", i), From: 1, To: eventlog.Seq(min(i, 4) + 1), Text: strings.Repeat("x", size)}
			if err := summarize.Put(t.Context(), store, "s", 0, s); err != nil {
				t.Fatal(err)
			}
			want = append([]string{s.ID}, want...)
		}
		for size, pages := range map[uint32]int{0: 4, 1: 6, 1000: 4} {
			var got []string
			req := &contextdv1.ListSummariesRequest{SessionId: "s", PageSize: size}
			for n := 1; ; n++ {
				page, err := a.compaction.ListSummaries(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if proto.Size(page) >= 1<<20 && len(page.GetSummaries()) > 1 {
					t.Errorf("a page of %d bytes has %d summaries", proto.Size(page), len(page.GetSummaries()))
				}
				for _, s := range page.GetSummaries() {
					got = append(got, s.GetSummaryId())
				}
				if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
					if n != pages {
						t.Errorf("%d pages of %d at most, want %d", n, size, pages)
					}
					break
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("by %d: %v, want %v", size, got, want)
			}
		}
		for _, token := range []string{"!", "bm90aGluZw", "MCB4"} { // no base64, "nothing", "0 x"
			_, err := a.compaction.ListSummaries(t.Context(), &contextdv1.ListSummariesRequest{SessionId: "s", PageToken: token})
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "page_token") {
				t.Errorf("with the token %q: %v", token, err)
			}
		}
	})
}
