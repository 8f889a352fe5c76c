// Package artifacttest holds what is stored to two promises: every field of a value comes
// back, and what an earlier build stored is still read as it was meant.
package artifacttest

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var rewrite = flag.Bool("rewrite-stored", false, "rewrite testdata/stored: only for a new version of what is stored")

// Fill sets every field that v points to, so that one that is not stored shows. Values
// depend on the names of the fields alone: a field that is added changes no other. Times
// are left to the caller.
func Fill(v any) { fill(reflect.ValueOf(v).Elem(), "") }

func fill(v reflect.Value, path string) {
	h := fnv.New32a()
	h.Write([]byte(path))
	n := h.Sum32()%199 + 1
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() { // nothing else is stored
				fill(v.Field(i), path+"."+f.Name)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path)
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, "key")
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), value)
	case reflect.String:
		v.SetString(fmt.Sprint("text", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(n) / 1024)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(n))
	default:
		v.SetUint(uint64(n))
	}
}

// Golden holds m to testdata/stored/NAME.binpb, which the first build that stored such a
// message wrote: the file must still be read as the same values. What was added since may
// be missing from it.
func Golden(t *testing.T, name string, m proto.Message) {
	t.Helper()
	path := filepath.Join("testdata", "stored", name+".binpb")
	if *rewrite {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, old); err != nil {
		t.Fatal(err)
	}
	now := proto.Clone(m)
	clearUnset(now.ProtoReflect(), old.ProtoReflect())
	if diff := cmp.Diff(prototext.Format(now), prototext.Format(old)); diff != "" {
		t.Errorf("%s is read as another value:\n%s", path, diff)
	}
}

// clearUnset clears the fields of m that are not set in like.
func clearUnset(m, like protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case !like.Has(f):
			m.Clear(f)
		case f.IsList() && f.Message() != nil:
			for i := range min(v.List().Len(), like.Get(f).List().Len()) {
				clearUnset(v.List().Get(i).Message(), like.Get(f).List().Get(i).Message())
			}
		case f.Message() != nil && !f.IsMap() && !f.IsList():
			clearUnset(v.Message(), like.Get(f).Message())
		}
		return true
	})
}
