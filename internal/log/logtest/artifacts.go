package logtest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	eventlog "github.com/contextd/contextd/internal/log"
)

func artifact(kind string, seq eventlog.Seq, id, value string) eventlog.Artifact {
	return eventlog.Artifact{Kind: kind, Seq: seq, ID: id, Value: []byte(value)}
}

func (h *harness) put(session string, all ...eventlog.Artifact) {
	h.Helper()
	for _, a := range all {
		h.ok(h.s.PutArtifacts(h.Context(), session, a))
	}
}

// artifacts lists what a query yields as "seq/id=value".
func (h *harness) artifacts(session string, q eventlog.ArtifactQuery) []string {
	h.Helper()
	all, err := Collect(h.s.Artifacts(h.Context(), session, q))
	h.ok(err)
	var got []string
	for _, a := range all {
		if a.Kind != q.Kind {
			h.Fatalf("got kind %q, want %q", a.Kind, q.Kind)
		}
		got = append(got, fmt.Sprintf("%d/%s=%s", a.Seq, a.ID, a.Value))
	}
	return got
}

func (h *harness) conflicts(got error) {
	h.Helper()
	var conflict *eventlog.ConflictError
	if !errors.As(got, &conflict) {
		h.Fatalf("got error %v, want a conflict", got)
	}
}

var artifactCases = []testCase{
	{name: "an artifact is stored, read and replaced", run: func(h *harness) {
		h.append("s", Say("a"))
		value := []byte{0, 0xff}
		h.put("s", eventlog.Artifact{Kind: "k", Seq: 1, ID: "i", Value: value})
		value[0] = 9
		get := func() eventlog.Artifact {
			a, err := h.s.Artifact(h.Context(), "s", "k", 1, "i")
			h.ok(err)
			return a
		}
		h.same("artifact", get(), eventlog.Artifact{Kind: "k", Seq: 1, ID: "i", Value: []byte{0, 0xff}})
		h.put("s", artifact("k", 1, "i", "second"), artifact("k", 1, "i", "third"))
		h.same("replaced", get(), artifact("k", 1, "i", "third"))
		h.same("all", h.artifacts("s", eventlog.ArtifactQuery{Kind: "k"}), []string{"1/i=third"})
		if h.o.reopen != nil {
			h.reopen()
			h.same("after a restart", get(), artifact("k", 1, "i", "third"))
			h.put("s", artifact("k", 1, "i", "fourth"))
			h.same("replaced again", h.artifacts("s", eventlog.ArtifactQuery{Kind: "k"}), []string{"1/i=fourth"})
		}
	}},
	{name: "the kinds of artifacts are those that the session shows", run: func(h *harness) {
		kinds := func(session string, want ...string) {
			h.Helper()
			got, err := h.s.ArtifactKinds(h.Context(), session)
			h.ok(err)
			h.same("kinds of "+session, got, want)
		}
		h.append("s", Say("a"), Say("b"))
		kinds("s")
		h.put("s", artifact("k\x00", 2, "i", "v"), artifact("late", 9, "i", "v"), artifact("k", 1, "i", "v"), artifact("k", 2, "i", "v"))
		kinds("s", "k", "k\x00", "late")
		h.fork("s", 1, "t") // shows nothing of later events, nor of what is put later
		h.put("s", artifact("new", 1, "i", "v"))
		h.put("t", artifact("own", 1, "i", "v"))
		kinds("s", "k", "k\x00", "late", "new")
		kinds("t", "k", "own")
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		kinds("t", "k", "own")
		_, err := h.s.ArtifactKinds(h.Context(), "s")
		h.fails(err, eventlog.NoSession("s"))
	}},
	{name: "an artifact moves neither head nor time", run: func(h *harness) {
		h.append("s", Say("a"))
		before := h.session("s")
		h.put("s", artifact("k", 1, "i", "v"))
		after := h.session("s")
		after.ArtifactBytes = before.ArtifactBytes
		h.same("session", after, before)
	}},
	{name: "the bytes of artifacts are those that are kept", run: func(h *harness) {
		size := func(values ...string) (n uint64) {
			for _, v := range values {
				n += artifact("k", 1, "i", v).Size()
			}
			return n
		}
		h.append("s", Say("a"))
		kept := func(session string, values ...string) {
			h.same("bytes of "+session, h.session(session).ArtifactBytes, size(values...))
		}
		kept("s")
		h.put("s", artifact("k", 1, "i", "first"), artifact("k", 1, "j", "other"))
		kept("s", "first", "other")
		h.put("s", artifact("k", 1, "i", "2"))
		kept("s", "2", "other")
		h.fork("s", 1, "t")
		kept("t", "2", "other")
		h.put("s", artifact("k", 1, "i", "third")) // the fork shows the second still
		kept("s", "2", "other", "third")
		h.put("t", artifact("k", 1, "i", "own"))
		kept("t", "2", "other", "own")
		b := eventlog.Batch{Events: []eventlog.Event{Say("b")}, Artifacts: []eventlog.Artifact{artifact("k", 1, "i", "4")}}
		_, err := h.tryAppend("s", b)
		h.ok(err)
		kept("s", "2", "other", "4")
		if h.o.reopen != nil {
			h.reopen()
		}
		listed, err := h.s.ListSessions(h.Context(), eventlog.SessionQuery{})
		h.ok(err)
		h.same("listed", []uint64{listed[0].ArtifactBytes, listed[1].ArtifactBytes}, []uint64{size("2", "other", "4"), size("2", "other", "own")})
		kept("t", "2", "other", "own")
	}},
	{name: "a version is kept only while a fork shows it", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		h.put("s", artifact("k", 1, "i", "first"), artifact("k", 2, "i", "after the fork"))
		h.fork("s", 1, "t")
		h.fork("t", 1, "u")
		h.ok(h.s.DeleteSession(h.Context(), "t", 0, nil))
		h.put("s", artifact("k", 1, "i", "second"), artifact("k", 2, "i", "2"))
		size := func(values ...string) (n uint64) {
			for _, v := range values {
				n += artifact("k", 1, "i", v).Size()
			}
			return n
		}
		h.same("while there is a fork", h.session("s").ArtifactBytes, size("first", "second", "2"))
		h.same("the fork", h.artifacts("u", eventlog.ArtifactQuery{Kind: "k"}), []string{"1/i=first"})
		h.fork("s", 2, "v")
		h.ok(h.s.DeleteSession(h.Context(), "v", 0, nil))
		h.put("s", artifact("k", 1, "i", "third"))
		h.same("after another fork", h.session("s").ArtifactBytes, size("first", "third", "2"))
		h.same("the session", h.artifacts("s", eventlog.ArtifactQuery{Kind: "k"}), []string{"1/i=third", "2/i=2"})
	}},
	{name: "what is not there", run: func(h *harness) {
		h.fails(h.s.PutArtifacts(h.Context(), "s", artifact("k", 0, "i", "v")), eventlog.NoSession("s"))
		_, err := h.s.Artifact(h.Context(), "s", "k", 0, "i")
		h.fails(err, eventlog.NoSession("s"))
		_, err = Collect(h.s.Artifacts(h.Context(), "s", eventlog.ArtifactQuery{Kind: "k"}))
		h.fails(err, eventlog.NoSession("s"))
		h.append("s", Say("a"))
		h.failsOn(h.s.PutArtifacts(h.Context(), "s", eventlog.Artifact{ID: "i"}), "artifact.kind")
		_, err = h.s.Artifact(h.Context(), "s", "k", 3, "i")
		h.fails(err, &eventlog.NotFoundError{Kind: "artifact", Name: "k/3/i"})
		h.same("none", h.artifacts("s", eventlog.ArtifactQuery{Kind: "k"}), []string(nil))
	}},
	{name: "artifacts that are put together are there together, or not at all", run: func(h *harness) {
		h.append("s", Say("a"))
		h.ok(h.s.PutArtifacts(h.Context(), "s", artifact("k", 1, "i", "1"), artifact("k", 0, "i", "2"), artifact("l", 1, "i", "3")))
		h.ok(h.s.PutArtifacts(h.Context(), "s", artifact("l", 1, "i", "4"), artifact("k", 1, "j", "5")))
		h.ok(h.s.PutArtifacts(h.Context(), "s"))
		h.failsOn(h.s.PutArtifacts(h.Context(), "s", artifact("k", 1, "i", "x"), eventlog.Artifact{ID: "i"}), "artifact.kind")
		h.failsOn(h.s.PutArtifacts(h.Context(), "s", artifact("k", 1, "i", "x"), artifact("k", 1, "i", "y")), "artifact.id")
		other := eventlog.Artifact{Kind: "m", Of: h.session("s").Incarnation + 1}
		h.fails(h.s.PutArtifacts(h.Context(), "s", artifact("k", 1, "i", "x"), other), eventlog.NoSession("s"))
		check := func() {
			h.same("k", h.artifacts("s", eventlog.ArtifactQuery{Kind: "k"}), []string{"0/i=2", "1/i=1", "1/j=5"})
			h.same("l", h.artifacts("s", eventlog.ArtifactQuery{Kind: "l"}), []string{"1/i=4"})
		}
		check()
		if h.o.reopen != nil {
			h.reopen()
			check()
		}
	}},
	{name: "artifacts of a batch are there with its events, or neither is", run: func(h *harness) {
		batch := func(id string, of eventlog.Incarnation, all ...eventlog.Artifact) error {
			for i := range all {
				all[i].Of = of
			}
			_, err := appendAndWait(h.Context(), h.s, "s", eventlog.Batch{Events: []eventlog.Event{Say(id)}, Time: epoch, Artifacts: all})
			return err
		}
		fresh := artifact("k", 9, "i", "1")
		fresh.New = true
		h.fails(batch("a", 7, artifact("k", 9, "i", "x")), eventlog.NoSession("s"))
		h.ok(batch("a", 0, fresh, artifact("k", 1, "i", "2")))
		of := h.session("s").Incarnation
		h.ok(batch("a", of, artifact("k", 1, "i", "a duplicate's")))
		h.ok(batch("b", of, artifact("k", 1, "i", "3")))
		h.put("s", artifact("k", 2, "i", "4"))
		h.ok(batch("c", of, artifact("k", 2, "i", "5"), artifact("k", 3, "i", "6")))
		h.fails(batch("d", of+1, artifact("k", 1, "i", "x")), eventlog.NoSession("s"))
		h.failsOn(batch("d", of, eventlog.Artifact{ID: "i"}), "artifact.kind")
		h.conflicts(batch("d", of, artifact("k", 1, "i", "x"), fresh))
		check := func() {
			h.same("head", h.session("s").Head, eventlog.Seq(3))
			h.same("k", h.artifacts("s", eventlog.ArtifactQuery{Kind: "k"}), []string{"1/i=3", "2/i=5", "3/i=6", "9/i=1"})
		}
		check()
		if h.o.reopen != nil {
			h.reopen()
			check()
		}
	}},
	{name: "an artifact that is to be new replaces none", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"))
		fresh := func(seq eventlog.Seq, value string) eventlog.Artifact {
			a := artifact("k", seq, "i", value)
			a.New = true
			return a
		}
		h.put("s", fresh(1, "first"))
		kept, err := h.s.Artifact(h.Context(), "s", "k", 1, "i")
		h.ok(err)
		h.same("kept", kept, artifact("k", 1, "i", "first"))
		h.conflicts(h.s.PutArtifacts(h.Context(), "s", artifact("k", 0, "j", "x"), fresh(1, "second")))
		h.put("s", fresh(2, "late"))
		h.fork("s", 1, "t")
		h.conflicts(h.s.PutArtifacts(h.Context(), "t", fresh(1, "fork")))
		h.put("t", fresh(2, "its own"), artifact("k", 1, "i", "replaced"))
		if h.o.reopen != nil {
			h.reopen()
			h.conflicts(h.s.PutArtifacts(h.Context(), "s", fresh(1, "third")))
		}
		h.same("parent", h.artifacts("s", eventlog.ArtifactQuery{Kind: "k"}), []string{"1/i=first", "2/i=late"})
		h.same("fork", h.artifacts("t", eventlog.ArtifactQuery{Kind: "k"}), []string{"1/i=replaced", "2/i=its own"})
	}},
	{name: "of many that put what is to be new, one does", run: func(h *harness) {
		h.append("s", Say("a"))
		var put, lost atomic.Int32
		together(8, func(n int) {
			err := h.s.PutArtifacts(h.Context(), "s", eventlog.Artifact{Kind: "k", Seq: 1, ID: "i", Value: []byte{byte(n)}, New: true})
			var conflict *eventlog.ConflictError
			switch {
			case err == nil:
				put.Add(1)
			case errors.As(err, &conflict):
				lost.Add(1)
			default:
				h.Errorf("put: %v", err)
			}
		})
		h.same("put and lost", []int32{put.Load(), lost.Load()}, []int32{1, 7})
	}},
	{name: "artifacts are ordered by seq, then id, and queried by range", run: func(h *harness) {
		h.append("s", Say("a"))
		for _, seq := range []eventlog.Seq{300, 2, 0, 255, 256, 1} {
			h.put("s", artifact("k", seq, "b", ""), artifact("k", seq, "a", ""), artifact("kk", seq, "x", ""))
		}
		list := func(from, to eventlog.Seq, reverse bool) []string {
			return h.artifacts("s", eventlog.ArtifactQuery{Kind: "k", From: from, To: to, Reverse: reverse})
		}
		h.same("all", list(0, 0, false), []string{
			"0/a=", "0/b=", "1/a=", "1/b=", "2/a=", "2/b=", "255/a=", "255/b=", "256/a=", "256/b=", "300/a=", "300/b="})
		h.same("2..255", list(2, 255, false), []string{"2/a=", "2/b=", "255/a=", "255/b="})
		h.same("256.. in reverse", list(256, 0, true), []string{"300/b=", "300/a=", "256/b=", "256/a="})
		h.same("3..254", list(3, 254, false), []string(nil))
		h.same("9..2", list(9, 2, true), []string(nil))
		after := func(from, to, seq eventlog.Seq, id string, reverse bool) []string {
			return h.artifacts("s", eventlog.ArtifactQuery{Kind: "k", From: from, To: to, Reverse: reverse, After: &eventlog.Artifact{Seq: seq, ID: id}})
		}
		h.same("after 2/a", after(0, 255, 2, "a", false), []string{"2/b=", "255/a=", "255/b="})
		h.same("after 2/aa, which is not there", after(0, 255, 2, "aa", false), []string{"2/b=", "255/a=", "255/b="})
		h.same("after one before the range", after(255, 255, 2, "a", false), []string{"255/a=", "255/b="})
		h.same("after one past the range", after(0, 255, 300, "a", false), []string(nil))
		h.same("after 2/b in reverse", after(1, 0, 2, "b", true), []string{"2/a=", "1/b=", "1/a="})
		h.same("after one past the range in reverse", after(1, 1, 2, "b", true), []string{"1/b=", "1/a="})
		h.same("after one before the range in reverse", after(255, 0, 2, "b", true), []string(nil))
		h.same("after the greatest", after(0, 0, math.MaxUint64, "", false), []string(nil))
	}},
	{name: "any strings are kinds and ids", run: func(h *harness) {
		h.append("s", Say("a"))
		h.put("s", artifact("k", 0, "", "1"), artifact("k", 0, "\x00", "2"), artifact("k", 0, "\x00\x01", "3"),
			artifact("k", 0, "\x01", "4"), artifact("k", 0, "a", "5"), artifact("k", 0, "a\x00b", "6"), artifact("k", 0, "a\xff", "7"),
			artifact("k\x00", 0, "a", "8"), artifact("\xff", 0, "\xff", "9"))
		h.same("order", h.artifacts("s", eventlog.ArtifactQuery{Kind: "k"}),
			[]string{"0/=1", "0/\x00=2", "0/\x00\x01=3", "0/\x01=4", "0/a=5", "0/a\x00b=6", "0/a\xff=7"})
		h.same("k NUL", h.artifacts("s", eventlog.ArtifactQuery{Kind: "k\x00"}), []string{"0/a=8"})
		h.same("0xff", h.artifacts("s", eventlog.ArtifactQuery{Kind: "\xff"}), []string{"0/\xff=9"})
	}},
	{name: "many and large artifacts", run: func(h *harness) {
		h.append("s", Say("a"))
		var want []string
		for i := range 60 {
			value := strings.Repeat(string(rune('a'+i%26)), i*1500)
			h.put("s", artifact("k", eventlog.Seq(i/4), fmt.Sprintf("%02d", i), value))
			want = append(want, fmt.Sprintf("%d/%02d=%s", i/4, i, value))
		}
		h.same("forward", h.artifacts("s", eventlog.ArtifactQuery{Kind: "k"}), want)
		got := h.artifacts("s", eventlog.ArtifactQuery{Kind: "k", Reverse: true})
		for i := range want {
			if got[i] != want[len(want)-1-i] {
				h.Fatalf("item %d of the reverse is %.20q, want %.20q", i, got[i], want[len(want)-1-i])
			}
		}
		n := 0
		for a, err := range h.s.Artifacts(h.Context(), "s", eventlog.ArtifactQuery{Kind: "k", Reverse: true}) {
			h.ok(err)
			h.same("newest", a.ID, "59")
			n++
			break
		}
		h.same("read", n, 1)
	}},
	{name: "the store is free while artifacts are read", run: func(h *harness) {
		h.append("s", Say("a"))
		for i := range 30 {
			h.put("s", artifact("k", 0, fmt.Sprintf("%02d", i), ""))
		}
		seen := map[string]int{}
		for a, err := range h.s.Artifacts(h.Context(), "s", eventlog.ArtifactQuery{Kind: "k"}) {
			h.ok(err)
			seen[a.ID]++
			h.put("s", artifact("k", 0, a.ID, "new"))
		}
		if len(seen) != 30 {
			h.Fatalf("saw %d artifacts, want 30", len(seen))
		}
		for id, n := range seen {
			h.same(id, n, 1)
		}
	}},
	{name: "a fork shares artifacts up to its seq, as they were", run: func(h *harness) {
		h.append("s", Say("a"), Say("b"), Say("c"))
		h.put("s", artifact("k", 0, "zero", "s"), artifact("k", 1, "old", "s"), artifact("k", 2, "x", "s"), artifact("k", 3, "late", "s"))
		h.fork("s", 2, "t")
		all := eventlog.ArtifactQuery{Kind: "k"}
		shared := []string{"0/zero=s", "1/old=s", "2/x=s"}
		h.same("shared", h.artifacts("t", all), shared)

		// Neither sees what the other puts from then on.
		h.put("s", artifact("k", 1, "new", "s"), artifact("k", 2, "x", "s2"), artifact("k", 2, "x", "s3"))
		h.same("fork", h.artifacts("t", all), shared)
		h.put("t", artifact("k", 1, "mine", "t"), artifact("k", 1, "old", "t"), artifact("k", 5, "ahead", "t"))
		check := func() {
			h.same("parent", h.artifacts("s", all), []string{"0/zero=s", "1/new=s", "1/old=s", "2/x=s3", "3/late=s"})
			h.same("fork", h.artifacts("t", all), []string{"0/zero=s", "1/mine=t", "1/old=t", "2/x=s", "5/ahead=t"})
			h.same("fork in reverse", h.artifacts("t", eventlog.ArtifactQuery{Kind: "k", From: 1, To: 2, Reverse: true}),
				[]string{"2/x=s", "1/old=t", "1/mine=t"})
			a, err := h.s.Artifact(h.Context(), "t", "k", 2, "x")
			h.ok(err)
			h.same("value", string(a.Value), "s")
			_, err = h.s.Artifact(h.Context(), "t", "k", 3, "late")
			h.fails(err, &eventlog.NotFoundError{Kind: "artifact", Name: "k/3/late"})
		}
		check()
		if h.o.reopen != nil {
			h.reopen()
			check()
		}
		// A second fork sees the parent as it is now; its own fork what it sees.
		h.fork("s", 2, "u")
		h.fork("t", 1, "v")
		h.put("s", artifact("k", 2, "x", "s4"))
		h.same("u", h.artifacts("u", all), []string{"0/zero=s", "1/new=s", "1/old=s", "2/x=s3"})
		h.same("v", h.artifacts("v", all), []string{"0/zero=s", "1/mine=t", "1/old=t"})
		h.ok(h.s.DeleteSession(h.Context(), "s", 0, nil))
		h.same("fork without parent", h.artifacts("t", all), []string{"0/zero=s", "1/mine=t", "1/old=t", "2/x=s", "5/ahead=t"})
		h.same("u without parent", h.artifacts("u", all), []string{"0/zero=s", "1/new=s", "1/old=s", "2/x=s3"})
		h.ok(h.s.DeleteSession(h.Context(), "t", 0, nil))
		h.same("v without parents", h.artifacts("v", all), []string{"0/zero=s", "1/mine=t", "1/old=t"})
		h.same("u still", h.artifacts("u", all), []string{"0/zero=s", "1/new=s", "1/old=s", "2/x=s3"})
	}},
}
