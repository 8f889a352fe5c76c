package bpe

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCacheTellsPiecesApart puts every pair of pieces in each other's place.
func TestCacheTellsPiecesApart(t *testing.T) {
	pieces := []string{"", "\x00", "\x00\x00", "a", "a\x00", "aa", strings.Repeat("a", maxCachedShort)}
	var c pieceCache
	for _, a := range pieces[1:] {
		for _, b := range pieces[1:] {
			keyA, _ := c.short(a, 0, len(a))
			keyB, _ := c.short(b, 0, len(b))
			var e shortEntry
			e.set(keyA, 3)
			if got := e.count(keyB); (got == 3) != (a == b) || (got == 0) != (a != b) {
				t.Errorf("%q in place of %q: %d", a, b, got)
			}
		}
	}
	base := strings.Repeat("x", maxCached)
	long := []string{base, base[:maxCached-1], base[:maxCachedShort+1], base[:16], base[:17]}
	for i := range maxCached {
		long = append(long, base[:i]+"y"+base[i+1:])
	}
	for _, a := range long {
		for _, b := range long {
			keyA, _ := c.long(a, 0, len(a))
			keyB, _ := c.long(b, 0, len(b))
			var e longEntry
			e.set(keyA, maxCached)
			if got := e.count(keyB); (got == maxCached) != (a == b) || (got == 0) != (a != b) {
				t.Errorf("%q in place of %q: %d", a, b, got)
			}
		}
	}
}

// TestCacheKeyIsThePieceAlone checks that what is around a piece makes no
// difference.
func TestCacheKeyIsThePieceAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c pieceCache
		piece := rapid.StringN(1, maxCached, maxCached).Draw(t, "piece")
		if piece == "" {
			return
		}
		before := rapid.StringN(0, 10, -1).Draw(t, "before")
		text := before + piece + rapid.StringN(0, 10, -1).Draw(t, "after")
		p, end := len(before), len(before)+len(piece)
		if len(piece) <= maxCachedShort {
			alone, at := c.short(piece, 0, len(piece))
			if within, same := c.short(text, p, end); within != alone || same != at {
				t.Errorf("%q in %q: %x, alone %x", piece, text, within, alone)
			}
			return
		}
		alone, at := c.long(piece, 0, len(piece))
		if within, same := c.long(text, p, end); within != alone || same != at {
			t.Errorf("%q in %q: %x, alone %x", piece, text, within, alone)
		}
	})
}
