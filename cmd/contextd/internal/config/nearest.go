package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Nearest is the name that exists which is nearest to another; empty if none is near.
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

var unknownField = regexp.MustCompile(`unknown field "([^"]+)"$`)

// nearField adds to an error about a field that a message does not have which one may be meant.
func nearField(err error, value map[string]any, of protoreflect.MessageDescriptor) error {
	m := unknownField.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	if meant := Nearest(m[1], fieldsBeside(m[1], value, of)); meant != "" {
		return fmt.Errorf("%w (did you mean %q?)", err, meant)
	}
	return err
}

// fieldsBeside lists the fields of the message in a value that has a member which is none of them.
func fieldsBeside(member string, value any, of protoreflect.MessageDescriptor) []string {
	if list, ok := value.([]any); ok {
		for _, v := range list {
			if found := fieldsBeside(member, v, of); found != nil {
				return found
			}
		}
	}
	members, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field := of.Fields().ByName(protoreflect.Name(name))
		if field == nil {
			field = of.Fields().ByJSONName(name)
		}
		switch {
		case field == nil && name == member:
			return fieldNames(of)
		case field == nil || field.Message() == nil:
		case field.IsMap():
			entries, _ := members[name].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(entries)) {
				if entry := field.MapValue().Message(); entry != nil {
					if found := fieldsBeside(member, entries[key], entry); found != nil {
						return found
					}
				}
			}
		default:
			if found := fieldsBeside(member, members[name], field.Message()); found != nil {
				return found
			}
		}
	}
	return nil
}

func fieldNames(of protoreflect.MessageDescriptor) (names []string) {
	for i := range of.Fields().Len() {
		names = append(names, string(of.Fields().Get(i).Name()))
	}
	return names
}
