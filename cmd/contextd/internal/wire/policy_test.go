package wire_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/decide"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize/prompt"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func turns(n uint32) *contextdv1.Retention {
	return &contextdv1.Retention{Keep: &contextdv1.Retention_Turns{Turns: n}}
}

// TestOverlay changes one part at a time, and checks that all others stay unchanged.
func TestOverlay(t *testing.T) {
	base := assemble.Policy{Reduction: reduce.DefaultPolicy()}
	d := reduce.DefaultPolicy()
	tests := map[string]struct {
		policy *contextdv1.Policy
		want   func(p *assemble.Policy)
	}{
		"nothing": {nil, func(*assemble.Policy) {}},
		"empty":   {&contextdv1.Policy{}, func(*assemble.Policy) {}},
		"retention takes the whole part": {
			&contextdv1.Policy{ToolResults: &contextdv1.ToolResultRetention{EvictErrors: true}},
			func(p *assemble.Policy) {
				p.Reduction.ToolResults = reduce.ToolResults{Default: d.ToolResults.Default, EvictErrors: true}
			},
		},
		"turns after its own": {
			&contextdv1.Policy{ToolResults: &contextdv1.ToolResultRetention{Default: turns(3), OutlineTokens: 7}},
			func(p *assemble.Policy) {
				p.Reduction.ToolResults = reduce.ToolResults{Default: reduce.Retention{Turns: 4}, OutlineTokens: 7}
			},
		},
		"as many turns as there can be": {
			&contextdv1.Policy{ToolResults: &contextdv1.ToolResultRetention{Default: turns(math.MaxUint32)}},
			func(p *assemble.Policy) {
				p.Reduction.ToolResults = reduce.ToolResults{Default: reduce.Retention{Turns: math.MaxUint32}}
			},
		},
		"by tool": {
			&contextdv1.Policy{ToolResults: &contextdv1.ToolResultRetention{
				Default: turns(1),
				ByTool: map[string]*contextdv1.Retention{
					"read_*": {Keep: &contextdv1.Retention_Last{Last: 5}, MinTokens: 9},
					"plan":   {Keep: &contextdv1.Retention_NeverEvict{NeverEvict: true}},
					"once":   {Keep: &contextdv1.Retention_Last{Last: 0}},
					"same":   {MinTokens: 3},
				},
			}},
			func(p *assemble.Policy) {
				p.Reduction.ToolResults = reduce.ToolResults{
					Default: reduce.Retention{Turns: 2},
					ByTool: map[string]reduce.Retention{
						"read_*": {Last: 5, MinTokens: 9},
						"plan":   {Never: true},
						"once":   {Turns: 1},
						"same":   {Turns: 2, MinTokens: 3},
					},
				}
			},
		},
		"duplicates off": {
			&contextdv1.Policy{Duplicates: &contextdv1.DuplicateResults{}},
			func(p *assemble.Policy) { p.Reduction.Duplicates = false },
		},
		"clipping": {
			&contextdv1.Policy{Clipping: &contextdv1.ResultClipping{MaxTokens: 10, HeadTokens: 3, TailTokens: 2}},
			func(p *assemble.Policy) {
				p.Reduction.Clipping = reduce.Clipping{MaxTokens: 10, HeadTokens: 3, TailTokens: 2, NameTokens: 150, Exact: true}
			},
		},
		"thinking for ever": {
			&contextdv1.Policy{Thinking: &contextdv1.ThinkingRetention{}},
			func(p *assemble.Policy) { p.Reduction.Thinking = reduce.Thinking{} },
		},
		"thinking for its own turn": {
			&contextdv1.Policy{Thinking: &contextdv1.ThinkingRetention{KeepTurns: proto.Uint32(0)}},
			func(p *assemble.Policy) { p.Reduction.Thinking.KeepTurns = proto.Uint32(1) },
		},
		"window": {
			&contextdv1.Policy{Window: &contextdv1.DialogueWindow{MaxTurns: 4, MaxTokens: 5, StrictAnchor: true}},
			func(p *assemble.Policy) {
				p.Reduction.Window = reduce.Window{MaxTurns: 4, MaxTokens: 5, StrictAnchor: true}
			},
		},
		"collapse, the rest by default": {
			&contextdv1.Policy{Summarization: &contextdv1.Summarization{CollapseTo: 0.25, LedgerShare: 0.05}},
			func(p *assemble.Policy) {
				c := &p.Reduction.Collapse
				c.To, c.CutTo, c.LedgerShare, c.StartAt = 0.25, 0, 0.05, 0 // not enabled
			},
		},
		"the built-in depth of a collapse, given": {
			&contextdv1.Policy{Summarization: &contextdv1.Summarization{Enabled: true, CollapseTo: d.Collapse.To}},
			func(p *assemble.Policy) { p.Reduction.Collapse.CutTo = 0 },
		},
		"summaries": {
			&contextdv1.Policy{Summarization: &contextdv1.Summarization{
				Enabled: true, StartAt: 0.6, SummaryShare: 0.1, KeepLastTurns: 5, IndexShare: 0.2,
				MaxInputTokens: 900, Instructions: "be brief", InstructionsMode: "replace", Wait: durationpb.New(time.Second),
			}},
			func(p *assemble.Policy) {
				c := &p.Reduction.Collapse
				c.StartAt, c.SummaryShare, c.KeepLastTurns, c.IndexShare = 0.6, 0.1, 5, 0.2
				p.Summaries = decide.SummaryPolicy{
					Instructions:   prompt.Instructions{Text: "be brief", Mode: prompt.Replace},
					MaxInputTokens: 900, Wait: time.Second,
				}
			},
		},
		"cache": {
			&contextdv1.Policy{Cache: &contextdv1.CacheDiscipline{EvictEveryTurns: 3, CacheTtl: durationpb.New(time.Hour), PaybackTurns: proto.Uint32(6)}},
			func(p *assemble.Policy) {
				p.Reduction.Cache.EvictEveryTurns, p.Reduction.Cache.TTL, p.Reduction.Cache.PaybackTurns = 3, time.Hour, 6
			},
		},
		"prices": {
			&contextdv1.Policy{Cache: &contextdv1.CacheDiscipline{Prices: &contextdv1.CachePrices{CacheRead: 0.025, CacheWrite: 1, MinCachedTokens: 512}}},
			func(p *assemble.Policy) {
				p.Reduction.Cache.Prices = reduce.Prices{CacheRead: 25, CacheWrite: 1000, MinCachedTokens: 512}
			},
		},
		"a recall tool": {
			&contextdv1.Policy{RecallTool: proto.String("mcp__contextd__recall")},
			func(p *assemble.Policy) { p.Reduction.Recall = "mcp__contextd__recall" },
		},
		"no payback at all": {
			&contextdv1.Policy{Cache: &contextdv1.CacheDiscipline{PaybackTurns: proto.Uint32(0)}},
			func(p *assemble.Policy) {
				p.Reduction.Cache = reduce.Cache{}
			},
		},
		"raw, with a reason": {
			&contextdv1.Policy{Projection: &contextdv1.ProjectionPolicy{Policy: "raw", Reason: "r"}},
			func(p *assemble.Policy) { p.Projection.Name, p.Reason = "raw", "r" },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := resolve(policy.Set{}, nil, test.policy)
			if err != nil {
				t.Fatal(err)
			}
			want := base
			test.want(&want)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(projection.Options{})); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedPolicies(t *testing.T) {
	tests := map[string]struct {
		policy *contextdv1.Policy
		field  string
	}{
		"unknown name":                  {&contextdv1.Policy{Name: "lean"}, "policy.name"},
		"a broken glob":                 {&contextdv1.Policy{ToolResults: &contextdv1.ToolResultRetention{ByTool: map[string]*contextdv1.Retention{"[": {}}}}, "policy.tool_results.by_tool"},
		"unknown summarizer":            {&contextdv1.Policy{Summarization: &contextdv1.Summarization{Summarizer: "s"}}, "policy.summarization.summarizer"},
		"instructions that are nothing": {&contextdv1.Policy{Summarization: &contextdv1.Summarization{Enabled: true, InstructionsMode: "replace"}}, "policy.summarization.instructions"},
		"prices of nothing":             {&contextdv1.Policy{Cache: &contextdv1.CacheDiscipline{PaybackTurns: proto.Uint32(0), Prices: &contextdv1.CachePrices{CacheWrite: 1}}}, "policy.cache.prices"},
		"projection":                    {&contextdv1.Policy{Projection: &contextdv1.ProjectionPolicy{Policy: "soup"}}, "policy.projection.policy"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := resolve(policy.Set{}, nil, test.policy)
			checkField(t, err, test.field)
		})
	}
}

// policies makes named policies, and resolve resolves a request's, as configuration and server do.
func policies(named map[string]*contextdv1.Policy, fallback string) (policy.Set, error) {
	overlays := map[string]policy.Overlay{}
	for name, m := range named {
		var err error
		if overlays[name], err = wire.PolicyToDomain(m, fmt.Sprintf("policies[%q]", name)); err != nil {
			return policy.Set{}, err
		}
	}
	return policy.NewSet(overlays, fallback, policy.Summarizers{})
}

func resolve(set policy.Set, session, request *contextdv1.Policy) (assemble.Policy, error) {
	below, err := wire.PolicyToDomain(session, "policy")
	if err != nil {
		return assemble.Policy{}, err
	}
	above, err := wire.PolicyToDomain(request, "policy")
	if err != nil {
		return assemble.Policy{}, err
	}
	return set.Resolve(below, above)
}

func checkField(t *testing.T, err error, field string) {
	t.Helper()
	if i, ok := errors.AsType[*eventlog.InvalidError](err); !ok || i.Field != field {
		t.Errorf("got %v; want %s named", err, field)
	}
}

func TestNamedPolicies(t *testing.T) {
	set, err := policies(map[string]*contextdv1.Policy{
		"lean": {ToolResults: &contextdv1.ToolResultRetention{Default: turns(1)}, RecallTool: proto.String("look")},
		"none": {Duplicates: &contextdv1.DuplicateResults{}, Thinking: &contextdv1.ThinkingRetention{}},
	}, "lean")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(set.Names(), " "); got != "balanced default faithful frugal lean none" {
		t.Errorf("names are %s", got)
	}
	type facts struct {
		turns      uint32
		duplicates bool
		recall     reduce.Recall
	}
	tests := map[string]struct {
		session, request *contextdv1.Policy
		want             facts
	}{
		"the daemon's":                    {nil, nil, facts{2, true, "look"}},
		"the built-in one by name":        {nil, &contextdv1.Policy{Name: "default"}, facts{30, true, ""}},
		"a preset by name":                {nil, &contextdv1.Policy{Name: "frugal"}, facts{4, true, ""}},
		"the session's":                   {&contextdv1.Policy{Name: "none"}, nil, facts{30, false, ""}},
		"the session's over the daemon's": {&contextdv1.Policy{Duplicates: &contextdv1.DuplicateResults{}}, nil, facts{2, false, "look"}},
		"the request's over the session's": {
			&contextdv1.Policy{Name: "none"},
			&contextdv1.Policy{ToolResults: &contextdv1.ToolResultRetention{Default: turns(8)}},
			facts{9, false, ""},
		},
		"a request that names one leaves the session's": {&contextdv1.Policy{Name: "none"}, &contextdv1.Policy{Name: "lean"}, facts{2, true, "look"}},
		"the recall tool is the session's whatever a request names": {
			&contextdv1.Policy{Name: "none", RecallTool: proto.String("recall")}, &contextdv1.Policy{Name: "lean"}, facts{2, true, "recall"},
		},
		"unless the request has another": {
			&contextdv1.Policy{RecallTool: proto.String("recall")}, &contextdv1.Policy{RecallTool: proto.String("")}, facts{2, true, ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := resolve(set, test.session, test.request)
			if err != nil {
				t.Fatal(err)
			}
			if got := (facts{got.Reduction.ToolResults.Default.Turns, got.Reduction.Duplicates, got.Reduction.Recall}); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestPartsOverPresets: fields that a part omits come from the built-in policy below, whoever sets the part.
func TestPartsOverPresets(t *testing.T) {
	set, err := policies(map[string]*contextdv1.Policy{"frugal-like": {Summarization: &contextdv1.Summarization{KeepLastTurns: 9}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	frugal, err := policies(nil, "frugal")
	if err != nil {
		t.Fatal(err)
	}
	parts := &contextdv1.Policy{
		Summarization: &contextdv1.Summarization{Enabled: true, IndexShare: 0.2},
		ToolResults:   &contextdv1.ToolResultRetention{EvictErrors: true},
		Cache:         &contextdv1.CacheDiscipline{EvictEveryTurns: 3},
	}
	named := func(name string) *contextdv1.Policy {
		m := proto.CloneOf(parts)
		m.Name = name
		return m
	}
	tests := map[string]struct {
		set              policy.Set
		session, request *contextdv1.Policy
		below            reduce.Policy
	}{
		"a request":                        {set, nil, parts, reduce.DefaultPolicy()},
		"a request that names one":         {set, nil, named("frugal"), reduce.FrugalPolicy()},
		"a session that names one":         {set, named("faithful"), nil, reduce.FaithfulPolicy()},
		"a request over its session":       {set, &contextdv1.Policy{Name: "faithful"}, parts, reduce.FaithfulPolicy()},
		"the daemon's":                     {frugal, nil, parts, reduce.FrugalPolicy()},
		"one of the configuration":         {set, nil, named("frugal-like"), reduce.DefaultPolicy()},
		"a request that names one of both": {set, named("faithful"), named("frugal"), reduce.FrugalPolicy()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := resolve(test.set, test.session, test.request)
			if err != nil {
				t.Fatal(err)
			}
			want := test.below
			want.Collapse.IndexShare, want.Cache.EvictEveryTurns = 0.2, 3
			want.ToolResults = reduce.ToolResults{Default: want.ToolResults.Default, EvictErrors: true}
			if diff := cmp.Diff(want, got.Reduction); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedConfiguration(t *testing.T) {
	tests := map[string]struct {
		named    map[string]*contextdv1.Policy
		fallback string
		field    string
	}{
		"a default that is missing": {nil, "lean", "default_policy"},
		"a policy that names one":   {map[string]*contextdv1.Policy{"a": {Name: "default"}}, "", `policies["a"].name`},
		"a policy without a name":   {map[string]*contextdv1.Policy{"": {}}, "", `policies[""]`},
		"a policy that is wrong":    {map[string]*contextdv1.Policy{"a": {Summarization: &contextdv1.Summarization{Summarizer: "s"}}}, "", `policies["a"].summarization.summarizer`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := policies(test.named, test.fallback)
			checkField(t, err, test.field)
		})
	}
}
