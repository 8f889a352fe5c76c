package transcript

import "strconv"

// Usage is what a provider counted for one request.
type Usage struct {
	// Prompt is the whole prompt, the cached part included.
	Prompt, CacheRead, CacheWrite, Output Count
}

// UsageOf reads the usage labels; an absent one is 0.
func UsageOf(labels map[string]string) Usage {
	number := func(label string) Count {
		n, err := strconv.ParseUint(labels[label], 10, 64)
		if err != nil {
			return 0
		}
		return Count(n)
	}
	return Usage{
		Prompt: number(LabelPromptTokens), CacheRead: number(LabelCacheReadTokens),
		CacheWrite: number(LabelCacheWriteTokens), Output: number(LabelOutputTokens),
	}
}

// Fresh is the part of the prompt that was neither in the cache nor written to it.
func (u Usage) Fresh() Count { return u.Prompt - min(u.Prompt, u.CacheRead+u.CacheWrite) }

// Labels gives the usage labels, or nil if nothing was counted.
func (u Usage) Labels() map[string]string {
	if u.Prompt == 0 && u.Output == 0 {
		return nil
	}
	labels := map[string]string{
		LabelPromptTokens:    u.Prompt.String(),
		LabelCacheReadTokens: u.CacheRead.String(),
		LabelOutputTokens:    u.Output.String(),
	}
	if u.CacheWrite > 0 {
		labels[LabelCacheWriteTokens] = u.CacheWrite.String()
	}
	return labels
}
