// Package evaluate measures policies on recorded sessions: what the prompts of a policy would have cost,
// and how much of what the agent needed next was in them. A policy makes the prompt of each model call of a
// session from the log before it. The recorded session shows what the model asked for after that.
package evaluate
