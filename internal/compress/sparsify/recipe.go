package sparsify

import (
	"bytes"
	"fmt"
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
	for _, c := range p.Choices {
		if c.Layer < 0 || c.Layer >= len(layers) {
			continue
		}
		name := layers[c.Layer].Weight
		if c.Change.Format != study.OriginalFormat {
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

// Plan makes a plan from the pruning modifiers; the last one wins if several name a weight.
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
