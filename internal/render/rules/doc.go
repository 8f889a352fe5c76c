// Package rules holds rendered contexts to the rules that the model providers
// document for their requests. It knows nothing of how contexts are rendered: it
// reads lines as a provider would, so that it and an encoder do not share a mistake.
//
// Of every format:
//
//	json     a line is one JSON value in UTF-8, without whitespace between tokens, and
//	         escapes no half of a surrogate pair
//	members  an object has what it requires, nothing unknown, and nothing twice
//	type     a member has the JSON type it is to have
//	base64   inline data is base64 with padding, and not empty
//
// Of anthropic, from https://platform.claude.com/docs/en/api/messages, its pages on tool
// use, extended thinking, vision, PDF support and prompt caching, and the errors with
// which the API refuses requests:
//
//	system         the system line is the first, {"system":[…]}, with text blocks
//	role           a message is the user's or the assistant's
//	alternation    the user begins, and the two take turns
//	content        a message has blocks
//	place          each type of block is where the API takes it
//	text           no text is empty or whitespace
//	calls last     nothing but calls comes after a tool_use
//	results first  nothing comes before a tool_result but others
//	pairs          a message with calls is followed by their results, in their order, and
//	               results are nowhere else
//	id             ids of calls are letters, digits, "_" and "-", each used once; those of
//	               server tools have their prefix
//	name           names of tools are 1 to 128 letters, digits, "_" and "-"
//	input          the input of a call is an object
//	decoded        a line is not nested more deeply than the API reads, and its numbers are
//	               near doubles
//	failure        a failed result has content, which is text
//	thinking       reasoning has its signature or data, and something follows it
//	server tools   the use of a server tool has its result, of its kind, in the same message; at the end
//	               of it, next to calls, in the assistant's next one, or waits for it at the end of the request
//	source         media are of the types that the API takes, or by HTTPS
//	citations      documents have them all or none, and so have search results
//	cache          at most four breakpoints, of five minutes or an hour, the longer first
//	end            a last message of the assistant does not end in whitespace
//	size           32 MB in all, 5 MB of base64 and 8000 pixels a side for an image, 2000
//	               where there are more than 20 images, 100 images and documents, 100000 messages
//
// Of gemini, from https://ai.google.dev/api/caching#Content and the pages
// https://ai.google.dev/gemini-api/docs/function-calling, thought-signatures,
// image-understanding, audio, video-understanding and document-processing:
//
//	system           the system line is the first, {"systemInstruction":{"parts":[…]}},
//	                 with texts
//	role             a content is the user's or the model's
//	alternation      the user begins, and the two take turns
//	content          a content has parts
//	part             a part is of one kind
//	place            each kind of part stands with the role that may say it
//	text             a text is not empty, unless it carries a signature
//	thought          thoughts are the model's texts, and something follows them
//	responses first  nothing comes before a functionResponse but others
//	pairs            a content with calls is followed by as many responses, of the same ids
//	                 and names, in their order, and responses are nowhere else
//	id               no two calls have one id
//	name             names are 1 to 64 letters, digits, "_", ".", ":" and "-", and begin
//	                 with a letter or "_"
//	input            the args of a call are an object
//	decoded          the same, and no name is twice in an object, however deep it is
//	value            languages of code and outcomes are of those there are
//	signature        the first call of a content has a signature; signatures are base64, and
//	                 the model's
//	source           media are of the types that the models read, inline, by HTTPS or in
//	                 Cloud Storage
//	size             20 MB and 3600 images in all
//
// Of openai_chat, from https://platform.openai.com/docs/api-reference/chat/create and its
// pages on function calling, images and vision, audio and file inputs:
//
//	role     a message is of system, developer, user, assistant or tool
//	empty    no content, list, text are empty or whitespace, no arguments empty, but a result's
//	         content, and an assistant says something or calls something
//	value    a part is of a type that its role may have, and choices are of those there are
//	media    media are of the types that the API takes, on the web or inline, files named
//	pairs    after calls stand their results, before anything else, and nowhere else
//	call id  ids have 1 to 40 characters, and each call has its own
//	name     names of functions are 1 to 64 letters, digits, "_" and "-"
//	size     128 calls in a message, 1048576 characters of arguments, 50 MB and 1500 images in all
//
// OfReturning holds anthropic, openai_chat and openai_responses to the rules of DeepSeek
// (https://api-docs.deepseek.com/guides/thinking_mode), Moonshot and Xiaomi instead:
//
//	thinking  a message of the assistant has reasoning that is not empty, signed or not; of
//	          openai_responses, the items of the model begin with it, and it is not sealed
//
// Of openai_responses, from https://platform.openai.com/docs/api-reference/responses/create
// and its pages on conversation state, reasoning and function calling, the rules of the same
// names, for input items (ids of calls may have 64 characters, and calls are items), and:
//
//	id         an item's id begins as its kind's do, and no other item has it
//	reasoning  reasoning is sealed, and after it stands what the model did next
//
// The reference requires an id of every item of reasoning. The API takes those without, as
// Codex sends them, and refuses a seal under an id that is not its own: so an id is not
// required here.
package rules
