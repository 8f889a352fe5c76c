package expression

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// check refuses what CEL allows but a policy cannot use: results that are no verdict, and loops over maps, whose
// order is undefined.
func check(compiled *cel.Ast) error {
	tree := compiled.NativeRep()
	c := checked{tree}
	switch out := compiled.OutputType(); {
	case out.IsExactType(cel.BoolType):
	case out.IsExactType(cel.StringType):
		if err := c.verdicts(tree.Expr()); err != nil {
			return err
		}
	default:
		return c.at(tree.Expr(), fmt.Sprintf("must be a bool or one of the texts %s, not %s", verdictList, cel.FormatCELType(out)))
	}
	return c.loops()
}

type checked struct{ tree *ast.AST }

func (c checked) at(e ast.Expr, reason string) error {
	return at(c.tree.SourceInfo().GetStartLocation(e.ID()), reason)
}

// verdicts checks the literal texts that may be the result of an expression.
func (c checked) verdicts(e ast.Expr) error {
	switch e.Kind() {
	case ast.LiteralKind:
		text, _ := e.AsLiteral().(types.String)
		if _, ok := verdicts[string(text)]; !ok {
			return c.at(e, fmt.Sprintf("%q is no verdict; the verdicts are %s", string(text), verdictList))
		}
	case ast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Conditional {
			for _, branch := range call.Args()[1:] {
				if err := c.verdicts(branch); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// loops refuses loops over anything except lists and labels.
func (c checked) loops() error {
	var err error
	ast.PreOrderVisit(c.tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if err != nil || e.Kind() != ast.ComprehensionKind {
			return
		}
		over := e.AsComprehension().IterRange()
		if over.Kind() == ast.IdentKind && over.AsIdent() == "labels" {
			return
		}
		if is := c.tree.GetType(over.ID()); is.Kind() != types.ListKind {
			err = c.at(over, "only lists and labels can be gone through, in a known order")
		}
	}))
	return err
}
