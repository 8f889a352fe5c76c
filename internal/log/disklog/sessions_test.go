package disklog_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
)

// TestBriefListsBesideAppends: what brief lists keep of sessions is what they are once they are written no more,
// although most of them leave the memory and come back while they are listed.
func TestBriefListsBesideAppends(t *testing.T) {
	store := open(t, t.TempDir(), disklog.Options{IdleSessions: 1})
	defer store.Close()
	const sessions, writers, rounds = 8, 4, 60
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range rounds {
				mustAppend(t, store, fmt.Sprint((w+i)%sessions), logtest.Say(fmt.Sprint(w, " ", i)))
			}
		})
	}
	written, listed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(listed)
		for {
			select {
			case <-written:
				return
			default:
				if _, err := store.ListSessions(t.Context(), eventlog.SessionQuery{Brief: true}); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	writing.Wait()
	close(written)
	<-listed
	for range 2 { // what is found, and what was kept of that
		brief, err := store.ListSessions(t.Context(), eventlog.SessionQuery{Brief: true})
		if err != nil {
			t.Fatal(err)
		}
		whole, err := store.ListSessions(t.Context(), eventlog.SessionQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			whole[i].ChainHead, brief[i].ChainHead = nil, nil
		}
		if !reflect.DeepEqual(brief, whole) {
			t.Errorf("brief:\n%+v\nnot:\n%+v", brief, whole)
		}
	}
}
