package log

// Size returns the number of content bytes of an event: of its ids, labels, texts, JSON and binary data. It does not
// depend on how a store encodes the event.
func Size(e Event) uint64 {
	n := len(e.ID)
	for k, v := range e.Labels {
		n += len(k) + len(v)
	}
	switch b := e.Body.(type) {
	case *Message:
		n += len(b.GroupID) + len(b.Model) + blocksSize(b.Blocks)
	case *Reminder:
		n += len(b.Body) + len(b.DedupeKey) + len(b.Source) + textsSize(b.Tags)
	case *Compaction:
		n += len(b.Summary) + len(b.Mode) + len(b.Strategy) + len(b.NativeJSON) + textsSize(b.KeptEventIDs) + b.Decision.size()
	case *Custom:
		n += len(b.Type) + len(b.JSON)
	}
	return uint64(n)
}

// numberSize is the number of bytes that a number counts for.
const numberSize = 8

func (d *CompactionDecision) size() int {
	if d == nil {
		return 0
	}
	return len(d.SummaryID) + len(d.SummaryBy) + numberSize*(4+len(d.Kept)+2*len(d.Masked))
}

func textsSize(all []string) int {
	n := 0
	for _, s := range all {
		n += len(s)
	}
	return n
}

func blocksSize(all []Block) int {
	n := 0
	for _, b := range all {
		switch b := b.(type) {
		case Text:
			n += len(b.Text)
		case Thinking:
			n += len(b.Text) + len(b.Signature) + len(b.RedactedData) + len(b.EncryptedContent)
		case ToolCall:
			n += len(b.CallID) + len(b.Name) + len(b.Arguments)
		case ToolResult:
			n += len(b.CallID) + len(b.ToolName) + blocksSize(b.Content)
		case Media:
			n += len(b.MIMEType) + len(b.Data) + len(b.URI)
		case ProviderBlock:
			n += len(b.Provider) + len(b.JSON)
		}
	}
	return n
}
