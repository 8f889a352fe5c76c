// Package anthropic asks a model for summaries through Anthropic's Messages API.
package anthropic
