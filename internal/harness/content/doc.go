// Package content reads the message contents of the model providers' own
// formats, which the harnesses store inside their transcripts: Anthropic content
// blocks and OpenAI content parts.
package content
