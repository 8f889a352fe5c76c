package daemon_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// example is a call of the table.
type example struct {
	method  protoreflect.MethodDescriptor
	text    string
	endless bool
}

// messages are those of the call, with names in their places.
func (e example) messages(t *testing.T, names map[string]string) (all []proto.Message) {
	t.Helper()
	text := e.text
	for kind, name := range names {
		text = strings.ReplaceAll(text, "{"+kind+"}", name)
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(e.method.Input().FullName())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range strings.Split(text, "\n--\n") {
		m := kind.New().Interface()
		if err := prototext.Unmarshal([]byte(one), m); err != nil {
			t.Fatalf("%s: %v", e.method.FullName(), err)
		}
		all = append(all, m)
	}
	return all
}

// examples reads the table of calls, which must have every method.
func examples(t *testing.T) (all []example) {
	t.Helper()
	b, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]protoreflect.MethodDescriptor{}
	for _, m := range methods() {
		byName[string(m.FullName())] = m
	}
	called := map[string]bool{}
	for _, part := range strings.Split("\n"+string(b), "\n== ")[1:] {
		head, text, _ := strings.Cut(part, "\n")
		name, endless, _ := strings.Cut(head, " ")
		if byName[name] == nil {
			t.Fatalf("calls.txt: there is no method %s", name)
		}
		called[name] = true
		all = append(all, example{byName[name], strings.TrimSpace(text), endless == "endless"})
	}
	for name := range byName {
		if !called[name] {
			t.Errorf("calls.txt has no call of %s: how could it name what is somebody else's?", name)
		}
	}
	return all
}

// fields are the texts of the requests of all methods, by their full names.
func fields() map[string]bool {
	texts, seen := map[string]bool{}, map[protoreflect.FullName]bool{}
	var walk func(protoreflect.MessageDescriptor)
	walk = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind {
				texts[string(f.FullName())] = true
			}
			if f.Message() != nil {
				walk(f.Message())
			}
		}
	}
	for _, m := range methods() {
		walk(m.Input())
	}
	return texts
}

// naming reads what each text of a request names; the table must have every one.
func naming(t *testing.T) map[string]string {
	t.Helper()
	b, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for line := range bytes.Lines(b) {
		if words := strings.Fields(string(line)); len(words) == 2 {
			kinds[words[0]] = words[1]
		}
	}
	all := fields()
	for f := range all {
		if kinds[f] == "" {
			t.Errorf("names.txt does not say what %s names", f)
		}
	}
	for f := range kinds {
		if !all[f] {
			t.Errorf("names.txt has %s, which is no text of a request", f)
		}
	}
	return kinds
}

// used adds the names of the texts that are set in a message.
func used(m protoreflect.Message, values map[string]map[string]bool) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		add := func(f protoreflect.FieldDescriptor, v protoreflect.Value) {
			switch {
			case f.Kind() == protoreflect.StringKind:
				if values[string(f.FullName())] == nil {
					values[string(f.FullName())] = map[string]bool{}
				}
				values[string(f.FullName())][v.String()] = true
			case f.Message() != nil:
				used(v.Message(), values)
			}
		}
		switch {
		case f.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				add(f.MapKey(), k.Value())
				add(f.MapValue(), v)
				return true
			})
		case f.IsList():
			for i := range v.List().Len() {
				add(f, v.List().Get(i))
			}
		default:
			add(f, v)
		}
		return true
	})
}
