package budget

import "math"

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
