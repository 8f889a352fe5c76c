package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Context is the context of one model call. Its bytes were checked against the daemon's hash.
// Do not change it: the next assembly takes from it the messages that the daemon does not send.
type Context struct {
	// SessionID is the session.
	SessionID string
	// Format is how the messages are rendered.
	Format contextdv1.Format
	// Header says what was decided and why.
	Header *contextdv1.ContextHeader
	// Messages are all messages of the context, with the bytes that the hash covers.
	Messages []*contextdv1.RenderedMessage
	// Sent is how many of them came with this answer; the client had the others.
	Sent int
}

type heldKey struct {
	session string
	format  contextdv1.Format
}

// Assemble returns the context of the next model call. The daemon sends only what is new since the
// newest context of the same session and format. The error is ErrBudgetExceeded if the context
// cannot be made to fit, ErrLogLost if the log lacks what this client appended, and ErrIntegrity if
// the received messages do not have the daemon's hash.
//
// The client sets have and message_form of the request, and known if it is not set. Set brief if
// you do not read header.projection, which grows with the session.
func (c *Client) Assemble(ctx context.Context, req *contextdv1.AssembleContextRequest) (*Context, error) {
	req = cmp.Or(req, &contextdv1.AssembleContextRequest{})
	key := heldKey{req.GetSessionId(), req.GetFormat()}
	held := c.held.get(key)
	own := proto.CloneOf(req)
	own.Have, own.MessageForm = held.have(), contextdv1.MessageForm_MESSAGE_FORM_JSON
	if own.Known = req.GetKnown(); own.Known == nil {
		own.Known = c.logs.of(key.session)
	}
	parts, err := all(ctx, c.patience, func(ctx context.Context) (grpc.ServerStreamingClient[contextdv1.AssembleContextResponse], error) {
		return c.AssembleContext(ctx, own)
	})
	if err != nil {
		return nil, err
	}
	made, err := next(held, parts)
	if err != nil {
		c.held.forget(func(k heldKey) bool { return k == key })
		return nil, err
	}
	made.SessionID, made.Format = key.session, key.format
	if req.AsOfSeq == nil {
		c.held.update(key, func(*Context, bool) (*Context, bool) { return made, true })
	}
	return made, nil
}

// Project returns the context of events that are in no log, as Assemble does for a log. Nothing is
// stored. The client sets message_form of the request.
func (c *Client) Project(ctx context.Context, req *contextdv1.ProjectTranscriptRequest) (*Context, error) {
	own := proto.CloneOf(cmp.Or(req, &contextdv1.ProjectTranscriptRequest{}))
	own.MessageForm = contextdv1.MessageForm_MESSAGE_FORM_JSON
	parts, err := all(ctx, c.patience, func(ctx context.Context) (grpc.ServerStreamingClient[contextdv1.ProjectTranscriptResponse], error) {
		return c.ProjectTranscript(ctx, own)
	})
	if err != nil {
		return nil, err
	}
	made, err := next(nil, parts)
	if err != nil {
		return nil, err
	}
	made.Format = req.GetFormat()
	return made, nil
}

// all returns everything that a stream sends. A stream that breaks is opened again from the start.
func all[T any](ctx context.Context, patience patience, open func(context.Context) (grpc.ServerStreamingClient[T], error)) (parts []*T, err error) {
	err = patience.repeat(ctx, (*Error).mayPass, func() error {
		parts = nil
		_, err := receive(ctx, open, func(part *T) bool {
			parts = append(parts, part)
			return true
		})
		return err
	})
	return parts, err
}

// WithTools returns a copy of a budget with room for tools. These are the schemas as the request to
// the provider will have them: a value that encoding/json writes as an array, or the array itself as
// json.RawMessage or []byte.
func (c *Client) WithTools(ctx context.Context, budget *contextdv1.Budget, format contextdv1.Format, tools any) (*contextdv1.Budget, error) {
	data, err := json.Marshal(asJSON(tools))
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	size, err := c.CountTokens(ctx, &contextdv1.CountTokensRequest{
		Model: budget.GetModel(), Tokenizer: budget.GetTokenizer(), Format: format, ToolsJson: data,
	})
	if err != nil {
		return nil, err
	}
	wider := &contextdv1.Budget{}
	proto.Merge(wider, budget)
	wider.OverheadTokens += min(size.GetTokens(), math.MaxUint64-wider.GetOverheadTokens())
	return wider, nil
}

// asJSON makes bytes a json.RawMessage, since encoding/json would write them as base64.
func asJSON(v any) any {
	if data, ok := v.([]byte); ok {
		return json.RawMessage(data)
	}
	return v
}

// have returns the prefix of the messages that need not be sent again. Messages after prefix_messages may be gone next
// time, or merged with others.
func (c *Context) have() *contextdv1.Have {
	if c == nil || c.Header.GetPrefixMessages() == 0 {
		return nil
	}
	n := c.Header.GetPrefixMessages()
	return &contextdv1.Have{MessageCount: n, PrefixHash: hashOf(c.Messages[:n])}
}

// part is one message of a response stream with a context.
type part interface {
	GetHeader() *contextdv1.ContextHeader
	GetChunk() *contextdv1.MessageChunk
	GetTrailer() *contextdv1.ContextTrailer
}

// next makes the new context from the response and the held context, which may be nil.
func next[P part](held *Context, parts []P) (*Context, error) {
	if len(parts) < 2 || parts[0].GetHeader() == nil || parts[len(parts)-1].GetTrailer() == nil {
		return nil, fmt.Errorf("%w: the answer has no header or no trailer", ErrIntegrity)
	}
	header, trailer := parts[0].GetHeader(), parts[len(parts)-1].GetTrailer()
	made := &Context{Header: header}
	said, skipped := uint32(0), header.GetSkippedMessages()
	if held != nil {
		said = held.Header.GetPrefixMessages()
	}
	if skipped > said || skipped < said && header.GetHaveBroken() == nil {
		return nil, fmt.Errorf("%w: %d of %d messages are skipped, and nothing says why", ErrIntegrity, skipped, said)
	}
	if skipped > 0 {
		made.Messages = slices.Clip(held.Messages[:skipped])
	}
	for _, part := range parts[1 : len(parts)-1] {
		made.Messages = append(made.Messages, part.GetChunk().GetMessages()...)
	}
	made.Sent = len(made.Messages) - int(skipped)
	if err := made.check(trailer); err != nil {
		return nil, err
	}
	return made, nil
}

// check compares what was received with the daemon's counts and hash.
func (c *Context) check(trailer *contextdv1.ContextTrailer) error {
	h := c.Header
	if n := uint32(len(c.Messages)); n != h.GetMessageCount() || n != trailer.GetMessageCount() {
		return fmt.Errorf("%w: %d messages; the header says %d, the trailer %d", ErrIntegrity, n, h.GetMessageCount(), trailer.GetMessageCount())
	}
	for i, m := range c.Messages {
		if m.GetIndex() != uint32(i) {
			return fmt.Errorf("%w: message %d came at place %d", ErrIntegrity, m.GetIndex(), i)
		}
	}
	hash := hashOf(c.Messages)
	if hash != h.GetContextHash() || hash != trailer.GetContextHash() {
		return fmt.Errorf("%w: the messages hash to %s; the header says %s, the trailer %s", ErrIntegrity, hash, h.GetContextHash(), trailer.GetContextHash())
	}
	if h.GetPrefixMessages() == h.GetMessageCount() && h.GetPrefixHash() != hash {
		return fmt.Errorf("%w: nothing is injected, and the prefix hash is %s, not %s", ErrIntegrity, h.GetPrefixHash(), hash)
	}
	return nil
}

// hashOf returns contextd's hash of messages, over the JSON of each and a newline.
func hashOf(messages []*contextdv1.RenderedMessage) string {
	h := sha256.New()
	for _, m := range messages {
		h.Write(m.GetJson())
		h.Write([]byte("\n"))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// members names the member of a provider's request that holds the messages.
var members = map[contextdv1.Format]string{
	contextdv1.Format_FORMAT_UNSPECIFIED:      "messages",
	contextdv1.Format_FORMAT_ANTHROPIC:        "messages",
	contextdv1.Format_FORMAT_OPENAI_CHAT:      "messages",
	contextdv1.Format_FORMAT_OPENAI_RESPONSES: "input",
	contextdv1.Format_FORMAT_GEMINI:           "contents",
}

// Body returns the body of the provider's request. It has the members of params (model, tools and so
// on; written as a JSON object, nil for none) and what the context adds: the messages, the system
// prompt if the format has it outside the messages, prompt_cache_key, and the provider's cache marks
// where the daemon says that they pay. The context's values have the bytes that the daemon sent. An
// SDK that parses and writes them again may change numbers, and repeated members of arguments.
func (c *Context) Body(params any) ([]byte, error) {
	body, err := openObject(params)
	if err != nil {
		return nil, err
	}
	add := func(member ...[]byte) {
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(body, bytes.Join(member, nil)...)
	}
	lines, err := c.marked()
	if err != nil {
		return nil, err
	}
	if len(lines) > 0 && c.Messages[0].GetSystem() {
		// An object whose one member belongs in the request itself.
		add(lines[0][1 : len(lines[0])-1])
		lines = lines[1:]
	}
	if key := c.Header.GetPromptCacheKey(); key != "" {
		quoted, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		add([]byte(`"prompt_cache_key":`), quoted)
	}
	add([]byte(`"`+members[c.Format]+`":[`), bytes.Join(lines, []byte(",")), []byte("]"))
	return append(body, '}'), nil
}

// openObject writes a JSON object without its closing brace.
func openObject(params any) ([]byte, error) {
	if params == nil {
		return []byte("{"), nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(asJSON(params)); err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	object, ok := bytes.CutSuffix(out.Bytes(), []byte("}\n"))
	if !ok {
		return nil, errors.New("params: must be written as a JSON object")
	}
	return object, nil
}

// marked returns the messages' bytes with the provider's cache marks. Messages that get a mark are copies.
func (c *Context) marked() ([][]byte, error) {
	lines := make([][]byte, len(c.Messages))
	for i, m := range c.Messages {
		lines[i] = m.GetJson()
	}
	for _, b := range c.Header.GetCacheBreakpoints() {
		if int(b.GetMessageIndex()) >= len(lines) {
			return nil, fmt.Errorf("%w: a cache mark on message %d of %d", ErrIntegrity, b.GetMessageIndex(), len(lines))
		}
		line := &lines[b.GetMessageIndex()]
		marked, err := mark(*line, b)
		if err != nil {
			return nil, fmt.Errorf("%w: a cache mark on message %d: %w", ErrIntegrity, b.GetMessageIndex(), err)
		}
		*line = marked
	}
	return lines, nil
}

// mark puts cache_control on the item that a breakpoint names, or on the last one. The content or the
// system prompt is the last member of contextd's messages for Anthropic.
func mark(line []byte, b *contextdv1.CacheBreakpoint) ([]byte, error) {
	var message struct {
		Content []json.RawMessage `json:"content"`
		System  []json.RawMessage `json:"system"`
	}
	if err := json.Unmarshal(line, &message); err != nil {
		return nil, err
	}
	items := slices.Concat(message.System, message.Content)
	at := len(items) - 1
	if b.ContentIndex != nil {
		at = int(b.GetContentIndex())
	}
	content := slices.Concat([]byte("["), bytes.Join(rawBytes(items), []byte(",")), []byte("]}"))
	before, ok := bytes.CutSuffix(line, content)
	if !ok || at < 0 || at >= len(items) {
		return nil, fmt.Errorf("there is no item %d in a content of %d at its end", at, len(items))
	}
	object, ok := bytes.CutSuffix(items[at], []byte("}"))
	if !ok {
		return nil, fmt.Errorf("item %d is no object", at)
	}
	items[at] = slices.Concat(object, []byte(`,"cache_control":{"type":"ephemeral"}}`))
	return slices.Concat(before, []byte("["), bytes.Join(rawBytes(items), []byte(",")), []byte("]}")), nil
}

func rawBytes(items []json.RawMessage) [][]byte {
	out := make([][]byte, len(items))
	for i, item := range items {
		out[i] = item
	}
	return out
}
