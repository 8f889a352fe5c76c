package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// models are the recorded exchanges that answers are built from.
var models = map[API]map[Behaviour]string{
	OpenAI: {
		OK:              "openai/ok.llama-cpp-python.json",
		CutOff:          "openai/cut_off.llama-cpp-python.json",
		ContextExceeded: "openai/context_exceeded.llama-cpp-python.json",
		Unauthorized:    "openai/unauthorized.llama-cpp-python.json",
		Failing:         "openai/failing.litellm.json",
		RateLimited:     "openai/rate_limited.litellm.json",
		UnknownModel:    "openai/unknown_model.litellm.json",
	},
	Anthropic: {
		OK:              "anthropic/ok.litellm.json",
		CutOff:          "anthropic/cut_off.litellm.json",
		ContextExceeded: "anthropic/context_exceeded.litellm.json",
		Failing:         "anthropic/failing.litellm.json",
		RateLimited:     "anthropic/rate_limited.litellm.json",
		UnknownModel:    "anthropic/unknown_model.litellm.json",
	},
}

var exchanges = sync.OnceValue(func() map[string]Exchange {
	all, err := Exchanges()
	if err != nil {
		panic(err)
	}
	return all
})

// exchange returns the recording of a behaviour.
func exchange(api API, b Behaviour) (Exchange, bool) {
	e, ok := exchanges()[models[api][b]]
	return e, ok
}

// failure returns an error as the API's servers write it.
func failure(api API, b Behaviour) answer {
	if e, ok := exchange(api, b); ok {
		return answer{e.Response.Status, e.Response.Headers["Content-Type"], string(e.Response.Body)}
	}
	switch {
	case b == Unauthorized:
		return errorAnswer(api, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
	case b == Overloaded && api == Anthropic:
		return errorAnswer(api, 529, "overloaded_error", "Overloaded")
	case b == Overloaded:
		return errorAnswer(api, http.StatusServiceUnavailable, "server_error", "The server is loading the model.")
	}
	panic("no answer for " + string(b))
}

// malformed returns the answer to a request that is none of the API.
func malformed(api API, err error) answer {
	return errorAnswer(api, http.StatusBadRequest, "invalid_request_error", err.Error())
}

func errorAnswer(api API, status int, kind, message string) answer {
	body := map[string]any{"error": map[string]any{"type": kind, "message": message}}
	if api == Anthropic {
		body["type"] = "error"
	}
	return answer{status: status, body: encode(body)}
}

// completion returns a recorded success with another text, its size and the model that
// was asked for. A refusal is marked as the API defines it.
func completion(r Request, text string, b Behaviour) answer {
	recording := b
	if b == Refusal {
		recording = OK
	}
	e, ok := exchange(r.API, recording)
	if !ok {
		panic(fmt.Sprintf("no recording of %s in the %s API", recording, r.API))
	}
	var body map[string]any
	if err := json.Unmarshal(e.Response.Body, &body); err != nil {
		panic(err)
	}
	body["model"] = r.Model
	// Words count as tokens: no client can know them better.
	in, out := len(strings.Fields(r.System))+len(strings.Fields(r.Prompt)), len(strings.Fields(text))
	if r.API == Anthropic {
		body["content"] = []any{map[string]any{"type": "text", "text": text}}
		body["usage"] = map[string]any{"input_tokens": in, "output_tokens": out}
		if b == Refusal {
			body["stop_reason"] = "refusal"
		}
	} else {
		choice := body["choices"].([]any)[0].(map[string]any)
		message := choice["message"].(map[string]any)
		message["content"] = text
		if b == Refusal {
			message["content"], message["refusal"] = nil, text
		}
		body["usage"] = map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}
	}
	return answer{status: e.Response.Status, contentType: e.Response.Headers["Content-Type"], body: encode(body)}
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
