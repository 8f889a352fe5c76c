package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"buf.build/go/protovalidate"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/auth"
	"github.com/contextd/contextd/internal/budget"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// parseMessage fills m from a decoded YAML value by the API's field names, and validates it by the API's
// rules.
func parseMessage(value map[string]any, m proto.Message) error {
	asJSON, err := json.Marshal(value)
	if err != nil {
		return errors.New("keys of maps must be texts")
	}
	return parseJSON(asJSON, m)
}

func parseJSON(asJSON []byte, m proto.Message) error {
	if err := protojson.Unmarshal(asJSON, m); err != nil {
		if misfit := Misfit(asJSON, m.ProtoReflect().Descriptor()); misfit != nil {
			return misfit
		}
		return errors.New(position.ReplaceAllString(JSONError(err).Error(), ""))
	}
	if err := protovalidate.Validate(m); err != nil {
		st, _ := apierr.Convert(err)
		return errors.New(st.Message())
	}
	return nil
}

// formatMessage is the inverse of parseMessage, as YAML on one line.
func formatMessage(m proto.Message) string {
	asJSON, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return ""
	}
	var plain any
	if err := json.Unmarshal(asJSON, &plain); err != nil {
		return ""
	}
	compact, err := json.Marshal(plain)
	if err != nil {
		return ""
	}
	return string(compact)
}

type budgetValue struct{ budget **contextdv1.Budget }

// Set implements pflag.Value.
func (v budgetValue) Set(text string) error {
	b := &contextdv1.Budget{}
	if err := ParseMessage(text, b); err != nil {
		return err
	}
	*v.budget = b
	return nil
}

// String implements pflag.Value.
func (v budgetValue) String() string {
	if v.budget == nil || *v.budget == nil {
		return ""
	}
	return formatMessage(*v.budget)
}

// Type implements pflag.Value.
func (budgetValue) Type() string { return "yaml" }

type policiesValue struct {
	policies *map[string]*contextdv1.Policy
}

// Set implements pflag.Value.
func (v policiesValue) Set(text string) error {
	var values map[string]map[string]any
	if err := unmarshal([]byte(text), &values); err != nil {
		return err
	}
	out := make(map[string]*contextdv1.Policy, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p := &contextdv1.Policy{}
		if values[name] != nil {
			if err := parseMessage(values[name], p); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		out[name] = p
	}
	*v.policies = out
	return nil
}

// String implements pflag.Value.
func (v policiesValue) String() string {
	if v.policies == nil || len(*v.policies) == 0 {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*v.policies)) {
		key, err := json.Marshal(name)
		if err != nil {
			return ""
		}
		parts = append(parts, string(key)+":"+formatMessage((*v.policies)[name]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Type implements pflag.Value.
func (policiesValue) Type() string { return "yaml" }

// modelEntry is a budget.Override with its YAML keys.
type modelEntry struct {
	Name      string   `yaml:"name" json:"name"`
	Provider  string   `yaml:"provider" json:"provider,omitempty"`
	Window    uint64   `yaml:"window" json:"window,omitempty"`
	Tokenizer string   `yaml:"tokenizer" json:"tokenizer,omitempty"`
	Margin    *float64 `yaml:"margin" json:"margin,omitempty"`

	Prices budget.PriceOverride `yaml:"prices" json:"prices,omitzero"`

	ReturnReasoning *bool `yaml:"return_reasoning" json:"return_reasoning,omitempty"`
}

type modelsValue struct{ models *[]budget.Override }

// Set implements pflag.Value.
func (v modelsValue) Set(text string) error {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	var entries []modelEntry
	if err := decoder.Decode(&entries); err != nil {
		return yamlError(err)
	}
	out := make([]budget.Override, len(entries))
	for i, e := range entries {
		out[i] = budget.Override(e)
	}
	if _, err := budget.NewModels(out...); err != nil {
		return err
	}
	*v.models = out
	return nil
}

// String implements pflag.Value.
func (v modelsValue) String() string {
	if v.models == nil || len(*v.models) == 0 {
		return ""
	}
	entries := make([]modelEntry, len(*v.models))
	for i, m := range *v.models {
		entries[i] = modelEntry(m)
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return ""
	}
	return string(text)
}

// Type implements pflag.Value.
func (modelsValue) Type() string { return "yaml" }

// yamlValue is a flag for a map or a list in YAML. Unknown keys are errors.
type yamlValue[T any] struct {
	to *T
	// check, if set, validates a value.
	check func(T) error
}

// Set implements pflag.Value.
func (v yamlValue[T]) Set(text string) error {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	var value T
	if err := decoder.Decode(&value); err != nil && !errors.Is(err, io.EOF) { // an empty text is an empty value
		return yamlError(err)
	}
	if v.check != nil {
		if err := v.check(value); err != nil {
			return err
		}
	}
	*v.to = value
	return nil
}

// String implements pflag.Value.
func (v yamlValue[T]) String() string {
	if v.to == nil || reflect.ValueOf(*v.to).Len() == 0 {
		return ""
	}
	text, err := json.Marshal(*v.to)
	if err != nil {
		return ""
	}
	return string(text)
}

// Type implements pflag.Value.
func (yamlValue[T]) Type() string { return "yaml" }

func validPeers(peers []auth.Peer) error {
	for i, p := range peers {
		if err := p.Validate(); err != nil {
			return fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	return nil
}

// ParseMessage fills m from YAML or JSON text by the API's field names, and validates it by the API's rules.
func ParseMessage(text string, m proto.Message) error {
	var value map[string]any
	if err := unmarshal([]byte(text), &value); err != nil {
		if !strings.HasPrefix(strings.TrimSpace(text), "{") || !json.Valid([]byte(text)) {
			return err
		}
		if err := halfSurrogate([]byte(text)); err != nil {
			return err
		}
		return parseJSON([]byte(text), m) // JSON has escapes that YAML has not
	}
	return parseMessage(value, m)
}
