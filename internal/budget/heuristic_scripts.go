package budget

import "unicode/utf8"

// foreign tallies the characters outside ASCII from i on and returns where they
// end. They are distinguished by ranges that have about the same cost.
func (t *tally) foreign(text string, i int) int {
	var last rune
	for i < len(text) && text[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		feature := scriptOf(r)
		if feature == boxDrawing && r != last {
			feature = symbol // only the rules of tables come in long runs
		}
		t[feature]++
		last = r
	}
	return i
}

// scriptOf returns the feature of a character outside ASCII.
func scriptOf(r rune) int {
	lo, hi := 0, len(scripts)
	for lo+1 < hi {
		if mid := (lo + hi) / 2; scripts[mid].from <= r {
			lo = mid
		} else {
			hi = mid
		}
	}
	return scripts[lo].feature
}

// scripts says where each range of characters begins, in order.
var scripts = []struct {
	from    rune
	feature int
}{
	{0x80, latin}, {0x250, phonetic}, {0x300, combining}, {0x370, greek}, {0x400, cyrillic},
	{0x530, rareScript}, {0x590, hebrew}, {0x600, arabic}, {0x700, unknownScript}, {0x900, indic},
	{0xb00, unknownScript}, {0xb80, indic}, {0xd80, rareScript}, {0xe00, thai}, {0xe80, rareScript},
	{0xf00, unknownScript}, {0x1000, rareScript}, {0x10a0, georgian}, {0x1100, unknownScript},
	{0x1780, rareScript}, {0x1800, unknownScript}, {0x1ea0, vietnamese}, {0x1f00, unknownScript},
	{0x2000, typographic}, {0x2070, symbol}, {0x2500, boxDrawing}, {0x25a0, symbol}, {0x2800, unknownScript},
	{0x3000, widePunctuation}, {0x3040, kana}, {0x3100, unknownScript}, {0x4e00, han},
	{0xa000, unknownScript}, {0xac00, hangul}, {0xd7a4, unknownScript}, {0xff00, widePunctuation},
	{0xff61, kana}, {0xffe0, symbol}, {0x10000, supplementary}, {0x1f000, emoji}, {0x20000, supplementary},
}
