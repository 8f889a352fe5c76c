package expression

import (
	"math"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// actual is the real cost of operations that CEL charges as one, whatever their work: counting the characters of a
// text, and comparing values with others nested in them.
type actual struct{}

// countedPerUnit is how many bytes of a text are counted for one unit of cost.
const countedPerUnit = 1024

// CallCost implements interpreter.ActualCostEstimator; nil is CEL's own cost.
func (actual) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	var cost uint64
	switch function {
	case "size":
		text, ok := args[0].(types.String)
		if !ok {
			return nil
		}
		cost = 1 + uint64(len(text))/countedPerUnit
	case operators.Equals, operators.NotEquals, operators.In:
		if cost = comparing(function, args[0], args[1], math.MaxUint64); cost == 0 {
			return nil
		}
	default:
		return nil
	}
	return &cost
}

// comparing returns the cost of a comparison: a unit for each item that it may visit. It stops counting at more than
// most. It is 0 if CEL's own cost is right.
func comparing(function string, l, r ref.Val, most uint64) uint64 {
	items := itemsWithin(l, most)
	if list, ok := r.(traits.Lister); ok && function == operators.In {
		return uint64(list.Size().(types.Int)) * (1 + items)
	}
	if function != operators.In {
		items = min(items, itemsWithin(r, most))
	}
	if items == 0 {
		return 0
	}
	return 1 + items
}

// itemsWithin returns how many items a list or a map has, including nested ones. It stops at more than most, because
// there may be any number: a value that has another one twice takes no more memory than if it had it once.
func itemsWithin(v ref.Val, most uint64) (items uint64) {
	switch v := v.(type) {
	case traits.Mapper:
		for i := v.Iterator(); items <= most && i.HasNext() == types.True; {
			key := i.Next()
			items += 1 + itemsWithin(key, most-items)
			items += itemsWithin(v.Get(key), most-min(items, most))
		}
	case traits.Lister:
		for i := v.Iterator(); items <= most && i.HasNext() == types.True; {
			items += 1 + itemsWithin(i.Next(), most-items)
		}
	}
	return items
}

// comparison is a call that compares. CEL charges for a call after it was made. This ends the evaluation before a
// comparison that costs more than the whole evaluation may.
type comparison struct {
	interpreter.InterpretableCall
	most uint64
}

// bounded returns the decorator that replaces calls that compare by comparisons.
func bounded(most uint64) interpreter.InterpretableDecoratorV2 {
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if call, ok := i.(interpreter.InterpretableCall); ok {
			switch call.Function() {
			case operators.Equals, operators.NotEquals, operators.In:
				return &comparison{call, most}, nil
			}
		}
		return i, nil
	}
}

// Exec implements interpreter.InterpretableV2.
func (c *comparison) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	args, function := c.Args(), c.Function()
	l := args[0].Exec(frame)
	if types.IsUnknownOrError(l) {
		return l
	}
	r := args[1].Exec(frame)
	if types.IsUnknownOrError(r) {
		return r
	}
	if comparing(function, l, r, c.most) > c.most {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "operation cancelled: actual cost limit exceeded"})
	}
	switch function {
	case operators.Equals:
		return types.Equal(l, r)
	case operators.NotEquals:
		return types.Bool(types.Equal(l, r) != types.True)
	}
	if in, ok := r.(traits.Container); ok {
		return in.Contains(l)
	}
	return types.ValOrErr(r, "no such overload")
}

// Eval implements interpreter.Interpretable.
func (c *comparison) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// comparesDeeply reports whether an expression compares values with other values nested in them, for which CEL's
// estimate is wrong.
func comparesDeeply(compiled *cel.Ast) bool {
	tree, found := compiled.NativeRep(), false
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			found = found || deep(tree.GetType(args[0].ID())) && deep(tree.GetType(args[1].ID()))
		case operators.In:
			is := tree.GetType(args[0].ID())
			found = found || !scalar(is) || tree.GetType(args[1].ID()).Kind() == types.DynKind
		}
	}))
	return found
}

// deep reports whether values of a type may have values in them that have further ones.
func deep(is *types.Type) bool {
	switch is.Kind() {
	case types.ListKind, types.MapKind:
		for _, of := range is.Parameters() {
			if !scalar(of) {
				return true
			}
		}
		return false
	default:
		return !scalar(is)
	}
}

func scalar(is *types.Type) bool {
	switch is.Kind() {
	case types.BoolKind, types.BytesKind, types.DoubleKind, types.DurationKind, types.IntKind, types.NullTypeKind, types.StringKind, types.TimestampKind, types.UintKind:
		return true
	}
	return false
}
