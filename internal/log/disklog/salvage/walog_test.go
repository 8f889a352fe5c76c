package salvage

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestLogNamesDamage alters each chunk of a log. It is named wherever a later chunk shows that the log went on; the
// last may be one that a crash cut off.
func TestLogNamesDamage(t *testing.T) {
	d := fill(t)
	names, err := d.fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	altered := 0
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		var number uint64
		if _, err := fmt.Sscanf(name, "%d.log", &number); err != nil {
			t.Fatal(err)
		}
		content, err := ReadFile(d.fs, "db/"+name)
		if err != nil {
			t.Fatal(err)
		}
		var chunks []int
		for page := 0; page < len(content); page += logPage {
			end := min(page+logPage, len(content))
			for at := page; at+shortChunk <= end; {
				_, _, size := chunkAt(content[at:end], uint32(number))
				if size == 0 {
					break
				}
				chunks = append(chunks, at)
				at += size
			}
		}
		for i, at := range chunks {
			damaged := bytes.Clone(content)
			damaged[at+longChunk] ^= 4
			lost, err := Log(damaged, number, func(Entry) error { return nil })
			if err != nil || len(lost) == 0 != (i == len(chunks)-1) {
				t.Errorf("%s: chunk %d of %d at %d is altered: lost %v, %v", name, i, len(chunks), at, lost, err)
			}
			altered++
		}
	}
	if altered < 10 {
		t.Errorf("there were %d chunks", altered)
	}
}
