package disklog

import (
	"fmt"
	"testing"
)

func TestFilterForgetsNothing(t *testing.T) {
	f := &idFilter{}
	const n = 20000
	for i := range n {
		f.add(eventIDHash(fmt.Sprint(i)))
	}
	for i := range n {
		if !f.mayHold(eventIDHash(fmt.Sprint(i))) {
			t.Fatalf("id %d is forgotten", i)
		}
	}
	mistaken := 0
	for i := range n {
		if f.mayHold(eventIDHash(fmt.Sprint("other ", i))) {
			mistaken++
		}
	}
	if mistaken > n/100 {
		t.Errorf("%d of %d unknown ids are taken for known", mistaken, n)
	}
	bytes := 0
	for _, l := range f.layers {
		bytes += 8 * len(l.bits)
	}
	if bytes > 5*n {
		t.Errorf("%d ids take %d bytes", n, bytes)
	}
	if (&idFilter{}).mayHold(eventIDHash("x")) {
		t.Error("an empty filter holds something")
	}
}
