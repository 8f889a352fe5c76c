package provider

import (
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

// String is the provider's name in lower case.
func (p Provider) String() string {
	switch p {
	case Anthropic:
		return "anthropic"
	case OpenAI:
		return "openai"
	case Gemini:
		return "gemini"
	default:
		return "unknown"
	}
}

// Of tells who made a model by its name, in any case of letters and behind whatever path
// a gateway or a cloud puts before it, such as "us.anthropic.claude-sonnet-4-v1:0" or
// "openrouter/openai/o3". A name that tells of two, as that of a distilled model does,
// is Unknown.
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

// ofWord tells by a word of a model's name. The o-series of OpenAI begins a name: in
// others it means something else, as in marco-o1.
func ofWord(word string, first bool) Provider {
	switch {
	case word == "claude", word == "anthropic":
		return Anthropic
	case word == "gemini":
		return Gemini
	case word == "openai", word == "gpt", word == "chatgpt", word == "codex":
		return OpenAI
	case first && len(word) == 2 && word[0] == 'o' && word[1] >= '1' && word[1] <= '9':
		return OpenAI
	default:
		return Unknown
	}
}

// OfBlock tells who sealed a block of reasoning in a message of a model: the model's
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
