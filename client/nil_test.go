package client_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/client"
)

// TestNilArgumentsAreRefused calls every function of the package with the zero value of each of
// its arguments: what a caller forgot is an error that somebody says, never a panic.
func TestNilArgumentsAreRefused(t *testing.T) {
	c := inMemory(t)
	of := reflect.ValueOf(c)
	recall, assembled := &client.RecallTools{}, &client.Context{}
	for _, receiver := range []reflect.Value{of, reflect.ValueOf(recall), reflect.ValueOf(assembled), reflect.ValueOf(&client.Error{})} {
		for i := range receiver.NumMethod() {
			name := receiver.Type().Elem().Name() + "." + receiver.Type().Method(i).Name
			if strings.HasSuffix(name, ".Close") {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second) // a watch of all sessions waits
			t.Run(name, func(t *testing.T) { callWithNothing(reflect.ValueOf(ctx), receiver.Method(i)) })
			cancel()
			t.Run(name+"/no context", func(*testing.T) {
				callWithNothing(reflect.Zero(reflect.TypeFor[context.Context]()), receiver.Method(i))
			})
		}
	}
}

func callWithNothing(ctx, method reflect.Value) {
	var in []reflect.Value
	for i := range method.Type().NumIn() {
		kind := method.Type().In(i)
		switch {
		case i == method.Type().NumIn()-1 && method.Type().IsVariadic():
		case kind.String() == "context.Context":
			in = append(in, ctx)
		default:
			in = append(in, reflect.Zero(kind))
		}
	}
	for _, out := range method.Call(in) {
		if out.Kind() == reflect.Func { // what is iterated over
			out.Call([]reflect.Value{reflect.MakeFunc(out.Type().In(0), func([]reflect.Value) []reflect.Value {
				return []reflect.Value{reflect.ValueOf(false)}
			})})
		}
	}
}
