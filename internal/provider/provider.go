// Package provider has the rules of the providers that make models and seal their reasoning: how their models
// are named, and what a request may do with sealed reasoning.
package provider

import (
	"encoding/json"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Provider is who made a model, and so sealed its reasoning. The zero value is Unknown.
type Provider uint8

// The providers whose rules are known.
const (
	Unknown Provider = iota
	Anthropic
	OpenAI
	Gemini
	// Host serves models of several makers by OpenAI's Chat Completions, and seals what they sealed in lists of its own.
	Host
)

// Allowed says what may be done to an assistant message with sealed reasoning and to the results of its
// calls. The message itself is either sent unchanged or not at all.
type Allowed struct {
	// Whole allows dropping the message with its results. Results allows replacing the texts of the results.
	Whole, Results bool
}

// Seals are a provider's rules for reasoning that it sealed. docs/projections.md names the source of each
// rule.
type Seals struct {
	// InLoop applies within the tool-use loop after the newest user message, Before to the turns before that
	// message.
	InLoop, Before Allowed
	// OmitBefore allows sending a message before the loop without its reasoning.
	OmitBefore bool
	// TextEndsLoop is set where a user's text between two turns ends the loop, so that the next assistant
	// message must begin with reasoning of its own.
	TextEndsLoop bool
}

var providers = [...]struct {
	name string
	// words in the name of a model identify the provider.
	words []string
	seals Seals
}{
	// An unknown provider's seal may cover anything.
	Unknown: {name: "unknown", seals: Seals{Before: Allowed{Whole: true}, TextEndsLoop: true}},
	// The thinking of an open loop must be sent back; that of earlier turns is ignored.
	Anthropic: {"anthropic", []string{"claude", "anthropic"}, Seals{
		InLoop: Allowed{Results: true}, Before: Allowed{Whole: true, Results: true}, OmitBefore: true, TextEndsLoop: true,
	}},
	// Reasoning and the items after it are sent together or not at all.
	OpenAI: {"openai", []string{"openai", "gpt", "chatgpt", "codex"}, Seals{
		InLoop: Allowed{Whole: true, Results: true}, Before: Allowed{Whole: true, Results: true},
	}},
	// Every call of the current turn must be sent back with its signature.
	Gemini: {"gemini", []string{"gemini"}, Seals{InLoop: Allowed{Results: true}, Before: Allowed{Whole: true, Results: true}}},
	// The rules are those of the model's maker, to whom a host passes the seal.
	Host: {name: "host"},
}

// String is the provider's name in lower case.
func (p Provider) String() string { return providers[p].name }

// Seals are the provider's rules for reasoning that it sealed.
func (p Provider) Seals() Seals { return providers[p].seals }

// Of returns the provider of a model by its name. Case does not matter, nor does a path that a gateway or a
// cloud puts before the name, as in "us.anthropic.claude-sonnet-4-v1:0" or "openrouter/openai/o3". A name
// with words of two providers, as that of a distilled model, gives Unknown.
func Of(model string) Provider {
	model = strings.TrimPrefix(strings.ToLower(model), "ft:") // a model that was trained further
	found := Unknown
	for segment := range strings.SplitSeq(model, "/") {
		for i, word := range strings.FieldsFunc(segment, separates) {
			p := ofWord(word, i == 0)
			if p == Unknown || p == found {
				continue
			}
			if found != Unknown {
				return Unknown
			}
			found = p
		}
	}
	return found
}

// OtherMaker reports whether the names of two models, as a host of many makers has them, are of two makers. It is false
// where a name does not show it, such as an alias.
func OtherMaker(one, other string) bool {
	if a, b := Of(one), Of(other); a != Unknown && b != Unknown {
		return a != b
	}
	a, b := vendor(one), vendor(other)
	return a != "" && b != "" && a != b
}

// vendor is the segment of a name before the model, as x-ai in "openrouter/x-ai/grok-4"; "" if there is none, or a host's that
// chooses among makers.
func vendor(model string) string {
	segments := strings.Split(strings.ToLower(model), "/")
	if n := len(segments); n > 1 && segments[n-2] != "openrouter" {
		return segments[n-2]
	}
	return ""
}

func separates(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9')
}

// ofWord returns the provider for a word of a model's name. OpenAI's o-series only counts as the first word:
// elsewhere such a word means something else, as in marco-o1.
func ofWord(word string, first bool) Provider {
	if first && len(word) == 2 && word[0] == 'o' && word[1] >= '1' && word[1] <= '9' {
		return OpenAI
	}
	for p := range providers {
		if slices.Contains(providers[p].words, word) {
			return Provider(p)
		}
	}
	return Unknown
}

// Binds reports whether a model binds the reasoning that it seals to all that was before it: the provider
// refuses or leaves out a block where the system prompt, the tools or an earlier message changed since. These
// are Anthropic's models from version 5.1 on.
func Binds(model string) bool {
	named, version, n := false, [2]string{}, 0
	for word := range strings.FieldsFuncSeq(strings.ToLower(model), separates) {
		named = named || word == "claude"
		if n == len(version) || n > 0 && !isNumber(word) {
			break
		}
		if named && isNumber(word) {
			version[n] = word
			n++
		}
	}
	major, minor := version[0], version[1]
	later := len(major) > 1 || major > "5" || major == "5" && minor > "0"
	return later && Of(model) == Anthropic
}

// Bound reports whether a block of a model's message is reasoning that the model binds to what was before it.
func Bound(b eventlog.Block, model string) bool {
	t, ok := b.(eventlog.Thinking)
	return ok && t.Sealed() && Binds(model)
}

// isNumber reports whether a word of a model's name is a part of its version, and not a date.
func isNumber(word string) bool {
	return len(word) <= 2 && strings.Trim(word, "0123456789") == ""
}

// hosted are what signatures begin with that are members of an assistant's message in Chat Completions.
var hosted = []string{`{"reasoning_details":`, `{"thinking_blocks":`}

// OfBlock returns who sealed a block of reasoning in a model's message: the model's provider, or without a
// model's name the only provider that seals in this way; Host for lists of a host's. It is Unknown if the model's
// provider does not seal in this way, or if the block is not sealed and the model is unknown.
func OfBlock(t eventlog.Thinking, model string) Provider {
	by := Of(model)
	switch {
	case slices.ContainsFunc(hosted, func(s string) bool { return strings.HasPrefix(t.Signature, s) }):
		return Host
	case t.EncryptedContent != "":
		return agree(by, model, OpenAI)
	case t.RedactedData != "":
		return agree(by, model, Anthropic)
	default:
		return by // two providers use signatures
	}
}

// agree returns seals, the provider that seals in this way, unless the model's name gives another provider or
// none.
func agree(by Provider, model string, seals Provider) Provider {
	if by == seals || model == "" {
		return seals
	}
	return Unknown
}

// Maker returns the model that wrote a message. If it is not named, Maker infers the provider from seals that
// only one provider uses, and returns a name for it that Of knows; "" if there is no such seal. If the seals
// point to several providers, it returns the name of Unknown, so that none of the reasoning is sent:
// providers refuse a message if a part of its reasoning is missing.
func Maker(model string, blocks []eventlog.Block) string {
	if model != "" {
		return model
	}
	found := Unknown
	for _, block := range blocks {
		t, ok := block.(eventlog.Thinking)
		by := OfBlock(t, "")
		if !ok || by == Unknown || by == Host {
			continue
		}
		if found == Unknown || by == found {
			found = by
		} else {
			return Unknown.String()
		}
	}
	if found == Unknown {
		return ""
	}
	return found.String()
}

// longestMembers is how many bytes a block with members may have. Signatures of calls have some thousand.
const longestMembers = 256 << 10

// Members are the members that a block of Anthropic's or OpenAI's holds for the block after it in the message, such as
// the phase of a text or the caller of a call; false for any other block, which has a type.
func Members(b eventlog.ProviderBlock) (map[string]json.RawMessage, bool) {
	if strings.HasPrefix(b.JSON, `{"type"`) { // nearly all others, without reading them
		return nil, false
	}
	var members map[string]json.RawMessage
	if len(b.JSON) > longestMembers || b.Provider != Anthropic.String() && b.Provider != OpenAI.String() || json.Unmarshal([]byte(b.JSON), &members) != nil {
		return nil, false
	}
	_, typed := members["type"]
	return members, !typed && len(members) > 0
}

// SealedMembers reports whether members of a call have Google's signature of it, as hosts of Chat Completions give it.
func SealedMembers(members map[string]json.RawMessage) bool {
	return members["extra_content"] != nil || members["provider_specific_fields"] != nil
}

var standardAlphabet = strings.NewReplacer("-", "+", "_", "/")

// StandardBase64 is base64 in the standard alphabet. Google's API reads both alphabets, and its SDK for Python writes
// the one for URLs.
func StandardBase64(text string) string { return standardAlphabet.Replace(text) }
