package sparsify

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/jsonx"
	"github.com/opmeter/opmeter/study"
)

// Kind is the type of a modifier by its name in SparseML.
type Kind string

// Kinds of modifiers that are read and written.
const (
	EpochRange   Kind = "EpochRangeModifier"
	Pruning      Kind = "GMPruningModifier"
	SetRate      Kind = "SetLearningRateModifier"
	LearningRate Kind = "LearningRateModifier"
	Trainable    Kind = "TrainableParamsModifier"
)

// Modifier is one step of a recipe. Epochs may be fractions, -1 stands for the beginning or the
// end of the training.
type Modifier struct {
	Kind  Kind    `json:"type"`
	Start float64 `json:"start_epoch"`
	End   float64 `json:"end_epoch"`
	// Params are names of weights, "re:" with a pattern, "__ALL__" or "__ALL_PRUNABLE__".
	Params []string `json:"params,omitempty"`
	// Of pruning: sparsities at its start and end, epochs between two steps, what goes together.
	InitSparsity  float64         `json:"init_sparsity,omitzero"`
	FinalSparsity float64         `json:"final_sparsity,omitzero"`
	Update        float64         `json:"update_frequency,omitzero"`
	Mask          study.Structure `json:"mask_type,omitzero"`
	// Of learning rates: the rate, or that at the start; "StepLR", "MultiStepLR" or
	// "ExponentialLR"; its arguments.
	Rate       float64   `json:"learning_rate,omitzero"`
	Class      string    `json:"lr_class,omitzero"`
	Gamma      float64   `json:"gamma,omitzero"`
	StepSize   float64   `json:"step_size,omitzero"`
	Milestones []float64 `json:"milestones,omitempty"`
	// Of trainable parameters, else nil.
	Train *bool `json:"trainable,omitzero"`
}

// Recipe is what SparseML trains a model by.
type Recipe struct {
	Modifiers []Modifier `json:"modifiers"`
	// Ignored names what was read and has no place here, with its line.
	Ignored []string `json:"ignored,omitempty"`
}

// Training is what a schedule is made for.
type Training struct {
	// Epochs that the model was trained for, 0 for 100.
	Epochs int
	// InitialRate and FinalRate are learning rates of that training; nil leaves rates out.
	InitialRate, FinalRate *float64
	// Trained and Frozen are weights to train and to leave as they are.
	Trained, Frozen []string
}

// NewRecipe makes the recipe of a plan by Sparsify's schedule: one modifier for each distinct
// structure and level. lost tells what a recipe cannot say.
func NewRecipe(p *study.Plan, layers []study.Layer, t Training) (r *Recipe, lost []string) {
	e := NewEpochs(t.Epochs)
	r = &Recipe{Modifiers: []Modifier{{Kind: EpochRange, Start: e.Start, End: e.End}}}
	for _, c := range p.Choices {
		if c.Layer < 0 || c.Layer >= len(layers) {
			continue
		}
		name := layers[c.Layer].Weight
		if c.Change.Format != study.Same {
			lost = append(lost, fmt.Sprintf("%s: a recipe has no numbers of %s", name, c.Change.Format))
		}
		if c.Change.Structure == study.Dense || c.Change.Level == 0 {
			continue
		}
		same := func(m Modifier) bool {
			return m.Kind == Pruning && m.FinalSparsity == c.Change.Level && m.Mask == c.Change.Structure
		}
		if i := slices.IndexFunc(r.Modifiers, same); i >= 0 {
			r.Modifiers[i].Params = append(r.Modifiers[i].Params, name)
			continue
		}
		r.Modifiers = append(r.Modifiers, Modifier{
			Kind: Pruning, Start: e.PruningStart, End: e.PruningEnd, Params: []string{name},
			InitSparsity: 0.05, FinalSparsity: c.Change.Level, Update: e.Update, Mask: c.Change.Structure,
		})
	}
	if t.InitialRate != nil {
		r.Modifiers = append(r.Modifiers, Rates(e, *t.InitialRate, t.FinalRate)...)
	}
	for _, w := range []struct {
		names []string
		train bool
	}{{t.Trained, true}, {t.Frozen, false}} {
		if len(w.names) > 0 {
			r.Modifiers = append(r.Modifiers, Modifier{Kind: Trainable, Start: e.Start, End: -1, Params: w.names, Train: &w.train})
		}
	}
	return r, lost
}

// masks are structures by SparseML's names; lists are blocks of rows and columns.
var masks = []struct {
	name string
	s    study.Structure
}{
	{"unstructured", study.Unstructured},
	{`"2:4"`, study.TwoOfFour},
	{"block4", study.Block4},
	{"[1, 4]", study.Block1x4},
	{"[4, 1]", study.Block4x1},
	{"[16, 1]", study.Block16},
	{"channel", study.Channel},
	{"filter", study.Filter},
}

// YAML writes the recipe as SparseML reads it.
func (r *Recipe) YAML() []byte {
	var b bytes.Buffer
	if len(r.Modifiers) == 0 {
		return []byte("modifiers: []\n")
	}
	b.WriteString("modifiers:\n")
	for i, m := range r.Modifiers {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "  - !%s\n", m.Kind)
		put := func(key, value string) { fmt.Fprintf(&b, "    %s: %s\n", key, value) }
		num := func(key string, v float64) { put(key, Key(v)) }
		list := func(key string, vs []string) {
			fmt.Fprintf(&b, "    %s:\n", key)
			for _, v := range vs {
				fmt.Fprintf(&b, "      - %s\n", jsonx.AppendString(nil, v))
			}
		}
		num("start_epoch", m.Start)
		if m.Kind != SetRate {
			num("end_epoch", m.End)
		}
		switch m.Kind {
		case Pruning:
			list("params", m.Params)
			num("init_sparsity", m.InitSparsity)
			num("final_sparsity", m.FinalSparsity)
			num("update_frequency", m.Update)
			for _, k := range masks {
				if k.s == m.Mask {
					put("mask_type", k.name)
				}
			}
		case SetRate:
			num("learning_rate", m.Rate)
		case LearningRate:
			put("lr_class", m.Class)
			put("lr_kwargs", arguments(&m))
			num("init_lr", m.Rate)
		case Trainable:
			list("params", m.Params)
			put("trainable", fmt.Sprint(*m.Train))
		}
	}
	return b.Bytes()
}

func arguments(m *Modifier) string {
	switch m.Class {
	case "StepLR":
		return fmt.Sprintf("{gamma: %s, step_size: %s}", Key(m.Gamma), whole(m.StepSize))
	case "MultiStepLR":
		var ms []string
		for _, e := range m.Milestones {
			ms = append(ms, whole(e))
		}
		return fmt.Sprintf("{gamma: %s, milestones: [%s]}", Key(m.Gamma), strings.Join(ms, ", "))
	}
	return fmt.Sprintf("{gamma: %s}", Key(m.Gamma))
}

// whole writes what trainers take for an integer.
func whole(v float64) string { return strings.TrimSuffix(Key(v), ".0") }

// JSON writes the recipe plainly.
func (r *Recipe) JSON() ([]byte, error) { return jsonx.MarshalIndent(r) }

// ParseRecipe reads a recipe of SparseML: YAML, the front matter of a Markdown file, or what
// [Recipe.JSON] writes. Variables, aliases and eval(…) with sums and products are followed.
// Modifiers of other kinds are listed in Ignored. Errors are [FileError] with the line.
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

// frontMatter blanks what is not between the first two lines of three hyphens, if there are two.
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

// stage reads a mapping of variables, lists of modifiers and, at the top, stages of them.
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
			for name, m := range members(v) { // as later versions have it: by name, without tags
				if err = d.one(r, m, name.Value); err != nil {
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

// kinds are modifiers by their names, older and newer ones.
var kinds = map[string]Kind{
	"EpochRangeModifier": EpochRange, "GMPruningModifier": Pruning, "MagnitudePruningModifier": Pruning, "LegacyGMPruningModifier": Pruning,
	"SetLearningRateModifier": SetRate, "LearningRateModifier": LearningRate, "TrainableParamsModifier": Trainable,
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
		if strings.HasPrefix(name, "!") { // plain mapping: our JSON
			for k, v := range members(n) {
				if k.Value == "type" {
					name = v.Value
				}
			}
		}
		if strings.HasPrefix(name, "!") {
			return d.bad(n, "a modifier was expected: a mapping with a tag such as !GMPruningModifier")
		}
		if err := d.one(r, n, name); err != nil {
			return err
		}
	}
	return nil
}

// one reads a modifier by its name.
func (d *document) one(r *Recipe, n *yaml.Node, name string) error {
	k := kinds[name]
	if k == "" || n.Kind != yaml.MappingNode {
		r.Ignored = append(r.Ignored, fmt.Sprintf("line %d: %s", n.Line, name))
		return nil
	}
	m := Modifier{Kind: k, Start: -1, End: -1}
	if err := d.modifier(r, &m, n, name); err != nil {
		return err
	}
	r.Modifiers = append(r.Modifiers, m)
	return nil
}

// renamed are fields of later versions by their older names.
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
			m.InitSparsity, err = d.share(v, what)
		case "final_sparsity":
			m.FinalSparsity, err = d.share(v, what)
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

// complete checks what a modifier must say.
func (d *document) complete(m *Modifier, n *yaml.Node, name string, have map[string]bool) error {
	need := map[Kind][]string{Pruning: {"params", "final_sparsity"}, SetRate: {"learning_rate"}, LearningRate: {"lr_class"}, Trainable: {"params"}}
	for _, key := range need[m.Kind] {
		if !have[key] {
			return d.bad(n, "%s: %s was expected", name, key)
		}
	}
	if m.Kind == LearningRate && !slices.Contains([]string{"StepLR", "MultiStepLR", "ExponentialLR"}, m.Class) {
		return d.bad(n, "%s: lr_class: StepLR, MultiStepLR or ExponentialLR was expected, not %q", name, m.Class)
	}
	if m.Kind == Trainable && !have["trainable"] {
		m.Train = new(true)
	}
	return nil
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

// Plan makes a plan of the pruning modifiers, the last one counting where several name a weight.
// unmatched are names that no layer has.
func (r *Recipe) Plan(layers []study.Layer) (p *study.Plan, unmatched []string, err error) {
	p = &study.Plan{Choices: make([]study.Choice, len(layers))}
	for i := range layers {
		p.Choices[i].Layer = i
	}
	for _, m := range r.Modifiers {
		if m.Kind != Pruning {
			continue
		}
		for _, name := range m.Params {
			f, err := matcher(name)
			if err != nil {
				return nil, nil, err
			}
			any := false
			for i := range layers {
				if f(&layers[i]) {
					p.Choices[i].Change, any = study.Change{Structure: m.Mask, Level: m.FinalSparsity}, true
				}
			}
			if !any {
				unmatched = append(unmatched, name)
			}
		}
	}
	return p, unmatched, nil
}
