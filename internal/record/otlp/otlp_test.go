package otlp_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/otlp"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
)

// TestFile reads the two layers of a model; the figures are those of the text that the file was
// made of: 21.39 and 8.78 ms.
func TestFile(t *testing.T) {
	t.Parallel()
	p := records.Read(t, otlp.Format(), records.Files(t, material.Path(t, "raw", "traces", "otel", "model_layers_profilesdata_v1development.pb")), record.Options{})[0]
	got := records.Layers(p, "latency_s")
	want := map[string]float64{"re_lu_2/Relu6:0_nchwc": 21.386e-3, "re_lu/Relu6:0_nchwc": 8.779e-3}
	if len(p.Layers) != 2 {
		t.Fatalf("%+v", got)
	}
	for n, w := range want {
		if !(math.Abs(got[n]-w) < 1e-5) { // the text has four digits
			t.Errorf("%s: %v s, want %v", n, got[n], w)
		}
	}
	if p.Layers[0].Op != "Conv" || p.Settings.Engine != "model-profiler" || p.Created == "" {
		t.Errorf("%+v %+v %s", p.Layers[0], p.Settings, p.Created)
	}
}

type message []byte

func (m message) num(f protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, f, protowire.VarintType), v)
}

func (m message) sub(f protowire.Number, s message) message {
	return protowire.AppendBytes(protowire.AppendTag(m, f, protowire.BytesType), s)
}

// program is a profile of a program in two metrics: main calls f, which calls itself.
func program() []byte {
	packed := func(vs ...uint64) (m message) {
		for _, v := range vs {
			m = protowire.AppendVarint(m, v)
		}
		return m
	}
	sample := func(stack uint64, values message) message { return message(nil).num(1, stack).sub(4, values) }
	cpu := message(nil).sub(1, message(nil).num(1, 1).num(2, 2)).sub(2, sample(1, packed(1500))).sub(2, sample(2, packed(500, 1000)))
	heap := message(nil).sub(1, message(nil).num(1, 3).num(2, 4)).sub(2, sample(2, packed(64)))
	bad := message(nil).sub(2, sample(1, packed(1)))
	scope := message(nil).sub(2, cpu).sub(2, heap).sub(2, bad)
	location := func(fn uint64) message { return message(nil).sub(3, message(nil).num(1, fn).num(2, 7)) }
	dictionary := message(nil).sub(1, nil).sub(2, nil).sub(2, location(1)).sub(2, location(2)).
		sub(3, nil).sub(3, message(nil).num(1, 5)).sub(3, message(nil).num(1, 6)).
		sub(7, nil).sub(7, message(nil).sub(1, packed(1))).sub(7, message(nil).sub(1, packed(2, 2, 1)))
	for _, s := range []string{"", "cpu", "nanoseconds", "alloc", "bytes", "main", "f"} {
		dictionary = dictionary.sub(5, message(s))
	}
	return message(nil).sub(1, message(nil).sub(2, scope)).sub(2, dictionary)
}

func TestProgram(t *testing.T) {
	t.Parallel()
	p := records.Read(t, otlp.Format(), []*record.File{record.Bytes("x.otlp", program())}, record.Options{})[0]
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-15 })
	for key, want := range map[string]map[string]float64{
		"latency_s":                {"main": 1.5e-6, "f": 1.5e-6},
		"with_callees_s":           {"main": 3e-6, "f": 1.5e-6},
		"alloc_bytes":              {"main": 0, "f": 64},
		"alloc_bytes_with_callees": {"main": 64, "f": 64},
	} {
		if d := cmp.Diff(want, records.Layers(p, key), near); d != "" {
			t.Errorf("%s: %s", key, d)
		}
	}
	if len(p.Incomplete) != 1 {
		t.Errorf("%+v", p.Incomplete)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(program())
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, otlp.Format(), "x.otlp", data) })
}
