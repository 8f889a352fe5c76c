package summarize

import (
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

// leastRoom is the least room, in tokens, for the older text, and also for the groups.
const leastRoom = 256

// chunks divides a span into requests of whole groups. The groups of a request depend on the text that the request
// before gave, so requests are made one by one.
type chunks struct {
	groups []*reduce.Group
	count  func(string) uint64
	system string
	writer prompt.Writer
	// reminders are written into each request.
	reminders string
	// room is the most tokens of the material.
	room uint64
}

// chunk is the content of one request.
type chunk struct {
	prompt string
	// span is the part of the prompt that was written from groups.
	span   []string
	groups []*reduce.Group
}

// cut prepares requests of at most limit tokens, including both prompts.
func cut(m Material, system string, writer prompt.Writer, limit uint64) (*chunks, error) {
	fixed := 2*budget.MessageOverhead + m.Count(system) + m.Count(prompt.Frame())
	if limit < fixed+2*leastRoom {
		return nil, &InputLimitError{limit, fixed + 2*leastRoom}
	}
	c := &chunks{groups: m.Groups, count: m.Count, system: system, writer: writer, room: limit - fixed}
	c.remind(m.Reminders)
	return c, nil
}

// remind writes reminders, preferring the newest, in at most a quarter of the room, and reduces the room by them.
func (c *chunks) remind(all []reduce.Reminder) {
	const most, longest = 32, 4096 // reminders, and bytes of each
	for all = all[max(0, len(all)-most):]; len(all) > 0; all = all[1:] {
		text := c.writer.Reminders(all, longest)
		if tokens := c.count(text); tokens <= c.room/4 {
			c.reminders, c.room = text, c.room-tokens
			return
		}
	}
}

// next returns the next chunk after an older text, and removes its groups from the rest. If there are no groups, the
// chunk has only the older text.
func (c *chunks) next(older string) (chunk, error) {
	for limit := len(older); ; limit /= 2 {
		quoted, limited := c.older(older, limit)
		k, err := c.after(quoted)
		if err == nil {
			c.groups = c.groups[len(k.groups):]
			return k, nil
		}
		if quoted == "" {
			return chunk{}, err
		}
		limit = limited
	}
}

// after fills a chunk that begins with a quoted older text. The count of the whole may be more than the sum of its
// parts: the difference is subtracted from the room for groups.
func (c *chunks) after(quoted string) (chunk, error) {
	limit := c.room + c.count(c.reminders) + 2*budget.MessageOverhead + c.count(c.system) + c.count(prompt.Frame())
	for room := c.room - min(c.room, c.count(quoted)); ; {
		k, err := c.fill(quoted, room)
		if err != nil {
			return chunk{}, err
		}
		total := 2*budget.MessageOverhead + c.count(c.system) + c.count(k.prompt)
		if total <= limit {
			return k, nil
		}
		if room == 0 {
			return chunk{}, &InputLimitError{limit, total}
		}
		room -= min(room, total-limit)
	}
}

// more reports whether groups remain.
func (c *chunks) more() bool { return len(c.groups) > 0 }

// older quotes the text that is extended, cut to about limit bytes, or to fewer so that it takes at most half of the
// room. It also returns the number of bytes; with 0 nothing is quoted.
func (c *chunks) older(text string, limit int) (string, int) {
	for ; limit > 0; limit = limit * 3 / 4 {
		if quoted := c.writer.Older(text, limit); c.count(quoted) <= c.room/2 {
			return quoted, limit
		}
	}
	return "", 0
}

// fill takes as many groups as the room allows, and at least one. If a group alone is too large for a request, its
// texts are shortened.
func (c *chunks) fill(older string, room uint64) (chunk, error) {
	var k chunk
	for i, g := range c.groups {
		text := c.writer.Group(g, prompt.Whole)
		tokens := c.count(text)
		if tokens > room && i > 0 {
			break
		}
		if tokens > room {
			var ok bool
			if text, tokens, ok = c.shorten(g, len(text), room); !ok {
				return chunk{}, &InputLimitError{c.room, c.room + tokens - room}
			}
		}
		room -= tokens
		k.span = append(k.span, text)
	}
	k.groups = c.groups[:len(k.span):len(k.span)]
	k.prompt = prompt.Compose(older, c.reminders, k.span)
	return k, nil
}

// shorten writes a group with its texts cut so that it fits, to the longest length that a search by halves finds.
func (c *chunks) shorten(g *reduce.Group, size int, room uint64) (text string, tokens uint64, ok bool) {
	for limit := size / 2; limit >= 16; limit /= 2 {
		text = c.writer.Group(g, limit)
		if tokens = c.count(text); tokens <= room {
			return text, tokens, true
		}
	}
	text = prompt.Stub(g)
	tokens = c.count(text)
	return text, tokens, tokens <= room
}
