// Package rules holds rendered contexts to the rules that the model providers
// document for their requests. It knows nothing of how contexts are rendered: it
// reads lines as a provider would, so that it and an encoder do not share a mistake.
//
// Of every format:
//
//	json     a line is one JSON value in UTF-8, without whitespace between tokens
//	members  an object has what it requires, nothing unknown, and nothing twice
//	type     a member has the JSON type it is to have
//	base64   inline data is base64 with padding, and not empty
package rules
