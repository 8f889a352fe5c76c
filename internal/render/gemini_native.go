package render

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// The kinds of Gemini's own parts that are carried, one of them to a part, what may be next to
// them, as which JSON, and what of both a model alone says.
var (
	geminiKinds  = set("text", "inlineData", "fileData", "executableCode", "codeExecutionResult", "toolCall", "toolResponse")
	geminiBeside = map[string]byte{
		"thoughtSignature": '"', "videoMetadata": '{', "mediaResolution": '{', "partMetadata": '{',
		"audioMetadata": '{', "documentMetadata": '{', "spreadsheetMetadata": '{', "speechMetadata": '{',
	}
	geminiModels = set("executableCode", "thoughtSignature", "toolCall", "toolResponse")
)

// geminiNative is a part as it came, if it is one of those that Gemini takes back from a speaker.
func geminiNative(b eventlog.ProviderBlock, speaker string) ([]byte, bool) {
	var part map[string]json.RawMessage
	if b.Provider != providerGoogle || !eventlog.IsJSON(b.JSON) || !geminiDecoder.reads(b.JSON) || json.Unmarshal([]byte(b.JSON), &part) != nil {
		return nil, false
	}
	kinds := 0
	for name, value := range part {
		begins, beside := geminiBeside[name]
		switch {
		case geminiModels[name] && speaker != speakerModel:
			return nil, false
		case geminiKinds[name] && soundPart(name, value):
			kinds++
		case !beside || value[0] != begins:
			return nil, false
		case name == "thoughtSignature" && !signatureBytes(textIn(value)):
			return nil, false
		}
	}
	return appendNative(nil, b.JSON), kinds == 1
}

// soundPart reports whether a part has the form of its kind. Gemini refuses any other form, and with it every later
// request of the session.
func soundPart(kind string, value json.RawMessage) bool {
	switch raw := string(value); kind {
	case "text":
		return !hollow(textIn(value))
	case "inlineData":
		m, ok := members(raw, []string{"mimeType", "data"}, []string{"displayName"})
		return ok && geminiReads(textIn(m["mimeType"])) && soundData(textIn(m["mimeType"]), provider.StandardBase64(textIn(m["data"])))
	case "fileData":
		m, ok := members(raw, []string{"fileUri"}, []string{"mimeType", "displayName"})
		return ok && texts(m) && (m["mimeType"] == nil || geminiReads(textIn(m["mimeType"]))) && addressed(textIn(m["fileUri"]), "https", "gs")
	case "executableCode":
		m, ok := members(raw, []string{"language", "code"}, []string{"id"})
		return ok && textIn(m["language"]) == "PYTHON" && m["code"][0] == '"'
	case "toolCall":
		m, ok := members(raw, []string{"toolType"}, []string{"args", "id"})
		return ok && textIn(m["toolType"]) != "" && (m["args"] == nil || m["args"][0] == '{')
	case "toolResponse":
		m, ok := members(raw, []string{"toolType"}, []string{"response", "id"})
		return ok && textIn(m["toolType"]) != "" && (m["response"] == nil || m["response"][0] == '{')
	default:
		m, ok := members(raw, []string{"outcome"}, []string{"output", "id"})
		return ok && slices.Contains([]string{"OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"}, textIn(m["outcome"]))
	}
}

// geminiReads reports whether a type of a part of Google's own is one that some model reads.
func geminiReads(mime string) bool {
	kind, _, _ := strings.Cut(mime, "/")
	return geminiTypes[mime] || geminiSources[mime] || kind == "text" || kind == "audio" || kind == "video"
}

// geminiSources are the types of sources that are not below text.
var geminiSources = set("application/json", "application/x-javascript", "application/x-python", "application/x-typescript", "application/rtf")

// signatureBytes reports whether a signature is base64, of either alphabet, with all of
// its padding or none, and no bits after its last byte: the SDK reads no other.
func signatureBytes(s string) bool {
	s = provider.StandardBase64(s)
	encoding := base64.RawStdEncoding
	if strings.HasSuffix(s, "=") {
		encoding = base64.StdEncoding
	}
	_, err := encoding.Strict().DecodeString(s)
	return err == nil && s != "" && !strings.ContainsAny(s, "\r\n")
}
