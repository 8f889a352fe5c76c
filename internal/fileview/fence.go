package fileview

import "strings"

// leastFence is the length of the shortest fence.
const leastFence = 3

// fenceOf returns the fence for lines: more backticks than any of them begins with, so that no line can end it.
func fenceOf(lines string) string {
	n := leastFence
	for line := range strings.Lines(lines) {
		n = max(n, fenceLen(line)+1)
	}
	return strings.Repeat("`", n)
}

// fenceLen returns how many backticks a line begins with, after blanks.
func fenceLen(line string) int {
	line = strings.TrimLeft(line, " \t")
	return len(line) - len(strings.TrimLeft(line, "`"))
}

// EndFence returns the offset after the fenced lines that a text begins with: 0 if it begins with no fence,
// and the length of the text if the fence is not closed.
func EndFence(text string) int {
	line, _, _ := strings.Cut(text, "\n")
	if len(line)-len(strings.TrimLeft(line, "`")) < leastFence {
		return 0
	}
	fence := line[:len(line)-len(strings.TrimLeft(line, "`"))]
	end := strings.Index(text, "\n"+fence+"\n")
	if end < 0 {
		return len(text)
	}
	return end + len("\n"+fence+"\n")
}
