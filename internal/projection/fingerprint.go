package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/reduce"
)

// Fingerprint identifies what decisions depend on: the policy, the window, the
// tokenizer, and the caps as fractions. Left out are the options that may change from
// request to request, reserves, overhead and the margin, so that a request that reserves
// a little more does not throw away what was decided.
func Fingerprint(o Options, reduction reduce.Policy, b budget.Budget) string {
	of := fingerprinted{Policy: o.PolicyName(), Reduction: reduction, MaxTokens: b.MaxTokens, Tokenizer: b.Tokenizer}
	if o = o.Lasting(); !reflect.DeepEqual(o, Options{Name: o.Name}) {
		o.Name = ""
		of.Options = &o
	}
	for _, tier := range budget.Tiers() {
		if fraction, ok := b.CapFractions[tier]; ok {
			of.Caps = append(of.Caps, tierCap{tier, budget.PartsPerMillion(fraction)})
		}
	}
	data, err := json.Marshal(of)
	if err != nil {
		// Only floats that are no numbers cannot be encoded, which validation keeps
		// out; the policy has its floats in Collapse.
		data = fmt.Appendf(nil, "%+v", reduction.Collapse)
		of.Reduction.Collapse = reduce.Collapse{}
		rest, _ := json.Marshal(of)
		data = append(data, rest...)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// fingerprinted is what a fingerprint is taken of. Its JSON decides what
// fingerprints recorded earlier still match.
type fingerprinted struct {
	Policy    string
	Reduction reduce.Policy
	MaxTokens uint64
	Tokenizer string
	Caps      []tierCap
	Options   *Options `json:",omitempty"`
}

type tierCap struct {
	Tier            budget.Tier
	PartsPerMillion uint64
}
