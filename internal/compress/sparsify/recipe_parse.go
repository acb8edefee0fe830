package sparsify

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/study"
)

// ParseRecipe reads a SparseML recipe: YAML, the front matter of a Markdown file, or the output
// of [Recipe.JSON]. Variables, aliases and eval(…) with sums and products are resolved. Modifiers
// of other kinds are listed in Ignored. Errors are [FileError] with the line.
func ParseRecipe(data []byte, file string) (*Recipe, error) {
	d, top, err := parse(frontMatter(data), file, maxBytes)
	if err != nil {
		return nil, err
	}
	r := &Recipe{Modifiers: []Modifier{}}
	found := false
	switch top.Kind {
	case yaml.SequenceNode:
		found, err = true, d.modifiers(r, top)
	case yaml.MappingNode:
		found, err = d.stage(r, top, 0)
	}
	if err == nil && !found {
		err = d.bad(top, "a recipe was expected: a list of modifiers, or a mapping with one under a key that ends in modifiers")
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// frontMatter blanks everything outside of the first two lines of three hyphens, if there are
// two.
func frontMatter(data []byte) []byte {
	if len(data) > maxBytes {
		return data
	}
	lines := bytes.Split(data, []byte("\n"))
	from, to := -1, -1
	for i, l := range lines {
		if string(bytes.TrimRight(l, " \r")) != "---" {
			continue
		}
		if from < 0 {
			from = i
			continue
		}
		to = i
		break
	}
	if to < 0 {
		return data
	}
	return append(bytes.Repeat([]byte("\n"), from+1), bytes.Join(lines[from+1:to], []byte("\n"))...)
}

// stage reads a mapping of variables, lists of modifiers and, at the top level, stages of them.
func (d *document) stage(r *Recipe, n *yaml.Node, depth int) (found bool, err error) {
	for k, v := range members(n) {
		if v.Kind == yaml.ScalarNode {
			d.vars[k.Value] = v
		}
	}
	for k, v := range members(n) {
		switch {
		case strings.HasSuffix(k.Value, "modifiers") && v.Kind == yaml.SequenceNode:
			found = true
			err = d.modifiers(r, v)
		case strings.HasSuffix(k.Value, "modifiers") && v.Kind == yaml.MappingNode:
			found = true
			for name, m := range members(v) { // newer versions: by name, without tags
				if err = d.modifierByName(r, m, name.Value); err != nil {
					break
				}
			}
		case strings.HasSuffix(k.Value, "modifiers") && v.Value != "":
			err = d.bad(v, "%s: a list of modifiers was expected, not %s", k.Value, kind(v))
		case v.Kind == yaml.MappingNode && depth == 0:
			var inner bool
			inner, err = d.stage(r, v, depth+1)
			found = found || inner
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// kinds maps modifier names, older and newer ones.
var kinds = map[string]Kind{
	"EpochRangeModifier": EpochRange, "GMPruningModifier": Pruning, "MagnitudePruningModifier": Pruning, "LegacyGMPruningModifier": Pruning,
	"SetLearningRateModifier": SetRate, "LearningRateModifier": LearningRate, "TrainableParamsModifier": Trainable,
	"QuantizationModifier": Quantization,
}

func (d *document) modifiers(r *Recipe, list *yaml.Node) error {
	for _, n := range list.Content {
		n = real(n)
		name := strings.TrimPrefix(n.Tag, "!")
		if n.Kind != yaml.MappingNode {
			if n.Kind == yaml.ScalarNode && n.Value == "" && !strings.HasPrefix(n.Tag, "!!") {
				r.Ignored = append(r.Ignored, fmt.Sprintf("line %d: %s", n.Line, name))
				continue
			}
			return d.bad(n, "a modifier was expected, not %s", kind(n))
		}
		if strings.HasPrefix(name, "!") { // plain mapping: opmeter's JSON
			for k, v := range members(n) {
				if k.Value == "type" {
					name = v.Value
				}
			}
		}
		if strings.HasPrefix(name, "!") {
			return d.bad(n, "a modifier was expected: a mapping with a tag such as !GMPruningModifier")
		}
		if err := d.modifierByName(r, n, name); err != nil {
			return err
		}
	}
	return nil
}

// modifierByName reads a modifier by its name.
func (d *document) modifierByName(r *Recipe, n *yaml.Node, name string) error {
	k := kinds[name]
	if k == "" || n.Kind != yaml.MappingNode {
		r.Ignored = append(r.Ignored, fmt.Sprintf("line %d: %s", n.Line, name))
		return nil
	}
	m := Modifier{Kind: k, Start: -1, End: -1}
	if err := d.modifier(r, &m, n, name); err != nil {
		return err
	}
	// A mapping of sparsities to weights stands for one modifier each.
	for k, v := range members(n) {
		if k.Value != "final_sparsity" || !split(n) {
			continue
		}
		for at, weights := range members(v) {
			each := m
			var err error
			if each.FinalSparsity, err = d.share(at, name+": final_sparsity"); err == nil {
				each.Params, err = d.texts(weights, name+": final_sparsity")
			}
			if err != nil {
				return err
			}
			r.Modifiers = append(r.Modifiers, each)
		}
		return nil
	}
	r.Modifiers = append(r.Modifiers, m)
	return nil
}

// renamed maps fields of newer versions to their older names.
var renamed = map[string]string{"start": "start_epoch", "end": "end_epoch", "targets": "params", "mask_structure": "mask_type"}

func (d *document) modifier(r *Recipe, m *Modifier, n *yaml.Node, name string) (err error) {
	if m.Kind == Pruning {
		m.Mask = study.Unstructured
	}
	have := map[string]bool{}
	for k, v := range members(n) {
		key := cmp.Or(renamed[k.Value], k.Value)
		if have[key] {
			return d.bad(k, "%s: %s stands twice", name, key)
		}
		have[key] = true
		what := name + ": " + key
		switch key {
		case "start_epoch":
			m.Start, err = d.number(v, what)
		case "end_epoch":
			m.End, err = d.number(v, what)
		case "init_sparsity":
			if v.Value == "__FROM_PARAM__" {
				r.Ignored = append(r.Ignored, fmt.Sprintf("line %d: %s", k.Line, what))
				break
			}
			m.InitSparsity, err = d.share(v, what)
		case "final_sparsity":
			if v.Kind != yaml.MappingNode {
				m.FinalSparsity, err = d.share(v, what)
			}
		case "update_frequency":
			m.Update, err = d.number(v, what)
		case "learning_rate", "init_lr":
			m.Rate, err = d.number(v, what)
		case "params":
			m.Params, err = d.texts(v, what)
		case "mask_type":
			m.Mask, err = d.mask(v, what)
		case "lr_class":
			m.Class = v.Value
		case "lr_kwargs":
			err = d.arguments(m, v, what)
		case "gamma", "step_size", "milestones":
			err = d.argument(m, key, v, what)
		case "trainable":
			var yes bool
			if yes, err = d.truth(v, what); m.Kind == Trainable {
				m.Train = &yes
			}
		case "submodules":
			m.Submodules, err = d.texts(v, what)
		case "ignore":
			m.Ignore, err = d.texts(v, what)
		case "scheme":
			m.Scheme, err = d.scheme(v, what)
		case "scheme_overrides":
			if v.Kind != yaml.MappingNode {
				return d.bad(v, "%s: schemes by module were expected, not %s", what, kind(v))
			}
			m.Overrides = map[string]Scheme{}
			for k, x := range members(v) {
				s, err := d.scheme(x, what+": "+k.Value)
				if err != nil {
					return err
				}
				m.Overrides[k.Value] = *s
			}
		case "type":
		default:
			r.Ignored = append(r.Ignored, fmt.Sprintf("line %d: %s", k.Line, what))
		}
		if err != nil {
			return err
		}
	}
	return d.complete(m, n, name, have)
}

// scheme reads how modules are quantised; parts that it does not name have 8 bits.
func (d *document) scheme(n *yaml.Node, what string) (*Scheme, error) {
	if n.Kind != yaml.MappingNode {
		return nil, d.bad(n, "%s: a mapping of input_activations and weights was expected, not %s", what, kind(n))
	}
	s := schemes[study.Int8]
	for k, v := range members(n) {
		to := map[string]**Integers{"input_activations": &s.Activations, "weights": &s.Weights}[k.Value]
		switch {
		case to == nil: // such as output_activations
		case v.Kind == yaml.ScalarNode && v.Tag == "!!null":
			*to = nil
		case v.Kind != yaml.MappingNode:
			return nil, d.bad(v, "%s: %s: a mapping with num_bits was expected, not %s", what, k.Value, kind(v))
		default:
			x := Integers{Bits: 8, Symmetric: k.Value == "weights"}
			for k, v := range members(v) {
				var err error
				switch k.Value {
				case "num_bits":
					var bits float64
					bits, err = d.number(v, what+": num_bits")
					x.Bits = int(bits)
				case "symmetric":
					x.Symmetric, err = d.truth(v, what+": symmetric")
				case "dynamic":
					x.Dynamic, err = d.truth(v, what+": dynamic")
				}
				if err != nil {
					return nil, err
				}
			}
			*to = &x
		}
	}
	return &s, nil
}

// complete checks the required fields of a modifier.
func (d *document) complete(m *Modifier, n *yaml.Node, name string, have map[string]bool) error {
	need := map[Kind][]string{Pruning: {"final_sparsity"}, SetRate: {"learning_rate"}, LearningRate: {"lr_class"}, Trainable: {"params"}}
	for _, key := range need[m.Kind] {
		if !have[key] {
			return d.bad(n, "%s: %s was expected", name, key)
		}
	}
	if m.Kind == Pruning && !have["params"] && !split(n) {
		return d.bad(n, "%s: params was expected", name)
	}
	if m.Kind == LearningRate && !slices.Contains([]string{"StepLR", "MultiStepLR", "ExponentialLR"}, m.Class) {
		return d.bad(n, "%s: lr_class: StepLR, MultiStepLR or ExponentialLR was expected, not %q", name, m.Class)
	}
	if m.Kind == Trainable && !have["trainable"] {
		m.Train = new(true)
	}
	return nil
}

// split reports whether sparsities are given together with their weights.
func split(n *yaml.Node) bool {
	for k, v := range members(n) {
		if k.Value == "final_sparsity" {
			return v.Kind == yaml.MappingNode
		}
	}
	return false
}

// share reads a number from 0 to 1.
func (d *document) share(n *yaml.Node, what string) (float64, error) {
	v, err := d.number(n, what)
	if err == nil && (v < 0 || v > 1) {
		err = d.bad(n, "%s: a sparsity from 0 to 1 was expected, not %v", what, v)
	}
	return v, err
}

func (d *document) mask(n *yaml.Node, what string) (study.Structure, error) {
	name := n.Value
	if n.Kind == yaml.SequenceNode {
		var parts []string
		for _, c := range n.Content {
			parts = append(parts, real(c).Value)
		}
		name = "[" + strings.Join(parts, ", ") + "]"
	}
	switch name {
	case "block", "block_4":
		name = "block4"
	}
	for _, k := range masks {
		if strings.Trim(k.name, `"`) == name || string(k.s) == name {
			return k.s, nil
		}
	}
	return "", d.bad(n, "%s: unstructured, 2:4, block4, channel, filter or a block such as [1, 4] was expected, not %q", what, name)
}

func (d *document) arguments(m *Modifier, n *yaml.Node, what string) error {
	if n.Kind != yaml.MappingNode {
		return d.bad(n, "%s: a mapping was expected, not %s", what, kind(n))
	}
	for k, v := range members(n) {
		if err := d.argument(m, k.Value, v, what+": "+k.Value); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) argument(m *Modifier, key string, v *yaml.Node, what string) (err error) {
	switch key {
	case "gamma":
		m.Gamma, err = d.number(v, what)
	case "step_size":
		m.StepSize, err = d.number(v, what)
	case "milestones":
		if v.Kind != yaml.SequenceNode {
			return d.bad(v, "%s: a list of epochs was expected, not %s", what, kind(v))
		}
		for _, c := range v.Content {
			e, err := d.number(c, what)
			if err != nil {
				return err
			}
			m.Milestones = append(m.Milestones, e)
		}
	}
	return err
}
