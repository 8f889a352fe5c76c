package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/decide"
	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/reduce"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newPolicy(c *client) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Show policies, and check them before they are used",
		Args:  onlySubcommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyShow(c), newPolicyCheck(c))
	return cmd
}

func newPolicyCheck(c *client) *cobra.Command {
	var settings requestSettings
	var session, name string
	cmd := &cobra.Command{
		Use:   "check FILE [SESSION]",
		Short: "Validate a file of policies, and show what one would do to a session",
		Long: `Validate a YAML file: the daemon's configuration, of which the policies are looked
at, or the fields of a single policy. Every policy with an error is named, and on
stderr what a policy switches off that the built-in one has: a part of a policy
replaces the whole part.

With a session, show what a policy of the file would do to that session, as
"contextd assemble --preview --explain" does for the policies of the daemon; nothing
is recorded. The policy overrides the daemon's "default", as it will once the
daemon has read it.`,
		Example: `  contextd policy check contextd.yaml
  contextd policy check contextd.yaml my-session --name careful --max-tokens 32k
  contextd policy check policy.yaml my-session --embedded ./data`,
		Args: cobra.RangeArgs(1, 2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, err := config.ReadPolicies(args[0])
		if err != nil {
			return usageError{err}
		}
		if len(file.Errors) > 0 {
			return refusedPolicies(args[0], file)
		}
		if err := noteSwitchedOff(cmd, file); err != nil {
			return err
		}
		if len(args) > 1 {
			session = args[1]
		}
		if session == "" {
			return c.writeChecked(cmd, file)
		}
		if name == "" {
			name = theOnly(file)
		}
		p, ok := file.Policies[name]
		if !ok {
			return usageError{fmt.Errorf("--name: %q is not a policy of %s; it has %s", name, args[0], policyNames(file))}
		}
		return c.runReading(func(cmd *cobra.Command, api api, _ []string) error {
			return c.preview(cmd, api, session, &settings, p)
		})(cmd, args)
	}
	f := cmd.Flags()
	f.StringVar(&session, "session", "", "SESSION")
	cobra.CheckErr(f.MarkHidden("session"))
	f.StringVar(&name, "name", "", "`name` of the policy to show; the file's default if not given")
	config.BindUnder(f, topicBudget, settings.bindBudget)
	return cmd
}

// preview prints the decisions that a policy would give on a session. The daemon's configuration need not
// have the policy.
func (c *client) preview(cmd *cobra.Command, api api, session string, settings *requestSettings, p *contextdv1.Policy) error {
	b, _, err := settings.resolve()
	if err != nil {
		return err
	}
	c.noteFamily(cmd, b.GetModel())
	p.Name = policy.DefaultName
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	stream, err := api.AssembleContext(ctx, &contextdv1.AssembleContextRequest{SessionId: session, Budget: b, Policy: p, Preview: true})
	if err != nil {
		return err
	}
	if c.output.structured() {
		return c.printContext(cmd, stream.Recv)
	}
	return c.explain(cmd, stream.Recv)
}

// theOnly is the policy to show where none is named: the only one, or else the default.
func theOnly(file config.PolicyFile) string {
	if len(file.Policies) != 1 {
		return file.Default
	}
	return policyNames(file)
}

func policyNames(file config.PolicyFile) string {
	return strings.Join(slices.Sorted(maps.Keys(file.Policies)), ", ")
}

func refusedPolicies(path string, file config.PolicyFile) error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(file.Errors)) {
		all = append(all, fmt.Errorf("%s: %w", path, file.Errors[name]))
	}
	return usageError{errors.Join(all...)}
}

func (c *client) writeChecked(cmd *cobra.Command, file config.PolicyFile) error {
	if c.output.structured() {
		for _, name := range slices.Sorted(maps.Keys(file.Policies)) {
			if err := c.output.write(cmd.OutOrStdout(), file.Policies[name]); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable(cmd, "POLICY", "PROJECTION", "DEFAULT")
	for _, name := range slices.Sorted(maps.Keys(file.Policies)) {
		projection := file.Policies[name].GetProjection().GetPolicy()
		if projection == "" {
			projection = "raw"
		}
		is := ""
		if name == file.Default {
			is = "yes"
		}
		t.row(name, projection, is)
	}
	return t.flush()
}

// noteSwitchedOff notes which fields a policy switches off that are on in the built-in policy. A part of a
// policy that forgets to repeat a field looks the same as one that switches it off on purpose.
func noteSwitchedOff(cmd *cobra.Command, file config.PolicyFile) error {
	if isQuiet(cmd) {
		return nil
	}
	builtIn := wire.PolicyFromDomain(reduce.DefaultPolicy(), decide.SummaryPolicy{})
	for _, name := range slices.Sorted(maps.Keys(file.Policies)) {
		says := file.Policies[name]
		alone := proto.CloneOf(says)
		if alone.Summarization != nil {
			alone.Summarization.Summarizer = "" // its summarizers are in a configuration that is not read here
		}
		overlay, err := wire.PolicyToDomain(alone, "policy")
		if err != nil {
			return err
		}
		resolved, err := policy.Set{}.Resolve(policy.Overlay{}, overlay)
		if err != nil {
			return err
		}
		effective := wire.PolicyFromDomain(resolved.Reduction, resolved.Summaries)
		if off := switchedOff("", says.ProtoReflect(), effective.ProtoReflect(), builtIn.ProtoReflect()); len(off) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "note: policy %s switches off: %s (built in: on)\n", name, strings.Join(off, ", "))
		}
	}
	return nil
}

// switchedOff lists the fields that are set in the built-in message but not in the effective one, in the
// parts that the policy sets.
func switchedOff(at string, says, effective, builtIn protoreflect.Message) []string {
	var off []string
	fields := builtIn.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch path := at + string(f.Name()); {
		case !builtIn.Has(f):
		case f.Message() != nil && !f.IsMap() && says.Has(f) && effective.Has(f):
			off = append(off, switchedOff(path+".", says.Get(f).Message(), effective.Get(f).Message(), builtIn.Get(f).Message())...)
		case at != "" && !effective.Has(f):
			off = append(off, path)
		}
	}
	return off
}
