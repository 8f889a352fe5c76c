package reduce

import (
	"math/rand/v2"
	"slices"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

// The clips of a group cover the events of its texts and none between them, which may have another group's text.
func TestClipsOfAGroup(t *testing.T) {
	text := func(seq eventlog.Seq) Message {
		return Message{Blocks: []Block{{Block: eventlog.Text{Text: "a text"}, Seq: seq}}}
	}
	g := &Group{Messages: []Message{text(3), text(4), text(6)}}
	if got, want := clipsOf(g, 9), []Clip{{2, 4, 9}, {5, 6, 9}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// However many clips there are, the tightest that holds at an event is found.
func TestClipLimits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		clips := make([]Clip, random.IntN(60))
		for i := range clips {
			from := eventlog.Seq(random.IntN(40))
			clips[i] = Clip{from, from + eventlog.Seq(random.IntN(8)), 1 + uint64(random.IntN(9))}
		}
		limits := limitsOf(clips)
		for seq := range eventlog.Seq(60) {
			if got, want := limits.at(seq), tightest(0, clips, seq); got != want {
				t.Fatalf("the limit at %d is %d, want %d: %v", seq, got, want, clips)
			}
		}
	}
}
