package config

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the existing name that is most similar to name; empty if none is similar enough.
func Nearest(name string, exist []string) string {
	meant, best := "", len(name)/3+2
	for _, other := range exist {
		distance := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(other))
		if len(name) > 1 && strings.HasPrefix(other, name) {
			distance = min(distance, 1)
		}
		if distance < min(best, len(name)) {
			meant, best = other, distance
		}
	}
	return meant
}
