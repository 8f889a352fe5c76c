// Package demo replays a session through a daemon of its own and shows what the
// model would have been sent at each of its calls. It is a client of the API and
// nothing else: what it reports is computed from what came over gRPC, and what
// the daemon promises it checks itself.
package demo
