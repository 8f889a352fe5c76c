package budget

import (
	"math"
	"math/bits"
)

// The parameters of calibration, in parts per million. Average, step and bounds are the same as in Gemini CLI; the
// effect of a rejection is contextd's own.
const (
	leastCalibration = million / 2
	mostCalibration  = 2 * million
	// One call moves the factor by 1/averageOver of its distance from the new ratio.
	averageOver = 5
	// largestStep bounds how far one call moves the factor.
	largestStep = 150_000
	// rejectionPercent is the least factor, in percent, by which a rejection raises the calibration factor.
	rejectionPercent = 115
	// Each call lowers the floor by 1/floorOver of its height above the new ratio.
	floorOver = 16
	// leastDecay is the least by which a call lowers the floor, so that the floor disappears in the end.
	leastDecay = 1_000
	// leastCompared is the least size of a prompt, in tokens, that is compared: in a smaller one, the
	// provider's framing outweighs the text.
	leastCompared = 500
)

// Calibration says by which factor a provider's counts differ from the gauge's, as learnt from the calls of one model
// in one session. It has only whole numbers, so that all machines compute the same. The zero value has learnt
// nothing.
type Calibration struct {
	// Average is the moving average of real / estimated tokens, in parts per million; 0 if no call was
	// compared.
	Average uint64
	// Floor is the least factor since the latest rejected prompts, in parts per million; 0 is none.
	Floor uint64
	// Calls counts the calls that taught something.
	Calls uint32
}

// Factor returns the factor for estimates, from 0.5 to 2; 1 if nothing was learnt.
func (c Calibration) Factor() float64 { return float64(c.ppm()) / million }

func (c Calibration) ppm() uint64 { return max(c.average(), min(c.Floor, mostCalibration)) }

func (c Calibration) average() uint64 {
	if c.Average == 0 {
		return million
	}
	return clampCalibration(c.Average)
}

// Observe learns from a prompt of which the provider counted tokens (counted) and contextd estimated some
// (estimated). The factor moves a fifth of the way towards their ratio, by at most 0.15, and never past it;
// a floor above the ratio is lowered. A prompt of less than 500 tokens by either count changes nothing.
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

// Reject learns from a prompt that the provider refused as too long. The factor rises at once to at least
// 1.15, to 1.15 times its old value and, if the provider gave the length of the prompt, to counted /
// estimated; but to 2 at most. counted 0 is unknown.
func (c Calibration) Reject(estimated, counted uint64) Calibration {
	floor := (max(c.ppm(), million)*rejectionPercent + 99) / 100
	if min(estimated, counted) >= leastCompared {
		floor = max(floor, mulDivUp(counted, million, estimated))
	}
	c.Floor = min(floor, mostCalibration)
	c.Calls++
	return c
}

// towards moves a value towards another by as much as one call may move it.
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

// mulDiv returns n × by / over, rounded down, or MaxUint64 if that overflows. over must not be 0.
func mulDiv(n, by, over uint64) uint64 {
	high, low := bits.Mul64(n, by)
	if high >= over {
		return math.MaxUint64
	}
	quotient, _ := bits.Div64(high, low, over)
	return quotient
}

// mulDivUp is mulDiv, rounded up.
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

// Calibrated converts the budget from real tokens to tokens as the gauge estimates them: it divides by the
// factor. The caps keep their fractions of the target. Neither becomes 0.
//
// InjectionReserve stays unchanged, so that an injection that fitted before does not fail because of what
// was learnt since. The messages make room for it: f × (Target + InjectionReserve), where f is the factor,
// does not exceed what the resolved budget grants. But the messages keep at least half of Target / f, even
// if the reserve is so large that this exceeds it.
//
// If the provider counts less than the gauge, the target grows, but only while the estimates of messages,
// reserve and overhead together fit the window.
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

// Factor returns the factor for estimates under this budget; 1 if the budget was never calibrated.
func (b Budget) Factor() float64 { return float64(b.factor()) / million }

// Real returns how many tokens the provider is expected to count where the gauge estimated some, rounded up. It
// is monotonic.
func (b Budget) Real(estimated uint64) uint64 { return mulDivUp(estimated, b.factor(), million) }

func (b Budget) factor() uint64 {
	if b.Calibration == 0 {
		return million
	}
	return PartsPerMillion(b.Calibration)
}
