package budget

import "unicode/utf8"

// Heuristic is a Counter that estimates tokens for models whose tokenizer is not public. It takes one pass over the
// bytes of the text, about as fast as the text can be read, and gives the same count on every machine.
//
// It divides the text into features that tokenizers of this family treat in the same way: words by length, digits in
// groups of three, symbols, blanks, letters by script, and runs of letters and digits that look random (base64,
// hashes, keys). Each feature has a cost; heuristic_weights.go says where the costs come from.
type Heuristic struct{}

// Name implements Counter.
func (Heuristic) Name() string { return TokenizerHeuristic }

// Count implements Counter. Every text except the empty one has at least one token.
func (h Heuristic) Count(text string) Count {
	return Count{Tokens: int((h.Cost(text) + costPerToken - 1) / costPerToken), Estimated: true}
}

// Cost implements Counter.
func (Heuristic) Cost(text string) uint64 {
	t := tallyOf(text)
	var cost uint64
	for feature, n := range t {
		cost += uint64(n) * uint64(weights[feature])
	}
	return cost
}

// PerToken implements Counter.
func (Heuristic) PerToken() uint64 { return costPerToken }

// tally counts the features of a text.
type tally [features]uint32

func tallyOf(text string) tally {
	var t tally
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			i = t.foreign(text, i)
		case kinds[c]&(lowerCase|upperCase|digit) != 0:
			i = t.alphanumeric(text, i)
		case kinds[c] == blank:
			i = t.blanks(text, i)
		case kinds[c] == control:
			t[controlByte]++
			i++
		default:
			i = t.symbols(text, i)
		}
	}
	return t
}

// kind says what an ASCII character is; symbols are zero.
type kind uint8

const (
	lowerCase kind = 1 << iota
	upperCase
	digit
	blank
	control
)

var kinds = func() (k [256]kind) {
	for c := range k {
		switch {
		case 'a' <= c && c <= 'z':
			k[c] = lowerCase
		case 'A' <= c && c <= 'Z':
			k[c] = upperCase
		case '0' <= c && c <= '9':
			k[c] = digit
		case c == ' ' || '\t' <= c && c <= '\r':
			k[c] = blank
		case c < ' ' || c == 0x7f:
			k[c] = control
		}
	}
	return k
}()

// alphanumeric tallies the ASCII letters and digits from i on and returns where
// they end.
func (t *tally) alphanumeric(text string, i int) int {
	start, changes, seen := i, 0, kinds[text[i]]
	last := seen
	for i++; i < len(text); i++ {
		k := kinds[text[i]]
		if k&(lowerCase|upperCase|digit) == 0 {
			break
		}
		// A capital followed by small letters begins a word: that is not a change of kind.
		if k != last && !(last == upperCase && k == lowerCase) {
			changes++
		}
		seen |= k
		last = k
	}
	if size := i - start; size >= minRandom && 10*changes >= 3*size {
		if seen&(lowerCase|upperCase) == lowerCase|upperCase {
			t[randomMixed] += uint32(size)
		} else {
			t[randomHex] += uint32(size)
		}
		return i
	}
	led := start > 0 && text[start-1] == ' '
	for p := start; p < i; led = false {
		p = t.word(text, p, i, led)
	}
	return i
}

// minRandom is the least length of a run of letters and digits that may count as random.
const minRandom = 8

// word tallies one word or number of text[p:end], which is all letters and digits.
func (t *tally) word(text string, p, end int, led bool) int {
	q := p
	if kinds[text[p]] == digit {
		for q < end && kinds[text[q]] == digit {
			q++
		}
		t[digitGroup] += uint32(q-p+2) / 3
		return q
	}
	for q < end && kinds[text[q]] == upperCase {
		q++
	}
	if capitals := q - p; capitals > 1 {
		if q < end && kinds[text[q]] == lowerCase {
			q-- // where a capitalised word begins
		}
		t.sized(capsWord, capsLengths, q-p)
		return q
	}
	for q < end && kinds[text[q]] == lowerCase {
		q++
	}
	if led {
		t.sized(ledWord, wordLengths, q-p)
	} else {
		t.sized(bareWord, wordLengths, q-p)
	}
	return q
}

// sized tallies one feature with a length. There is a feature for each length up to longest, and then one for each
// further byte.
func (t *tally) sized(feature, longest, length int) {
	if over := length - longest; over > 0 {
		t[feature+longest] += uint32(over)
		length = longest
	}
	t[feature+length-1]++
}

// blanks tallies whitespace.
func (t *tally) blanks(text string, i int) int {
	start, breaks := i, 0
	for i < len(text) && kinds[text[i]] == blank {
		if text[i] == '\n' {
			breaks++
		}
		i++
	}
	size := i - start
	afterSymbol := start > 0 && text[start-1] < utf8.RuneSelf && kinds[text[start-1]] == 0
	switch {
	case breaks > 0 && afterSymbol:
		t[breakAfterSymbol]++
	case breaks > 0:
		t[breakAlone]++
	}
	indent := size
	if breaks > 0 {
		indent = 0
		for text[i-1-indent] != '\n' {
			indent++
		}
	}
	if indent > 1 || indent == 1 && i == len(text) {
		t[indentation]++
		t[indentationBytes] += uint32(indent-1) / 16
	}
	// The last blank of an indentation belongs to the token that follows, except a tab, or a space before
	// digits.
	if indent > 0 && i < len(text) {
		if text[i-1] != ' ' {
			t[looseTab]++
		} else if kinds[text[i]] == digit {
			t[spaceBeforeDigit]++
		}
	}
	t[breakBytes] += uint32(size-indent) / 4
	return i
}

// symbols tallies ASCII punctuation.
func (t *tally) symbols(text string, i int) int {
	start := i
	repeats := 0
	for i++; i < len(text) && text[i] < utf8.RuneSelf && kinds[text[i]] == 0; i++ {
		if text[i] == text[i-1] {
			repeats++
		}
	}
	size := i - start
	letterNext := i < len(text) && (kinds[text[i]]&(lowerCase|upperCase) != 0 || text[i] >= utf8.RuneSelf)
	if size == 1 && letterNext && (start == 0 || text[start-1] != ' ') {
		t[gluedSymbol]++
		return i
	}
	t[symbolRepeats] += uint32(repeats)
	t.sized(symbolRun, symbolLengths, size-repeats)
	return i
}
