package advise_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/advise"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

// half stores all values of a model as float16.
func (b *builder) half() *builder {
	for _, v := range b.g.Values {
		if v.Type != tensor.Float32 {
			continue
		}
		if v.Type = tensor.Float16; v.Const != nil {
			c := tensor.New(tensor.Float16, v.Const.Shape...)
			tensor.WriteFloat32(c, 0, tensor.Of[float32](v.Const))
			v.Const = c
		}
	}
	return b
}

// zeros is a dense layer of which one weight in every few is not zero.
func (b *builder) zeros(in, out, every int) *builder {
	return b.node("MatMul", nil, b.constant(func(i int) float64 {
		if i%every != 0 {
			return 0
		}
		return 1 + float64(i)/1e4
	}, in, out))
}

func (b *builder) conv(in, out int) *builder { return b.node("Conv", nil, b.weights(out, in, 1, 1)) }

// What a changed model saves is measured in a short run: its interval, widened, is the band. It is
// measured only where the figures of the profile speak for it.
func TestProbed(t *testing.T) {
	t.Parallel()
	net := func() *builder { return newBuilder().input(tensor.Float32, 4, 64) }
	wide := func(n int) *builder { return net().dense(64, n).node("Relu", nil).dense(n, 16) }
	kernels := func(set, kernel string) func(p *profile.Profile) {
		return func(p *profile.Profile) {
			p.Settings.KernelSet = set
			for i := range p.Layers {
				p.Layers[i].Kernel = kernel
			}
		}
	}
	silent := [2]float64{}
	for _, c := range []struct {
		name, rule string
		model      *builder
		change     func(p *profile.Profile)
		measured   [2]float64 // by the short run; zero where there must be none
		fires      bool
		figure     float64 // the first one
	}{
		{"int8", "int8-static", wide(32), nil, [2]float64{0.4, 0.5}, true, 1},
		{"int8 converts as much as it saves", "int8-static", wide(32), nil, [2]float64{0.94, 1.1}, false, 0},
		{"nothing to quantise", "int8-static", net().node("Relu", nil), nil, silent, false, 0},
		{"dynamic int8", "int8-dynamic", wide(32), nil, [2]float64{0.4, 0.5}, true, 1},
		{"dynamic int8 finds ranges for as long", "int8-dynamic", wide(32), nil, [2]float64{1.1, 1.3}, false, 0},
		{"a convolution", "int8-dynamic", newBuilder().input(tensor.Float32, 1, 8, 9, 9).conv(8, 8), nil, silent, false, 0},
		{"one more than two tiles", "channels", wide(33), kernels("avx512", ""), [2]float64{0.7, 0.8}, true, 1},
		{"one more than four tiles", "channels", wide(33), kernels("avx2", ""), [2]float64{0.7, 0.8}, true, 1},
		{"saves no more than any filter", "channels", wide(33), kernels("avx512", ""), [2]float64{0.9, 0.96}, false, 0},
		{"full tiles", "channels", wide(48), kernels("avx512", ""), silent, false, 0},
		{"full tiles of half the size", "channels", wide(40), kernels("avx2", ""), silent, false, 0},
		{"too many to lose", "channels", wide(24), kernels("avx512", ""), silent, false, 0},
		{"an output of the model", "channels", net().dense(64, 33), kernels("avx512", ""), silent, false, 0},
		{"tiles of unknown size", "channels", wide(33), kernels("sve9", ""), silent, false, 0},
		{"pixels fill the tiles", "channels", newBuilder().input(tensor.Float32, 1, 8, 9, 9).conv(8, 33).conv(33, 8), kernels("avx512", ""), silent, false, 0},
		{"half of the weights are zero", "sparse", net().zeros(64, 64, 2), kernels("avx2", "packed/avx2"), [2]float64{0.4, 0.5}, true, 0.5},
		{"not faster with more zeros", "sparse", net().zeros(64, 64, 2), kernels("avx2", "packed/avx2"), [2]float64{0.97, 1.1}, false, 0},
		{"faster than the rest of the model", "sparse", net().zeros(64, 64, 2).node("Softmax", nil), kernels("avx2", ""), [2]float64{0.2, 0.3}, false, 0},
		{"a sparse kernel runs", "sparse", net().zeros(64, 64, 2), kernels("avx2", "sparse/avx2"), silent, false, 0},
		{"no zeros", "sparse", net().dense(64, 64), kernels("avx2", "packed/avx2"), silent, false, 0},
		{"float16", "float16", net().dense(64, 64).node("Softmax", nil).half(), nil, [2]float64{0.5, 0.6}, true, 1},
		{"float16 costs nothing", "float16", net().dense(64, 64).node("Softmax", nil).half(), nil, [2]float64{0.9, 1.2}, false, 0},
		{"float32", "float16", net().dense(64, 64), nil, silent, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := onHost(t, c.model.model(t), run{change: c.change})
			probed := 0
			f.Probe = func(v *advise.Variant) (*advise.Measured, error) {
				if probed++; v.Model == nil || v.Model == f.Model {
					t.Error("no changed model was measured")
				}
				return &ab.Result{Comparisons: []ab.Comparison{{B: 1, Ratio: (c.measured[0] + c.measured[1]) / 2, Low: c.measured[0], High: c.measured[1], Blocks: 30}}}, nil
			}
			a := of(t, f, c.rule)
			if want := c.measured != silent; (probed > 0) != want {
				t.Errorf("measured %d times, want a measurement: %v", probed, want)
			}
			if (a != nil) != c.fires {
				t.Fatalf("advice %+v, want some: %v", a, c.fires)
			}
			if a == nil {
				return
			}
			if !near(a.Gain.Band[0], c.measured[0]/1.08) || !near(a.Gain.Band[1], c.measured[1]*1.08) || a.Gain.Source != advise.FromProbe || !near(a.Figures[0].Value, c.figure) || len(a.Layers) == 0 {
				t.Errorf("%+v", a)
			}
			if v, err := a.Change(t.Context(), f); err != nil || v.Model == nil {
				t.Errorf("nothing to try: %v", err)
			}
		})
	}
}

// The changed models are those that the advice speaks of.
func TestProbedChanges(t *testing.T) {
	t.Parallel()
	changed := func(rule string, b *builder, set string) []*tensor.Tensor {
		t.Helper()
		f := onHost(t, b.model(t), run{change: func(p *profile.Profile) { p.Settings.KernelSet = set }})
		v, err := advise.RuleOf(rule).Change(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		var out []*tensor.Tensor
		for _, x := range v.Model.Main().Values {
			if x.Type == tensor.Float16 {
				t.Errorf("%s: %s is float16", rule, x.Name)
			}
			if x.Const != nil && len(x.Const.Shape) == 2 {
				out = append(out, x.Const)
			}
		}
		return out
	}
	net := func() *builder { return newBuilder().input(tensor.Float32, 4, 64) }
	w := changed("channels", net().dense(64, 35).node("Relu", nil).dense(35, 16), "avx512")
	if len(w) != 2 || !slices.Equal(w[0].Shape, []int{64, 32}) || !slices.Equal(w[1].Shape, []int{32, 16}) {
		t.Errorf("trimmed: %v", w)
	}
	zeros := 0
	for _, x := range tensor.Of[float32](changed("sparse", net().zeros(64, 64, 2), set)[0]) {
		if x == 0 {
			zeros++
		}
	}
	if share := float64(zeros) / (64 * 64); share < 0.895 || share > 0.905 {
		t.Errorf("%.3f zeros, want 0.9", share)
	}
	b := net().dense(64, 64)
	want := slices.Clone(tensor.Of[float32](b.g.Values[1].Const))
	got := tensor.Of[float32](changed("float16", b.half(), set)[0])
	for i, x := range got {
		if d := x - want[i]; d > 1e-3 || d < -1e-3 { // float16 has 11 bits, and the weights are below 1/4
			t.Fatalf("weight %d: %g, want %g", i, x, want[i])
		}
	}
}

// Operators that an accelerator leaves to the processor are advised with the time that they take
// there, and those that nothing can run with a target that has them.
func TestPlacement(t *testing.T) {
	t.Parallel()
	data := newBuilder().input(tensor.Float32, 4, 64).dense(64, 64).node("Softmax", nil).model(t)
	place := func(cause profile.CauseCode, state profile.State) *advise.Facts {
		return onHost(t, data, run{change: func(p *profile.Profile) {
			p.Target = profile.Target{ID: "chip", Kind: profile.TargetSimulator}
			for i := range p.Layers {
				l := &p.Layers[i]
				l.Placement = &profile.Placement{On: "npu"}
				l.BytesRead, l.BytesWritten = new(int64(900)), new(int64(100))
				if l.Op == "Softmax" {
					l.Placement, l.State = &profile.Placement{On: profile.CPU, Cause: cause, Text: "more than 16 columns"}, state
					l.Share, l.ShareCI95 = new(0.8), nil
					l.Cause = &profile.Cause{Code: profile.ByOperator, Text: "there is no such kernel"}
				} else {
					l.Share, l.ShareCI95 = new(0.2), nil
				}
			}
		}})
	}
	// 0.2 of the time moves 1000 bytes on the accelerator, so that the other 1000 take as long there.
	a := of(t, place(profile.ByLimit, profile.Ran), "accelerator")
	if a == nil || !near(a.Gain.Ratio, 0.4) || !near(a.Gain.Band[0], 0.2) || !near(a.Gain.Band[1], 0.4) ||
		!near(a.Figures[0].Value, 0.8) || !strings.Contains(a.Reason, "more than 16 columns") || !strings.Contains(a.Try, "--on chip") {
		t.Errorf("%+v", a)
	}
	// Products count, too: here it has twice as many as the layer on the accelerator.
	busy := place(profile.ByOperator, profile.Ran)
	products := func(op string) *int64 {
		for i := range busy.Profile.Layers {
			if l := &busy.Profile.Layers[i]; (l.Op == "Softmax") == (op == "Softmax") {
				if l.MACs == nil {
					l.MACs = new(int64)
				}
				return l.MACs
			}
		}
		t.Fatal("no layer")
		return nil
	}
	*products("MatMul"), *products("Softmax") = 1000, 2000
	if a := of(t, busy, "accelerator"); a == nil || !near(a.Gain.Ratio, 0.6) || !near(a.Gain.Band[1], 0.6) {
		t.Errorf("twice the products: %+v", a)
	}
	*products("MatMul") = 0
	if a := of(t, busy, "accelerator"); a != nil {
		t.Errorf("no rate of products is known: %+v", a)
	}
	if a := of(t, place(profile.ByType, profile.Ran), "accelerator"); a != nil {
		t.Errorf("an element type: not silent: %+v", a)
	}
	f := place(profile.ByOperator, profile.Unsupported)
	if a := of(t, f, "unsupported"); a != nil {
		t.Errorf("no target is known: not silent: %+v", a)
	}
	f.Fits = func() ([]*profile.Profile, error) {
		return []*profile.Profile{{Target: profile.Target{ID: "large"}, Totals: profile.Totals{Latency: &profile.Metric{Kind: profile.Estimated, Median: new(2e-3)}}}}, nil
	}
	a = of(t, f, "unsupported")
	if a == nil || a.Gain.Before != 1 || a.Gain.Ratio != 0 || !strings.HasSuffix(a.Try, "--on large") ||
		a.Promise() != "the model runs, on large" || !strings.Contains(a.Reason, "there is no such kernel") {
		t.Errorf("%+v", a)
	}
	if a := of(t, place(profile.ByLimit, profile.Ran), "unsupported"); a != nil {
		t.Errorf("all layers run: not silent: %+v", a)
	}
}

// The time of an item of a batch is that of the batch by its size.
func TestBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		low, high float64 // of a batch by a single one
		fires     bool
	}{{1.3, 1.5, true}, {7.5, 8.5, false}} {
		f := onHost(t, newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).model(t), run{})
		f.Probe = probing(c.low, c.high)
		a := of(t, f, "batch")
		if (a != nil) != c.fires {
			t.Fatalf("%+v: %+v", c, a)
		}
		if a != nil && (!near(a.Gain.Ratio, (c.low+c.high)/16) || !near(a.Gain.Band[1], 1.08*c.high/8) || !strings.Contains(a.Reason, "An item of a batch of 8 takes 0.17 times the time (0.16 to 0.19")) {
			t.Errorf("%+v", a)
		}
	}
}

// A short run that ended too early says which time was too short, and what measures longer.
func TestTooShort(t *testing.T) {
	t.Parallel()
	f := onHost(t, newBuilder().input(tensor.Float32, 1, 64).dense(64, 64).model(t), run{})
	f.Probe = func(*advise.Variant) (*advise.Measured, error) { return &advise.Measured{}, nil }
	for rule, do := range map[string]string{
		"batch":       "measure longer with opmeter sweep 'my model.onnx' --batch 1,8",
		"threads":     "measure longer with opmeter sweep 'my model.onnx' --threads 1,2",
		"int8-static": "try again when fewer other programs run",
	} {
		r := advise.About(f, rule)
		if len(r.Silent) != 1 || r.Silent[0].Reason != "the short run of 4s ended before 5 rounds were measured: "+do {
			t.Errorf("%s: %+v", rule, r.Silent)
		}
	}
}

// A change that leaves layers out is no gain: the state of this LSTM does not fit a batch of 8.
func TestUnrunChange(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open(filepath.Join(material.Root(), "examples", "lstm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := opmeter.Count(m, opmeter.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	f := &advise.Facts{Profile: p, Model: bridge.Of(m).Graph}
	if res, err := advise.Here(t.Context(), f, &advise.Variant{Batch: 8}, time.Second); err == nil || !strings.Contains(err.Error(), "UNIDIRECTIONAL_SEQUENCE_LSTM does not run then: ") {
		t.Errorf("%+v, %v", res, err)
	}
}
