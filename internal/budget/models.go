package budget

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The tokenizers that a model or a budget may name. The first two are exact and come from package bpe; the
// heuristic is used for models whose tokenizer is not public.
const (
	TokenizerO200K     = "o200k_base"
	TokenizerCL100K    = "cl100k_base"
	TokenizerHeuristic = "heuristic"
)

// Tokenizers lists the names of all tokenizers.
func Tokenizers() []string {
	return []string{TokenizerO200K, TokenizerCL100K, TokenizerHeuristic}
}

// Model has what is known of a model, or of a family of models.
type Model struct {
	// Name is a model's name, or a prefix of names followed by "*". Case does not
	// matter.
	Name     string
	Provider string
	// Window is the most tokens of a request and its answer together.
	Window    uint64
	Tokenizer string
	// Margin is the fraction of the window that stays free because counts may be too low: at least 0, less than 1.
	Margin float64
	Prices Prices
	// ReturnReasoning is set where the model's API wants the reasoning of earlier messages back as text: some refuse a
	// message of the model without it.
	ReturnReasoning bool
}

// Override adds a model to the registry or changes one. Its zero and nil fields take the values of the entry that the
// name matches without the override.
type Override struct {
	Name      string
	Provider  string
	Window    uint64
	Tokenizer string
	Margin    *float64
	Prices    PriceOverride

	ReturnReasoning *bool
}

// ModelError says which field of an override is wrong and why.
type ModelError struct {
	Field  string // a path such as models[1].margin
	Reason string
}

func (e *ModelError) Error() string { return e.Field + ": " + e.Reason }

// Models is the registry of models. It is immutable. The zero value has no models; use NewModels.
type Models struct {
	overrides, builtin table
}

// NewModels returns the built-in registry with overrides, which come before the built-in entries. The error is a
// *ModelError for the first invalid override.
func NewModels(overrides ...Override) (Models, error) {
	m := Models{builtin: newTable(builtinModels)}
	merged := make([]Model, 0, len(overrides))
	for i, o := range overrides {
		model, err := m.apply(o)
		if err != nil {
			err.Field = fmt.Sprintf("models[%d].%s", i, err.Field)
			return Models{}, err
		}
		if slices.ContainsFunc(merged, func(other Model) bool { return key(other.Name) == key(model.Name) }) {
			return Models{}, &ModelError{fmt.Sprintf("models[%d].name", i), fmt.Sprintf("%q is given twice", model.Name)}
		}
		merged = append(merged, model)
	}
	m.overrides = newTable(merged)
	return m, nil
}

// Lookup returns the entry for a model. It searches the overrides, then the built-in entries. In each, an exact name
// comes before a prefix, and a longer prefix before a shorter one. Case does not matter, nor do the path that routers put
// before a name ("anthropic/claude-…"), the region and the maker ("us.deepseek.r1-v1:0", "zai-glm-4.7"), and how a version
// is written ("claude-opus-4.5", "kimi-k2p6"). If nothing matches, Lookup returns the entry named DefaultModel and false.
func (m Models) Lookup(name string) (Model, bool) {
	var ways [mostSpellings]spelling
	all, last := spellings(ways[:0], strings.ReplaceAll(strings.ToLower(name), " ", "-"))
	if model, ok := m.find(all...); ok {
		return model, true
	}
	if last.name != "" {
		if model, ok := m.find(last); ok {
			return model, true
		}
	}
	if model, ok := m.overrides.byKey[DefaultModel]; ok {
		return model, false
	}
	return m.builtin.byKey[DefaultModel], false
}

func (m Models) find(all ...spelling) (Model, bool) {
	if model, _, ok := m.overrides.find(all...); ok {
		return model, true
	}
	model, maker, ok := m.builtin.find(all...)
	// A name with the maker is that of another host, whose API may not take reasoning back.
	model.ReturnReasoning = model.ReturnReasoning && maker == ""
	return model, ok
}

// All lists the entries of the registry by name, with the overrides in place of the entries that they
// replace.
func (m Models) All() []Model {
	all := maps.Clone(m.builtin.byKey)
	maps.Copy(all, m.overrides.byKey)
	return slices.SortedFunc(maps.Values(all), func(a, b Model) int { return cmp.Compare(a.Name, b.Name) })
}

// apply completes an override from the registry and validates it.
func (m Models) apply(o Override) (Model, *ModelError) {
	base, _ := m.Lookup(strings.TrimSuffix(o.Name, "*"))
	model := Model{
		Name:      o.Name,
		Provider:  cmp.Or(o.Provider, base.Provider),
		Window:    cmp.Or(o.Window, base.Window),
		Tokenizer: cmp.Or(o.Tokenizer, base.Tokenizer),
		Margin:    base.Margin,
		Prices:    o.Prices.over(base.Prices),

		ReturnReasoning: base.ReturnReasoning,
	}
	if o.ReturnReasoning != nil {
		model.ReturnReasoning = *o.ReturnReasoning
	}
	if o.Margin != nil {
		model.Margin = *o.Margin
	} else if o.Tokenizer != "" && o.Tokenizer != base.Tokenizer {
		model.Margin = defaultMargin(o.Tokenizer)
	}
	return model, model.Validate()
}

// Validate returns a *ModelError for the first invalid field, or nil.
func (m Model) Validate() *ModelError {
	switch {
	case m.Name == "" || strings.Contains(strings.TrimSuffix(m.Name, "*"), "*"):
		return &ModelError{"name", fmt.Sprintf("%q must be a name, or a prefix with one * at its end", m.Name)}
	case m.Window == 0:
		return &ModelError{"window", "must be the number of tokens the model can hold"}
	case !slices.Contains(Tokenizers(), m.Tokenizer):
		return &ModelError{"tokenizer", fmt.Sprintf("%q is none of %s", m.Tokenizer, strings.Join(Tokenizers(), ", "))}
	case !(m.Margin >= 0 && m.Margin < 1):
		return &ModelError{"margin", "must be at least 0 and less than 1"}
	}
	return m.Prices.validate()
}
