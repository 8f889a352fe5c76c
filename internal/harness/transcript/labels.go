package transcript

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// The limits that the API sets to the labels of an event or a session.
const (
	MaxLabels     = 64
	MaxLabelKey   = 128
	MaxLabelValue = 1024 // characters
)

// CheckLabels says what in the labels is beyond the limits.
func CheckLabels(labels map[string]string) error {
	if len(labels) > MaxLabels {
		return fmt.Errorf("%d labels, and there may be %d", len(labels), MaxLabels)
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		v := labels[k]
		if k == "" || utf8.RuneCountInString(k) > MaxLabelKey || utf8.RuneCountInString(v) > MaxLabelValue {
			return fmt.Errorf("label %.100q is empty or too long: key of %d characters, value of %d", k, utf8.RuneCountInString(k), utf8.RuneCountInString(v))
		}
	}
	return nil
}
