package reduce

import (
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Whatever compactions say, a group may stay where each of them, asked by itself, lets it stay.
func TestKeepsAsksAll(t *testing.T) {
	const most = 12
	seq := rapid.Uint64Range(0, most)
	rapid.Check(t, func(t *rapid.T) {
		var d *Decided
		for n := range rapid.IntRange(1, 6).Draw(t, "compactions") {
			decision := eventlog.CompactionDecision{Through: eventlog.Seq(seq.Draw(t, "through")), LateAfter: eventlog.Seq(seq.Draw(t, "late after"))}
			for _, k := range rapid.SliceOfN(seq, 0, most).Draw(t, "kept") {
				decision.Kept = append(decision.Kept, eventlog.Seq(k))
			}
			d = newDecided(eventlog.Seq(5+n), &eventlog.Compaction{Decision: &decision}, d, eventlog.Seq(seq.Draw(t, "human")))
		}
		g := &Group{First: 1 + eventlog.Seq(seq.Draw(t, "first")), Human: eventlog.Seq(seq.Draw(t, "group's human")), late: eventlog.Seq(seq.Draw(t, "late"))}
		want := true
		for each := d; each != nil && g.First <= d.Through; each = each.before {
			late := each.late > 0 && g.late > each.late
			want = want && (g.First > each.reach || each.kept[g.First] || g.Human > each.Seq || late)
		}
		if got := d.keeps(g); got != want {
			t.Fatalf("keeps %+v: %v, not %v", g, got, want)
		}
	})
}

// What all of many compactions keep is known from the newest: asking each of them, every reduction
// would go through all that was ever compacted, here for half an hour.
func TestKeptByManyCompactions(t *testing.T) {
	var d *Decided
	for n := range eventlog.Seq(100_000) {
		d = newDecided(10+n, &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Through: 9 + n, DigestTokens: 1, Kept: []eventlog.Seq{3}}}, d, 3)
	}
	kept := &Group{First: 3}
	for range 1_000_000 {
		if !d.keeps(kept) {
			t.Fatal("what all keep may not stay")
		}
	}
}

// A compaction that reaches a group is found among those that do not without asking each of these: that would take a
// quarter of an hour here.
func TestDroppedByTheFirstOfManyCompactions(t *testing.T) {
	const n = eventlog.Seq(100_000)
	var d *Decided
	for i := range n {
		d = newDecided(n+2+i, &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Through: n - i, DigestTokens: 1}}, d, 0)
	}
	dropped, stays := &Group{First: n}, &Group{First: n + 1}
	for range 1_000_000 {
		if d.keeps(dropped) || !d.keeps(stays) {
			t.Fatal("the first compaction alone reaches event", n)
		}
	}
}

// A compaction that is undone leaves the list of those in force as it is.
func TestUndoneAmongMany(t *testing.T) {
	var all Compactions
	read := func(seq eventlog.Seq, d eventlog.CompactionDecision) {
		all.Read(eventlog.Event{Seq: seq, Body: &eventlog.Compaction{Decision: &d}})
	}
	const n, times = 20_000, 1_000
	for seq := eventlog.Seq(2); seq < n; seq++ {
		read(seq, eventlog.CompactionDecision{Through: 1, DigestTokens: 1})
	}
	took := allocated(func() {
		for range times {
			read(n, eventlog.CompactionDecision{Through: 1, DigestTokens: 1})
			read(n+1, eventlog.CompactionDecision{Undoes: n})
		}
	})
	if most := uint64(times * 10_000); len(all.InForce()) != n-2 || took > most {
		t.Errorf("%d are in force; %d that were undone took %d bytes", len(all.InForce()), times, took)
	}
}
