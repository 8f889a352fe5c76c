package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/reduce"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newPolicyShow(c *client) *cobra.Command {
	file, own := "", false
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show what a policy of the configuration comes to",
		Long: `Show every value of a policy as contexts are made by it, and where it is from:

  policy    the policy says it
  unset     the policy says something of this part, but not this, so it is off or as built in
  built in  the policy says nothing of this part (docs/policies.md, "Defaults")

With --own, show as YAML only what the policy itself says.

The configuration is that of CONTEXTD_CONFIG or --config, not of a daemon elsewhere.`,
		Example: `  contextd policy show default
  contextd policy show careful --config /etc/contextd.yaml --own`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completePolicy,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		settings, err := c.program.loadConfig(file)
		if err != nil {
			return err
		}
		says, effective, clipping, err := effectivePolicy(settings, args[0])
		if err != nil {
			return err
		}
		noteLocal(cmd)
		if own {
			effective = says
		}
		if c.output.structured() {
			return c.output.write(cmd.OutOrStdout(), effective)
		}
		if own {
			return outputYAML.write(cmd.OutOrStdout(), effective)
		}
		t := newTable(cmd, "FIELD", "VALUE", "FROM")
		writeFields(t, "", says.ProtoReflect(), effective.ProtoReflect())
		if effective.Clipping == nil {
			t.row("clipping.max_tokens", fmt.Sprintf("%d, or %g of the target if that is less", clipping.MaxTokens, clipping.Share), fromBuiltIn)
		}
		return t.flush()
	}
	cmd.Flags().BoolVar(&own, "own", false, "only what the policy itself says")
	bindConfig(cmd, &file)
	return cmd
}

// effectivePolicy returns a policy as the configuration has it, and as it applies with defaults filled in.
func effectivePolicy(settings config.Config, name string) (says, effective *contextdv1.Policy, clipping reduce.Clipping, err error) {
	set, err := settings.PolicySet()
	if err != nil {
		return nil, nil, clipping, err
	}
	if !slices.Contains(set.Names(), name) {
		unknown := status.Errorf(codes.NotFound, "there is no policy %q in the configuration; it has %s", name, strings.Join(set.Names(), ", "))
		return nil, nil, clipping, mistyped(unknown, name, set.Names())
	}
	resolved, err := set.Resolve(policy.Overlay{}, policy.Overlay{Name: name})
	if err != nil {
		return nil, nil, clipping, err
	}
	effective = wire.PolicyFromDomain(resolved.Reduction, resolved.Summaries)
	says = settings.Policies[name]
	if says == nil {
		says = &contextdv1.Policy{}
	}
	if effective.Projection = says.Projection; effective.Projection == nil {
		effective.Projection = &contextdv1.ProjectionPolicy{Policy: "raw"}
	}
	return says, effective, resolved.Reduction.Clipping, nil
}

const (
	fromPolicy  = "policy"
	fromUnset   = "unset"
	fromBuiltIn = "built in"
)

// writeFields writes the fields of an effective message, and where each comes from. Optional fields and the
// fields of projections, most of which apply to one kind, are written only where they are set.
func writeFields(t *table, at string, says, effective protoreflect.Message) {
	fields := effective.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		path := at + string(f.Name())
		sparse := f.HasPresence() || f.IsMap() || f.IsList() || strings.HasPrefix(path, "projection.") || path == "name"
		if sparse && !effective.Has(f) {
			continue
		}
		if f.Message() != nil && !f.IsMap() && f.Message().FullName().Parent() == effective.Descriptor().FullName().Parent() {
			writeFields(t, path+".", says.Get(f).Message(), effective.Get(f).Message())
			continue
		}
		from := fromBuiltIn
		switch {
		case says.Has(f):
			from = fromPolicy
		case says.IsValid() && at != "":
			from = fromUnset
		}
		t.row(path, dash(fieldText(f, effective)), from)
	}
}

// fieldText is a field's value as in JSON; a text is without quotes.
func fieldText(f protoreflect.FieldDescriptor, m protoreflect.Message) string {
	if f.Message() == nil && !f.IsList() {
		return m.Get(f).String()
	}
	alone := m.New()
	alone.Set(f, m.Get(f))
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(alone.Interface())
	if err != nil {
		return err.Error()
	}
	_, value, _ := strings.Cut(strings.TrimSuffix(string(text), "}"), ":")
	return strings.Trim(value, `" `)
}

// noteLocal notes whose configuration a command shows.
func noteLocal(cmd *cobra.Command) {
	if !isQuiet(cmd) {
		fmt.Fprintln(cmd.ErrOrStderr(), "from the configuration on this machine; a daemon that runs may have another")
	}
}
