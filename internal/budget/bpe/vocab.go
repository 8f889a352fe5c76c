package bpe

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// maxToken is the length in bytes of the longest token that a vocabulary may
// hold; both known ones reach it.
const maxToken = 128

// loadMerges reads the vocabulary that the offline loader carries inside the
// binary. Nothing is fetched.
func loadMerges(name string) (*mergeTable, error) {
	data, err := assets.Assets.ReadFile(name + ".tiktoken")
	if err != nil {
		return nil, err
	}
	return parseVocabulary(data)
}

// parseVocabulary reads lines of a token in base64, a space, and its id, which is
// also its rank: of two merges the one that yields the lower id comes first. The
// ids must count up from 0, every single byte must be a token, and every longer
// one must be what its bytes merge into by way of lower ids: then the merges say
// all there is to know, and the tokens themselves are not kept.
func parseVocabulary(data []byte) (*mergeTable, error) {
	m := newMergeTable(bytes.Count(data, []byte{'\n'}) + 1)
	longer, err := m.readTokens(data)
	if err != nil {
		return nil, err
	}
	if missing := m.missingByte(); missing >= 0 {
		return nil, fmt.Errorf("the byte %#02x is not a token", missing)
	}
	var parts shortParts
	for id, token := range longer {
		if token == nil {
			continue
		}
		// Merges into lower ids are known by now: they leave the two parts that
		// this token is made of.
		n := m.mergeShort(string(token), &parts)
		if n != 2 || max(parts.ids[0], parts.ids[1]) >= uint32(id) {
			return nil, fmt.Errorf("line %d: no merge of two tokens yields %q", id+1, token)
		}
		m.add(parts.ids[0], parts.ids[1], uint32(id))
		if len(token) == 2 {
			m.bytePairs[pair(token[0], token[1])] = uint32(id)
		}
	}
	return m, nil
}

// readTokens sets the ids of single bytes and returns the longer tokens by id.
func (m *mergeTable) readTokens(data []byte) ([][]byte, error) {
	var longer [][]byte
	text := make([]byte, 0, len(data)/2)
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte{'\n'})
		data = rest
		id := len(longer)
		encoded, rank, _ := bytes.Cut(line, []byte{' '})
		if n, err := strconv.ParseUint(string(rank), 10, tokenBits); err != nil || int(n) != id {
			return nil, fmt.Errorf("line %d: want a token in base64 and the id %d, have %q", id+1, id, line)
		}
		start := len(text)
		var err error
		if text, err = base64.StdEncoding.AppendDecode(text, encoded); err != nil {
			return nil, fmt.Errorf("line %d: %w", id+1, err)
		}
		token := text[start:]
		switch {
		case len(token) == 0 || len(token) > maxToken:
			return nil, fmt.Errorf("line %d: token of %d bytes; 1 to %d are possible", id+1, len(token), maxToken)
		case len(token) == 1 && m.byteIDs[token[0]] != noToken:
			return nil, fmt.Errorf("line %d: the byte %#02x is a token already", id+1, token[0])
		case len(token) == 1:
			m.byteIDs[token[0]] = uint32(id)
			longer = append(longer, nil)
		default:
			longer = append(longer, token)
		}
	}
	return longer, nil
}

// missingByte is the first byte that is not a token, or -1.
func (m *mergeTable) missingByte() int {
	for b, id := range m.byteIDs {
		if id == noToken {
			return b
		}
	}
	return -1
}
