package budget

import (
	"math"
	"math/bits"
)

// The bounds of a calibration, in parts per million. Averaging, step and clamp are
// those of Gemini CLI; what a rejection adds is contextd's own.
const (
	leastCalibration = million / 2
	mostCalibration  = 2 * million
	// averageOver is the part of the way to a new ratio that one call goes: 1/5.
	averageOver = 5
	// largestStep bounds what one call moves.
	largestStep = 150_000
	// rejectionPercent is what a rejection makes of the factor at the least.
	rejectionPercent = 115
	// floorOver is the part of its height that the floor loses with a call: 1/16.
	floorOver = 16
	// leastDecay is what it loses at the least, so that it goes for good.
	leastDecay = 1_000
	// leastCompared is the size, in tokens, below which a prompt says more about its
	// frame than about the tokenizer.
	leastCompared = 500
)

// Calibration is what the calls of one model in one session taught about the
// gauge: by how much the provider counts more than contextd does. It is a value
// in whole numbers, so every machine learns the same. The zero value has learnt
// nothing.
type Calibration struct {
	// Average is the moving average of real / estimated tokens, in parts per
	// million. 0: no call was compared.
	Average uint64
	// Floor is what rejected prompts demand of the factor, in parts per million. 0:
	// nothing.
	Floor uint64
	// Calls counts the calls that taught something.
	Calls uint32
}

// Factor is what estimates are multiplied by, from 0.5 to 2; 1 if nothing was
// learnt.
func (c Calibration) Factor() float64 { return float64(c.ppm()) / million }

func (c Calibration) ppm() uint64 { return max(c.average(), min(c.Floor, mostCalibration)) }

func (c Calibration) average() uint64 {
	if c.Average == 0 {
		return million
	}
	return clampCalibration(c.Average)
}

// Observe takes in a prompt of which the provider counted tokens where
// contextd estimated so many. The factor goes a fifth of the way towards their
// ratio, by at most 0.15, and never past it; a floor that the ratio is below gives
// way. Prompts of less than 500 tokens by either count change nothing.
func (c Calibration) Observe(estimated, counted uint64) Calibration {
	if min(estimated, counted) < leastCompared {
		return c
	}
	ratio := clampCalibration(mulDiv(counted, million, estimated))
	c.Average, c.Floor = towards(c.average(), ratio), min(c.Floor, mostCalibration)
	above := c.Floor - min(max(c.Average, ratio), c.Floor)
	c.Floor -= min(max(above/floorOver, leastDecay), above)
	if c.Floor <= c.Average {
		c.Floor = 0
	}
	c.Calls++
	return c
}

// Reject takes in a prompt that the provider refused as too long. The factor is
// at once at least 1.15, 1.15 times what it was and, where the provider said how
// long the prompt was, real / estimated; it does not exceed 2. counted 0 is unknown.
func (c Calibration) Reject(estimated, counted uint64) Calibration {
	floor := (max(c.ppm(), million)*rejectionPercent + 99) / 100
	if min(estimated, counted) >= leastCompared {
		floor = max(floor, mulDivUp(counted, million, estimated))
	}
	c.Floor = min(floor, mostCalibration)
	c.Calls++
	return c
}

// towards moves from one value in the direction of another, by what one call may.
func towards(from, to uint64) uint64 {
	step := func(distance uint64) uint64 {
		return min((distance+averageOver-1)/averageOver, largestStep)
	}
	if to >= from {
		return from + step(to-from)
	}
	return from - step(from-to)
}

func clampCalibration(ppm uint64) uint64 {
	return min(max(ppm, leastCalibration), mostCalibration)
}

// mulDiv is n × by / over, rounded down; the largest number where that is larger.
// over must not be 0.
func mulDiv(n, by, over uint64) uint64 {
	high, low := bits.Mul64(n, by)
	if high >= over {
		return math.MaxUint64
	}
	quotient, _ := bits.Div64(high, low, over)
	return quotient
}

// mulDivUp is the same, rounded up.
func mulDivUp(n, by, over uint64) uint64 {
	high, low := bits.Mul64(n, by)
	if high >= over {
		return math.MaxUint64
	}
	quotient, rest := bits.Div64(high, low, over)
	if rest > 0 && quotient < math.MaxUint64 {
		quotient++
	}
	return quotient
}

// Calibrated returns the budget in tokens as the gauge estimates them: what a
// resolved budget grants in real ones, divided by the factor. The caps keep their
// part of the target. Neither becomes 0.
//
// InjectionReserve stays as it is: an injection that fitted must not fail because
// of what was learnt since. The messages make room for it: with
// f × (Target + InjectionReserve) no more is used than the resolved budget grants,
// however full the reserve is. Where the reserve is so large that it would leave
// the messages less than half of Target / f, they keep that half.
//
// Where the provider counts less than the gauge, the target grows, but never so
// far that by the estimate the messages, the reserve and the overhead exceed the
// window.
func (b Budget) Calibrated(c Calibration) Budget {
	factor := c.ppm()
	b.Calibration = float64(factor) / million
	if factor == million || b.Target == 0 {
		return b
	}
	resolved := b.Target
	granted := b.InjectionReserve + min(resolved, math.MaxUint64-b.InjectionReserve)
	room := mulDiv(granted, million, factor)
	b.Target = max(room-min(b.InjectionReserve, room), mulDiv(resolved, million, factor)/2, 1)
	if factor < million {
		window := b.MaxTokens - min(b.InjectionReserve, b.MaxTokens)
		window -= min(b.OverheadTokens, window)
		b.Target = min(b.Target, max(window, resolved))
	}
	if b.Caps != nil {
		caps := make(map[Tier]uint64, len(b.Caps))
		for tier, limit := range b.Caps {
			caps[tier] = max(mulDiv(limit, b.Target, resolved), min(limit, 1))
		}
		b.Caps = caps
	}
	return b
}

// Factor is what estimates under this budget are multiplied by. A budget that was
// never calibrated has 1.
func (b Budget) Factor() float64 { return float64(b.factor()) / million }

// Real is what the provider is expected to count for tokens that the gauge
// estimated, rounded up. It keeps the order of its arguments.
func (b Budget) Real(estimated uint64) uint64 { return mulDivUp(estimated, b.factor(), million) }

func (b Budget) factor() uint64 {
	if b.Calibration == 0 {
		return million
	}
	return PartsPerMillion(b.Calibration)
}
