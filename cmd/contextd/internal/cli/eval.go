package cli

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/evaluate"
	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/policy"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// evalFlags are the flags of eval.
type evalFlags struct {
	budget   requestSettings
	policies []string
	files    []string
	config   string
	harness  string
	last     int
	cacheTTL time.Duration
	largest  int
	jobs     int
	output   evalFormat
}

// evalFormat is an output format of other commands, or an HTML page. It implements pflag.Value.
type evalFormat struct{ outputFormat }

const outputHTML outputFormat = "html"

// Set implements pflag.Value.
func (o *evalFormat) Set(name string) error {
	if name == string(outputHTML) {
		o.outputFormat = outputHTML
		return nil
	}
	if o.outputFormat.Set(name) != nil {
		return errors.New("must be table, wide, json, yaml or html")
	}
	return nil
}

func (p Program) newEval() *cobra.Command {
	flags := evalFlags{output: evalFormat{outputTable}}
	cmd := &cobra.Command{
		Use:   "eval PATH...",
		Short: "Measure on your own transcripts what policies would have cost and kept",
		Long: `Replay the transcripts of other harnesses, call by call, and say what each policy would
have sent to the model: what that would have cost, how often it would have been over the
window or changed the prefix that the provider has cached, and how much of what the model
needed next was in it. No daemon is asked, nothing is stored, and nothing is sent anywhere.

PATH is a file, - for stdin, or a folder, of which every transcript below is read. The
harness is detected from the content. A file that cannot be read is a line of the report.

Compared are the built-in policies, those of --policy and --policy-file, what the
harness itself sent by its recorded compactions, and simple ones: everything, the last
results, and a sliding window. Prices, window and tokenizer are those of the model that the
transcript names, or of --model; "contextd models" lists them. What the model writes costs
the same under all policies and is left out. Summaries are those that rules write.`,
		Example: `  contextd eval ~/.claude/projects
  contextd eval ~/.codex/sessions --max-tokens 64k -o html > eval.html
  contextd eval session.jsonl --model gpt-5 --policy-file mine.yaml --json`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := p.newEvaluation(flags)
		if err != nil {
			return err
		}
		models, err := e.settings.Registry()
		if err != nil {
			return err
		}
		if name := e.budget.GetModel(); name != "" {
			noteName(cmd, models, name)
		}
		report, err := e.run(cmd, args)
		if err != nil {
			return err
		}
		if err := writeEvaluation(cmd, flags.output.outputFormat, report); err != nil {
			return err
		}
		switch {
		case len(report.Failed) > 0:
			return fmt.Errorf("%s could not be read", counted(len(report.Failed), "file"))
		case report.Sessions == 0:
			return &noTranscriptError{args}
		}
		return nil
	}
	f := cmd.Flags()
	f.VarP(&flags.output, "output", "o", "`format` of the output: table, wide, json, yaml or html")
	flags.output.bindJSON(f)
	cmd.MarkFlagsMutuallyExclusive("json", "output")
	bindQuiet(f)
	config.BindUnder(f, topicBudget, flags.budget.bindBudget)
	f.StringSliceVar(&flags.policies, "policy", []string{policy.FrugalName, policy.BalancedName, policy.FaithfulName}, "`names` of policies of the configuration, the built-in ones among them")
	f.StringArrayVar(&flags.files, "policy-file", nil, "YAML `file` of policies, each of which is measured; may be repeated")
	bindConfig(cmd, &flags.config)
	f.StringVar(&flags.harness, "harness", "", "`name` of the harness that wrote it; detected from the content if not given")
	f.IntVar(&flags.last, "last", 5, "how many `results` the policies keep that keep the last ones")
	f.DurationVar(&flags.cacheTTL, "cache-ttl", 5*time.Minute, "how long the provider's cache keeps a prefix; 0 forever")
	f.IntVar(&flags.largest, "largest", 6, "how many of the largest `sessions` are shown in detail, in json, yaml and html")
	f.IntVar(&flags.jobs, "jobs", min(runtime.NumCPU(), 4), "`files` that are measured at once")
	complete(cmd, "harness", fixed(harness.Names()))
	complete(cmd, "output", fixed(append(outputFormats(), string(outputHTML))))
	c := &client{program: p}
	complete(cmd, "model", c.completeModel)
	complete(cmd, "policy", c.completePolicy)
	return cmd
}

// noTranscriptError reports that the paths have no transcript.
type noTranscriptError struct{ paths []string }

func (e *noTranscriptError) Error() string {
	return "no transcript with a session in " + oneLine(strings.Join(e.paths, ", "), 0)
}

// evaluation is how transcripts are measured.
type evaluation struct {
	flags    evalFlags
	settings config.Config
	budget   *contextdv1.Budget
	// contextd are contextd's own policies, in the order of the first kinds and names of set.
	contextd []assemble.Policy
	set      evaluate.Settings
}

func (p Program) newEvaluation(flags evalFlags) (*evaluation, error) {
	if flags.jobs < 1 || flags.last < 1 || flags.largest < 0 || flags.cacheTTL < 0 {
		return nil, usageError{errors.New("--jobs and --last must be at least 1, --largest and --cache-ttl at least 0")}
	}
	e := &evaluation{flags: flags}
	var err error
	if e.settings, err = p.loadConfig(flags.config); err != nil {
		return nil, err
	}
	if e.budget, _, err = flags.budget.resolve(); err != nil {
		return nil, err
	}
	if e.budget == nil {
		e.budget = e.settings.Budget()
	}
	e.set = evaluate.Settings{Model: e.budget.GetModel(), MaxTokens: e.budget.GetMaxTokens(), CacheTTLSeconds: flags.cacheTTL.Seconds()}
	set, err := e.settings.PolicySet()
	if err != nil {
		return nil, err
	}
	for _, name := range flags.policies {
		p, err := set.Resolve(policy.Overlay{}, policy.Overlay{Name: name})
		if err != nil {
			return nil, usageError{fmt.Errorf("--policy: %w", err)}
		}
		e.addContextd(name, evaluate.KindContextd, p)
	}
	for _, path := range flags.files {
		if err := e.addFile(path); err != nil {
			return nil, err
		}
	}
	if err := e.scrub(); err != nil {
		return nil, err
	}
	e.add("harness, as recorded", evaluate.KindHarness)
	e.add(evaluate.Everything, evaluate.KindSimple)
	e.add(fmt.Sprintf("last %d results, each step", flags.last), evaluate.KindSimple)
	e.add(fmt.Sprintf("last %d results, in batches of %d", flags.last, evalBatch), evaluate.KindSimple)
	e.add("sliding window", evaluate.KindSimple)
	return e, nil
}

// evalBatch is how many tool results the policy "in batches" collects before it drops them.
const evalBatch = 10

func (e *evaluation) add(name string, kind evaluate.Kind) {
	e.set.Policies, e.set.Kinds = append(e.set.Policies, name), append(e.set.Kinds, kind)
}

func (e *evaluation) addContextd(name string, kind evaluate.Kind, p assemble.Policy) {
	e.contextd = append(e.contextd, p)
	e.add(name, kind)
}

// addFile adds the policies of a file. The only policy of a file is named after the file.
func (e *evaluation) addFile(path string) error {
	file, err := config.ReadPolicies(path)
	if err != nil {
		return usageError{err}
	}
	if len(file.Errors) > 0 {
		return refusedPolicies(path, file)
	}
	for _, name := range slices.Sorted(maps.Keys(file.Policies)) {
		overlay, err := wire.PolicyToDomain(file.Policies[name], "policy")
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", path, err)}
		}
		resolved, err := policy.Set{}.Resolve(policy.Overlay{}, overlay)
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", path, err)}
		}
		shown := filepath.Base(path)
		if len(file.Policies) > 1 || name != policy.DefaultName {
			shown += ": " + name
		}
		for n := 2; slices.Contains(e.set.Policies, shown); n++ {
			shown = fmt.Sprintf("%s (%d)", shown, n)
		}
		e.addContextd(shown, evaluate.KindFile, resolved)
	}
	return nil
}

// scrub gives the scrubbing rules to the policies that replace credentials.
func (e *evaluation) scrub() error {
	rules, err := e.settings.Scrubber(nil)
	if err != nil {
		return err
	}
	for i := range e.contextd {
		e.contextd[i].Projection = e.contextd[i].Projection.WithScrubber(rules)
	}
	return nil
}
