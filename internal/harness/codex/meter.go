package codex

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// counts are one request's or the whole session's tokens.
type counts struct {
	// Input is the whole prompt, the cached part included.
	Input      transcript.Count `json:"input_tokens"`
	Cached     transcript.Count `json:"cached_input_tokens"`
	CacheWrite transcript.Count `json:"cache_write_input_tokens"`
	Output     transcript.Count `json:"output_tokens"`
}

type tokenInfo struct {
	Total *counts `json:"total_token_usage"`
	Last  *counts `json:"last_token_usage"`
}

// meter makes the usage of each request out of running totals, which are written
// again whenever something else in the record changes.
type meter struct {
	total counts
	last  counts
	begun bool
}

// read returns the usage labels of the requests since the last count; counted is
// false if there were none.
func (m *meter) read(info jsontext.Value) (labels map[string]string, counted bool) {
	var i tokenInfo
	if len(info) == 0 || transcript.Decode(info, &i) != nil || (i.Total == nil && i.Last == nil) {
		return nil, false
	}
	var used counts
	switch {
	case i.Total == nil: // of early versions
		if m.begun && *i.Last == m.last {
			return nil, false
		}
		used = *i.Last
		m.last = used
	case *i.Total == m.total:
		return nil, false
	case m.grew(*i.Total):
		used = i.Total.minus(m.total)
		m.total = *i.Total
	default: // the count began again
		used = *i.Total
		if i.Last != nil {
			used = *i.Last
		}
		m.total = *i.Total
	}
	m.begun = true
	return transcript.Usage{Prompt: used.Input, CacheRead: used.Cached, CacheWrite: used.CacheWrite, Output: used.Output}.Labels(), true
}

// grew reports whether the total can have grown into t.
func (m *meter) grew(t counts) bool {
	return t.Input >= m.total.Input && t.Cached >= m.total.Cached && t.CacheWrite >= m.total.CacheWrite && t.Output >= m.total.Output
}

func (c counts) minus(d counts) counts {
	return counts{Input: c.Input - d.Input, Cached: c.Cached - d.Cached, CacheWrite: c.CacheWrite - d.CacheWrite, Output: c.Output - d.Output}
}
