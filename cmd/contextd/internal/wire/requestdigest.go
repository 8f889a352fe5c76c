package wire

import (
	"crypto/sha256"

	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// RequestDigest identifies what a request with an idempotency key asks for; nil without
// one. It leaves out the session and the key, by which it is found, and how the answer is
// sent: two requests of the same digest lead to the same projection. What the daemon adds
// of its own configuration is not in it, so that a request may be repeated after that has
// changed.
func RequestDigest(req *contextdv1.AssembleContextRequest) ([]byte, error) {
	if req.GetIdempotencyKey() == "" {
		return nil, nil
	}
	asked := &contextdv1.AssembleContextRequest{
		AsOfSeq: req.AsOfSeq, Budget: req.GetBudget(), Policy: req.GetPolicy(), Format: req.GetFormat(), Injections: req.GetInjections(),
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(asked)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(encoded)
	return sum[:], nil
}
