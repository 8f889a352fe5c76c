package render_test

import (
	"bytes"
	"testing"

	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestGooglesOwnPartsOfTheirForm: a part of Google's is sent as it came where the API takes it
// from who says it, and otherwise a text in its place.
func TestGooglesOwnPartsOfTheirForm(t *testing.T) {
	f, _ := render.FormatNamed("gemini")
	for _, c := range []struct {
		json        string
		user, model bool
	}{
		{`{"text":"t","partMetadata":{"a":1}}`, true, true},
		{`{"text":"t","speechMetadata":{"speaker":"a"}}`, true, true},
		{`{"fileData":{"mimeType":"application/pdf","fileUri":"gs://b/x"},"documentMetadata":{"startPage":2}}`, true, true},
		{`{"fileData":{"mimeType":"audio/wav","fileUri":"gs://b/x"},"audioMetadata":{"startOffset":"1s"}}`, true, true},
		{`{"fileData":{"mimeType":"video/mp4","fileUri":"gs://b/x"},"documentMetadata":"p"}`, false, false},
		{`{"text":"t","audioTranscription":{"text":"t"}}`, false, false},
		{`{"text":"t","thoughtSignature":"c2ln"}`, false, true},
		{`{"text":"t","thoughtSignature":"no base64"}`, false, false},
		{`{"text":"t","thoughtSignature":5}`, false, false},
		{`{"text":"t","videoMetadata":5}`, false, false},
		{`{"text":"t","mediaResolution":"x"}`, false, false},
		{`{"text":5}`, false, false},
		{`{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo=","displayName":"a"}}`, true, true},
		{`{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo=","more":1}}`, false, false},
		{`{"inlineData":{"MIMETYPE":"image/png","data":"iVBORw0KGgo="}}`, false, false},
		{`{"inlineData":{"mimeType":"","data":"AAEC"}}`, false, false},
		{`{"fileData":{"fileUri":"https://youtu.be/x"},"videoMetadata":{"fps":1}}`, true, true},
		{`{"fileData":{"mimeType":"video/mp4","fileUri":"gs://b/x"}}`, true, true},
		{`{"fileData":{"mimeType":"video/mp4","fileUri":"nope"}}`, false, false},
		{`{"fileData":{"mimeType":"video/mp4"}}`, false, false},
		{`{"fileData":{"mimeType":"application/zip","fileUri":"gs://b/x"}}`, false, false},
		{`{"fileData":{"fileUri":"gs://b/x","displayName":"d"}}`, true, true},
		{`{"inlineData":{"mimeType":"application/zip","data":"UEsDBA=="}}`, false, false},
		{`{"inlineData":{"mimeType":"text/csv","data":"YSxi"}}`, true, true},
		{`{"inlineData":{"mimeType":"text/csv","data":"Pj8-Pz4_"}}`, true, true},
		{`{"fileData":5}`, false, false},
		{`{"toolCall":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["q"]}},"thoughtSignature":"c2ln"}`, false, true},
		{`{"toolResponse":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","response":{"r":[1]}}}`, false, true},
		{`{"toolCall":{"args":{}}}`, false, false},
		{`{"toolResponse":{"toolType":"URL_CONTEXT","response":5}}`, false, false},
		{`{"executableCode":{"language":"PYTHON","code":"1","id":"a"}}`, false, true},
		{`{"executableCode":{"language":"RUBY","code":"1"}}`, false, false},
		{`{"executableCode":5}`, false, false},
		{`{"codeExecutionResult":{"outcome":"OUTCOME_FAILED","output":"","id":"a"}}`, true, true},
		{`{"codeExecutionResult":{"outcome":"nope"}}`, false, false},
		{`{"codeExecutionResult":5}`, false, false},
	} {
		own := native("google", c.json)
		got := linesOf(joined(f, []render.Message{user(text("go"), own), by(flash, own, text("so"))}))
		for _, v := range rules.Of(f.Name)(got) {
			t.Errorf("%s: %v", c.json, v)
		}
		for i, carried := range []bool{c.user, c.model} {
			if bytes.Contains(got[i], []byte(c.json)) != carried {
				t.Errorf("carried is not %v: %s in\n%s", carried, c.json, got[i])
			}
		}
	}
}
