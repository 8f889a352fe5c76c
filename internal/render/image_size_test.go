package render_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	imagepng "image/png"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// imageOf is an image of a type with so many pixels.
func imageOf(t *testing.T, kind string, width, height int) string {
	t.Helper()
	var out bytes.Buffer
	var err error
	switch kind {
	case "image/png":
		err = imagepng.Encode(&out, image.NewGray(image.Rect(0, 0, width, height)))
	case "image/gif":
		err = gif.Encode(&out, image.NewPaletted(image.Rect(0, 0, width, height), palette.WebSafe), nil)
	case "image/jpeg":
		err = jpeg.Encode(&out, image.NewGray(image.Rect(0, 0, width, height)), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// webP is the beginning of a file of a kind with so many pixels.
func webP(kind string, width, height int) string {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBP"+kind), make([]byte, 18)...)
	switch kind {
	case "VP8X":
		b[24], b[25], b[26] = byte(width-1), byte((width-1)>>8), byte((width-1)>>16)
		b[27], b[28], b[29] = byte(height-1), byte((height-1)>>8), byte((height-1)>>16)
	case "VP8L":
		binary.LittleEndian.PutUint32(b[21:], uint32(width-1)|uint32(height-1)<<14)
	default:
		binary.LittleEndian.PutUint16(b[26:], uint16(width)|0x4000)
		binary.LittleEndian.PutUint16(b[28:], uint16(height))
	}
	return string(b)
}

// TestImagesTooLargeForAnthropic: the API refuses an image with a side of more than 8000
// pixels, and every later request with it. Others than Anthropic take it.
func TestImagesTooLargeForAnthropic(t *testing.T) {
	many := jpegAfter(imageOf(t, "image/jpeg", 8001, 1), 60_000)
	for _, c := range []struct {
		name, kind, data string
		carried          bool
	}{
		{"wide png", "image/png", imageOf(t, "image/png", 8000, 1), true},
		{"too wide png", "image/png", imageOf(t, "image/png", 8001, 1), false},
		{"too high png", "image/png", imageOf(t, "image/png", 1, 8001), false},
		{"gif", "image/gif", imageOf(t, "image/gif", 1, 8000), true},
		{"too high gif", "image/gif", imageOf(t, "image/gif", 1, 8001), false},
		{"jpeg", "image/jpeg", imageOf(t, "image/jpeg", 8000, 8), true},
		{"too wide jpeg", "image/jpeg", imageOf(t, "image/jpeg", 8001, 8), false},
		{"too wide jpeg after its remarks", "image/jpeg", many, false},
		{"jpeg without a frame", "image/jpeg", "\xff\xd8\xff\xe0\x00", true},
		{"webp", "image/webp", webP("VP8X", 8000, 8000), true},
		{"too wide webp", "image/webp", webP("VP8X", 8001, 1), false},
		{"too high webp", "image/webp", webP("VP8X", 1, 8001), false},
		{"lossless webp", "image/webp", webP("VP8L", 8000, 8000), true},
		{"too high lossless webp", "image/webp", webP("VP8L", 1, 8001), false},
		{"lossy webp", "image/webp", webP("VP8 ", 8000, 8000), true},
		{"too wide lossy webp", "image/webp", webP("VP8 ", 8001, 1), false},
	} {
		for _, f := range render.Formats()[1:] {
			media := eventlog.Media{MIMEType: c.kind, Data: c.data}
			own := native("anthropic", fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":%q,"data":%q}}`, c.kind, base64.StdEncoding.EncodeToString([]byte(c.data))))
			got := joined(f, []render.Message{user(media, own), by(claude, run("a", "{}")), result("a", "shot", media)})
			for _, v := range rules.Of(f.Name)(linesOf(got)) {
				t.Errorf("%s, %s: %v", f.Name, c.name, v)
			}
			all := string(bytes.Join(linesOf(got), nil))
			want := map[bool]int{true: 3, false: 0}[c.carried]
			if f.Name != "anthropic" {
				want = 2 // its own is described
				if c.kind == "image/gif" && f.Name == "gemini" {
					want = 0
				}
			}
			if n := strings.Count(all, base64.StdEncoding.EncodeToString([]byte(c.data))); n != want {
				t.Errorf("%s, %s: there %d times, not %d", f.Name, c.name, n, want)
			}
		}
	}
}

// jpegAfter is an image after a segment of so many bytes.
func jpegAfter(data string, size int) string {
	return data[:2] + "\xff\xe1" + string(binary.BigEndian.AppendUint16(nil, uint16(size))) + strings.Repeat("\x00", size-2) + "\xff" + data[2:]
}
