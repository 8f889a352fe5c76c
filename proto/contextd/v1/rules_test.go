package contextdv1_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const packageName = "contextd.v1"

// TestRules holds the structural rules of the API to testdata/rules. A case
// names a message type; every line of its input is one message as JSON, with
// ${a*3} standing for aaa; the output has one line per message: ok, or the
// violated rules as "field [rule]". Rewrite with -args -rewrite.
func TestRules(t *testing.T) {
	validator := newValidator(t)
	datadriven.Walk(t, "testdata/rules", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			name := protoreflect.FullName(packageName + "." + d.Cmd)
			messageType, err := protoregistry.GlobalTypes.FindMessageByName(name)
			if err != nil {
				d.Fatalf(t, "unknown message %s: %v", name, err)
			}
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				m := messageType.New().Interface()
				if err := protojson.Unmarshal([]byte(expand(t, d, line)), m); err != nil {
					d.Fatalf(t, "%s: %v", line, err)
				}
				fmt.Fprintln(&out, violations(t, validator, m))
			}
			return out.String()
		})
	})
}

// TestRulesCompile compiles the rules of every message of the package, so that a
// broken expression fails here and not at a client's first request.
func TestRulesCompile(t *testing.T) {
	messages := 0
	protoregistry.GlobalFiles.RangeFilesByPackage(packageName, func(f protoreflect.FileDescriptor) bool {
		for i := range f.Messages().Len() {
			messages++
			m := f.Messages().Get(i)
			messageType, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
			if err != nil {
				t.Errorf("%s: %v", m.FullName(), err)
				continue
			}
			var compilation *protovalidate.CompilationError
			if err := newValidator(t).Validate(messageType.New().Interface()); errors.As(err, &compilation) {
				t.Errorf("%s: %v", m.FullName(), err)
			}
		}
		return true
	})
	if messages < 60 {
		t.Errorf("found %d messages in %s, which is not the whole API", messages, packageName)
	}
}

// TestFractionsAreNumbers covers what JSON cannot say.
func TestFractionsAreNumbers(t *testing.T) {
	validator := newValidator(t)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Nextafter(1, 2), -math.SmallestNonzeroFloat64} {
		for _, m := range []proto.Message{
			&contextdv1.Budget{SafetyMargin: &bad},
			&contextdv1.Budget{YellowAt: bad},
			&contextdv1.Budget{RedAt: bad},
			&contextdv1.Budget{TierCaps: map[string]float64{"summary": bad}},
			&contextdv1.Summarization{StartAt: bad},
			&contextdv1.Summarization{CollapseTo: bad},
			&contextdv1.Summarization{LedgerShare: bad},
			&contextdv1.Summarization{IndexShare: bad},
		} {
			if got := violations(t, validator, m); got == "ok" {
				t.Errorf("%T %v is accepted", m, m)
			}
		}
	}
}

func newValidator(t *testing.T) protovalidate.Validator {
	t.Helper()
	v, err := protovalidate.New()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func violations(t *testing.T, v protovalidate.Validator, m proto.Message) string {
	t.Helper()
	err := v.Validate(m)
	if err == nil {
		return "ok"
	}
	var invalid *protovalidate.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatalf("%T: %v", m, err)
	}
	var found []string
	for _, violation := range invalid.Violations {
		field := protovalidate.FieldPathString(violation.Proto.GetField())
		if field == "" {
			field = "(message)"
		}
		found = append(found, fmt.Sprintf("%s [%s]", field, violation.Proto.GetRuleId()))
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// expand writes out ${text*count}, so that limits of length stay readable.
func expand(t *testing.T, d *datadriven.TestData, line string) string {
	t.Helper()
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(line, "${")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		repeat, after, _ := strings.Cut(rest, "}")
		var count int
		text, number, _ := strings.Cut(repeat, "*")
		if _, err := fmt.Sscanf(number, "%d", &count); err != nil {
			d.Fatalf(t, "${%s}: %v", repeat, err)
		}
		out.WriteString(strings.Repeat(text, count))
		line = after
	}
}
