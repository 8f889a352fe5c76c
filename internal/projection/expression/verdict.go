package expression

import (
	"fmt"

	"cel.dev/cel-go/common/types"
)

// Verdict is the result of an expression for a group.
type Verdict uint8

// The verdicts, the mildest first.
const (
	// Keep shows the group as it is; true means the same.
	Keep Verdict = iota
	// Clip shows head and tail of its results.
	Clip
	// Stub shows pointers in place of its results.
	Stub
	// Drop drops the group; false means the same.
	Drop
)

var verdicts = map[string]Verdict{"keep": Keep, "clip": Clip, "stub": Stub, "drop": Drop}

const verdictList = `"keep", "clip", "stub" and "drop"`

// ReadsContent reports whether the expression reads the content of groups.
func (p *Program) ReadsContent() bool { return p.content }

// Evaluate returns the verdict on a group. It fails if the expression fails for this group, gives a text that is no
// verdict, or costs too much.
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
