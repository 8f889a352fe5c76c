package expression

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Content is the content of a group, as it is in the log. It is read when an expression names it.
type Content interface {
	// Text returns the text of its messages, without reasoning, arguments and results.
	Text() string
	Calls() []Call
}

// Call is a call of a group, with its result.
type Call struct {
	Name, Arguments, Result string
	Answered                bool
	// Failed reports whether the result says that the call failed, SucceededLater whether a call of the same tool
	// that was made after the result succeeded.
	Failed, SucceededLater func() bool

	// decoded caches Arguments as a value, because an expression may name it often; nil until it is read.
	decoded ref.Val
}

// callType is the type of a call in expressions.
var callType = types.NewObjectType("call", traits.IndexerType)

// callFields are the fields of a call. docs/projections.md says what they mean.
var callFields = map[string]struct {
	is  *types.Type
	get func(*Call) ref.Val
}{
	"name":            {types.StringType, func(c *Call) ref.Val { return types.String(c.Name) }},
	"arguments":       {types.DynType, (*Call).decodedArguments},
	"result":          {types.StringType, func(c *Call) ref.Val { return types.String(c.Result) }},
	"answered":        {types.BoolType, func(c *Call) ref.Val { return types.Bool(c.Answered) }},
	"failed":          {types.BoolType, func(c *Call) ref.Val { return types.Bool(c.Failed()) }},
	"succeeded_later": {types.BoolType, func(c *Call) ref.Val { return types.Bool(c.SucceededLater()) }},
}

func (c *Call) decodedArguments() ref.Val {
	if c.decoded == nil {
		c.decoded = decoded(c.Arguments)
	}
	return c.decoded
}

// decoded returns JSON as a value, and anything else as a text.
func decoded(arguments string) ref.Val {
	var value any
	if json.Unmarshal([]byte(arguments), &value) != nil {
		return types.String(arguments)
	}
	return types.DefaultTypeAdapter.NativeToValue(value)
}

// callValue is a call as a value.
type callValue struct{ *Call }

// Get implements traits.Indexer.
func (c callValue) Get(field ref.Val) ref.Val {
	name, _ := field.Value().(string)
	if f, ok := callFields[name]; ok {
		return f.get(c.Call)
	}
	return types.NewErr("no such field: %s", name)
}

// ConvertToNative implements ref.Val.
func (callValue) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a call is no %v", t)
}

// ConvertToType implements ref.Val.
func (callValue) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("a call is no %s", t.TypeName())
}

// Equal implements ref.Val.
func (c callValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(callValue)
	return types.Bool(ok && o.Call == c.Call)
}

// Type implements ref.Val.
func (callValue) Type() ref.Type { return callType }

// Value implements ref.Val.
func (c callValue) Value() any { return c.Call }

func callList(all []Call) ref.Val {
	values := make([]ref.Val, len(all))
	for i := range all {
		if all[i].Failed != nil {
			all[i].Failed = sync.OnceValue(all[i].Failed)
		}
		values[i] = callValue{&all[i]}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

// typesOfCalls has the type of calls in addition to CEL's types.
type typesOfCalls struct{ *types.Registry }

// FindStructType implements types.Provider.
func (p typesOfCalls) FindStructType(name string) (*types.Type, bool) {
	if name == callType.TypeName() {
		return types.NewTypeTypeWithParam(callType), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldType implements types.Provider.
func (p typesOfCalls) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if name != callType.TypeName() {
		return p.Registry.FindStructFieldType(name, field)
	}
	f, ok := callFields[field]
	if !ok {
		return nil, false
	}
	return &types.FieldType{
		Type:    f.is,
		IsSet:   func(any) bool { return true },
		GetFrom: func(target any) (any, error) { return f.get(target.(*Call)), nil },
	}, true
}

// readsContent reports whether an expression names a variable that is read from the log.
func readsContent(compiled *cel.Ast) bool {
	found := false
	ast.PreOrderVisit(compiled.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && (e.AsIdent() == "text" || e.AsIdent() == "calls")
	}))
	return found
}
