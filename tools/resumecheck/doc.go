// Command resumecheck resumes sessions in the real harnesses, and compares what they send to the model with
// what contextd says that the model sees.
//
// For each harness it installs the pinned CLI, writes sessions by the writers of internal/harness into a
// separate home, and runs the CLI to resume them with a new prompt. The model is a fake on loopback
// (provider.go), which answers "ok" and keeps the request. The request must equal, turn by turn, the context
// that contextd assembles from the same file under the policy harness_view with nothing reduced, followed by
// the prompt.
//
// Turns that a CLI adds itself, such as its environment, are recognised by one rule: the turn is not the
// expected one, and Harness.Own describes it. It is counted and printed under that description. System texts
// are recognised by their beginnings, so that additions of a new version are noticed. Everything else that
// differs is a difference.
//
// The CLIs only reach the fake. Their documented settings turn off traffic that is not for the model. What
// they request from other hosts all the same is refused by a proxy, and reported as a difference.
package main
