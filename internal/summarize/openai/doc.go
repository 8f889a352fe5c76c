// Package openai asks a model for summaries through the chat completions API, which OpenAI defined and which Ollama,
// vLLM, llama.cpp, LiteLLM and most hosted services have.
package openai
