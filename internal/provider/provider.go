// Package provider holds what is particular to those who make models and seal their
// reasoning: how their models are named, and what a request may do with sealed reasoning.
package provider

import (
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Provider is whoever made a model, and so the one who seals its reasoning. The zero
// value is Unknown.
type Provider uint8

// The providers whose rules are known.
const (
	Unknown Provider = iota
	Anthropic
	OpenAI
	Gemini
)

// Allowed says what may be done to an assistant message with sealed reasoning and the
// results of its calls. The message itself never changes: what is signed, and what is
// next to it, is sent unchanged.
type Allowed struct {
	// Whole lets all of it go, and Results lets other texts take the place of what tools
	// answered.
	Whole, Results bool
}

// Seals are a provider's rules for what it sealed. docs/projections.md says where each rule
// comes from.
type Seals struct {
	// InLoop holds in the tool-use loop after the newest user message, and Before in the
	// turns before it.
	InLoop, Before Allowed
	// OmitBefore lets a message before the loop go out without its reasoning.
	OmitBefore bool
	// TextEndsLoop is set where a user's text between two turns ends the loop, so that what
	// comes after it has to begin with reasoning of its own.
	TextEndsLoop bool
}

var providers = [...]struct {
	name string
	// words identify the provider in the name of a model.
	words []string
	seals Seals
}{
	// Whoever it is may cover anything by the seal.
	Unknown: {name: "unknown", seals: Seals{Before: Allowed{Whole: true}, TextEndsLoop: true}},
	// The thinking of an open loop must come back; that of earlier turns is ignored.
	Anthropic: {"anthropic", []string{"claude", "anthropic"}, Seals{
		InLoop: Allowed{Results: true}, Before: Allowed{Whole: true, Results: true}, OmitBefore: true, TextEndsLoop: true,
	}},
	// Reasoning and the items after it come together or not at all.
	OpenAI: {"openai", []string{"openai", "gpt", "chatgpt", "codex"}, Seals{
		InLoop: Allowed{Whole: true, Results: true}, Before: Allowed{Whole: true, Results: true},
	}},
	// Every call of the current turn must come back with its signature.
	Gemini: {"gemini", []string{"gemini"}, Seals{InLoop: Allowed{Results: true}, Before: Allowed{Whole: true, Results: true}}},
}

// String is the provider's name in lower case.
func (p Provider) String() string { return providers[p].name }

// Seals are the rules for the reasoning that the provider sealed.
func (p Provider) Seals() Seals { return providers[p].seals }

// Of says who made a model by its name, in any case of letters and after whatever path
// a gateway or a cloud puts before it, such as "us.anthropic.claude-sonnet-4-v1:0" or
// "openrouter/openai/o3". A name that holds two, as that of a distilled model does, is
// Unknown.
func Of(model string) Provider {
	model = strings.ToLower(model)
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

func separates(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9')
}

// ofWord decides by a word of a model's name. The o-series of OpenAI begins a name: in
// others it means something else, as in marco-o1.
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

// OfBlock says who sealed a block of reasoning in a message of a model: the model's
// maker, or without a model's name whoever alone seals in this way. Where the seal is one
// that the model's maker does not use, and where the block is not sealed and the model
// unknown, it is Unknown.
func OfBlock(t eventlog.Thinking, model string) Provider {
	by := Of(model)
	switch {
	case t.EncryptedContent != "":
		return agree(by, model, OpenAI)
	case t.RedactedData != "":
		return agree(by, model, Anthropic)
	default:
		return by // a signature is the way of two
	}
}

// agree is who seals in this way, unless the model is known to be another's or its
// maker is not known.
func agree(by Provider, model string, seals Provider) Provider {
	if by == seals || model == "" {
		return seals
	}
	return Unknown
}

// Maker is the model that wrote a message, as far as its reasoning shows where no name says
// it: a provider's that alone seals as some of it is sealed, by a name that Of knows. Of a
// message that several seem to have sealed nobody knows, so that none of it is sent to any:
// a provider refuses reasoning of which a part is missing.
func Maker(model string, blocks []eventlog.Block) string {
	if model != "" {
		return model
	}
	found := Unknown
	for _, block := range blocks {
		t, ok := block.(eventlog.Thinking)
		if !ok || OfBlock(t, "") == Unknown {
			continue
		}
		if by := OfBlock(t, ""); found == Unknown || by == found {
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
