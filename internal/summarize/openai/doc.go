// Package openai asks a model for summaries through the chat completions API, as
// OpenAI defined it and Ollama, vLLM, llama.cpp, LiteLLM and most hosted services
// offer it.
package openai
