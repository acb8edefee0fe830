package sensiml

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/base/sorting"
)

func sortModels(ms []Model) {
	sorting.Stable(ms, func(a, b Model) int { return cmp.Compare(a.Index, b.Index) })
}

// pipeline takes generators, cascade and segmenter from the steps of a pipeline, and lays out the
// slots; without a generator set the features must do.
func (m *Model) pipeline(steps []*jsontree.Value) error {
	m.Banks, m.Layout = 1, LayoutNone
	for _, s := range steps {
		if len(m.Steps) >= 1000 {
			return fmt.Errorf("the pipeline has more than 1000 steps")
		}
		name, kind, in := clip(s.Get("name").Str()), s.Get("type").Str(), s.Get("inputs")
		if name != "" {
			m.Steps = append(m.Steps, name)
		}
		switch {
		case kind == "generatorset":
			if err := m.generators(s.Get("set").List()); err != nil {
				return err
			}
		case kind == "segmenter":
			m.Segmenter = name
			m.Window, m.Delta = whole(in.Get("window_size")), whole(in.Get("delta"))
		case name == "Feature Cascade":
			if n := whole(in.Get("num_cascades")); n > 0 {
				m.Banks = n
			}
			if v := in.Get("slide"); v != nil && v.Kind == jsontree.Bool {
				m.Slide = new(v.Text == "true")
			}
		}
	}
	if len(m.Generators) == 0 {
		m.fromFeatures()
	} else {
		m.Layout = LayoutPipeline
	}
	return m.layOut(nil)
}

// whole is an integer of the file that a count of samples may be, 0 for anything else.
func whole(v *jsontree.Value) int {
	n, ok := v.Int()
	if !ok || n < 0 || n > 1<<30 {
		return 0
	}
	return int(n)
}

// generators reads the entries of a generator set.
func (m *Model) generators(set []*jsontree.Value) error {
	for _, e := range set {
		if len(m.Generators) >= maxGenerators {
			return fmt.Errorf("more than %d generators", maxGenerators)
		}
		g := Generator{Function: clip(e.Get("function_name").Str())}
		for key, v := range e.Get("inputs").Members() {
			switch {
			case key == "columns":
				g.Columns = texts(v)
			case len(g.Params) < 100 && v.Kind != jsontree.Null:
				text := v.Str()
				if v.Kind == jsontree.List || v.Kind == jsontree.Object {
					text = v.Brief()
				}
				g.Params = append(g.Params, Param{clip(key), clip(text)})
			}
		}
		if out, ok := e.Get("outputs").Ints(); ok {
			for _, n := range out {
				if n >= 0 && n < maxSlots {
					g.Outputs = append(g.Outputs, int(n))
				}
			}
		}
		g.counts = slotsOf(g.Function, len(g.Columns), g.Params)
		m.Generators = append(m.Generators, g)
	}
	return nil
}

// fromFeatures takes each selected feature for a call of its generator, which holds for generators
// of one feature. Behind the first of another kind no slot is known.
func (m *Model) fromFeatures() {
	m.Layout = LayoutNone
	for _, f := range m.Features {
		g := Generator{Function: f.Function, Label: f.Name}
		switch {
		case f.Function == "":
			g.counts, m.Layout = []int{1}, LayoutNames
		default:
			m.Layout = LayoutFeatures
			if n := slotsOf(f.Function, 1, nil); len(n) == 1 && n[0] == 1 {
				g.counts = n
			}
			// The usual name of a feature is that of the column with a short one of the generator.
			column := trimFold(f.Name, strings.ReplaceAll(f.Function, " ", ""))
			for _, s := range m.Sensors {
				if strings.HasPrefix(f.Name, s) && len(s) > len(column) {
					column = s
				}
			}
			if r := rules[fold(f.Function)]; column != "" && r != nil && !r.multi {
				g.Columns = []string{column}
			}
		}
		m.Generators = append(m.Generators, g)
	}
}

// trimFold cuts a suffix off, whatever its case; "" where s has it not.
func trimFold(s, suffix string) string {
	if n := len(s) - len(suffix); n > 0 && suffix != "" && strings.EqualFold(s[n:], suffix) {
		return s[:n]
	}
	return ""
}

// layOut gives the generators their slots. choice picks among the counts of generators whose
// firmwares differ, by their position; nil for the usual ones.
func (m *Model) layOut(choice map[int]int) error {
	at := 0
	for i := range m.Generators {
		g := &m.Generators[i]
		g.Slot, g.Slots = at, 0
		if at < 0 {
			continue
		}
		if len(g.counts) == 0 {
			at = -1
			continue
		}
		if g.Slots = g.counts[min(choice[i], len(g.counts)-1)]; g.Slots == 0 {
			g.Slot = -1 // the next one writes over its figure
		}
		if at += g.Slots; at > maxSlots {
			return fmt.Errorf("the generators have more than %d slots", maxSlots)
		}
	}
	m.BankSlots = max(at, 0)
	if at < 0 && m.Banks > 1 {
		// Without the size of a bank only the first one can be read.
		m.BankSlots = 0
	}
	return nil
}

// choices yields the layouts that firmwares may have, the usual one first: at most 64.
func (m *Model) choices() []map[int]int {
	all := []map[int]int{nil}
	for i := range m.Generators {
		have := len(all)
		for c := 1; c < len(m.Generators[i].counts); c++ {
			for _, base := range all[:have] {
				if len(all) >= 64 {
					return all
				}
				next := map[int]int{i: c}
				for k, v := range base {
					next[k] = v
				}
				all = append(all, next)
			}
		}
	}
	return all
}
