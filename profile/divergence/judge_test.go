package divergence_test

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/divergence"
)

// floats is a difference of floating-point numbers of so many decibels; infinity for equal ones.
func floats(snr, limit float64) *profile.Difference {
	d := &profile.Difference{With: "a", State: profile.Differs, MaxAbsolute: new(1.0), Same: new(0.5), Limit: &limit}
	switch {
	case math.IsInf(snr, 1):
		return &profile.Difference{With: "a", State: profile.Equal, MaxAbsolute: new(0.0), Same: new(1.0)}
	case snr >= limit:
		d.State = profile.Rounding
	}
	d.SNR = &snr
	return d
}

// row adds an error of so many decibels to an output of so many.
func row(own, output, limit float64) divergence.Row {
	return divergence.Row{Own: floats(own, limit), Output: floats(output, limit), OwnFrom: divergence.Computed, Certain: true}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	equal := math.Inf(1)
	const single, eight = 80, 20
	nan := row(equal, equal, single)
	nan.Own = &profile.Difference{With: "a", State: profile.Differs, NotFinite: new(int64(3)), Same: new(0.5)}
	nan.Output = nan.Own
	step := row(28, 28, 1)
	step.Own.Steps, step.Own.State, step.Own.DType = new(1.0), profile.Rounding, "int8"
	unknown := row(equal, 60, single)
	unknown.Own = nil
	for _, c := range []struct {
		name    string
		rows    []divergence.Row
		outputs []*profile.Difference
		code    divergence.Code
		row     int // -1 for none
		before  float64
	}{
		{"no rows", nil, nil, divergence.Unknown, -1, equal},
		{"equal", []divergence.Row{row(equal, equal, single), row(equal, equal, single)}, []*profile.Difference{floats(equal, single)}, divergence.Equal, -1, equal},
		{"rounding", []divergence.Row{row(140, 140, single), row(95, 95, single)}, []*profile.Difference{floats(94, single)}, divergence.Rounding, 1, 140},
		{"one changed layer", []divergence.Row{row(equal, equal, single), row(12, 12, single), row(equal, 11, single)}, []*profile.Difference{floats(11, single)}, divergence.Parts, 1, equal},
		{"a layer less exact than the others", []divergence.Row{row(140, 140, single), row(60, 60, single), row(130, 58, single)}, nil, divergence.Parts, 1, 140},
		{"quantised evenly", []divergence.Row{row(38, 38, eight), row(35, 33, eight), row(41, 32, eight)}, []*profile.Difference{floats(32, eight)}, divergence.Rounding, 0, equal},
		{"quantised with one wrong scale", []divergence.Row{row(38, 38, eight), row(40, 36, eight), row(12, 12, eight), row(37, 11, eight)}, []*profile.Difference{floats(11, eight)}, divergence.Parts, 2, 36},
		{"the first of two wrong ones", []divergence.Row{row(38, 38, eight), row(13, 13, eight), row(40, 13, eight), row(12, 9, eight), row(40, 9, eight)}, nil, divergence.Parts, 1, 38},
		{"all layers of low precision", []divergence.Row{row(12, 12, eight), row(14, 9, eight), row(10, 7, eight)}, []*profile.Difference{floats(6, eight)}, divergence.Gradual, 0, equal},
		{"numbers against none", []divergence.Row{row(40, 40, single), nan, row(equal, equal, single)}, nil, divergence.Parts, 1, 40},
		{"a step of few", []divergence.Row{row(60, 60, eight), step}, []*profile.Difference{floats(28, eight)}, divergence.Rounding, 1, 60},
		{"equal rows, no output compared", []divergence.Row{row(equal, equal, single)}, []*profile.Difference{{State: profile.NotComparable}}, divergence.Unknown, -1, equal},
		{"rounding, no output compared", []divergence.Row{row(140, 140, single)}, []*profile.Difference{{State: profile.NotComparable}}, divergence.Unknown, 0, equal},
		{"rounding, one of two compared", []divergence.Row{row(140, 140, single)}, []*profile.Difference{{State: profile.NotComparable}, floats(94, single)}, divergence.Rounding, 0, equal},
		{"parts, no output compared", []divergence.Row{row(equal, equal, single), row(12, 12, single)}, []*profile.Difference{{State: profile.NotComparable}}, divergence.Parts, 1, equal},
		{"amplified", []divergence.Row{row(120, 120, single), row(equal, 60, single)}, []*profile.Difference{floats(60, single)}, divergence.Gradual, 0, equal},
		{"own errors unknown", []divergence.Row{unknown}, []*profile.Difference{floats(60, single)}, divergence.Gradual, -1, equal},
	} {
		r := &divergence.Report{Rows: c.rows}
		for _, d := range c.outputs {
			r.Outputs = append(r.Outputs, *d)
		}
		r.Judge()
		v := &r.Verdict
		at, before := -1, equal
		if v.Row != nil {
			at = int(*v.Row)
		}
		if v.Before != nil {
			before = *v.Before
		}
		if v.Code != c.code || at != c.row || math.Abs(before-c.before) > 1e-9 && before != c.before {
			t.Errorf("%s: %s at %d, at least %v dB before it; want %s at %d, %v dB", c.name, v.Code, at, before, c.code, c.row, c.before)
		}
		if v.Amplified != (c.name == "amplified") {
			t.Errorf("%s: amplified %v", c.name, v.Amplified)
		}
	}
}

// TestDoubt has a pair that is not certain, with an error that the outputs do not show.
func TestDoubt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		certain bool
		output  float64
		code    divergence.Code
	}{{false, 130, divergence.Rounding}, {true, 130, divergence.Parts}, {false, 20, divergence.Parts}} {
		wrong := row(0, 0, 80)
		wrong.Certain = c.certain
		r := &divergence.Report{Rows: []divergence.Row{row(130, 130, 80), wrong, row(140, 130, 80)}, Outputs: []profile.Difference{*floats(c.output, 80)}}
		r.Judge()
		doubt := c.code == divergence.Rounding
		if v := &r.Verdict; v.Code != c.code || r.Rows[1].Doubtful != doubt || (v.Doubtful == 1) != doubt || (v.Compared == 2) != doubt {
			t.Errorf("certain %v, outputs of %v dB: %+v, want %s", c.certain, c.output, v, c.code)
		}
	}
}

// TestShapes compares one model in two engines, in which an output has different shapes.
func TestShapes(t *testing.T) {
	t.Parallel()
	other := divergence.Row{Output: &profile.Difference{With: "a", State: profile.NotComparable, Cause: &profile.Cause{Code: profile.ByShape, Text: "1x2 and 1x3"}}}
	for sum, want := range map[string]divergence.Code{"1": divergence.Parts, "2": divergence.Equal} {
		r := &divergence.Report{Sides: [2]divergence.Side{{SHA256: "1"}, {SHA256: sum}}, Rows: []divergence.Row{row(math.Inf(1), math.Inf(1), 80), other}}
		r.Judge()
		if r.Verdict.Code != want || want == divergence.Parts && *r.Verdict.Row != 1 {
			t.Errorf("models 1 and %s: %+v, want %s", sum, r.Verdict, want)
		}
	}
}

func TestNoise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		d    *profile.Difference
		want float64 // negative: not compared
	}{
		{"absent", nil, -1},
		{"not comparable", &profile.Difference{State: profile.NotComparable}, -1},
		{"equal", floats(math.Inf(1), 80), 0},
		{"20 dB", floats(20, 80), 0.01},
		{"signs of zeros", &profile.Difference{State: profile.Rounding, MaxAbsolute: new(0.0)}, 0},
		{"against zeros", &profile.Difference{State: profile.Differs, MaxAbsolute: new(0.5)}, 1},
		{"texts", &profile.Difference{State: profile.Differs, Same: new(0.5)}, 1},
		{"infinity", &profile.Difference{State: profile.Differs, NotFinite: new(int64(1)), SNR: new(50.0)}, math.Inf(1)},
	} {
		got, ok := divergence.Noise(c.d)
		if ok != (c.want >= 0) || ok && got != c.want && !(math.Abs(got-c.want) < 1e-12) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, ok, c.want)
		}
	}
}
