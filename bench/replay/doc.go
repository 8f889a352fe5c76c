// Command replay measures contextd on recorded agent sessions. It starts the real
// daemon, imports each session, plays it turn by turn over gRPC at several
// budgets, checks every context that comes back, and prints what the prompts
// would have cost and what the model could still see, with the same figures for simple
// policies. README.md says how to read the table.
package main
