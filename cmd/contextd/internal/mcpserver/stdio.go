package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// longestLine is how many bytes a message may have.
const longestLine = 16 << 20

// wrongID refuses ids that the SDK would change.
const wrongID = "an id must be a string, or a whole number below 2^53"

// Stdio is a transport of one client, with a message a line. A line that is no message is answered
// as JSON-RPC has it, where the SDK's transport would end and take all tools from the model. Once the
// input has ended, what was asked before is answered, for as long as a call may take.
type Stdio struct {
	In  io.Reader
	Out io.Writer
}

// Connect implements mcp.Transport.
func (s Stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &stdio{out: s.Out, lines: make(chan line), closed: make(chan struct{}), open: map[jsonrpc.ID]bool{}, idle: make(chan struct{})}
	go c.readLines(bufio.NewReaderSize(s.In, 1<<16))
	return c, nil
}

// stdio is the connection. The goroutine that reads ends with the input, or with the line that comes
// after Close.
type stdio struct {
	lines  chan line
	closed chan struct{}
	close  sync.Once

	mu    sync.Mutex
	out   io.Writer
	open  map[jsonrpc.ID]bool // requests without an answer
	ended bool                // no further request comes
	idle  chan struct{}       // closed once ended, and all is answered
	rest  sync.Once
}

// line is one line of the input, or why there is no further one.
type line struct {
	text []byte
	long bool // it has more than longestLine bytes, and no text
	err  error
}

func (c *stdio) readLines(in *bufio.Reader) {
	for {
		l := readLine(in)
		select {
		case c.lines <- l:
		case <-c.closed:
			return
		}
		if l.err != nil {
			return
		}
	}
}

func readLine(in *bufio.Reader) (l line) {
	for {
		part, err := in.ReadSlice('\n')
		if l.long = l.long || len(l.text)+len(part) > longestLine; l.long {
			l.text = nil
		} else {
			l.text = append(l.text, part...)
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(l.text) > 0:
			return l
		case !errors.Is(err, bufio.ErrBufferFull):
			l.err = err
			return l
		}
	}
}

// Read implements mcp.Connection.
func (c *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case l := <-c.lines:
			if l.err != nil {
				c.awaitAnswers(ctx)
				return nil, l.err
			}
			if len(bytes.TrimSpace(l.text)) == 0 && !l.long {
				continue
			}
			msg, refusal := l.message()
			if refusal != nil {
				if err := c.write(refusal); err != nil {
					return nil, err
				}
				continue
			}
			c.asked(msg)
			return msg, nil
		}
	}
}

// message is what a line holds, or the answer to one that holds none.
func (l line) message() (jsonrpc.Message, []byte) {
	var id json.RawMessage // null where none can be given back
	refuse := func(code int64, format string, args ...any) (jsonrpc.Message, []byte) {
		answer, _ := json.Marshal(map[string]any{ // of texts and numbers alone
			"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": fmt.Sprintf(format, args...)},
		})
		return nil, answer
	}
	switch {
	case l.long:
		return refuse(jsonrpc.CodeInvalidRequest, "a line has more than %d bytes", longestLine)
	case !json.Valid(l.text):
		return refuse(jsonrpc.CodeParseError, "a line is no JSON, or too deep")
	case bytes.TrimSpace(l.text)[0] == '[':
		return refuse(jsonrpc.CodeInvalidRequest, "messages must come one a line, not as a batch")
	}
	msg, err := jsonrpc.DecodeMessage(l.text)
	if err != nil {
		return refuse(jsonrpc.CodeInvalidRequest, "a line is no JSON-RPC message: %v", err)
	}
	if id = l.lostID(msg); id != nil {
		return refuse(jsonrpc.CodeInvalidRequest, wrongID)
	}
	return msg, nil
}

// lostID is the id of a request which the SDK would answer under another one, and take for that of
// another request; nil of all others.
func (l line) lostID(msg jsonrpc.Message) json.RawMessage {
	var asked struct {
		ID json.RawMessage `json:"id"`
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return nil
	}
	if _, number := req.ID.Raw().(int64); !number || json.Unmarshal(l.text, &asked) != nil {
		return nil
	}
	if n, err := strconv.ParseFloat(string(asked.ID), 64); err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return nil
	}
	return asked.ID
}

// asked notes a request that is to be answered.
func (c *stdio) asked(msg jsonrpc.Message) {
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open[req.ID] = true
	}
}

// awaitAnswers waits until what was asked is answered. A request that was cancelled never is.
func (c *stdio) awaitAnswers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c.mu.Lock()
	c.ended = true
	c.settle()
	c.mu.Unlock()
	select {
	case <-c.idle:
	case <-c.closed:
	case <-ctx.Done():
	}
}

// settle closes idle where that is due. Its caller holds mu.
func (c *stdio) settle() {
	if c.ended && len(c.open) == 0 {
		c.rest.Do(func() { close(c.idle) })
	}
}

// Write implements mcp.Connection.
func (c *stdio) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	if err := c.write(text); err != nil {
		return err
	}
	if resp, ok := msg.(*jsonrpc.Response); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, resp.ID)
		c.settle()
	}
	return nil
}

func (c *stdio) write(text []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	return err
}

// Close implements mcp.Connection.
func (c *stdio) Close() error {
	c.close.Do(func() { close(c.closed) })
	return nil
}

// SessionID implements mcp.Connection: a transport of one client has none.
func (c *stdio) SessionID() string { return "" }
