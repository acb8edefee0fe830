package rewrite_test

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/study"
)

// TestFormats stores all weights of the reference models in every format. Unsupported ones state
// a cause; the rest is written, read again, and gives the outputs of the model in memory.
func TestFormats(t *testing.T) {
	t.Parallel()
	each(t, 600<<10, []string{"real", "mcu", "synthetic"}, huge, func(t *testing.T, _ string, m *graph.Model) {
		layers := weights.All(m, nil)
		in, _, err := inputs.Inputs(m, inputs.Options{Seed: 1})
		if err != nil || len(layers) == 0 {
			t.Skip("nothing to change")
		}
		s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), Threads: 1})
		if err != nil || s.Run(t.Context()) != nil {
			t.Skip("does not run by itself")
		}
		defer s.Close()
		for _, f := range append(study.Formats(), study.OriginalFormat) {
			changes := make([]rewrite.Change, len(layers))
			for i, l := range layers {
				changes[i] = rewrite.Change{Layer: l, Change: study.Change{Structure: study.Unstructured, Level: 0.3, Format: f}}
			}
			changed, effects, err := rewrite.Apply(m, changes, rewrite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			causes := map[study.Cause]int{}
			for _, e := range effects {
				causes[e.Cause]++
			}
			if err := changed.Validate(); err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			back := parse(t, changed)
			want := run(t, changed, in, engine.Options{})
			got := run(t, back, in, engine.Options{})
			// Zeros stay zero in every format, and are found in it.
			asked, there := int64(0), int64(0)
			for _, e := range effects {
				asked += e.Zeros
			}
			for _, l := range weights.All(back, nil) {
				there += l.Zeros
			}
			if there < asked {
				t.Errorf("%q: %d zeros, want %d", f, there, asked)
			}
			worst := math.Inf(1)
			for i := range m.Main().Outputs {
				if f == study.OriginalFormat || f == study.Int8 || f == study.Dynamic8 || f == study.Weight8 {
					equal(t, string(f), got.Output(i), want.Output(i))
				}
				worst = min(worst, snr(want.Output(i), s.Output(i)))
			}
			t.Logf("%q: %v, least signal to noise %.1f dB", f, causes, worst)
		}
	})
}

// snr is the signal-to-noise ratio in dB; NaN for types other than float.
func snr(got, want *tensor.Tensor) float64 {
	if got == nil || want == nil || got.Type != tensor.Float32 || want.Type != tensor.Float32 || got.Len() != want.Len() {
		return math.NaN()
	}
	var signal, noise float64
	a, b := tensor.Of[float32](got), tensor.Of[float32](want)
	for i := range b {
		signal += float64(b[i]) * float64(b[i])
		noise += float64(a[i]-b[i]) * float64(a[i]-b[i])
	}
	return 10 * math.Log10(signal/noise)
}
