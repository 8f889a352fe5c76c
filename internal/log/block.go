package log

// Block is a part of a message: Text, Thinking, ToolCall, ToolResult, Media or ProviderBlock. Blocks are values.
// Their raw JSON and binary data are strings, so that nobody can change a block.
type Block interface{ block() }

func (Text) block()          {}
func (Thinking) block()      {}
func (ToolCall) block()      {}
func (ToolResult) block()    {}
func (Media) block()         {}
func (ProviderBlock) block() {}

// Text is plain text.
type Text struct{ Text string }

// Thinking is a model's reasoning, perhaps signed, redacted or encrypted by its
// provider.
type Thinking struct {
	Text             string
	Signature        string
	RedactedData     string // raw bytes
	EncryptedContent string
}

// Sealed reports whether the provider can detect a change of the block: it is signed,
// redacted or encrypted.
func (t Thinking) Sealed() bool {
	return t.Signature != "" || t.RedactedData != "" || t.EncryptedContent != ""
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	CallID string
	Name   string
	// Arguments are the bytes that the model wrote: JSON, unless it made a mistake.
	Arguments string
}

// ToolResult answers the tool call with the same CallID.
type ToolResult struct {
	CallID   string
	ToolName string // may be empty, since the call names the tool
	// Content holds Text, Media and ProviderBlock blocks only.
	Content []Block
	IsError bool
}

// Media is an image, a document or other binary content.
type Media struct {
	MIMEType string
	Data     string // raw bytes; empty if the content is at URI
	URI      string
	// Tokens is the runtime's number of tokens for which the provider charges; 0 if the runtime gave none.
	Tokens uint32
}

// ProviderBlock is a provider's own kind of block, kept unchanged.
type ProviderBlock struct {
	Provider string
	JSON     string
}
