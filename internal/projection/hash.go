package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// Hasher computes the hash of rendered messages as JSON Lines: each message's
// canonical bytes and a line feed, as a client receives them.
type Hasher struct{ h hash.Hash }

// NewHasher returns the hasher of an empty prefix.
func NewHasher() Hasher { return Hasher{sha256.New()} }

// Add takes in the next message.
func (h Hasher) Add(message []byte) {
	h.h.Write(message)
	h.h.Write([]byte{'\n'})
}

// Sum is the hash of what was added so far: "sha256:" and hex. It may be called
// between two Adds.
func (h Hasher) Sum() string {
	var buf [sha256.Size]byte
	return HashName(h.h.Sum(buf[:0]))
}

// HashName writes a SHA-256 sum as the API shows it.
func HashName(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }
