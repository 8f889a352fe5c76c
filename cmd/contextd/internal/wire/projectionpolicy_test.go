package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/projection"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestProjectionPolicies(t *testing.T) {
	tests := map[string]struct {
		policy *contextdv1.ProjectionPolicy
		want   projection.Options
	}{
		"none": {&contextdv1.ProjectionPolicy{}, projection.Options{}},
		"custom": {
			&contextdv1.ProjectionPolicy{Policy: "custom", KeepLast: 4, IgnoreProviderSignatures: true, RawFallback: true, Expression: "age < 9"},
			projection.Options{Name: "custom", KeepLast: 4, IgnoreSignatures: true, RawFallback: true, Expression: "age < 9"},
		},
		"summary_prefix": {
			&contextdv1.ProjectionPolicy{Policy: "summary_prefix", Summary: "s"},
			projection.Options{Name: "summary_prefix", Summary: "s"},
		},
		"reachability_gc": {
			&contextdv1.ProjectionPolicy{
				Policy: "reachability_gc", RootWindow: proto.Uint32(0), MinChars: proto.Uint32(7), Roots: []string{"r"},
				ActivePlan: "a", Scratchpad: "s", PendingToolArgs: []string{"p"}, UnresolvedFindings: []string{"u"},
				RequireWriteBarrier: true, WriteBarrierRefs: []string{"w"},
			},
			projection.Options{
				Name: "reachability_gc", RootWindow: proto.Uint32(0), MinChars: proto.Uint32(7), Roots: []string{"r"},
				ActivePlan: "a", Scratchpad: "s", PendingToolArgs: []string{"p"}, UnresolvedFindings: []string{"u"},
				RequireWriteBarrier: true, WriteBarrierRefs: []string{"w"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := resolve(policy.Set{}, nil, &contextdv1.Policy{Projection: test.policy})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Projection, cmpopts.IgnoreUnexported(projection.Options{})); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBatchSizeOfReachabilityGCIsTakenOver(t *testing.T) {
	want := uint32(7)
	got, err := resolve(policy.Set{}, nil, &contextdv1.Policy{Projection: &contextdv1.ProjectionPolicy{Policy: "reachability_gc", ClearAtLeastTokens: &want}})
	if err != nil {
		t.Fatal(err)
	}
	if got := got.Projection.ClearAtLeastTokens; got == nil || *got != want {
		t.Errorf("clear_at_least_tokens %d came out as %v", want, got)
	}
}

func TestRefusedProjectionPolicies(t *testing.T) {
	tests := map[string]struct {
		policy *contextdv1.ProjectionPolicy
		field  string
		reason string
	}{
		"no expression":    {&contextdv1.ProjectionPolicy{Policy: "custom"}, "expression", "must not be empty"},
		"a broken one":     {&contextdv1.ProjectionPolicy{Policy: "custom", Expression: "age <\n  soup"}, "expression", "2:3: undeclared reference to 'soup'"},
		"one that is none": {&contextdv1.ProjectionPolicy{Policy: "custom", Expression: "age + 1"}, "expression", "1:5: must be a bool"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := resolve(policy.Set{}, nil, &contextdv1.Policy{Projection: test.policy})
			checkField(t, err, "policy.projection."+test.field)
			if err != nil && !strings.Contains(err.Error(), test.reason) {
				t.Errorf("%v; want %s", err, test.reason)
			}
		})
	}
}
