package budget

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// learnt draws a calibration: one that calls may lead to, or one that only a damaged record may hold.
func learnt(t *rapid.T) Calibration {
	tokens := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 300_000))
	c := Calibration{}
	if rapid.Bool().Draw(t, "any numbers") {
		c = Calibration{Average: rapid.Uint64Range(0, 4_000_000).Draw(t, "average"), Floor: rapid.Uint64Range(0, 4_000_000).Draw(t, "floor")}
	}
	for range rapid.IntRange(0, 12).Draw(t, "calls") {
		estimated, counted := tokens.Draw(t, "estimated"), tokens.Draw(t, "real")
		if rapid.IntRange(0, 4).Draw(t, "rejected") == 0 {
			c = c.Reject(estimated, counted)
		} else {
			c = c.Observe(estimated, counted)
		}
	}
	return c
}

func TestCalibrationStaysInItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := learnt(t)
		if f := c.Factor(); f < 0.5 || f > 2 {
			t.Errorf("%+v gives %v", c, f)
		}
		for _, next := range []Calibration{c.Observe(1000, 1000), c.Reject(1000, 9000)} {
			if next.Floor > 2_000_000 {
				t.Errorf("%+v became %+v", c, next)
			}
		}
	})
}

func TestNothingLearnt(t *testing.T) {
	var none Calibration
	if none.Factor() != 1 {
		t.Errorf("the zero value gives %v", none.Factor())
	}
	for _, tokens := range [][2]uint64{{0, 0}, {0, 5000}, {5000, 0}, {499, 5000}, {5000, 499}, {499, 499}} {
		if got := none.Observe(tokens[0], tokens[1]); got != none {
			t.Errorf("%v tokens taught %+v", tokens, got)
		}
	}
	if got := none.Observe(500, 500); got.Calls != 1 || got.Factor() != 1 {
		t.Errorf("a prompt counted right taught %+v", got)
	}
}

// One call moves the factor towards its ratio, by at most 0.15, and not past it.
func TestObserveStepsTowardsTheRatio(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := learnt(t)
		estimated := rapid.Uint64Range(500, 1<<40).Draw(t, "estimated")
		counted := rapid.Uint64Range(500, 1<<40).Draw(t, "real")
		ratio := min(max(float64(counted)/float64(estimated), 0.5), 2)
		before, after := c.Factor(), c.Observe(estimated, counted).Factor()
		const rounding = 1e-6
		if math.Abs(after-before) > 0.15+rounding {
			t.Errorf("from %v to %v in one call", before, after)
		}
		if after < min(before, ratio)-rounding || after > max(before, ratio)+rounding {
			t.Errorf("from %v to %v at a ratio of %v", before, after, ratio)
		}
	})
}

// From any calibration, calls with one ratio bring the factor to that ratio, and it stays there.
func TestObserveConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := learnt(t)
		estimated := rapid.Uint64Range(10_000, 200_000).Draw(t, "estimated")
		counted := rapid.Uint64Range(1_000, 600_000).Draw(t, "real")
		ratio := min(max(float64(counted)/float64(estimated), 0.5), 2)
		for range 300 {
			c = c.Observe(estimated, counted)
		}
		if math.Abs(c.Factor()-ratio) > 2e-6 {
			t.Errorf("after 300 calls of ratio %v the factor is %v: %+v", ratio, c.Factor(), c)
		}
		if again := c.Observe(estimated, counted); math.Abs(again.Factor()-c.Factor()) > 2e-6 {
			t.Errorf("it moves on from %v to %v", c.Factor(), again.Factor())
		}
	})
}

// A rejection raises the factor and lowers the target at once, until the factor
// can rise no further.
func TestRejectActsAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := learnt(t)
		estimated := rapid.Uint64Range(0, 1<<40).Draw(t, "estimated")
		counted := rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 1<<40)).Draw(t, "real")
		rejected := c.Reject(estimated, counted)
		want := max(c.Factor(), 1) * 1.15
		if estimated >= 500 && counted >= 500 {
			want = max(want, float64(counted)/float64(estimated))
		}
		if got := rejected.Factor(); got < min(want, 2)-1e-6 {
			t.Errorf("%v became %v for %d estimated and %d real tokens; want at least %v", c.Factor(), got, estimated, counted, min(want, 2))
		}
		b := resolvedBudget(t)
		before, after := b.Calibrated(c).Target, b.Calibrated(rejected).Target
		// Near the bound the factor may rise by less than a token's worth.
		if risen := rejected.Factor() / c.Factor(); after > before || after == before && risen > 1.02 && before > 200 && b.Target < before*2 {
			t.Errorf("the factor rose by %v and the target went from %d to %d", risen, before, after)
		}
	})
}

// What a rejection added to the factor disappears slowly, call by call.
func TestARejectionIsForgottenSlowly(t *testing.T) {
	c := Calibration{}
	for range 60 {
		c = c.Observe(10_000, 11_000)
	}
	c = c.Reject(10_000, 0)
	last := c.Factor()
	if last < 1.1*1.15-1e-6 {
		t.Fatalf("the factor is %v", last)
	}
	calls := 0
	for ; c.Floor > 0; calls++ {
		if c = c.Observe(10_000, 11_000); c.Factor() >= last {
			t.Fatalf("after %d calls the factor went from %v to %v", calls, last, c.Factor())
		}
		last = c.Factor()
	}
	if calls < 20 || calls > 100 || math.Abs(last-1.1) > 1e-5 {
		t.Errorf("forgotten after %d calls, at %v", calls, last)
	}
	if f := (Calibration{}).Reject(10_000, 0).Factor(); f != 1.15 {
		t.Errorf("the first rejection gives %v", f)
	}
	// As long as prompts are as large as the rejection said, it holds.
	c = Calibration{}.Reject(10_000, 16_000)
	for range 50 {
		if c = c.Observe(10_000, 16_000); c.Factor() != 1.6 {
			t.Fatalf("the factor is %v", c.Factor())
		}
	}
}

func TestCalibrationIsStoredAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := learnt(t)
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back Calibration
		if err := json.Unmarshal(text, &back); err != nil || back != c {
			t.Errorf("%s became %+v (%v)", text, back, err)
		}
	})
}

func TestMulDivAgainstBigNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, by, over := rapid.Uint64().Draw(t, "n"), rapid.Uint64().Draw(t, "by"), rapid.Uint64Min(1).Draw(t, "over")
		most := new(big.Int).SetUint64(math.MaxUint64)
		product := new(big.Int).Mul(new(big.Int).SetUint64(n), new(big.Int).SetUint64(by))
		down, rest := new(big.Int).QuoRem(product, new(big.Int).SetUint64(over), new(big.Int))
		up := new(big.Int).Set(down)
		if rest.Sign() > 0 {
			up.Add(up, big.NewInt(1))
		}
		for _, v := range []*big.Int{down, up} {
			if v.Cmp(most) > 0 {
				v.Set(most)
			}
		}
		if got := mulDiv(n, by, over); got != down.Uint64() {
			t.Errorf("%d, want %s", got, down)
		}
		if got := mulDivUp(n, by, over); got != up.Uint64() {
			t.Errorf("%d, want %s, rounded up", got, up)
		}
	})
}
