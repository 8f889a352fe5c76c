package disklog_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"filippo.io/age"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
)

// BenchmarkEncryption appends events of 2 KiB, one after the other and from 64 clients, and reads
// a session of 2,000 of them from a store that was just opened.
func BenchmarkEncryption(b *testing.B) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		b.Fatal(err)
	}
	text := filler(rand.New(rand.NewPCG(8, 8)), 2000)
	for name, encryption := range map[string]*disklog.Encryption{"plain": nil, "encrypted": {Identities: []age.Identity{identity}}} {
		b.Run("append/"+name, func(b *testing.B) {
			s := open(b, b.TempDir(), disklog.Options{Encryption: encryption})
			n := 0
			for b.Loop() {
				n++
				mustAppend(b, s, "s", logtest.Message(fmt.Sprint(n), eventlog.RoleUser, eventlog.Text{Text: text}))
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
		b.Run("append-64/"+name, func(b *testing.B) {
			s := open(b, b.TempDir(), disklog.Options{Encryption: encryption})
			b.SetParallelism(32)
			b.RunParallel(func(p *testing.PB) {
				id := fmt.Sprint("s", rand.Uint64())
				for n := 0; p.Next(); n++ {
					mustAppend(b, s, id, logtest.Message(fmt.Sprint(n), eventlog.RoleUser, eventlog.Text{Text: text}))
				}
			})
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
		b.Run("cold-read/"+name, func(b *testing.B) {
			dir := b.TempDir()
			s := open(b, dir, disklog.Options{Encryption: encryption})
			for i := range 20 {
				var events []eventlog.Event
				for n := range 100 {
					events = append(events, logtest.Message(fmt.Sprint(i, "-", n), eventlog.RoleUser, eventlog.Text{Text: text}))
				}
				mustAppend(b, s, "s", events...)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				s := open(b, dir, disklog.Options{Encryption: encryption})
				b.StartTimer()
				if events, err := logtest.Collect(s.Read(b.Context(), "s", 1, 0)); err != nil || len(events) != 2000 {
					b.Fatal(len(events), err)
				}
				b.StopTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
