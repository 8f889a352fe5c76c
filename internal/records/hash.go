package records

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// Hasher computes the hash of rendered messages as JSON Lines: each message's
// canonical bytes and a line feed, as a client receives them.
type Hasher struct{ h hash.Hash }

// NewHasher returns the hasher of an empty prefix.
func NewHasher() Hasher { return Hasher{sha256.New()} }

// Clone returns a hasher that continues from this one's state.
func (h Hasher) Clone() Hasher {
	c, err := h.h.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // SHA-256 can be cloned
	}
	return Hasher{c}
}

// Add hashes the next message.
func (h Hasher) Add(message []byte) {
	h.h.Write(message)
	h.h.Write([]byte{'\n'})
}

// Sum returns the hash of what was added so far: "sha256:" and hex. It may be called
// between two Adds.
func (h Hasher) Sum() string {
	var buf [sha256.Size]byte
	return HashName(h.h.Sum(buf[:0]))
}

// HashName writes a SHA-256 sum as the API shows it.
func HashName(sum []byte) string {
	const prefix = "sha256:"
	return string(hex.AppendEncode(append(make([]byte, 0, len(prefix)+2*sha256.Size), prefix...), sum))
}

// hashSum is the inverse of HashName.
func hashSum(name string) ([]byte, error) {
	return hex.DecodeString(strings.TrimPrefix(name, HashName(nil)))
}

// Fingerprint identifies what decisions depend on: the policy, the window, the tokenizer, and the caps as
// fractions. It leaves out what may change with each request, such as reserves, overhead and margin: a
// request that reserves a little more must not discard the decisions.
func Fingerprint(o projection.Options, reduction reduce.Policy, b budget.Budget) string {
	o = o.Lasting()
	o.Name = o.PolicyName()
	if reduction.Cache.Prices == reduce.DefaultPrices() {
		reduction.Cache.Prices = reduce.Prices{}
	}
	m := &storagev1.Fingerprinted{
		Reduction: storeReduction(reduction), Projection: storeOptions(o, storeTexts(o).hash),
		MaxTokens: b.MaxTokens, Tokenizer: b.Tokenizer,
	}
	if m.Reduction.GetRecallTool() == "" {
		m.Reduction.RecallTool = nil
	}
	for _, tier := range budget.Tiers() {
		if reduction.Whole {
			break // a view that is not reduced has no caps
		}
		if fraction, ok := b.CapFractions[tier]; ok {
			m.Caps = append(m.Caps, &storagev1.FingerprintedCap{Tier: string(tier), PartsPerMillion: budget.PartsPerMillion(fraction)})
		}
	}
	sum := sha256.Sum256(encode(m))
	return hex.EncodeToString(sum[:8])
}

// encode writes a message whose bytes are hashed. It fails only for texts that are not
// UTF-8, which the API and the configuration keep out.
func encode(m proto.Message) []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}
