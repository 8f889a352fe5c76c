package codex

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// counts are the tokens of one request, or of the whole session.
type counts struct {
	// Input is the whole prompt, including the cached part.
	Input      transcript.Count `json:"input_tokens"`
	Cached     transcript.Count `json:"cached_input_tokens"`
	CacheWrite transcript.Count `json:"cache_write_input_tokens"`
	Output     transcript.Count `json:"output_tokens"`
}

type tokenInfo struct {
	Total *counts `json:"total_token_usage"`
	Last  *counts `json:"last_token_usage"`
}

// meter derives the usage of each request from running totals. The harness repeats a total whenever something
// else in the record changes.
type meter struct {
	total counts
	last  counts
	begun bool
	// byTotal and byRequest report whether the usage of the newest reply was read from a total, or from a
	// record of its own.
	byTotal, byRequest bool
}

// reply begins another reply, or goes on with one.
func (m *meter) reply() { m.byTotal, m.byRequest = false, false }

// request reports whether a record of a request's usage counts: it does unless a total has it already.
func (m *meter) request() bool {
	m.byRequest = m.byRequest || !m.byTotal
	return m.byRequest
}

// read returns the usage labels for the requests since the total before; counted is false if there were none.
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
	default: // the total was reset
		used = *i.Total
		if i.Last != nil {
			used = *i.Last
		}
		m.total = *i.Total
	}
	m.begun = true
	if m.byRequest {
		return nil, false
	}
	m.byTotal = true
	return used.labels(), true
}

func (c counts) labels() map[string]string {
	return transcript.Usage{Prompt: c.Input, CacheRead: c.Cached, CacheWrite: c.CacheWrite, Output: c.Output}.Labels()
}

// grew reports whether t may be a later state of the total.
func (m *meter) grew(t counts) bool {
	return t.Input >= m.total.Input && t.Cached >= m.total.Cached && t.CacheWrite >= m.total.CacheWrite && t.Output >= m.total.Output
}

func (c counts) minus(d counts) counts {
	return counts{Input: c.Input - d.Input, Cached: c.Cached - d.Cached, CacheWrite: c.CacheWrite - d.CacheWrite, Output: c.Output - d.Output}
}
