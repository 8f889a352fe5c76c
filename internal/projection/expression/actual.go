package expression

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// actual is the cost of what CEL charges as one operation whatever it goes through: the
// characters of a text that are counted, and what is nested in values that are compared.
type actual struct{}

const (
	countedPerUnit  = 1024 // bytes
	comparedPerUnit = 10   // items, as CEL has it of those that are not nested
)

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
	case operators.Equals, operators.NotEquals:
		items := min(itemsOf(args[0]), itemsOf(args[1]))
		if items == 0 {
			return nil
		}
		cost = 1 + items/comparedPerUnit
	case operators.In:
		items := itemsOf(args[0])
		list, ok := args[1].(traits.Lister)
		if !ok || items == 0 {
			return nil
		}
		cost = uint64(list.Size().(types.Int)) * (1 + items/comparedPerUnit)
	default:
		return nil
	}
	return &cost
}

// itemsOf is how many items a list or a map holds, and those in it.
func itemsOf(v ref.Val) uint64 {
	var items uint64
	switch v := v.(type) {
	case traits.Mapper:
		for i := v.Iterator(); i.HasNext() == types.True; {
			items += 1 + itemsOf(v.Get(i.Next()))
		}
	case traits.Lister:
		for i := v.Iterator(); i.HasNext() == types.True; {
			items += 1 + itemsOf(i.Next())
		}
	}
	return items
}
