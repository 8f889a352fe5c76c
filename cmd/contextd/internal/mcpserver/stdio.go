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

// Stdio is a transport for one client, with one message per line. An invalid line gets a JSON-RPC error; the
// SDK's own transport would end, and the model would lose all tools. At the end of the input, pending
// requests are still answered, within callTimeout.
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

// stdio is the connection. Its reading goroutine ends with the input, or with the first line after Close.
type stdio struct {
	lines  chan line
	closed chan struct{}
	close  sync.Once

	mu    sync.Mutex
	out   io.Writer
	open  map[jsonrpc.ID]bool // requests without an answer yet
	ended bool                // the input has ended
	idle  chan struct{}       // closed once ended is set and open is empty
	rest  sync.Once
}

// line is a line of the input, or the error that ended it.
type line struct {
	text []byte
	long bool // it has more than longestLine bytes; text is empty then
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

// message returns the message in a line, or the error to answer if it has none.
func (l line) message() (jsonrpc.Message, []byte) {
	var id json.RawMessage // null if the line has no usable id
	refuse := func(code int64, format string, args ...any) (jsonrpc.Message, []byte) {
		answer, _ := json.Marshal(map[string]any{ // texts and numbers always encode
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

// lostID returns the id of a request if the SDK would change it while decoding, such as a number of 2^53 or
// more. Its answer would go to another request. It is nil otherwise.
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

// asked records a request that needs an answer.
func (c *stdio) asked(msg jsonrpc.Message) {
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open[req.ID] = true
	}
}

// awaitAnswers waits until all requests are answered. A cancelled request never is, so there is a timeout.
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

// settle closes idle if no answer is pending after the end. The caller holds mu.
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

// SessionID implements mcp.Connection. A transport with one client has no session ids.
func (c *stdio) SessionID() string { return "" }
