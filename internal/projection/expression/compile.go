// Package expression compiles and evaluates the expressions of the policy custom: CEL over the facts of one group,
// with a verdict as the result. It is the only importer of cel-go in the core, and knows neither groups nor views.
//
// An expression is a pure function of the facts: CEL has no clock and no randomness, and maps are iterated in the
// order of their keys. The cost of an evaluation is limited, so that no expression can keep the daemon busy.
package expression

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/types"
)

// The limits of an expression. Costs are in CEL's units: about one for each operation, and more for operations on
// texts, lists or maps.
const (
	// maxChars is the longest expression, in runes.
	maxChars = 8192
	// maxCost is the most that one evaluation may cost, both as counted and by the estimate for a group of ordinary
	// size.
	maxCost = 2000
	// MaxContentCost is the same limit for an expression that reads the content of groups.
	MaxContentCost = 50_000

	maxNodes      = 4096
	maxNesting    = 64
	maxRegexSize  = 1000
	maxErrorsSeen = 4
)

// Error says what is wrong with an expression, and where. Lines and columns count from 1, columns in runes. Line is 0
// if the expression as a whole is wrong.
type Error struct {
	Line, Column int
	Reason       string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason)
}

// environment declares the variables. It is cached, because to make one takes longer than to compile.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{
		cel.CustomTypeProvider(typesOfCalls{registry}),
		cel.ParserExpressionSizeLimit(maxChars),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserErrorRecoveryLimit(maxErrorsSeen),
		cel.ExpressionNodeLimit(maxNodes),
		cel.ASTValidators(cel.ValidateRegexLiterals(), regexLiterals{}),
	}
	for _, v := range variables {
		options = append(options, cel.Variable(v.name, v.is))
	}
	return cel.NewEnv(options...)
})

// Program is a compiled expression. It may be used by several goroutines.
type Program struct {
	// watched stops at the limit. plain does not; it is nil if no estimate bounds the cost.
	watched, plain cel.Program
	// content is set if the expression reads the content of groups.
	content bool
}

// Compile checks and compiles an expression. The error is an *Error.
func Compile(source string) (*Program, error) {
	if strings.TrimSpace(source) == "" {
		return nil, &Error{Reason: "must not be empty"}
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, firstOf(issues)
	}
	if err := check(ast); err != nil {
		return nil, err
	}
	content, limit := readsContent(ast), uint64(maxCost)
	if content {
		limit = MaxContentCost
	}
	cost, err := env.EstimateCost(ast, ordinary{content})
	if err != nil {
		return nil, &Error{Reason: err.Error()}
	}
	if cost.Max > limit {
		return nil, &Error{Reason: fmt.Sprintf("may cost up to %d for an ordinary group; the limit is %d: nest fewer loops and match shorter texts", cost.Max, limit)}
	}
	matches := cel.CustomDecoratorV2(checkedMatches)
	watched, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), cel.CostTracking(actual{}), cel.CostLimit(limit), cel.CustomDecoratorV2(bounded(limit)), matches)
	if err != nil {
		return nil, &Error{Reason: err.Error()}
	}
	if comparesDeeply(ast) {
		return &Program{watched: watched, content: content}, nil
	}
	plain, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize), matches)
	if err != nil {
		return nil, &Error{Reason: err.Error()}
	}
	return &Program{watched, plain, content}, nil
}

// firstOf returns the error that comes first in the expression.
func firstOf(issues *cel.Issues) error {
	var first *common.Error
	for _, e := range issues.Errors() {
		if first == nil || before(e.Location, first.Location) {
			first = e
		}
	}
	if first == nil {
		return errors.New(issues.String())
	}
	return at(first.Location, strings.ReplaceAll(first.Message, " (in container '')", ""))
}

func before(a, b common.Location) bool {
	return a.Line() < b.Line() || a.Line() == b.Line() && a.Column() < b.Column()
}

// at returns the error for a place. CEL counts columns from 0.
func at(l common.Location, reason string) *Error {
	if l == nil || l.Line() <= 0 {
		return &Error{Reason: reason}
	}
	return &Error{Line: l.Line(), Column: l.Column() + 1, Reason: reason}
}

// maxMemo is how many compiled expressions are kept.
const maxMemo = 64

// memo caches results of Compile, which is pure: a cached result only saves time.
type memo struct {
	mu    sync.Mutex
	made  map[string]compiled
	order []string // oldest first
}

type compiled struct {
	program *Program
	err     error
}

var programs = memo{made: map[string]compiled{}}

// Compiled does the same as Compile, and caches the newest programs. It may be called from any goroutine.
func Compiled(source string) (*Program, error) {
	programs.mu.Lock()
	found, ok := programs.made[source]
	programs.mu.Unlock()
	if ok {
		return found.program, found.err
	}
	p, err := Compile(source)
	programs.mu.Lock()
	defer programs.mu.Unlock()
	if _, ok := programs.made[source]; !ok && len(source) <= 4*maxChars {
		if len(programs.order) == maxMemo {
			delete(programs.made, programs.order[0])
			programs.order = programs.order[1:]
		}
		programs.made[source] = compiled{p, err}
		programs.order = append(programs.order, source)
	}
	return p, err
}
