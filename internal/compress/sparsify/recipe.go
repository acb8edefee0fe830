package sparsify

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/study"
)

// Kind is the type of a modifier, named as in SparseML.
type Kind string

// Supported kinds of modifiers.
const (
	EpochRange   Kind = "EpochRangeModifier"
	Pruning      Kind = "GMPruningModifier"
	SetRate      Kind = "SetLearningRateModifier"
	LearningRate Kind = "LearningRateModifier"
	Trainable    Kind = "TrainableParamsModifier"
	Quantization Kind = "QuantizationModifier"
)

// Modifier is one step of a recipe. Epochs may be fractions; -1 stands for the beginning or the
// end of the training.
type Modifier struct {
	Kind  Kind    `json:"type"`
	Start float64 `json:"start_epoch"`
	End   float64 `json:"end_epoch"`
	// Params are names of weights, "re:" with a pattern, "__ALL__" or "__ALL_PRUNABLE__".
	Params []string `json:"params,omitempty"`
	// Pruning: sparsities at its start and end, epochs between two steps, mask structure.
	InitSparsity  float64         `json:"init_sparsity,omitzero"`
	FinalSparsity float64         `json:"final_sparsity,omitzero"`
	Update        float64         `json:"update_frequency,omitzero"`
	Mask          study.Structure `json:"mask_type,omitzero"`
	// Learning rates: the rate, or the initial one; "StepLR", "MultiStepLR" or "ExponentialLR";
	// its arguments.
	Rate       float64   `json:"learning_rate,omitzero"`
	Class      string    `json:"lr_class,omitzero"`
	Gamma      float64   `json:"gamma,omitzero"`
	StepSize   float64   `json:"step_size,omitzero"`
	Milestones []float64 `json:"milestones,omitempty"`
	// Trainable parameters, else nil.
	Train *bool `json:"trainable,omitzero"`
	// Quantisation: the scheme of all modules, or of Submodules if there are some, without those
	// of Ignore; Overrides are other schemes by module.
	Scheme     *Scheme           `json:"scheme,omitzero"`
	Submodules []string          `json:"submodules,omitempty"`
	Ignore     []string          `json:"ignore,omitempty"`
	Overrides  map[string]Scheme `json:"scheme_overrides,omitempty"`
}

// Scheme says how a module is quantised; nil parts stay floating point.
type Scheme struct {
	Activations *Integers `json:"input_activations"`
	Weights     *Integers `json:"weights"`
}

// Integers describe quantised values.
type Integers struct {
	Bits      int  `json:"num_bits"`
	Symmetric bool `json:"symmetric"`
	// Dynamic quantises over the range of each run.
	Dynamic bool `json:"dynamic,omitzero"`
}

// schemes are those of the formats that training can prepare for.
var schemes = map[study.Format]Scheme{
	study.Int8:     {&Integers{Bits: 8}, &Integers{Bits: 8, Symmetric: true}},
	study.Dynamic8: {&Integers{Bits: 8, Dynamic: true}, &Integers{Bits: 8, Symmetric: true}},
	study.Weight8:  {nil, &Integers{Bits: 8, Symmetric: true}},
	study.Weight4:  {nil, &Integers{Bits: 4, Symmetric: true}},
}

// format is the format of a scheme, [study.OriginalFormat] if studies have no such format.
func (s *Scheme) format() study.Format {
	switch {
	case s.Weights == nil:
		return study.OriginalFormat
	case s.Weights.Bits == 8 && s.Activations != nil && s.Activations.Bits == 8:
		if s.Activations.Dynamic {
			return study.Dynamic8
		}
		return study.Int8
	case s.Weights.Bits == 8 && s.Activations == nil:
		return study.Weight8
	case s.Weights.Bits == 4 && s.Activations == nil:
		return study.Weight4
	}
	return study.OriginalFormat
}

// Recipe is a SparseML training recipe.
type Recipe struct {
	Modifiers []Modifier `json:"modifiers"`
	// Ignored lists unsupported entries with their lines.
	Ignored []string `json:"ignored,omitempty"`
}

// Training describes the training that a schedule is made for.
type Training struct {
	// Epochs that the model was trained for, 0 for 100.
	Epochs int
	// InitialRate and FinalRate are learning rates of that training; nil leaves rates out.
	InitialRate, FinalRate *float64
	// Trained and Frozen are the weights to train and to leave unchanged.
	Trained, Frozen []string
}

// NewRecipe makes the recipe of a plan with Sparsify's schedule: one modifier per distinct
// structure and level. lost lists what a recipe cannot represent.
func NewRecipe(p *study.Plan, layers []study.Layer, t Training) (r *Recipe, lost []string) {
	e := NewEpochs(t.Epochs)
	r = &Recipe{Modifiers: []Modifier{{Kind: EpochRange, Start: e.Start, End: e.End}}}
	names, doubled := paramNames(layers)
	lost = append(lost, doubled...)
	q := newQuantisation(e)
	for _, c := range p.Choices {
		if c.Layer < 0 || c.Layer >= len(layers) {
			continue
		}
		name := names[c.Layer]
		if c.Change.Format == study.Half {
			lost = append(lost, name+": training does not change for float16, convert the trained model")
		}
		q.add(name, c.Change.Format)
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
	if q.used {
		r.Modifiers = append(r.Modifiers, q.Modifier)
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

// quantisation collects the quantisation of a plan in a modifier.
type quantisation struct {
	Modifier
	used bool
}

// newQuantisation starts with the fine-tuning after the pruning, as SparseML's own recipes do.
func newQuantisation(e Epochs) *quantisation {
	s := schemes[study.Int8]
	return &quantisation{Modifier: Modifier{Kind: Quantization, Start: e.PruningEnd, End: -1, Scheme: &s}}
}

func (q *quantisation) add(param string, f study.Format) {
	s, ok := schemes[f]
	switch name := module(param); {
	case !ok:
		q.Ignore = append(q.Ignore, name)
	case f != study.Int8:
		if q.Overrides == nil {
			q.Overrides = map[string]Scheme{}
		}
		q.Overrides[name], q.used = s, true
	default:
		q.used = true
	}
}

// module is the name of the module of a parameter, as PyTorch and Keras name them.
func module(param string) string {
	for _, end := range []string{".weight", "/kernel:0", "/kernel", "/weights"} {
		if s, ok := strings.CutSuffix(param, end); ok && s != "" {
			return s
		}
	}
	return param
}

// paramNames are the names by which recipes know layers: those of their weights, or of the layers
// where several weights have one name.
func paramNames(layers []study.Layer) (names, doubled []string) {
	count, byName := map[string]int{}, map[string]int{}
	for i := range layers {
		count[layers[i].Weight]++
		byName[layers[i].Name]++
	}
	for i := range layers {
		l := &layers[i]
		name := l.Weight
		if (count[name] > 1 || name == "") && l.Name != "" && byName[l.Name] == 1 {
			name = l.Name
			if l.Weight != "" {
				doubled = append(doubled, fmt.Sprintf("%s: %d layers have weights of the name %q, so the recipe has the name of the layer", l.Name, count[l.Weight], l.Weight))
			}
		}
		names = append(names, name)
	}
	return names, doubled
}

// masks maps structures to SparseML's names; lists are blocks of rows and columns.
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

// YAML encodes the recipe as SparseML reads it.
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
		case Quantization:
			if m.Scheme != nil {
				put("scheme", m.Scheme.yaml())
			}
			for _, x := range []struct {
				key  string
				list []string
			}{{"submodules", m.Submodules}, {"ignore", m.Ignore}} {
				if len(x.list) > 0 {
					list(x.key, x.list)
				}
			}
			if len(m.Overrides) > 0 {
				b.WriteString("    scheme_overrides:\n")
				for _, name := range slices.Sorted(maps.Keys(m.Overrides)) {
					x := m.Overrides[name]
					fmt.Fprintf(&b, "      %s: %s\n", jsonx.AppendString(nil, name), x.yaml())
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

func (s *Scheme) yaml() string {
	part := func(v *Integers) string {
		if v == nil {
			return "null"
		}
		dynamic := ""
		if v.Dynamic {
			dynamic = ", dynamic: true"
		}
		return fmt.Sprintf("{num_bits: %d, symmetric: %t%s}", v.Bits, v.Symmetric, dynamic)
	}
	return fmt.Sprintf("{input_activations: %s, weights: %s}", part(s.Activations), part(s.Weights))
}

func arguments(m *Modifier) string {
	switch m.Class {
	case "StepLR":
		return fmt.Sprintf("{gamma: %s, step_size: %s}", Key(m.Gamma), formatInteger(m.StepSize))
	case "MultiStepLR":
		var ms []string
		for _, e := range m.Milestones {
			ms = append(ms, formatInteger(e))
		}
		return fmt.Sprintf("{gamma: %s, milestones: [%s]}", Key(m.Gamma), strings.Join(ms, ", "))
	}
	return fmt.Sprintf("{gamma: %s}", Key(m.Gamma))
}

// formatInteger formats a number that trainers parse as an integer.
func formatInteger(v float64) string { return strings.TrimSuffix(Key(v), ".0") }

// JSON encodes the recipe as plain JSON.
func (r *Recipe) JSON() ([]byte, error) { return jsonx.MarshalIndent(r) }

// Plan makes a plan from the modifiers of pruning and quantisation; the last one wins if several
// name a weight.
// unmatched are names that no layer has.
func (r *Recipe) Plan(layers []study.Layer) (p *study.Plan, unmatched []string, err error) {
	p = &study.Plan{Choices: make([]study.Choice, len(layers))}
	for i := range layers {
		p.Choices[i].Layer = i
	}
	for _, m := range r.Modifiers {
		if m.Kind == Quantization {
			more, err := m.quantise(p, layers)
			if err != nil {
				return nil, nil, err
			}
			unmatched = append(unmatched, more...)
		}
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
					c := &p.Choices[i].Change
					c.Structure, c.Level, any = m.Mask, m.FinalSparsity, true
				}
			}
			if !any {
				unmatched = append(unmatched, name)
			}
		}
	}
	return p, unmatched, nil
}

// quantise stores the formats of a modifier in a plan. unmatched are modules that no layer has.
func (m *Modifier) quantise(p *study.Plan, layers []study.Layer) (unmatched []string, err error) {
	seen := map[string]bool{}
	among := func(names []string, l *study.Layer) (string, error) {
		for _, name := range names {
			f, err := matcher(name)
			if err != nil {
				return "", err
			}
			if f(l) || module(l.Weight) == name {
				seen[name] = true
				return name, nil
			}
		}
		return "", nil
	}
	overridden := slices.Sorted(maps.Keys(m.Overrides))
	for i := range layers {
		s := m.Scheme
		if s == nil {
			s = new(schemes[study.Int8])
		}
		sub, err := among(m.Submodules, &layers[i])
		if err != nil {
			return nil, err
		}
		skip, err := among(m.Ignore, &layers[i])
		if err != nil {
			return nil, err
		}
		name, err := among(overridden, &layers[i])
		if err != nil {
			return nil, err
		}
		if name != "" {
			s = new(m.Overrides[name])
		}
		if skip == "" && (sub != "" || len(m.Submodules) == 0) {
			p.Choices[i].Change.Format = s.format()
		}
	}
	for _, name := range slices.Concat(m.Submodules, m.Ignore, overridden) {
		if !seen[name] {
			unmatched = append(unmatched, name)
		}
	}
	return unmatched, nil
}
