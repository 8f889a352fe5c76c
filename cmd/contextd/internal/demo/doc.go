// Package demo replays a session through a daemon of its own, and shows what the model would have been sent
// at each of its calls. It only uses the API: all figures are computed from what it receives over gRPC, and
// it checks the daemon's promises itself.
package demo
