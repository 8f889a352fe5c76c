package read

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// sealedMembers are the members of a message in which hosts of Chat Completions give the reasoning that a model's maker
// sealed, as lists: OpenRouter and LiteLLM.
var sealedMembers = []string{"reasoning_details", "thinking_blocks"}

// chatReasoning is a message's reasoning. Servers with this API name its text, which the API does not have, in one of two
// ways. A seal holds for the whole list, which must come back as it was, so the lists are the block's signature.
func chatReasoning(v value) []*contextdv1.Block {
	t := &contextdv1.Thinking{Text: cmp.Or(v.get("reasoning_content").text(), v.get("reasoning").text())}
	var texts, sealed []string
	for _, name := range sealedMembers {
		list := v.get(name)
		if texts == nil {
			texts = detailTexts(list)
		}
		if slices.ContainsFunc(list.elements(), isSealed) {
			sealed = append(sealed, `"`+name+`":`+string(list))
		}
	}
	t.Text = cmp.Or(t.GetText(), strings.Join(texts, "\n\n"))
	if sealed != nil {
		t.Signature = "{" + strings.Join(sealed, ",") + "}"
	}
	if t.GetText() == "" && sealed == nil {
		return nil
	}
	return []*contextdv1.Block{thinking(t)}
}

func isSealed(detail value) bool {
	return detail.get("signature").text() != "" || detail.get("data").text() != ""
}

func detailTexts(list value) (texts []string) {
	for _, detail := range list.elements() {
		if text := cmp.Or(detail.get("text").text(), detail.get("summary").text(), detail.get("thinking").text()); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// besideChatCall are the members in which hosts give Google's signature of a call: Google itself, or LiteLLM, which may have
// them in the function.
func besideChatCall(call value) []*contextdv1.Block {
	if members := beside(ofOpenAI, call, "extra_content"); members != nil {
		return members
	}
	for _, from := range []value{call, call.get("function")} {
		if fields := from.get("provider_specific_fields"); fields.get("thought_signature") != nil || fields.get("thought_signatures") != nil {
			return beside(ofOpenAI, from, "provider_specific_fields")
		}
	}
	return nil
}

// CallID is a call's id without Google's signature of the call, which proxies such as LiteLLM append to it so that it comes
// back through clients that know no other member for it. A call's id is at most 512 characters, and the signature is longer.
func CallID(id string) string {
	id, _ = splitCallID(id)
	return id
}

var base64Text = regexp.MustCompile(`^[A-Za-z0-9+/=_-]+$`)

func splitCallID(given string) (id, signature string) {
	if id, signature, _ = strings.Cut(given, "__thought__"); id != "" && base64Text.MatchString(signature) {
		return id, signature
	}
	return given, ""
}
