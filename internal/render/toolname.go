package render

import (
	"crypto/sha256"
	"encoding/hex"
)

// nameDigits is how much of its hash a changed name ends with, so that two names that
// differ only in what a provider does not take stay two.
const nameDigits = 8

// wireName is a tool's name where a provider takes only some bytes, at most so many of
// them: the name itself, or else with "_" for what is not taken, cut, and "_" and digits
// of its SHA-256 behind it.
func wireName(name string, longest int, taken func(i int, c byte) bool) string {
	fits := name != "" && len(name) <= longest
	for i := 0; fits && i < len(name); i++ {
		fits = taken(i, name[i])
	}
	if fits {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	out := []byte(name[:min(len(name), longest-nameDigits-1)])
	for i, c := range out {
		if !taken(i, c) {
			out[i] = '_'
		}
	}
	return string(out) + "_" + hex.EncodeToString(sum[:])[:nameDigits]
}

// wordByte reports whether c is a letter, a digit, "_" or "-".
func wordByte(_ int, c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}
