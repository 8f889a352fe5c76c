package summarize

import "errors"

// ErrPermanent marks failures of a backend that a further attempt with the same
// request would only repeat.
var ErrPermanent = errors.New("permanent failure")
