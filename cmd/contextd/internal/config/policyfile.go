package config

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/memory"
	"github.com/contextd/contextd/internal/policy"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// PolicyFile is the content of a file of policies.
type PolicyFile struct {
	// Policies are the valid policies, by name. A single policy has the name of the built-in one.
	Policies map[string]*contextdv1.Policy
	Default  string
	// Errors are the errors of each invalid policy, by name; "" has that of the default.
	Errors map[string]error
}

// ReadPolicies reads a file with a map of policies, as in the daemon's configuration, or with a single
// policy. Of a configuration's other settings it only reads those that policies refer to. It returns an error
// if the file has no policies at all.
func ReadPolicies(path string) (PolicyFile, error) {
	content, err := memory.ReadFile(path)
	if err != nil {
		return PolicyFile{}, fmt.Errorf("read policies: %w", err)
	}
	var keys map[string]yaml.Node
	if err := unmarshal(content, &keys); err != nil {
		return PolicyFile{}, fmt.Errorf("%s: %w", path, err)
	}
	if len(keys) == 0 {
		return PolicyFile{}, fmt.Errorf("%s: there is nothing in it; write the fields of a policy, or policies: and a map of them by name", path)
	}
	c := Default()
	if _, ok := keys["policies"]; !ok {
		if _, err := readFile(path); err == nil { // it has settings only
			return PolicyFile{}, errNoPolicy(path)
		}
		var whole yaml.Node
		if err := unmarshal(content, &whole); err != nil {
			return PolicyFile{}, fmt.Errorf("%s: %w", path, err)
		}
		return c.checkSingle(whole), nil
	}
	nodes, err := c.readPolicyKeys(path, keys)
	if err != nil {
		return PolicyFile{}, err
	}
	if len(nodes) == 0 {
		return PolicyFile{}, errNoPolicy(path)
	}
	out := c.checkEach(nodes)
	if _, wrong := out.Errors[c.DefaultPolicy]; !wrong {
		if _, err := policySet(out.Policies, c.DefaultPolicy, c.summarizerNames()); err != nil {
			out.Errors[""] = err // not about a single policy
		}
	}
	return out, nil
}

func errNoPolicy(path string) error { return fmt.Errorf("%s: policies: there is none in it", path) }

// readPolicyKeys applies the settings that policies refer to, and returns the policies.
func (c *Config) readPolicyKeys(path string, keys map[string]yaml.Node) (map[string]yaml.Node, error) {
	flags := pflag.NewFlagSet("policies", pflag.ContinueOnError)
	c.bind(flags)
	values, err := readFile(path)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"default_policy", "summarizers", "default_summarizer"} {
		if text, ok := values[key]; ok {
			if err := flags.Set(strings.ReplaceAll(key, "_", "-"), text); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", path, key, err)
			}
		}
	}
	if err := c.validateSummarizers(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var nodes map[string]yaml.Node
	all := keys["policies"]
	if err := all.Decode(&nodes); err != nil {
		return nil, fmt.Errorf("%s: policies: %w", path, yamlError(err))
	}
	return nodes, nil
}

// checkSingle validates a single policy.
func (c *Config) checkSingle(node yaml.Node) PolicyFile {
	p, err := parsePolicyNode(node)
	if err == nil {
		err = c.check(p)
	}
	return policyFile(policy.DefaultName, map[string]*contextdv1.Policy{policy.DefaultName: p}, map[string]error{policy.DefaultName: err})
}

// check validates a policy on top of the built-in one.
func (c *Config) check(p *contextdv1.Policy) error {
	none, err := policySet(nil, "", c.summarizerNames())
	if err != nil {
		return err
	}
	overlay, err := wire.PolicyToDomain(p, "policy")
	if err != nil {
		return err
	}
	_, err = none.Resolve(policy.Overlay{}, overlay)
	return err
}

// checkEach validates each policy on its own, so that all errors are found.
func (c *Config) checkEach(nodes map[string]yaml.Node) PolicyFile {
	policies, errs := map[string]*contextdv1.Policy{}, map[string]error{}
	for name, node := range nodes {
		p, err := parsePolicyNode(node)
		if err != nil {
			err = fmt.Errorf("line %d: policies[%q]: %w", node.Line, name, err)
		} else {
			_, err = policySet(map[string]*contextdv1.Policy{name: p}, "", c.summarizerNames())
		}
		policies[name], errs[name] = p, err
	}
	return policyFile(c.DefaultPolicy, policies, errs)
}

func parsePolicyNode(node yaml.Node) (*contextdv1.Policy, error) {
	p := &contextdv1.Policy{}
	var value map[string]any
	if err := node.Decode(&value); err != nil {
		return p, errors.New("must be a map of fields")
	}
	if value == nil {
		return p, nil
	}
	return p, parseMessage(value, p)
}

// policyFile separates invalid policies from valid ones.
func policyFile(fallback string, policies map[string]*contextdv1.Policy, errs map[string]error) PolicyFile {
	maps.DeleteFunc(errs, func(_ string, err error) bool { return err == nil })
	maps.DeleteFunc(policies, func(name string, _ *contextdv1.Policy) bool { return errs[name] != nil })
	return PolicyFile{Policies: policies, Default: fallback, Errors: errs}
}
