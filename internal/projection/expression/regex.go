package expression

import (
	"fmt"
	"regexp/syntax"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// checkRegex refuses a regular expression that would compile to a large program. CEL's own limit panics at a counted
// repetition such as a{2}. It does not refuse patterns that are wrong in another way.
func checkRegex(pattern string) error {
	if len(pattern) > maxChars {
		return fmt.Errorf("a regular expression has %d bytes; the limit is %d", len(pattern), maxChars)
	}
	if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		program, err := syntax.Compile(parsed.Simplify())
		if err == nil && len(program.Inst) > maxRegexSize {
			err = fmt.Errorf("a regular expression has a program of size %d; the limit is %d", len(program.Inst), maxRegexSize)
		}
		return err
	}
	return nil
}

// regexLiterals checks the regular expressions that are written in an expression.
type regexLiterals struct{}

// Name implements cel.ASTValidator.
func (regexLiterals) Name() string { return "contextd.regex" }

// Validate implements cel.ASTValidator.
func (regexLiterals) Validate(_ *cel.Env, _ cel.ValidatorConfig, tree *ast.AST, issues *cel.Issues) {
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != overloads.Matches {
			return
		}
		args := e.AsCall().Args()
		pattern := args[len(args)-1]
		if pattern.Kind() != ast.LiteralKind {
			return
		}
		if text, ok := pattern.AsLiteral().(types.String); ok {
			if err := checkRegex(string(text)); err != nil {
				issues.ReportErrorAtID(pattern.ID(), "%s", err)
			}
		}
	}))
}

// match is a call that matches a text with a computed regular expression.
type match struct{ interpreter.InterpretableCall }

// checkedMatches is the decorator that replaces calls that match by match.
func checkedMatches(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || call.Function() != overloads.Matches || len(call.Args()) != 2 {
		return i, nil
	}
	if _, written := call.Args()[1].(interpreter.InterpretableConst); written {
		return i, nil
	}
	return match{call}, nil
}

// Exec implements interpreter.InterpretableV2.
func (m match) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	text := m.Args()[0].Exec(frame)
	if types.IsUnknownOrError(text) {
		return text
	}
	pattern := m.Args()[1].Exec(frame)
	if types.IsUnknownOrError(pattern) {
		return pattern
	}
	of, ok := text.(types.String)
	by, also := pattern.(types.String)
	if !ok || !also {
		return types.NewErr("no such overload")
	}
	if err := checkRegex(string(by)); err != nil {
		return types.WrapErr(err)
	}
	return of.Match(by)
}

// Eval implements interpreter.Interpretable.
func (m match) Eval(vars interpreter.Activation) ref.Val { return m.Exec(interpreter.AsFrame(vars)) }
