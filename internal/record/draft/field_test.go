package draft_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
)

// TestFields checks scales, unknown columns and absent figures.
func TestFields(t *testing.T) {
	t.Parallel()
	fields := draft.Fields{
		"plain":   {Q: profile.Quantity{Key: "x_plain"}},
		"percent": {Q: profile.Quantity{Key: "x_share"}, Scale: 0.01},
		"mega":    {Q: profile.Quantity{Key: "x_mega"}, Scale: 1e6},
	}
	d := draft.New("f", "m", "")
	i := d.Add(profile.Layer{Name: "a"}, runlog.Hint{})
	for name, want := range map[string]float64{"plain": 7, "percent": 0.07, "mega": 7e6} {
		if !fields.Layer(d, i, name, 7) || !fields.Total(d, name, 7) {
			t.Errorf("%s is unknown", name)
		}
		key := fields[name].Q.Key
		if v, ok := d.Layer(i).Value(key); !ok || v != want {
			t.Errorf("%s of a layer: %g, want %g", name, v, want)
		}
		if v, ok := d.P.Totals.Value(key); !ok || v != want {
			t.Errorf("%s of the model: %g, want %g", name, v, want)
		}
	}
	if fields.Layer(d, i, "other", 7) || fields.Total(d, "other", 7) {
		t.Error("an unknown column was set")
	}
	d.SetKnown(i, profile.Quantity{Key: "y"}, draft.Milli(5000, true), 1e-2)
	d.SetKnown(i, profile.Quantity{Key: "z"}, draft.Known(7, false), 1)
	if v, _ := d.Layer(i).Value("y"); v != 0.05 {
		t.Errorf("scaled figure %g", v)
	}
	if _, ok := d.Layer(i).Value("z"); ok {
		t.Error("an absent figure was set")
	}
	if draft.Count(-1, true) != nil || draft.Count(1, false) != nil || *draft.Count(1, true) != 1 {
		t.Error("counts")
	}
	if s := draft.Shape("1x?x-3x4", "x"); len(s) != 4 || s[0] != 1 || s[1] != -1 || s[2] != -1 || s[3] != 4 {
		t.Errorf("shape %v", s)
	}
}

// TestFigure checks figures of no, one and several values.
func TestFigure(t *testing.T) {
	t.Parallel()
	if m, kept := draft.Figure(nil, "x"); m != nil || kept != nil {
		t.Errorf("%+v %v of no value", m, kept)
	}
	if m, kept := draft.Figure([]float64{3}, "x"); m.N != nil || m.Method != "x" || kept != nil {
		t.Errorf("%+v %v of one value", m, kept)
	}
	if m, kept := draft.Figure([]float64{3, 5}, "x"); *m.N != 2 || m.Method != "x" || len(kept) != 2 {
		t.Errorf("%+v %v of two values", m, kept)
	}
}
