package disklog

import (
	"context"
	"fmt"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

// TestIdleBytes has sessions with large settings, and with many open calls: the store lets
// go of what nobody uses, and reads it again.
func TestIdleBytes(t *testing.T) {
	const sessions, room = 40, 1 << 20
	settings := []byte(strings.Repeat("x", 100<<10))
	for name, fill := range map[string]func(s *Store, id string) error{
		"settings": func(s *Store, id string) error {
			_, err := s.CreateSession(context.Background(), eventlog.Session{ID: id, Settings: settings})
			return err
		},
		"open calls": func(s *Store, id string) error {
			var calls []eventlog.Block
			for i := range 500 {
				calls = append(calls, eventlog.ToolCall{CallID: strings.Repeat("c", 200) + fmt.Sprint(i), Name: "n"})
			}
			commit, err := s.Append(context.Background(), id, eventlog.Batch{Events: []eventlog.Event{
				{ID: "e", Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: calls}},
			}})
			if err == nil {
				_, err = commit.Wait(context.Background())
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.TempDir(), Options{IdleBytes: room})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for i := range sessions {
				if err := fill(s, fmt.Sprint("s", i)); err != nil {
					t.Fatal(err)
				}
			}
			for i := range sessions {
				id := fmt.Sprint("s", i)
				sl, found, err := s.find(id)
				if err != nil {
					t.Fatal(err)
				}
				if name == "settings" && len(found.info.Settings) != len(settings) || name == "open calls" && len(found.at.head.OpenCalls) != 500 {
					t.Errorf("%s came back with %d bytes of settings and %d open calls", id, len(found.info.Settings), len(found.at.head.OpenCalls))
				}
				s.release(sl)
			}
			s.mu.Lock()
			held, kept := s.held, s.recent.Len()
			s.mu.Unlock()
			if held > room || kept == 0 || kept >= sessions/2 {
				t.Errorf("%d sessions with %d bytes are kept, with room for %d", kept, held, room)
			}
		})
	}
}
