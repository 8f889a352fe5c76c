package budget

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// fileOf returns the file in a Gemini part that is kept unchanged. The provider charges for the file, not for the
// JSON: base64 is far larger than its text, and an address far smaller than its video.
func fileOf(b eventlog.ProviderBlock) (eventlog.Media, bool) {
	if b.Provider != "google" || !strings.Contains(b.JSON, `"inlineData"`) && !strings.Contains(b.JSON, `"fileData"`) {
		return eventlog.Media{}, false
	}
	var part struct {
		InlineData *struct{ MIMEType, Data string }
		FileData   *struct{ MIMEType, FileURI string }
	}
	if json.Unmarshal([]byte(b.JSON), &part) != nil {
		return eventlog.Media{}, false
	}
	if file := part.FileData; file != nil {
		return eventlog.Media{MIMEType: file.MIMEType, URI: file.FileURI}, true
	}
	if part.InlineData == nil {
		return eventlog.Media{}, false
	}
	data, err := base64.StdEncoding.DecodeString(provider.StandardBase64(part.InlineData.Data))
	return eventlog.Media{MIMEType: part.InlineData.MIMEType, Data: string(data)}, err == nil
}

// readAsText reports whether a provider reads a file of a type as text.
func readAsText(mimeType string) bool {
	return strings.HasPrefix(mimeType, "text/") || mimeType == "application/json"
}
