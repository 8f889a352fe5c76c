package main

import "encoding/json"

// modelOf is the model that a request names.
func modelOf(body []byte) string {
	var r struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(body, &r) != nil {
		return ""
	}
	return r.Model
}

// answerResponses speaks the protocol of OpenAI's Responses.
func answerResponses(e *events, body []byte) {
	message := object{
		"type": "message", "id": "msg_ok", "role": "assistant", "status": "completed",
		"content": []object{{"type": "output_text", "text": "ok", "annotations": []object{}}},
	}
	e.send(object{"type": "response.created", "response": object{"id": "resp_ok", "created_at": 1, "model": modelOf(body)}})
	e.send(object{"type": "response.output_item.added", "output_index": 0, "item": object{
		"type": "message", "id": "msg_ok", "role": "assistant", "status": "in_progress", "content": []object{},
	}})
	e.send(object{
		"type": "response.content_part.added", "item_id": "msg_ok", "output_index": 0, "content_index": 0,
		"part": object{"type": "output_text", "text": "", "annotations": []object{}},
	})
	e.send(object{"type": "response.output_text.delta", "item_id": "msg_ok", "output_index": 0, "content_index": 0, "delta": "ok"})
	e.send(object{"type": "response.output_item.done", "output_index": 0, "item": message})
	e.send(object{"type": "response.completed", "response": object{
		"id": "resp_ok", "model": modelOf(body), "status": "completed", "output": []object{message},
		"usage": object{
			"input_tokens": 1, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": 1, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 2,
		},
	}})
}

// answerMessages speaks the protocol of Anthropic's Messages.
func answerMessages(e *events, body []byte) {
	e.send(object{"type": "message_start", "message": object{
		"id": "msg_ok", "type": "message", "role": "assistant", "model": modelOf(body), "content": []object{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 1, "output_tokens": 1},
	}})
	e.send(object{"type": "content_block_start", "index": 0, "content_block": object{"type": "text", "text": ""}})
	e.send(object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": "ok"}})
	e.send(object{"type": "content_block_stop", "index": 0})
	e.send(object{
		"type": "message_delta", "delta": object{"stop_reason": "end_turn", "stop_sequence": nil},
		"usage": object{"output_tokens": 1},
	})
	e.send(object{"type": "message_stop"})
}

// answerChat speaks the protocol of OpenAI's Chat Completions.
func answerChat(e *events, body []byte) {
	chunk := func(delta object, finish any) object {
		return object{
			"id": "chatcmpl-ok", "object": "chat.completion.chunk", "created": 1, "model": modelOf(body),
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}},
		}
	}
	e.send(chunk(object{"role": "assistant", "content": "ok"}, nil))
	e.send(chunk(object{}, "stop"))
	usage := chunk(nil, nil)
	usage["choices"] = []object{}
	usage["usage"] = object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	e.send(usage)
	e.text("[DONE]")
}
