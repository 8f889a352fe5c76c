package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
)

// Misfit returns an error for the first value in a JSON text that does not fit a message, with its path and
// the values that fit. It is for texts that protojson refuses, since protojson's errors have no path. It
// returns nil if it finds no such value, as in a text that is not JSON.
func Misfit(text []byte, of protoreflect.MessageDescriptor) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	if members, ok := value.(map[string]any); ok && err == nil {
		return misfitOf(members, of, "")
	}
	return nil
}

// halfSurrogate returns an error that names the first text of a JSON text with an escaped half of a surrogate pair.
func halfSurrogate(text []byte) error {
	_, err := jsontext.AppendFormat(nil, text, jsontext.AllowDuplicateNames(true))
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return nil
	}
	return at(strings.Join(slices.Collect(wrong.JSONPointer.Tokens()), "."), "half of a surrogate pair is no text")
}

func misfitOf(members map[string]any, of protoreflect.MessageDescriptor, path string) error {
	chosen := make(map[protoreflect.Name]string)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field := fieldOf(name, of)
		switch value := members[name]; {
		case field == nil:
			return unknownField(name, of, path)
		case value == nil:
			continue
		default:
			if err := misfitOfField(value, field, inside(path, name)); err != nil {
				return err
			}
		}
		if oneof := field.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
			if other := chosen[oneof.Name()]; other != "" {
				return at(path, fmt.Sprintf("%s and %s cannot be set together", other, name))
			}
			chosen[oneof.Name()] = name
		}
	}
	return nil
}

func misfitOfField(value any, field protoreflect.FieldDescriptor, path string) error {
	switch {
	case field.IsMap():
		entries, ok := value.(map[string]any)
		if !ok {
			return wrongValue(path, "a map", value)
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if err := misfitOfItem(entries[key], field.MapValue(), fmt.Sprintf("%s[%q]", path, key)); err != nil {
				return err
			}
		}
	case field.IsList():
		items, ok := value.([]any)
		if !ok {
			return wrongValue(path, "a list", value)
		}
		for i, item := range items {
			if err := misfitOfItem(item, field, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	default:
		return misfitOfItem(value, field, path)
	}
	return nil
}

func misfitOfItem(value any, field protoreflect.FieldDescriptor, path string) error {
	if of := field.Message(); of != nil && of.ParentFile().Package() != "google.protobuf" {
		members, ok := value.(map[string]any)
		if !ok {
			return wrongValue(path, "a map with "+someFields(of), value)
		}
		return misfitOf(members, of, path)
	}
	alone := value
	if field.IsList() {
		alone = []any{value}
	}
	text, err := json.Marshal(map[string]any{string(field.Name()): alone})
	if err == nil && protojson.Unmarshal(text, dynamicpb.NewMessage(field.ContainingMessage())) != nil {
		return wrongValue(path, wanted(field), value)
	}
	return nil
}

// wanted says in words what a scalar field takes.
func wanted(field protoreflect.FieldDescriptor) string {
	switch field.Kind() {
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.BytesKind:
		return "a text in base64"
	case protoreflect.StringKind:
		return "a text"
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "a number"
	case protoreflect.EnumKind:
		return "one of " + strings.Join(apierr.EnumNames(field.Enum()), ", ")
	case protoreflect.MessageKind:
		if field.Message().Name() == "Duration" {
			return `a number of seconds and s, such as "30s"`
		}
		return `a time such as "2006-01-02T15:04:05Z"`
	case protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return "a whole number"
	default:
		return "a whole number, and not less than 0"
	}
}

// wrongValue is the error for a value, of which it quotes the beginning.
func wrongValue(path, wanted string, value any) error {
	var is string
	switch value := value.(type) {
	case map[string]any:
		is = "a map"
	case []any:
		is = "a list"
	default:
		text, err := json.Marshal(value)
		if err != nil {
			return at(path, "must be "+wanted)
		}
		is = string(text)
		if runes := []rune(is); len(runes) > 40 {
			is = string(runes[:40]) + "…"
		}
	}
	return at(path, fmt.Sprintf("must be %s; it is %s", wanted, is))
}

func unknownField(name string, of protoreflect.MessageDescriptor, path string) error {
	text := fmt.Sprintf("unknown field %q", name)
	if meant := Nearest(name, fieldNames(of)); meant != "" {
		text += fmt.Sprintf(" (did you mean %q?)", meant)
	} else {
		text += "; it may have " + someFields(of)
	}
	return at(path, text)
}

func fieldOf(name string, of protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	if field := of.Fields().ByName(protoreflect.Name(name)); field != nil {
		return field
	}
	return of.Fields().ByJSONName(name)
}

func fieldNames(of protoreflect.MessageDescriptor) (names []string) {
	for i := range of.Fields().Len() {
		names = append(names, string(of.Fields().Get(i).Name()))
	}
	return names
}

// someFields names the fields of a message in errors; of many, the first.
func someFields(of protoreflect.MessageDescriptor) string {
	names := fieldNames(of)
	if len(names) > 8 {
		names = append(names[:7], "others")
	}
	last := len(names) - 1
	if last < 1 {
		return "the field " + strings.Join(names, "")
	}
	return "the fields " + strings.Join(names[:last], ", ") + " and " + names[last]
}

func inside(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func at(path, wrong string) error {
	if path == "" {
		return fmt.Errorf("%s", wrong)
	}
	return fmt.Errorf("%s: %s", path, wrong)
}
