//go:build (darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64))

package litert

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/profile"
)

// own is an event of the interpreter, of one of a delegate.
func own(graph, node int64, us uint64) event {
	return event{"", operatorEvent, us, node, graph}
}

func of(graph, number int64, name string, us uint64) event {
	return event{name, delegatedEvent, us, number, graph}
}

func begin(graph int64) event { return event{"Invoke", plainEvent, 0, 0, graph} }

// TestRecord has a loop of two rounds whose body a delegate takes:
//
//	main: CONV (delegate), WHILE, SOFTMAX; body: ADD, MUL (delegate)
func TestRecord(t *testing.T) {
	t.Parallel()
	k := &known{graphs: []knownGraph{*graphOf(t, "CONV_2D: 0 > 1", "WHILE: 1 > 2", "SOFTMAX: 2 > 3"), *graphOf(t, "LESS: 0 > 1"), *graphOf(t, "ADD: 0 > 1", "MUL: 1 > 2")}}
	k.graphs[0].nodes[1].graphs = []int{1, 2}
	for i := 1; i < 3; i++ {
		k.graphs[i].owner, k.graphs[i].by = 0, 1
		k.graphs[i].name = []string{"", "cond", "body"}[i]
	}
	r := newRecorder(k, false)
	body := []event{begin(1), own(1, 0, 1), begin(2), of(2, 0, "Add (ND)", 3), of(2, 1, "Clamp (NC)", 1), of(2, 2, "Multiply (ND)", 5)}
	run := slices.Concat([]event{begin(0), of(0, 0, "Convolution (NHWC, F32) IGEMM", 40), own(0, 1, 50)}, body, body, []event{begin(1), own(1, 0, 1), own(0, 2, 7)})
	for range 4 {
		r.add(run, 120_000, false)
	}
	p := r.record("loop", 1)
	if p == nil {
		t.Fatal("nothing recorded")
	}
	type want struct {
		op, kernel, graph string
		us                float64
		calls             float64
		parent            int64
	}
	for i, w := range []want{
		{"CONV_2D", "Convolution (NHWC, F32) IGEMM", "", 40, 1, -1},
		{"WHILE", "", "", 50 - 3*1 - 2*(3+1+5), 1, -1}, // without its bodies
		{"SOFTMAX", "", "", 7, 1, -1},
		{"LESS", "", "cond", 3, 3, 1},
		{"ADD", "Add (ND) + Clamp (NC)", "body", 8, 2, 1},
		{"MUL", "Multiply (ND)", "body", 10, 2, 1},
	} {
		l := &p.Profile.Layers[i]
		v, _ := l.Latency.Best()
		calls, parent := 1.0, int64(-1)
		if l.Calls != nil {
			calls = *l.Calls
		}
		if l.Parent != nil {
			parent = *l.Parent
		}
		// Sums of whole microseconds over equal runs: what is left is rounding of the division by
		// 1e9.
		if diff := v*1e6 - w.us; l.Op != w.op || l.Kernel != w.kernel || l.Graph != w.graph || calls != w.calls || parent != w.parent || !(diff <= 1e-9 && diff >= -1e-9) {
			t.Errorf("layer %d: %s %q in %q, %g us, %g calls, in %d; want %+v", i, l.Op, l.Kernel, l.Graph, v*1e6, calls, parent, w)
		}
		if i < 3 && (p.Hints[i].Index == nil || *p.Hints[i].Index != int64(i)) || i >= 3 && p.Hints[i].Index != nil {
			t.Errorf("layer %d: hint %+v", i, p.Hints[i])
		}
	}
	if len(p.Profile.Layers) != 6 {
		t.Errorf("%d layers", len(p.Profile.Layers))
	}
	r.forget()
	if r.record("loop", 1) != nil {
		t.Error("something is left")
	}
	r.add(run, 120_000, false)
	if p := r.record("loop", 1); p == nil || len(p.Profile.Layers) != 6 {
		t.Errorf("after all was forgotten: %+v", p)
	}
}

// TestParts: a delegate that tells nothing of what is inside it is found to do the nodes between
// those of the interpreter.
func TestParts(t *testing.T) {
	t.Parallel()
	k := &known{graphs: []knownGraph{*graphOf(t, "A: 0 > 1", "B: 1 > 2", "C: 2 > 3", "D: 3 > 4", "E: 4 > 5")}}
	r := newRecorder(k, false)
	d := own(0, 5, 10)
	d.tag = "TfLiteGpuDelegateV2"
	e := d
	e.number = 6
	r.add([]event{begin(0), d, own(0, 2, 3), e}, -1, false)
	p := r.record("m", 1)
	if len(p.Profile.Layers) != 3 || !slices.Equal(p.Hints[0].Outputs, []string{"t1", "t2"}) || !slices.Equal(p.Hints[2].Outputs, []string{"t4", "t5"}) || p.Profile.Layers[0].Op != "TfLiteGpuDelegateV2" {
		t.Errorf("got %+v of %+v", p.Hints, p.Profile.Layers)
	}
}

// TestLeftOver: where the delegate did something that is not known, nothing is claimed but
// kind and order.
func TestLeftOver(t *testing.T) {
	t.Parallel()
	r := newRecorder(&known{graphs: []knownGraph{*graphOf(t, "CONV_2D: 0 > 1", "SOFTMAX: 1 > 2")}}, false)
	r.add([]event{begin(0), of(0, 0, "Convolution (NHWC, F32) IGEMM", 4), of(0, 1, "Unheard Of (NC)", 4), of(0, 2, "Softmax (NC, F32)", 2)}, -1, false)
	p := r.record("m", 1)
	for i, h := range p.Hints {
		if h.Index != nil || len(h.Outputs) > 0 || p.Profile.Layers[i].State != profile.Ran {
			t.Errorf("layer %d: %+v", i, h)
		}
	}
	if p.Profile.Layers[0].Op != "CONV_2D" || p.Profile.Layers[1].Op != "Unheard Of" {
		t.Errorf("got %+v", p.Profile.Layers)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		given []external.Option
		want  string // "" for an error
		code  external.Code
	}{
		{nil, "num_threads = 2\n", ""},
		{[]external.Option{{Key: "kernel", Value: "reference"}}, "num_threads = 2\nkernel_mode = \"reference\"\n", ""},
		{[]external.Option{{Key: "xnnpack", Value: "off"}}, "num_threads = 2\nkernel_mode = \"builtin\"\n", ""},
		{[]external.Option{{Key: "xnnpack", Value: "off"}, {Key: "xnnpack", Value: "on"}}, "num_threads = 2\n", ""},
		{[]external.Option{{Key: "xnnpack_flags", Value: "qs8,qu8,force_fp16"}}, "num_threads = 2\nflags = 7\n", ""},
		{[]external.Option{{Key: "xnnpack_flags", Value: "0x201"}}, "num_threads = 2\nflags = 513\n", ""},
		{[]external.Option{{Key: "weight_cache", Value: "/tmp/a b"}}, "num_threads = 2\nweight_cache_file_path = \"/tmp/a b\"\n", ""},
		{[]external.Option{{Key: "weight_cache", Value: "a\"\nflags = 4"}}, "", external.NoOption},
		{[]external.Option{{Key: "xnnpack_flags", Value: "qs9"}}, "", external.NoOption},
		{[]external.Option{{Key: "xnnpack_flags", Value: "1"}, {Key: "kernel", Value: "builtin"}}, "", external.NoOption},
		{[]external.Option{{Key: "accelerator", Value: ""}}, "", external.NoOption},
		{[]external.Option{{Key: "accelerator", Value: "tpu"}}, "", external.NoOption},
		{[]external.Option{{Key: "accelerator", Value: "gpu,cpu"}}, "", external.NoProvider},
		{[]external.Option{{Key: "clustering", Value: "maybe"}}, "", external.NoOption},
	} {
		s, err := parse(tt.given, onCPU)
		if code(err) != tt.code {
			t.Errorf("%v: %v", tt.given, err)
		}
		if err == nil && s.cpu(2) != tt.want {
			t.Errorf("%v: %q, want %q", tt.given, s.cpu(2), tt.want)
		}
	}
	s, err := parse([]external.Option{{Key: "accelerator", Value: "gpu,cpu"}}, onCPU|onGPU)
	if err != nil || s.bits != onCPU|onGPU || s.facts(1)["accelerator"] != "gpu,cpu" {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestPackaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lib := filepath.Join(dir, "ai_edge_litert", "libLiteRt.so")
	folder := func(name string) {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	folder("ai_edge_litert")
	folder("numpy-2.4.6.dist-info")
	if v := packaged(lib); v != "" {
		t.Errorf("of another package: %q", v)
	}
	folder("ai_edge_litert-2.3.0.dist-info")
	if v := packaged(lib); v != "2.3.0" {
		t.Errorf("got %q", v)
	}
	folder("ai_edge_litert_nightly-2.4.0.dist-info")
	if v := packaged(lib); v != "" {
		t.Errorf("of two: %q", v)
	}
}

// FuzzRecord sends events that make no sense through a recorder.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{2, 0, 0, 5, 8, 0, 0, 7, 1, 0, 0, 0})
	tags := []string{"Invoke", "", "Add (ND)", "Convolution (NHWC, F32) IGEMM", "TfLiteGpuDelegateV2", "Clamp (NC)"}
	f.Fuzz(func(t *testing.T, b []byte) {
		k := &known{graphs: []knownGraph{*graphOf(t, "CONV_2D: 0 > 1", "WHILE: 1 > 2", "ADD: 2 > 3"), *graphOf(t, "ADD: 0 > 1", "MUL: 1 > 2")}}
		k.graphs[0].nodes[1].graphs = []int{1, 0, 7}
		k.graphs[1].owner, k.graphs[1].by = 0, 1
		r := newRecorder(k, len(b)%2 == 0)
		for len(b) > 0 {
			var events []event
			for len(b) >= 4 && len(events) < 50 {
				events = append(events, event{tag: tags[int(b[3])%len(tags)], kind: int32(b[0] % 40), graph: int64(int8(b[1])), number: int64(int8(b[2])), elapsed: uint64(binary.LittleEndian.Uint16(b[2:])) << (b[3] % 60)})
				b = b[4:]
			}
			if len(events) == 0 {
				break
			}
			r.add(events, -1, false)
		}
		if p := r.record("m", 1); p != nil {
			if len(p.Hints) != len(p.Profile.Layers) {
				t.Fatalf("%d hints for %d layers", len(p.Hints), len(p.Profile.Layers))
			}
			for i := range p.Profile.Layers {
				if v, ok := p.Profile.Layers[i].Latency.Best(); ok && !(v >= 0) {
					t.Errorf("layer %d took %g s", i, v)
				}
				if o := p.Profile.Layers[i].Parent; o != nil && (*o < 0 || *o >= int64(i)) {
					t.Errorf("layer %d is in %d", i, *o)
				}
			}
		}
	})
}
