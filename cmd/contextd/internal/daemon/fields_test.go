package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestEveryRequestFieldHasAnEffect holds every field that a request can carry to
// testdata/fields. Each case is a script of requests, which runs twice on daemons of their
// own: without and with what its brackets hold, <<with>> or <<without|with>>. The
// directives are
//
//	words                  one "name JSON" a line: what ${name} in scripts stands for
//	before                 steps that come before those of each case that follows
//	field MESSAGE.FIELD    the field has an effect: an answer differs, or is a refusal that
//	                       names the field. The output says which
//	together MESSAGE.FIELD the same of a request in which another field matters, too
//	ignored MESSAGE.FIELD  it has none, and its comment in the proto says so
//
// fieldscript_test.go has the steps. Rewrite with -args -rewrite. The fields of Policy are
// held to the same in package wire.
func TestEveryRequestFieldHasAnEffect(t *testing.T) {
	left := requestFields()
	comments := commentsOfFields(t)
	datadriven.Walk(t, "testdata/fields", func(t *testing.T, path string) {
		s := script{words: map[string]string{}}
		var faults []string // together: a case that fails ends its file
		fault := func(d *datadriven.TestData, format string, args ...any) {
			faults = append(faults, d.Pos+": "+fmt.Sprintf(format, args...))
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "words":
				for line := range strings.Lines(d.Input) {
					name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
					s.words[name] = value
				}
				return ""
			case "before":
				s.before = d.Input
				return ""
			}
			field := d.CmdArgs[0].Key
			if comments[field] == "" || d.Cmd == "field" && !left[field] {
				d.Fatalf(t, "%s is no field of a request, or is there twice", field)
			}
			if d.Cmd != "together" {
				delete(left, field)
			}
			without, with := s.run(t, d.Input, false), s.run(t, d.Input, true)
			diff := differences(without, with)
			if d.Cmd == "ignored" {
				if len(diff) > 0 || !strings.Contains(comments[field], "gnored") {
					fault(d, "%s is not ignored, or not said to be: %q", field, diff)
				}
				return ""
			}
			if len(diff) == 0 {
				fault(d, "%s has no effect; the last answer is %.2000v", field, with[len(with)-1])
				return ""
			}
			name := field[strings.IndexByte(field, '.')+1:]
			if strings.Contains(diff[0], "INVALID_ARGUMENT") && !strings.Contains(diff[0], name) {
				fault(d, "%s is refused without its name: %s", field, diff[0])
			}
			if others := slices.DeleteFunc(slices.Clone(diff), follow.MatchString); len(others) > 0 {
				diff = others
			}
			return strings.Join(diff[:min(3, len(diff))], "\n") + "\n"
		})
		for _, f := range faults {
			t.Error(f)
		}
	})
	for field := range left {
		t.Errorf("nothing in testdata/fields shows what %s is for", field)
	}
}

// requestFields are the fields of all messages that a request holds, as MESSAGE.FIELD.
func requestFields() map[string]bool {
	out := map[string]bool{}
	policy := (&contextdv1.Policy{}).ProtoReflect().Descriptor().ParentFile()
	var visit func(m protoreflect.MessageDescriptor)
	visit = func(m protoreflect.MessageDescriptor) {
		if !slices.Contains(packages, m.ParentFile().Package()) || m.ParentFile() == policy {
			return
		}
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if name := fmt.Sprintf("%s.%s", m.Name(), f.Name()); !out[name] {
				out[name] = true
				if f.Message() != nil && !f.IsMap() {
					visit(f.Message())
				}
			}
		}
	}
	for _, m := range methods() {
		visit(m.Input())
	}
	return out
}

// packages are those of the API.
var packages = []protoreflect.FullName{"contextd.v1", "contextd.admin.v1"}

// methods are those of every service of the API, by name.
func methods() map[string]protoreflect.MethodDescriptor {
	out := map[string]protoreflect.MethodDescriptor{}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			all := file.Services().Get(i).Methods()
			for j := range all.Len() {
				if slices.Contains(packages, file.Package()) {
					out[string(all.Get(j).Name())] = all.Get(j)
				}
			}
		}
		return true
	})
	return out
}

var (
	protoMessage = regexp.MustCompile(`(?ms)^message (\w+) \{\n(.*?)\n\}`)
	protoField   = regexp.MustCompile(`(?m)((?: +//.*\n)+) +(?:repeated |optional )?\w[\w.<>, ]* (\w+) = \d+`)
)

// commentsOfFields are what the protos say of fields, by MESSAGE.FIELD.
func commentsOfFields(t *testing.T) map[string]string {
	t.Helper()
	var files []string
	for _, name := range packages {
		found, err := filepath.Glob("../../../../proto/" + strings.ReplaceAll(string(name), ".", "/") + "/*.proto")
		if err != nil || len(found) == 0 {
			t.Fatalf("no protos of %s: %v", name, err)
		}
		files = append(files, found...)
	}
	out := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range protoMessage.FindAllStringSubmatch(string(text), -1) {
			for _, f := range protoField.FindAllStringSubmatch(m[2], -1) {
				out[m[1]+"."+f[2]] = f[1]
			}
		}
	}
	return out
}

// differences are the values in which the second run differs from the first, in order.
func differences(without, with []answer) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for i := range max(len(without), len(with)) {
		switch {
		case i >= len(with):
			add("%s: no answer", without[i].to)
		case i >= len(without):
			add("%s: one more answer", with[i].to)
		case with[i].err != "" || without[i].err != "":
			if without[i].err != with[i].err {
				add("%s: %s -> %s", with[i].to, orOK(without[i].err), orOK(with[i].err))
			}
		default:
			for _, path := range paths(without[i], with[i]) {
				a, b := strings.Join(without[i].values[path], " "), strings.Join(with[i].values[path], " ")
				if a != b {
					add("%s: %s %s -> %s", with[i].to, path, from(a, b), from(b, a))
				}
			}
		}
	}
	return out
}

// follow matches differences that only follow from others, or vary from run to run.
var follow = regexp.MustCompile(`hash "|projection_id "|projection\.steps|^Backup: (data|file\.(name|size|modify_time)) `)

func orOK(err string) string {
	if err == "" {
		return "OK"
	}
	return err
}

// paths are those of both answers, in the order of the first that has them.
func paths(a, b answer) []string {
	out := slices.Clone(a.paths)
	for _, path := range b.paths {
		if !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// from is a text from about where it differs from another, and not long.
func from(text, other string) string {
	const before, most = 20, 80
	if text == "" {
		return "-"
	}
	runes, others := []rune(text), []rune(other)
	same := 0
	for same < min(len(runes), len(others)) && runes[same] == others[same] {
		same++
	}
	if same > before && len(runes) > most {
		runes = append([]rune("…"), runes[same-before:]...)
	}
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	return fmt.Sprintf("%q", string(runes))
}
