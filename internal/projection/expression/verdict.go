package expression

import (
	"fmt"

	"cel.dev/cel-go/common/types"
)

// Verdict is what an expression says of a group.
type Verdict uint8

// The verdicts, from the mildest on.
const (
	// Keep shows the group as it is; true says the same.
	Keep Verdict = iota
	// Clip shows head and tail of its results.
	Clip
	// Stub shows pointers in place of its results.
	Stub
	// Drop lets the group leave; false says the same.
	Drop
)

var verdicts = map[string]Verdict{"keep": Keep, "clip": Clip, "stub": Stub, "drop": Drop}

const verdictList = `"keep", "clip", "stub" and "drop"`

// ReadsContent reports whether the expression names what groups say.
func (p *Program) ReadsContent() bool { return p.content }

// Evaluate returns the verdict on a group. It fails where the expression does for
// this group, comes to a text that is no verdict, or costs too much.
func (p *Program) Evaluate(f *Facts, now Position) (Verdict, error) {
	program := p.watched
	if f.ordinary && !p.content && p.plain != nil {
		program = p.plain
	}
	out, _, err := program.Eval(&activation{Facts: f, Position: now})
	if err != nil {
		return Keep, err
	}
	switch out := out.(type) {
	case types.Bool:
		if out {
			return Keep, nil
		}
		return Drop, nil
	case types.String:
		if v, ok := verdicts[string(out)]; ok {
			return v, nil
		}
		return Keep, fmt.Errorf("%q is no verdict; the verdicts are %s", string(out), verdictList)
	default:
		return Keep, fmt.Errorf("%v is neither a bool nor a text", out.Type())
	}
}
