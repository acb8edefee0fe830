package rewrite_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/external/tflite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/study"
)

// remembering is a TFLite model with an operator that has a state between dense layers: an LSTM,
// or an SVDF.
func remembering(op string) *graph.Model {
	f := tensor.Float32
	b := newMaker(0, "main", nil)
	dense := graph.Attrs{"fused_activation_function": "RELU", "weights_format": "DEFAULT", "keep_num_dims": true}
	state := func(name string, shape ...int) {
		b.value(name, f, shape...)
		b.g.Values[b.ids[name]].Variable = true
	}
	b.constant("last", numbers(2, 4, 12))
	if op == "SVDF" {
		b.value("x", f, 1, 16)
		b.value("h", f, 1, 12)
		b.value("y", f, 1, 4)
		b.constant("feature", numbers(3, 24, 16))
		b.constant("time", numbers(4, 24, 5))
		b.constant("bias", numbers(5, 12))
		state("state", 1, 120)
		b.node(graph.TFLite, op, graph.Attrs{"fused_activation_function": "RELU", "rank": int64(2), "asymmetric_quantize_inputs": false}, "h", "x", "feature", "time", "bias", "state")
	} else {
		b.value("x", f, 1, 6, 16)
		b.value("h", f, 1, 6, 12)
		b.value("y", f, 1, 6, 4)
		names := []string{"x"}
		for k := range 8 {
			names = append(names, fmt.Sprint("w", k))
			b.constant(names[k+1], numbers(k, 12, []int{16, 12}[k/4]))
		}
		names = append(names, "", "", "")
		for k := range 4 {
			names = append(names, fmt.Sprint("b", k))
			b.constant(names[k+12], numbers(k+9, 12))
		}
		state("hidden", 1, 12)
		state("cell", 1, 12)
		names = append(names, "", "", "hidden", "cell", "", "", "", "")
		b.node(graph.TFLite, op, graph.Attrs{"fused_activation_function": "TANH", "time_major": false, "asymmetric_quantize_inputs": false, "cell_clip": float32(0), "proj_clip": float32(0)}, "h", names...)
	}
	b.node(graph.TFLite, "FULLY_CONNECTED", dense, "y", "h", "last", "")
	for _, n := range b.g.Nodes {
		n.Version = 1
	}
	b.g.Inputs, b.g.Outputs = []int{b.ids["x"]}, []int{b.ids["y"]}
	return &graph.Model{Format: "tflite", IRVersion: 3, Graphs: []*graph.Graph{b.g}}
}

// remembered gives layers of such a model integers, from one to before another one.
func remembered(t *testing.T, m *graph.Model, from, to int) *graph.Model {
	t.Helper()
	var changes []rewrite.Change
	for _, l := range weights.All(m, nil)[from:to] {
		changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Format: study.Int8}})
	}
	next, effects, err := rewrite.Apply(m, changes, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range effects {
		if e.Cause != "" {
			t.Errorf("%s: %s", changes[i].Layer.Weight, e.Cause)
		}
	}
	return next
}

// TestRemembering makes operators with states compute with integers only, where all their weights
// change so.
func TestRemembering(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			m := remembering(op)
			n := len(weights.All(m, nil))
			next := parse(t, remembered(t, m, 0, n))
			var ops []string
			for _, n := range next.Main().Nodes {
				ops = append(ops, n.Op)
			}
			if want := []string{"QUANTIZE", op, "FULLY_CONNECTED", "DEQUANTIZE"}; !slices.Equal(ops, want) {
				t.Errorf("operators %v, want %v", ops, want)
			}
			part := parse(t, remembered(t, m, 1, n))
			for _, l := range weights.All(part, nil) {
				if l.Op == "tflite:"+op && l.Data >= 0 && part.Main().Values[l.Data].Type != tensor.Float32 {
					t.Errorf("%s reads integers, and not all its weights are", l.Weight)
				}
			}
			in := madeInputs(t, m)
			want := run(t, m, in, engine.Options{Exact: true}).Output(0)
			for name, x := range map[string]*graph.Model{"all": next, "a part": part} {
				// Inputs, states and outputs are rounded to 8 bits of a range that is some times
				// wider than they are: 40 dB each.
				if s := snr(run(t, x, in, engine.Options{Exact: true}).Output(0), want); !(s > 25) {
					t.Errorf("%s: %.1f dB from the floats", name, s)
				}
			}
			// They are found again, and pruned as they are.
			layers := weights.All(next, nil)
			if len(layers) != len(weights.All(m, nil)) {
				t.Errorf("%d layers are found again", len(layers))
			}
			var changes []rewrite.Change
			for _, l := range layers {
				changes = append(changes, rewrite.Change{Layer: l, Change: study.Change{Structure: study.Unstructured, Level: 0.5}})
			}
			pruned, _, err := rewrite.Apply(next, changes, rewrite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range weights.All(parse(t, pruned), nil) {
				if l.Zeros < l.Weights()/2 {
					t.Errorf("%s has %d zeros of %d", l.Weight, l.Zeros, l.Weights())
				}
			}
		})
	}
}

// TestEnginesRemembering has TensorFlow Lite run them.
func TestEnginesRemembering(t *testing.T) {
	lib := foreign(t, "tfjs_tflite_node-*/package/cc_deps/"+runtime.GOOS+"_"+runtime.GOARCH+"/libtensorflowlite_c.*", tflite.Open)
	for _, op := range []string{"UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF"} {
		t.Run(op, func(t *testing.T) {
			m := remembering(op)
			in := madeInputs(t, m)
			// it is too old for integers of the last
			next := remembered(t, m, 0, len(weights.All(m, nil))-1)
			theirs, err := ask(t, lib, next, in)
			if err != nil {
				t.Fatal(err)
			}
			ours := run(t, next, in, engine.Options{Exact: true}).Output(0)
			// Sums of the last layer's floats have another order. opmeter's LSTM is that of
			// TensorFlow Lite Micro, which rounds gates at other places than this library: by one
			// of the 8 bits of the state.
			least := map[string]float64{"SVDF": 90, "UNIDIRECTIONAL_SEQUENCE_LSTM": 35}[op]
			if s := snr(&tensor.Tensor{Type: ours.Type, Shape: ours.Shape, Data: theirs[0].Data}, ours); !(s >= least) {
				t.Errorf("%.1f dB from opmeter's, want %.0f", s, least)
			}
		})
	}
}
