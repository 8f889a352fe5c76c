package wire_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"buf.build/go/protovalidate"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/contextd/contextd/cmd/contextd/internal/gauges"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/projection"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// fieldEffect shows that a field of a policy has an effect: with either value in place of %s in the JSON of
// in, the outcome differs. The policies in refused would ignore the field, so they must refuse it.
type fieldEffect struct {
	in, one, other string
	refused        []string
}

// shows is the fieldEffect of a projection policy's field. Policies other than the given ones must refuse the
// field.
func shows(field, value string, beside string, policies ...string) fieldEffect {
	in := func(policy, rest string) string {
		return fmt.Sprintf(`{"projection":{"policy":%q%s}}`, policy, rest)
	}
	e := fieldEffect{in: in(policies[0], beside+"%s"), one: "", other: fmt.Sprintf(`,%q:%s`, field, value)}
	for _, p := range projectionPolicies() {
		if slices.Contains(policies, p) {
			continue
		}
		expression := ""
		if p == projection.CustomExpression {
			expression = `,"expression":"true"`
		}
		e.refused = append(e.refused, in(p, expression+e.other))
	}
	return e
}

// projectionPolicies are the projection policies of the API.
func projectionPolicies() []string {
	field := (&contextdv1.ProjectionPolicy{}).ProtoReflect().Descriptor().Fields().ByName("policy")
	rules, err := protovalidate.ResolveFieldRules(field)
	if err != nil {
		panic(err)
	}
	return rules.GetString().GetIn()
}

func retentionEffects(at, in string) map[string]fieldEffect {
	return map[string]fieldEffect{
		at + ".turns":       {in: fmt.Sprintf(in, `"turns":%s`), one: "2", other: "3"},
		at + ".last":        {in: fmt.Sprintf(in, `"last":%s`), one: "0", other: "3"},
		at + ".never_evict": {in: fmt.Sprintf(in, `%s`), one: `"turns":2`, other: `"never_evict":true`},
		at + ".min_tokens": {
			in: fmt.Sprintf(in, `"turns":2,"min_tokens":%s`), one: "0", other: "9",
			refused: []string{fmt.Sprintf(in, `"never_evict":true,"min_tokens":9`)},
		},
	}
}

// fieldEffects are the effects of every field of a policy, by path.
func fieldEffects() map[string]fieldEffect {
	cleaning := []string{projection.CleanToolRepair, projection.SquashFailed, projection.SummaryPrefix, projection.ReachabilityGC, projection.CustomExpression}
	const gc, barrier = projection.ReachabilityGC, `,"min_chars":0,"root_window":0,"clear_at_least_tokens":0,"require_write_barrier":true`
	const eager = `,"min_chars":0,"root_window":0,"clear_at_least_tokens":0`
	all := map[string]fieldEffect{
		"name":                        {in: `{"name":%s}`, one: `"default"`, other: `"lean"`},
		"tool_results.evict_errors":   {in: `{"tool_results":{"evict_errors":%s}}`, one: "false", other: "true"},
		"tool_results.strict":         {in: `{"tool_results":{"strict":%s}}`, one: "false", other: "true"},
		"tool_results.outline_tokens": {in: `{"tool_results":{"outline_tokens":%s}}`, one: "0", other: "9"},
		"duplicates.enabled":          {in: `{"duplicates":{"enabled":%s}}`, one: "false", other: "true"},
		"clipping.max_tokens":         {in: `{"clipping":{"max_tokens":%s}}`, one: "0", other: "900"},
		"clipping.head_tokens":        {in: `{"clipping":{"max_tokens":900,"head_tokens":%s}}`, one: "0", other: "9"},
		"clipping.tail_tokens":        {in: `{"clipping":{"max_tokens":900,"tail_tokens":%s}}`, one: "0", other: "9"},
		"thinking.keep_turns":         {in: `{"thinking":{%s}}`, one: "", other: `"keep_turns":0`},
		"window.max_turns":            {in: `{"window":{"max_turns":%s}}`, one: "0", other: "4"},
		"window.max_tokens":           {in: `{"window":{"max_tokens":%s}}`, one: "0", other: "900"},
		"window.strict_anchor":        {in: `{"window":{"strict_anchor":%s}}`, one: "false", other: "true"},

		"summarization.enabled":    {in: `{"summarization":{"enabled":%s}}`, one: "false", other: "true"},
		"summarization.summarizer": {in: `{"summarization":{"summarizer":%s}}`, one: `"cheap"`, other: `"good"`},
		"summarization.start_at": {
			in: `{"summarization":{"enabled":true,"start_at":%s}}`, one: "0", other: "0.7",
			refused: []string{`{"summarization":{"start_at":0.7}}`},
		},
		"summarization.collapse_to":       {in: `{"summarization":{"collapse_to":%s}}`, one: "0", other: "0.3"},
		"summarization.keep_last_turns":   {in: `{"summarization":{"keep_last_turns":%s}}`, one: "0", other: "5"},
		"summarization.max_input_tokens":  {in: `{"summarization":{"max_input_tokens":%s}}`, one: "0", other: "900"},
		"summarization.instructions":      {in: `{"summarization":{"instructions":%s}}`, one: `""`, other: `"x"`},
		"summarization.instructions_mode": {in: `{"summarization":{"instructions":"x","instructions_mode":%s}}`, one: `""`, other: `"replace"`},
		"summarization.wait": {
			in: `{"summarization":{"enabled":true,"wait":%s}}`, one: `"0s"`, other: `"3s"`,
			refused: []string{`{"summarization":{"wait":"3s"}}`},
		},
		"summarization.ledger_share":      {in: `{"summarization":{"ledger_share":%s}}`, one: "0", other: "0.3"},
		"summarization.index_share":       {in: `{"summarization":{"index_share":%s}}`, one: "0", other: "0.3"},
		"summarization.working_set_share": {in: `{"summarization":{"working_set_share":%s}}`, one: "0", other: "0.3"},
		"summarization.summary_share":     {in: `{"summarization":{"summary_share":%s}}`, one: "0", other: "0.3"},

		"projection.policy":                     {in: `{"projection":{"policy":%s}}`, one: `"raw"`, other: `"harness_view"`},
		"projection.reason":                     {in: `{"projection":{"reason":%s}}`, one: `""`, other: `"why"`},
		"projection.ignore_provider_signatures": shows("ignore_provider_signatures", "true", "", cleaning...),
		"projection.raw_fallback":               shows("raw_fallback", "true", "", cleaning...),
		"projection.keep_last":                  shows("keep_last", "9", "", cleaning...),
		"projection.summary":                    shows("summary", `"All went well."`, "", projection.SummaryPrefix),
		"projection.root_window":                shows("root_window", "0", "", gc),
		"projection.min_chars":                  shows("min_chars", "0", "", gc),
		"projection.clear_at_least_tokens":      shows("clear_at_least_tokens", "0", "", gc),
		"projection.roots":                      shows("roots", `["needle_a"]`, eager, gc),
		"projection.active_plan":                shows("active_plan", `"needle_a"`, eager, gc),
		"projection.scratchpad":                 shows("scratchpad", `"needle_a"`, eager, gc),
		"projection.pending_tool_args":          shows("pending_tool_args", `["needle_a"]`, eager, gc),
		"projection.unresolved_findings":        shows("unresolved_findings", `["needle_a"]`, eager, gc),
		"projection.require_write_barrier":      shows("require_write_barrier", "true", "", gc),
		"projection.write_barrier_refs":         shows("write_barrier_refs", `["w"]`, barrier, gc),
		"projection.scrub":                      {in: `{"projection":{"scrub":%s}}`, one: "false", other: "true"},
		"projection.expression": {
			in: `{"projection":{"policy":"custom","expression":%s}}`, one: `"true"`, other: `"age < 9"`,
			refused: []string{`{"projection":{"expression":"true"}}`, `{"projection":{"policy":"reachability_gc","expression":"true"}}`},
		},

		"cache.evict_every_turns": {
			in: `{"cache":{"evict_every_turns":%s}}`, one: "0", other: "3",
			refused: []string{`{"cache":{"payback_turns":0,"evict_every_turns":3}}`},
		},
		"cache.clear_at_least_tokens": {
			in: `{"cache":{"clear_at_least_tokens":%s}}`, one: "0", other: "9",
			refused: []string{`{"cache":{"payback_turns":0,"clear_at_least_tokens":9}}`},
		},
		"cache.cache_ttl": {
			in: `{"cache":{%s}}`, one: "", other: `"cache_ttl":"3s"`,
			refused: []string{`{"cache":{"payback_turns":0,"cache_ttl":"3s"}}`},
		},
		"cache.prices.cache_read": {
			in: `{"cache":{"prices":{"cache_write":1,"cache_read":%s}}}`, one: "0", other: "0.5",
			refused: []string{`{"cache":{"prices":{"cache_write":1,"cache_read":1.1}}}`},
		},
		"cache.prices.cache_write": {
			in: `{"cache":{"prices":{"cache_write":%s}}}`, one: "1", other: "1.25",
			refused: []string{`{"cache":{"prices":{}}}`, `{"cache":{"prices":{"cache_write":10.1}}}`},
		},
		"cache.prices.min_cached_tokens": {
			in: `{"cache":{"prices":{"cache_write":1,"min_cached_tokens":%s}}}`, one: "0", other: "1024",
			refused: []string{`{"cache":{"prices":{"cache_write":1,"min_cached_tokens":1000000001}}}`},
		},
		"recall_tool": {
			in: `{"tool_results":{"outline_tokens":1,"strict":true},"recall_tool":%s}`, one: `""`, other: `"mcp__contextd__recall"`,
			refused: []string{`{"recall_tool":"a tool"}`, `{"recall_tool":".recall"}`, `{"recall_tool":"recall\n"}`, `{"recall_tool":"` + strings.Repeat("x", 65) + `"}`},
		},
		"cache.payback_turns": {in: `{"cache":{"payback_turns":%s}}`, one: "0", other: "9"},
	}
	for _, more := range []map[string]fieldEffect{
		retentionEffects("tool_results.default", `{"tool_results":{"default":{%s}}}`),
		retentionEffects("tool_results.by_tool", `{"tool_results":{"by_tool":{"read_*":{%s}}}}`),
	} {
		for path, e := range more {
			all[path] = e
		}
	}
	writeBarrier := all["projection.write_barrier_refs"]
	writeBarrier.refused = append(writeBarrier.refused, `{"projection":{"policy":"reachability_gc","write_barrier_refs":["w"]}}`)
	all["projection.write_barrier_refs"] = writeBarrier
	return all
}

// TestEveryPolicyFieldHasAnEffect goes over all fields of the message, so that a new field needs an entry
// here.
func TestEveryPolicyFieldHasAnEffect(t *testing.T) {
	effects := fieldEffects()
	for _, path := range leaves((&contextdv1.Policy{}).ProtoReflect().Descriptor(), "") {
		e, ok := effects[path]
		if !ok {
			t.Errorf("nothing says what %s is for", path)
			continue
		}
		delete(effects, path)
		t.Run(path, func(t *testing.T) {
			one, other := strings.ReplaceAll(e.in, "%s", e.one), strings.ReplaceAll(e.in, "%s", e.other)
			a, err := decidedBy(one)
			b, otherErr := decidedBy(other)
			if err = errors.Join(err, otherErr); err != nil {
				t.Fatal(err)
			}
			if a == b {
				t.Errorf("%s and %s decide alike:\n%s", one, other, a)
			}
			field := path[strings.LastIndexByte(path, '.')+1:]
			for _, policy := range e.refused {
				if _, err := decidedBy(policy); err == nil || !strings.Contains(err.Error(), field) {
					t.Errorf("%s: %v; want an error that names %s", policy, err, field)
				}
			}
		})
	}
	for path := range effects {
		t.Errorf("%s is no field", path)
	}
}

// leaves are the paths of a message's fields, including those of nested messages.
func leaves(m protoreflect.MessageDescriptor, at string) []string {
	var out []string
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		of := f.Message()
		if f.IsMap() {
			of = f.MapValue().Message()
		}
		if of != nil && of.ParentFile() == m.ParentFile() {
			out = append(out, leaves(of, at+string(f.Name())+".")...)
		} else {
			out = append(out, at+string(f.Name()))
		}
	}
	return out
}

// decidedBy is the outcome of a policy in JSON: its fingerprint, how summaries are written, what is recorded,
// and the context of a log whose calls search for needles.
func decidedBy(text string) (string, error) {
	m := &contextdv1.Policy{}
	if err := errors.Join(protojson.Unmarshal([]byte(text), m), protovalidate.Validate(m)); err != nil {
		return "", err
	}
	lean := &contextdv1.Policy{Duplicates: &contextdv1.DuplicateResults{}}
	named, err := wire.PolicyToDomain(lean, "lean")
	if err != nil {
		return "", err
	}
	set, err := policy.NewSet(map[string]policy.Overlay{"lean": named}, "", policy.Summarizers{Names: []string{"cheap", "good"}, Default: "cheap"})
	if err != nil {
		return "", err
	}
	p, err := resolve(set, nil, m)
	if err != nil {
		return "", err
	}
	models, err := budget.NewModels()
	if err != nil {
		return "", err
	}
	store := memlog.New()
	defer store.Close()
	engine := assemble.New(store, assemble.Options{Models: models, Gauges: gauges.Open, Clock: func() time.Time { return time.Time{} }})
	out, err := engine.Project(context.Background(), needles(), assemble.Request{
		SessionID: "s", Policy: p, Budget: budget.Spec{MaxTokens: 100_000, Tokenizer: budget.TokenizerHeuristic},
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %+v %q %s", out.Projection.Fingerprint, p.Summaries, out.Projection.Reason, out.ContextHash), nil
}

func needles() []eventlog.Event {
	say := func(role eventlog.Role, blocks ...eventlog.Block) eventlog.Event {
		return eventlog.Event{Body: &eventlog.Message{Role: role, Blocks: blocks}}
	}
	all := []eventlog.Event{say(eventlog.RoleUser, eventlog.Text{Text: "Begin."})}
	for i := range 6 {
		id := fmt.Sprint("c", i)
		all = append(all,
			say(eventlog.RoleAssistant, eventlog.ToolCall{CallID: id, Name: "look", Arguments: "{}"}),
			say(eventlog.RoleTool, eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: strings.Repeat(fmt.Sprintf("hay needle_%c in the stack\n", 'a'+i), 40)}}}))
	}
	return append(all, say(eventlog.RoleAssistant, eventlog.Text{Text: "Done."}))
}

// TestPolicyFromDomain checks that every field of a policy survives the conversion to the domain and back.
func TestPolicyFromDomain(t *testing.T) {
	set, err := policy.NewSet(nil, "", policy.Summarizers{Names: []string{"extractive", "cheap", "good"}, Default: "extractive"})
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(m *contextdv1.Policy) assemble.Policy {
		overlay, err := wire.PolicyToDomain(m, "policy")
		if err != nil {
			t.Fatal(err)
		}
		p, err := set.Resolve(policy.Overlay{}, overlay)
		if err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		return p
	}
	for field, effect := range fieldEffects() {
		if strings.HasPrefix(field, "projection.") || field == "name" {
			continue
		}
		for _, value := range []string{effect.one, effect.other} {
			m := &contextdv1.Policy{}
			if err := protojson.Unmarshal([]byte(fmt.Sprintf(effect.in, value)), m); err != nil {
				t.Fatal(err)
			}
			want := resolve(m)
			got := resolve(wire.PolicyFromDomain(want.Reduction, want.Summaries))
			want.Reduction.Collapse.CutTo = 0 // it has no field: a collapse_to that is given is for all cuts
			if diff := cmp.Diff(want.Reduction, got.Reduction); diff != "" {
				t.Errorf("%s: %s", field, diff)
			}
			if diff := cmp.Diff(want.Summaries, got.Summaries); diff != "" {
				t.Errorf("%s: %s", field, diff)
			}
		}
	}
}
