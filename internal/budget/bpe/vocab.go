package bpe

import (
	_ "embed"
	"fmt"

	"github.com/contextd/contextd/internal/budget"
)

// maxToken is the length, in bytes, of the longest token that a vocabulary may have. Both vocabularies have such a
// token.
const maxToken = 128

// The vocabularies as merges: for each token its id's mergeBytes bytes, see readMerges. They are
// made of the vocabularies that tiktoken-go-loader has, and held to them, by
//
//	go test ./internal/budget/bpe -run VocabulariesAsMerges -rewrite
var (
	//go:embed o200k_base.merges
	o200kMerges []byte
	//go:embed cl100k_base.merges
	cl100kMerges []byte
)

// mergeBytes is the size of a token in a file of merges, and singleByte marks one that is a
// single byte.
const (
	mergeBytes = 5
	singleByte = 1 << (8*mergeBytes - 1)
)

func loadMerges(name string) (*mergeTable, error) {
	if name == budget.TokenizerCL100K {
		return readMerges(cl100kMerges)
	}
	return readMerges(o200kMerges)
}

// readMerges reads the tokens in the order of their ids, which count up from 0: each is a number
// in little endian, singleByte and the byte, or the ids of the two tokens that merge into it,
// first<<tokenBits | second. Those must be lower, each byte must be a token, and no two merge
// into more than one.
func readMerges(data []byte) (*mergeTable, error) {
	if len(data)%mergeBytes != 0 || len(data)/mergeBytes > 1<<tokenBits {
		return nil, fmt.Errorf("%d bytes are no list of merges", len(data))
	}
	m := newMergeTable(len(data) / mergeBytes)
	bytesByID := make(map[uint32]byte, len(m.byteIDs))
	for id := range uint32(len(data) / mergeBytes) {
		at := data[id*mergeBytes:]
		token := uint64(at[0]) | uint64(at[1])<<8 | uint64(at[2])<<16 | uint64(at[3])<<24 | uint64(at[4])<<32
		first, second := uint32(token>>tokenBits), uint32(token&tokenMask)
		switch {
		case token >= singleByte:
			b := byte(token)
			if token != singleByte|uint64(b) || m.byteIDs[b] != noToken {
				return nil, fmt.Errorf("token %d is no byte, or one that is a token already", id)
			}
			m.byteIDs[b], bytesByID[id] = id, b
			continue
		case first >= id || second >= id || m.merged(first, second) != noToken:
			return nil, fmt.Errorf("token %d is made of %d and %d, which is not possible", id, first, second)
		}
		m.add(first, second, id)
		if a, ok := bytesByID[first]; ok {
			if b, ok := bytesByID[second]; ok {
				m.bytePairs[pair(a, b)] = id
			}
		}
	}
	if missing := m.missingByte(); missing >= 0 {
		return nil, fmt.Errorf("the byte %#02x is not a token", missing)
	}
	return m, nil
}

// missingByte returns the first byte that is not a token, or -1.
func (m *mergeTable) missingByte() int {
	for b, id := range m.byteIDs {
		if id == noToken {
			return b
		}
	}
	return -1
}
