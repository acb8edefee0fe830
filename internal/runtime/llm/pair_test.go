package llm_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/decoder"
)

var forms = map[string]decoder.Form{"merged": decoder.Merged, "separate": decoder.Separate, "crossed": decoder.Crossed}

// again writes a model and reads it.
func again(t *testing.T, m *graph.Model) *graph.Model {
	t.Helper()
	data, err := onnx.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = onnx.Parse(data, m.Path, ""); err != nil {
		t.Fatal(err)
	}
	return m
}

type named map[string]*tensor.Tensor

// runNamed runs a phase in which some inputs are given, and returns the outputs.
func runNamed(t *testing.T, m *graph.Model, l *llm.Model, p llm.Phase, given named) named {
	t.Helper()
	o, err := l.Feed(inputs.Options{}, p)
	if err != nil {
		t.Fatal(err)
	}
	in, _, err := inputs.Inputs(m, o)
	if err != nil {
		t.Fatal(err)
	}
	g := m.Main()
	for i, id := range g.Inputs {
		if x, ok := given[g.Values[id].Name]; ok {
			in[i] = x
		}
	}
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := named{}
	for i, id := range g.Outputs {
		x := *s.Output(i)
		x.Data = bytes.Clone(x.Data)
		out[g.Values[id].Name] = &x
	}
	return out
}

// TestFeatures sizes the inputs of encoders: what the file leaves open is that of the settings.
func TestFeatures(t *testing.T) {
	t.Parallel()
	s := llm.Setup{Encoder: 1500, Bands: 80, Channels: 3, Pixels: 384}
	for _, test := range []struct {
		name        string
		shape, want []int
		fault       string
	}{
		{"input_features", []int{-1, -1, -1}, []int{2, 80, 3000}, ""},
		{"input_features", []int{-1, 8, 48}, []int{2, 8, 48}, ""},
		{"pixel_values", []int{-1, -1, -1, -1}, []int{2, 3, 384, 384}, ""},
		{"pixel_values", []int{1, 3, 32, 32}, nil, `dimension 0 of input "pixel_values" is fixed at 1, and this phase needs 2`},
		{"input_values", []int{-1, 16000}, []int{2, 16000}, ""},
		{"input_values", []int{-1, -1}, nil, `dimension 1 of input "input_values" has no size in the file, and a config.json beside the decoder does not tell it`},
	} {
		m := model([]*graph.Value{{Name: test.name, Type: tensor.Float32, Shape: test.shape}}, nil)
		o, err := llm.DetectPart(m, s).Feed(inputs.Options{}, llm.Phase{Batch: 2, Tokens: 1})
		switch {
		case test.fault != "":
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%s %v: %v, want %s", test.name, test.shape, err, test.fault)
			}
		case err != nil || !slices.Equal(o.Shapes[test.name], test.want):
			t.Errorf("%s %v: %v, %v, want %v", test.name, test.shape, o.Shapes[test.name], err, test.want)
		}
	}
}

// TestPairs compares prefill of a decoder with an encoder, and decode after it, with one token
// after the other.
func TestPairs(t *testing.T) {
	t.Parallel()
	ids := []int64{3, 17, 20, 5, 9, 40, 0}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pair := decoder.NewPair(decoder.Small, form)
			enc, dec := again(t, pair.Encoder), again(t, pair.Decoder)
			start := dec
			l := detect(t, dec)
			first := l
			if pair.Start != nil {
				start = again(t, pair.Start)
				first = llm.DetectPart(start, llm.Setup{})
			}
			e := llm.DetectPart(enc, llm.Setup{})
			if e == nil || first == nil || !l.Encoded() || l.Layers != 2 || l.Heads != 4 || l.HeadSize != 8 || l.CacheBytes(2, 3) != 2*2*2*3*4*8*4 || l.CrossBytes(2, 3) > 2*2*2*decoder.Positions*4*8*4 {
				t.Fatalf("%+v, %+v, %+v", e, first, l)
			}
			const positions = decoder.Positions
			encoded := runNamed(t, enc, e, llm.Phase{Batch: 1, Tokens: positions}, nil)
			if s, ok := encoded["last_hidden_state"]; ok {
				encoded["encoder_hidden_states"] = s
			}
			cached := func(out named) named {
				in := maps.Clone(encoded)
				for k, v := range encoded {
					in[strings.Replace(k, "present", "past", 1)] = v
				}
				for k, v := range out {
					in[strings.Replace(k, "present", "past", 1)] = v
					in[strings.Replace(k, "present", "past_key_values", 1)] = v
				}
				return in
			}
			run := func(from, n int, before named) named {
				in := maps.Clone(encoded)
				maps.Copy(in, cached(before))
				in["input_ids"] = tensor.From(tensor.Int64, []int{1, n}, ids[from:from+n])
				p := llm.Phase{Batch: 1, Tokens: n, Depth: from, Encoder: positions, Encoded: from > 0}
				m, l := dec, l
				if from == 0 {
					m, l = start, first
				}
				out := runNamed(t, m, l, p, in)
				for k, v := range before { // decoders do not return all caches
					if _, ok := out[k]; !ok || strings.Contains(k, ".encoder.") {
						out[k] = v
					}
				}
				return out
			}
			logits := func(out named) []float32 {
				x := tensor.Of[float32](out["logits"])
				return x[len(x)-decoder.Small.Vocabulary:]
			}
			step := run(0, 1, nil)
			for i := 1; i < len(ids); i++ {
				step = run(i, 1, step)
			}
			near(t, "prefill", logits(run(0, len(ids), nil)), logits(step))
			n := len(ids) - 1
			near(t, "decode after prefill", logits(run(n, 1, run(0, n, nil))), logits(step))
			other := runNamed(t, dec, l, llm.Phase{Batch: 1, Tokens: 1, Depth: n, Encoder: positions, Encoded: true}, named{"input_ids": tensor.From(tensor.Int64, []int{1, 1}, ids[n:])})
			if distance(logits(other), logits(step)) < 1e-2 {
				t.Error("random caches give the same logits: they are not read")
			}
		})
	}
}
