package reduce

import (
	"math/rand/v2"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

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
