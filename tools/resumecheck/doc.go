// Command resumecheck resumes sessions in the real harnesses and holds what they
// send to the model to what contextd says that the model sees.
//
// For each harness it installs the pinned CLI, writes sessions with the writers of
// internal/harness into a home of their own, and runs the CLI so that it resumes them
// with a new prompt. The model is a fake on loopback (provider.go) that answers "ok" and
// keeps the request. The request must be, turn by turn, the context that contextd
// assembles of the same file under the policy harness_view, with nothing reduced, and
// after it the prompt.
//
// What a CLI adds of its own, such as its environment, is distinguished by one rule: a turn
// of the request that is not the one expected there, and of which Harness.Own says what it
// is. It is counted and printed under that name. Texts of the system are recognised by how they
// begin, so that what a new version adds is noticed. Everything else that differs is a
// difference.
//
// The CLIs reach nothing but the fake: traffic that is not for the model is turned off by
// their documented settings, and what they try all the same ends at a proxy that refuses
// it, and is reported as a difference.
package main
