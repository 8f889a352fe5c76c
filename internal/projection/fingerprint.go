package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/reduce"
)

// Fingerprint identifies what decisions depend on: the policy, the window, the
// caps and the tokenizer. Reserves and overhead are left out, so that a request
// that reserves a little more does not throw away what was decided.
func Fingerprint(policy string, reduction reduce.Policy, b budget.Budget) string {
	data, err := json.Marshal(struct {
		Policy    string
		Reduction reduce.Policy
		MaxTokens uint64
		Tokenizer string
		Tiers     int
	}{policy, reduction, b.MaxTokens, b.Tokenizer, len(b.Caps)})
	if err != nil {
		// Only floats that are no numbers cannot be encoded; validation keeps them out.
		data = fmt.Appendf(nil, "%s %+v %+v", policy, reduction, b)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
