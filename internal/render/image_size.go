package render

import (
	"encoding/binary"
	"strings"
)

// longestAnthropicSide is how many pixels a side of an image may have.
const longestAnthropicSide = 8000

// longestSide is the longer side of an image in pixels, according to its header; 0 if the header does not say, so that
// the provider decides.
func longestSide(data string) int {
	switch b := []byte(data[:min(len(data), imageHeader)]); {
	case strings.HasPrefix(data, "\x89PNG") && len(b) >= 24 && string(b[12:16]) == "IHDR":
		return max(int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:])))
	case strings.HasPrefix(data, "GIF8") && len(b) >= 10:
		return max(int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:])))
	case strings.HasPrefix(data, "\xff\xd8"):
		return jpegSide(data)
	case strings.HasPrefix(data, "RIFF") && len(b) >= imageHeader:
		return webPSide(b)
	}
	return 0
}

// imageHeader is how many leading bytes of an image suffice to find its size, except for JPEG.
const imageHeader = 30

// jpegSide looks for the segment that begins a frame: it may come after others, of any length.
func jpegSide(data string) int {
	for at := 2; at+9 <= len(data) && data[at] == 0xff; {
		kind := data[at+1]
		if kind == 0xff { // a fill byte
			at++
			continue
		}
		if kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc {
			return max(twoBytes(data[at+5:]), twoBytes(data[at+7:]))
		}
		at += 2 + twoBytes(data[at+2:])
	}
	return 0
}

func twoBytes(s string) int { return int(s[0])<<8 | int(s[1]) }

// webPSide reads the header of a file of one of the three kinds there are.
func webPSide(b []byte) int {
	switch string(b[12:16]) {
	case "VP8X":
		return 1 + int(max(binary.LittleEndian.Uint32(b[24:])&0xffffff, binary.LittleEndian.Uint32(b[26:])>>8))
	case "VP8L":
		sides := binary.LittleEndian.Uint32(b[21:])
		return 1 + int(max(sides&0x3fff, sides>>14&0x3fff))
	case "VP8 ":
		return int(max(binary.LittleEndian.Uint16(b[26:])&0x3fff, binary.LittleEndian.Uint16(b[28:])&0x3fff))
	}
	return 0
}
