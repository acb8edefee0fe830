package ort

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// The figures of a recording are those of the inferences that were not disturbed; their numbers
// count from the beginning of the file, skipped ones included.
func TestDisturbed(t *testing.T) {
	t.Parallel()
	const skip, runs = 2, 40
	hit := func(i int) bool { return i%4 == 3 }
	var file strings.Builder
	event := func(cat, name, op string, ts, dur int) {
		fmt.Fprintf(&file, `{"cat":%q,"pid":1,"tid":1,"dur":%d,"ts":%d,"ph":"X","name":%q,"args":{"op_name":%q,"node_index":"0"}},`, cat, dur, ts, name, op)
	}
	file.WriteString("[")
	at := 0
	for i := range skip + runs {
		add := 75
		if hit(i) {
			add = 900 // a preemption
		}
		event("Node", "conv_kernel_time", "Conv", at, 25)
		event("Node", "add_kernel_time", "Add", at+25, add)
		event("Session", "model_run", "", at, 25+add)
		at += 2000
	}
	text := strings.TrimSuffix(file.String(), ",") + "]"
	for _, c := range []struct {
		name      string
		disturbed func(int) bool
		latency   float64 // microseconds
		most      float64 // of the last inferences
	}{
		{"known", hit, 100, 100},
		{"unknown", nil, 100, 925},
	} {
		rec := NewRecording()
		if err := rec.Add(t.Context(), strings.NewReader(text), Session{Skip: skip, Disturbed: c.disturbed}); err != nil {
			t.Fatal(err)
		}
		p := rec.Run("m", "m.onnx").Profile
		m := p.Totals.Latency
		if v := *m.Median * 1e6; math.Abs(v-c.latency) > 1e-6 || math.Abs(*m.Max*1e6-c.most) > 1e-6 {
			t.Errorf("%s: latency %g µs, at most %g µs; want %g and %g", c.name, v, *m.Max*1e6, c.latency, c.most)
		}
		if v := *p.Layers[0].Latency.Median / *m.Median; math.Abs(v-0.25) > 1e-9 {
			t.Errorf("%s: share %g", c.name, v)
		}
	}
}
