package expression

import (
	"maps"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// variable is a name that an expression can use. The values in Facts are in the order of variables.
type variable struct {
	name string
	is   *cel.Type
}

// variables are all variables. docs/projections.md says what they mean.
var variables = []variable{
	{"roles", cel.ListType(cel.StringType)},
	{"tools", cel.ListType(cel.StringType)},
	{"labels", cel.MapType(cel.StringType, cel.StringType)},
	{"text_chars", cel.IntType},
	{"result_chars", cel.IntType},
	{"results", cel.IntType},
	{"errors", cel.IntType},
	{"tokens", cel.IntType},
	{"age", cel.IntType},
	{"model_calls", cel.IntType},
	{"index", cel.IntType},
	{"from_end", cel.IntType},
	{"text", cel.StringType},
	{"calls", cel.ListType(callType)},
}

// Fixed has the facts of a group that do not change while the conversation grows.
type Fixed struct {
	// Roles are the roles of its messages, each once, in order. Tools are the names of the tools that it calls, one
	// for each call.
	Roles, Tools []string
	// Labels are the labels of its events.
	Labels map[string]string
	// TextChars is the size of everything that it shows, and ResultChars the size of its results, in runes.
	TextChars, ResultChars int
	// Results is how many calls have a result, Errors how many of these failed.
	Results, Errors int
}

// Facts has the fixed facts of a group in the form that evaluations need. It is immutable.
type Facts struct {
	roles, tools, labels, textChars, resultChars, results, errors ref.Val
	// ordinary is set if the sizes are within those of the estimate.
	ordinary bool
}

// NewFacts returns the facts. They keep the slices and the map of f, which the caller must not change any more.
func NewFacts(f Fixed) *Facts {
	return &Facts{
		roles: stringList(f.Roles), tools: stringList(f.Tools), labels: labelMap(f.Labels),
		textChars: types.Int(f.TextChars), resultChars: types.Int(f.ResultChars),
		results: types.Int(f.Results), errors: types.Int(f.Errors),
		ordinary: f.isOrdinary(),
	}
}

// Position says where a group is in the current context, and its size there.
type Position struct {
	// Tokens is its size as it is shown.
	Tokens uint64
	// Age is how many model calls began after the group did.
	Age uint32
	// ModelCalls is how many model calls the log has.
	ModelCalls uint32
	// Index counts the groups before it, FromEnd those after it.
	Index, FromEnd int
	// Content is the group's content, for a Program that ReadsContent.
	Content Content
}

// activation resolves the variables of one evaluation.
type activation struct {
	*Facts
	Position
	text, calls ref.Val // nil until they are read
}

// ResolveName implements cel.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case "roles":
		return a.roles, true
	case "tools":
		return a.tools, true
	case "labels":
		return a.labels, true
	case "text_chars":
		return a.textChars, true
	case "result_chars":
		return a.resultChars, true
	case "results":
		return a.results, true
	case "errors":
		return a.errors, true
	case "tokens":
		return types.Int(a.Tokens), true
	case "age":
		return types.Int(a.Age), true
	case "model_calls":
		return types.Int(a.ModelCalls), true
	case "index":
		return types.Int(a.Index), true
	case "from_end":
		return types.Int(a.FromEnd), true
	case "text":
		if a.text == nil {
			a.text = types.String(a.Content.Text())
		}
		return a.text, true
	case "calls":
		if a.calls == nil {
			a.calls = callList(a.Content.Calls())
		}
		return a.calls, true
	default:
		return nil, false
	}
}

// Parent implements cel.Activation.
func (*activation) Parent() cel.Activation { return nil }

func stringList(all []string) ref.Val {
	values := make([]ref.Val, len(all))
	for i, s := range all {
		values[i] = types.String(s)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

// sortedMap is a map that is iterated in the order of its keys.
type sortedMap struct {
	traits.Mapper
	keys ref.Val
}

func labelMap(m map[string]string) ref.Val {
	return sortedMap{
		Mapper: types.NewStringStringMap(types.DefaultTypeAdapter, m),
		keys:   stringList(slices.Sorted(maps.Keys(m))),
	}
}

// Iterator implements traits.Iterable.
func (m sortedMap) Iterator() traits.Iterator { return m.keys.(traits.Lister).Iterator() }
