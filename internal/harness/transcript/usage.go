package transcript

import "strconv"

// Usage is what a provider counted for one request.
type Usage struct {
	// Prompt is the whole prompt, the cached part included.
	Prompt, CacheRead, CacheWrite, Output uint64
}

// Labels gives the usage labels, or nil if nothing was counted.
func (u Usage) Labels() map[string]string {
	if u.Prompt == 0 && u.Output == 0 {
		return nil
	}
	labels := map[string]string{
		LabelPromptTokens:    strconv.FormatUint(u.Prompt, 10),
		LabelCacheReadTokens: strconv.FormatUint(u.CacheRead, 10),
		LabelOutputTokens:    strconv.FormatUint(u.Output, 10),
	}
	if u.CacheWrite > 0 {
		labels[LabelCacheWriteTokens] = strconv.FormatUint(u.CacheWrite, 10)
	}
	return labels
}
