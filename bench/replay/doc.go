// Command replay measures contextd on recorded agent sessions. It starts the real daemon, imports each
// session, and plays it turn by turn over gRPC at several budgets. It checks every context, and prints what
// the prompts would have cost and how much the model could still see, next to the same figures for simple
// policies. README.md says how to read the table.
package main
