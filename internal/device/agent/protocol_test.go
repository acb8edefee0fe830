package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/profile"
)

// tape is a connection that brings a stream in parts and then ends.
type tape struct {
	parts []device.Chunk
	end   error
}

func (s *tape) Read(context.Context, time.Duration) (device.Chunk, error) {
	if len(s.parts) == 0 {
		return device.Chunk{}, s.end
	}
	x := s.parts[0]
	s.parts = s.parts[1:]
	return x, nil
}

// cutUp makes parts of a stream.
func cutUp(p []byte, size int) (out []device.Chunk) {
	for at := time.Unix(1e9, 0); len(p) > 0; p = p[min(size, len(p)):] {
		out = append(out, device.Chunk{Data: p[:min(size, len(p))], At: at})
		at = at.Add(time.Millisecond)
	}
	return out
}

// measure lets the protocol listen to a tape.
func measure(t *testing.T, s *tape, rules device.Rules, o Options) (*profile.Profile, error) {
	t.Helper()
	b := profile.NewBuilder()
	r := device.NewRecorder(b, rules)
	err := listen(t.Context(), s, &device.Job{Model: rules.Model, Recorder: r}, o)
	if !r.Described() {
		return nil, err
	}
	p := b.Profile()
	if e := p.Validate(); e != nil {
		t.Fatalf("the profile is not valid: %v", e)
	}
	return p, err
}

// finding is the text of a finding, "" if absent.
func finding(p *profile.Profile, id string) string {
	for _, f := range p.Findings {
		if f.ID == id {
			return f.Text
		}
	}
	return ""
}

// figure is a figure of a layer, of the whole with layer -1.
func figure(p *profile.Profile, layer int, quantity string) float64 {
	m := p.Totals.Figure(quantity)
	if layer >= 0 {
		m = p.Layers[layer].Figure(quantity)
	}
	if m == nil {
		return -1
	}
	if m.Min != nil && *m.Min != *m.Max && quantity != "agent_s" {
		return math.NaN() // all inferences of these tests take the same
	}
	return *m.Median
}

// steady is a board whose net takes the same in every inference: 1000, 2000 and 4000 counts, the
// second of which has the third, and 500 besides.
func steady(change func(b *board), runs int) []byte {
	var out []byte
	b := newBoard(func(p []byte) { out = append(out, p...) })
	change(b)
	b.start()
	b.memory("arena", 8192)
	b.memory("scratch", 100)
	b.memory("main stack", 612)
	b.text("built with -O2")
	out = append(out, "hello from the firmware\r\nand again\r\n"...)
	for i := range runs {
		b.inferenceBegin()
		b.opBegin(0, new("CONV_2D"))
		b.clock += 1000
		b.opEnd(0)
		b.clock += 500
		b.opBegin(1, new("WHILE"))
		b.clock += 2000
		b.opBegin(7, new("ADD"))
		b.counter("accelerator_cycles", 11)
		b.counter("DMA bytes", 5)
		b.clock += 4000
		b.opEnd(7)
		b.opEnd(1)
		b.inferenceEnd()
		b.data("output", 0, []byte(strings.Repeat("\x00ab", 100)+fmt.Sprint(i)))
	}
	b.done()
	return out
}

func TestProfile(t *testing.T) {
	t.Parallel()
	var got Outputs
	p, err := measure(t, &tape{cutUp(steady(func(*board) {}, 5), 50), io.EOF}, device.Rules{}, Options{Output: got.Add})
	if err != nil {
		t.Fatal(err)
	}
	if p.Target.ID != "bench" || p.Model.Name != "net" || p.Target.ClockHz == nil || *p.Target.ClockHz != 1e6 {
		t.Errorf("target %+v, model %q", p.Target, p.Model.Name)
	}
	if len(p.Layers) != 3 {
		t.Fatalf("%d layers", len(p.Layers))
	}
	for i, want := range []struct {
		op     string
		counts float64
	}{{"CONV_2D", 1000}, {"WHILE", 2000}, {"ADD", 4000}} {
		l := &p.Layers[i]
		// A clock of 1 MHz, and one rounding of the division.
		if s := figure(p, i, "latency_s"); l.Op != want.op || figure(p, i, "cpu_cycles") != want.counts || s != want.counts/1e6 {
			t.Errorf("layer %d: %s, %g cycles, %g s, want %+v", i, l.Op, figure(p, i, "cpu_cycles"), s, want)
		}
		if l.CPUCycles.Kind != profile.Measured || l.CPUCycles.N == nil || *l.CPUCycles.N != 5 {
			t.Errorf("layer %d: %+v", i, l.CPUCycles)
		}
	}
	if figure(p, -1, "cpu_cycles") != 7500 || figure(p, -1, "latency_s") != 0.0075 || !(figure(p, -1, "agent_s") > 0) {
		t.Errorf("whole: %g cycles, %g s, agent %g s", figure(p, -1, "cpu_cycles"), figure(p, -1, "latency_s"), figure(p, -1, "agent_s"))
	}
	if figure(p, 2, "accelerator_cycles") != 11 || figure(p, 2, "dma_bytes") != 5 {
		t.Errorf("counters: %g, %g", figure(p, 2, "accelerator_cycles"), figure(p, 2, "dma_bytes"))
	}
	if p.Memory == nil || *p.Memory.ArenaBytes != 8192 || *p.Memory.ScratchBytes != 100 || *p.Totals.RAMBytes != 8292 || figure(p, -1, "memory_main_stack_bytes") != 612 {
		t.Errorf("memory %+v, %g", p.Memory, figure(p, -1, "memory_main_stack_bytes"))
	}
	for id, want := range map[string]string{"agent.text": "built with -O2", "agent.output": "printed 2 lines of its own, the first: [\"hello from the firmware\" \"and again\"]", "agent.cost": "3 cycles for each operator and 3 for each"} {
		if s := finding(p, id); !strings.Contains(s, want) {
			t.Errorf("%s: %q", id, s)
		}
	}
	want := []byte(strings.Repeat("\x00ab", 100) + "4")
	sum := sha256.Sum256(want)
	if len(got.List) != 1 || string(got.List[0].Bytes) != string(want) || got.List[0].SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("outputs %+v", got.List)
	}
}

// TestUnits has counters of each unit, with a factor.
func TestUnits(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name     string
		change   func(b *board)
		quantity string
		want     float64 // of 1000 counts
		seconds  float64 // -1 for none
	}{
		{"cycles without a frequency", func(b *board) { b.hz = 0 }, "cpu_cycles", 1000, -1},
		{"an eighth of the clock", func(b *board) { b.hz, b.num = 8e6, 8 }, "cpu_cycles", 8000, 1000. / 8e6},
		{"instructions of an emulator", func(b *board) { b.unit, b.hz, b.num = unitInstructions, 25e6, 40 }, "instructions", 40000, -1},
		{"microseconds", func(b *board) { b.unit, b.hz, b.num = unitNanoseconds, 1e6, 1000 }, "latency_s", 1e-3, 1e-3},
		{"ticks", func(b *board) { b.unit, b.hz = unitTicks, 32768 }, "ticks", 1000, 1000. / 32768},
		{"three quarters", func(b *board) { b.num, b.den = 3, 4 }, "cpu_cycles", 750, 1e-3},
	} {
		p, err := measure(t, &tape{cutUp(steady(x.change, 3), 100), io.EOF}, device.Rules{}, Options{})
		if err != nil || p == nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		// a rounding or two
		near := func(got, want float64) bool { return got >= want*(1-1e-15) && got <= want*(1+1e-15) }
		if got := figure(p, 0, x.quantity); !near(got, x.want) {
			t.Errorf("%s: %g %s, want %g", x.name, got, x.quantity, x.want)
		}
		if got := figure(p, 0, "latency_s"); got != x.seconds && !near(got, x.seconds) {
			t.Errorf("%s: %g s, want %g", x.name, got, x.seconds)
		}
	}
}

// TestIndices joins operators with a model whose layers are not all of its nodes: by the indices of
// layers, as programs that opmeter writes have them, and by those of nodes.
func TestIndices(t *testing.T) {
	t.Parallel()
	model := &profile.Profile{Model: profile.Model{Name: "net"}}
	for i, x := range []struct {
		op   string
		node int64
	}{{"CONV_2D", 0}, {"CONV_2D", 2}, {"ADD", 3}, {"CONV_2D", 4}} {
		model.Layers = append(model.Layers, profile.Layer{
			Index: int64(i), Op: x.op, Name: fmt.Sprintf("layer %d", i), State: profile.Ran,
			Outputs:    []profile.Tensor{{Name: fmt.Sprintf("tensor %d", i)}},
			Provenance: &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Node: x.node, Op: x.op}}},
		})
	}
	for _, indices := range [][]uint16{{0, 1, 2, 3}, {0, 2, 3, 4}, {1, 2, 3}} {
		var out []byte
		b := newBoard(func(p []byte) { out = append(out, p...) })
		b.start()
		b.inferenceBegin()
		for k, index := range indices {
			b.opBegin(index, &model.Layers[k+4-len(indices)].Op)
			b.opEnd(index)
		}
		b.inferenceEnd()
		p, err := measure(t, &tape{cutUp(out, 100), io.EOF}, device.Rules{Model: model}, Options{})
		if !errors.Is(err, io.EOF) || p == nil {
			t.Fatal(err)
		}
		for k := range p.Layers {
			l, want := &p.Layers[k], &model.Layers[k+4-len(indices)]
			if l.Name != want.Name || l.Provenance.Confidence != profile.Exact && l.Provenance.Confidence != profile.ByTensor {
				t.Errorf("indices %v: layer %d is %q (%s), want %q", indices, k, l.Name, l.Provenance.Confidence, want.Name)
			}
		}
	}
}

// TestEnds has the ways in which a stream ends.
func TestEnds(t *testing.T) {
	t.Parallel()
	stream := steady(func(*board) {}, 20)
	t.Run("enough", func(t *testing.T) {
		p, err := measure(t, &tape{cutUp(stream, 64), io.EOF}, device.Rules{Runs: 5, Warmup: 2}, Options{})
		if !errors.Is(err, device.ErrEnough) || *p.Layers[0].CPUCycles.N != 5 {
			t.Errorf("%v, %+v", err, p.Layers[0].CPUCycles)
		}
	})
	t.Run("enough with output", func(t *testing.T) {
		var got Outputs
		p, err := measure(t, &tape{cutUp(stream, 64), io.EOF}, device.Rules{Runs: 5}, Options{Output: got.Add})
		if !errors.Is(err, device.ErrEnough) || *p.Layers[0].CPUCycles.N != 5 || len(got.List) != 1 || !strings.HasSuffix(string(got.List[0].Bytes), "4") {
			t.Errorf("%v, %+v, %d outputs", err, p.Layers[0].CPUCycles, len(got.List))
		}
	})
	t.Run("cut", func(t *testing.T) {
		p, err := measure(t, &tape{cutUp(stream[:len(stream)*2/3], 64), io.EOF}, device.Rules{}, Options{})
		if !errors.Is(err, io.EOF) || *p.Layers[0].CPUCycles.N < 10 || figure(p, -1, "cpu_cycles") != 7500 {
			t.Errorf("%v, %+v", err, p.Layers[0].CPUCycles)
		}
	})
	t.Run("silent", func(t *testing.T) {
		if p, err := measure(t, &tape{cutUp(stream[:2000], 64), device.ErrSilent}, device.Rules{}, Options{}); !errors.Is(err, device.ErrSilent) || p == nil {
			t.Errorf("%v", err)
		}
	})
	t.Run("endless", func(t *testing.T) {
		for _, fill := range []string{"\x91\xea\xb9\x00\x89", "crashed: "} {
			parts := cutUp(stream[:2000], 64)
			for range 1 << 20 {
				parts = append(parts, device.Chunk{Data: []byte(fill)})
			}
			if p, err := measure(t, &tape{parts, io.ErrUnexpectedEOF}, device.Rules{}, Options{}); err == nil || !strings.Contains(err.Error(), "another speed") || figure(p, -1, "cpu_cycles") != 7500 {
				t.Errorf("%q: %v", fill, err)
			}
		}
	})
	t.Run("nothing", func(t *testing.T) {
		if p, err := measure(t, &tape{cutUp(stream[:60], 64), io.EOF}, device.Rules{}, Options{}); !errors.Is(err, io.EOF) || p != nil {
			t.Errorf("%v", err)
		}
	})
	t.Run("joined late", func(t *testing.T) {
		for at := 500; at < 4000; at += 61 {
			p, err := measure(t, &tape{cutUp(stream[at:], 64), io.EOF}, device.Rules{}, Options{})
			if err != nil || len(p.Layers) != 3 || p.Layers[2].Op != "ADD" || figure(p, -1, "cpu_cycles") != 7500 || p.Model.Name != "net" {
				t.Fatalf("from byte %d: %v, %+v", at, err, p)
			}
		}
	})
	t.Run("away", func(t *testing.T) {
		parts, back := cutUp(stream[:len(stream)/2], 64), cutUp(stream[len(stream)/2+500:], 64)
		back[0].Gap = true
		parts = append(parts, back...)
		p, err := measure(t, &tape{parts, io.EOF}, device.Rules{}, Options{})
		if err != nil || figure(p, -1, "cpu_cycles") != 7500 || finding(p, "agent.restart") == "" {
			t.Errorf("%v", err)
		}
	})
}

// TestMarks has what a reader of the profile must be told.
func TestMarks(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("ab", 32)
	other := &profile.Profile{Model: profile.Model{Name: "net", SHA256: strings.Repeat("cd", 32)}}
	bad := func(f func(b *board)) []byte {
		var out []byte
		b := newBoard(func(p []byte) { out = append(out, p...) })
		b.start()
		for range 3 {
			b.inferenceBegin()
			b.opBegin(0, new("CONV_2D"))
			b.clock += 10
			b.opEnd(0)
			b.inferenceEnd()
			f(b)
		}
		b.done()
		return out
	}
	for _, x := range []struct {
		id, want string
		stream   []byte
		model    *profile.Profile
	}{
		{"agent.model", "another model file", steady(func(b *board) { b.model = &hash }, 2), other},
		{"agent.use", "at operator 9", bad(func(b *board) { b.opBegin(9, nil) }), nil},
		{"agent.use", "do not are interleaved", bad(func(b *board) { b.inferenceEnd() }), nil},
		{"agent.restart", "1 times", append(steady(func(*board) {}, 2)[:800], steady(func(*board) {}, 4)...), nil},
		{"agent.other", "another model or counter", append(cutDone(steady(func(*board) {}, 3)), steady(func(b *board) { b.name = new("other") }, 4)...), nil},
		{"agent.other", "another model or counter", append(cutDone(steady(func(*board) {}, 3)), steady(func(b *board) { b.hz = 5 }, 4)...), nil},
		{"agent.late", "Operator 4", bad(func(b *board) {
			b.inferenceBegin()
			b.opBegin(4, nil)
			b.opEnd(4)
			b.inferenceEnd()
		}), nil},
	} {
		p, err := measure(t, &tape{cutUp(x.stream, 200), io.EOF}, device.Rules{Model: x.model}, Options{})
		if err != nil || p == nil || !strings.Contains(finding(p, x.id), x.want) {
			t.Errorf("%s: %v, %q, want %q", x.id, err, finding(p, x.id), x.want)
			continue
		}
		if x.id == "agent.other" && (figure(p, -1, "cpu_cycles") != 7500 || *p.Totals.CPUCycles.N != 3) {
			t.Errorf("%s: %+v", x.id, p.Totals.CPUCycles)
		}
	}
}

// cutDone takes the last frame off.
func cutDone(p []byte) []byte {
	p = p[:len(p)-1]
	for p[len(p)-1] != 0 {
		p = p[:len(p)-1]
	}
	return p[:len(p)-1]
}

// TestNoFigures has streams that have none, and says why.
func TestNoFigures(t *testing.T) {
	t.Parallel()
	var wrong []byte
	b := newBoard(func(p []byte) { wrong = append(wrong, p...) })
	b.start()
	b.opBegin(0, new("CONV_2D"))
	b.opEnd(0)
	b.done()
	if _, err := measure(t, &tape{cutUp(wrong, 9), io.EOF}, device.Rules{}, Options{}); err == nil || !strings.Contains(err.Error(), "outside of opmeter_inference_begin") {
		t.Errorf("operators alone: %v", err)
	}
	future := encode(THello, 0, []byte{9, 0, 1, 2, 3})
	if _, err := measure(t, &tape{cutUp(future, 9), io.EOF}, device.Rules{}, Options{}); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("another version: %v", err)
	}
	// A counter that stands still.
	var still []byte
	b = newBoard(func(p []byte) { still = append(still, p...) })
	b.read, b.perByte = 0, 0
	b.start()
	still = encode(THello, 0, []byte{1, flagStill, 0, 0, 1, 1, 0, 0, 16, 0, 0})
	for i, body := range [][]byte{{0}, {3, 0, 0, 0}, {0, 0, 0, 1, 2}} {
		still = append(still, encode([]Type{TBegin, TOp, TEnd}[i], uint16(i+1), body)...)
	}
	p, err := measure(t, &tape{cutUp(still, 9), io.EOF}, device.Rules{}, Options{})
	if !errors.Is(err, io.EOF) || p == nil || finding(p, "agent.still") == "" || p.Totals.CPUCycles != nil || p.Layers[0].CPUCycles != nil {
		t.Errorf("a still counter: %v, %+v", err, p)
	}
}

// TestLossyProfile plays faults to the whole protocol: figures of the profile are those of the
// board, whose net takes the same every time.
func TestLossyProfile(t *testing.T) {
	t.Parallel()
	stream := steady(func(*board) {}, 20)
	var frames []int
	for i, c := range stream[1:] {
		if c == 0 && stream[i] == 0 {
			frames = append(frames, i+1)
		}
	}
	rnd := rand.New(rand.NewPCG(9, 9))
	some := 0
	for i := range 500 {
		bad := append([]byte{}, stream...)
		var what []string
		for range 1 + rnd.IntN(6) {
			var s string
			bad, s = fault(bad, frames, rnd)
			what = append(what, s)
		}
		p, err := measure(t, &tape{cutUp(bad, 1+rnd.IntN(300)), io.EOF}, device.Rules{}, Options{})
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("%d %v: %v", i, what, err)
		}
		if p == nil {
			continue
		}
		some++
		want := map[string]float64{"CONV_2D": 1000, "WHILE": 2000, "ADD": 4000, "operator 0": 1000, "operator 1": 2000, "operator 7": 4000}
		for k := range p.Layers {
			if got := figure(p, k, "cpu_cycles"); got != -1 && got != want[p.Layers[k].Op] {
				t.Fatalf("%d %v: %s has %g cycles", i, what, p.Layers[k].Op, got)
			}
		}
		if got := figure(p, -1, "cpu_cycles"); got != -1 && got != 7500 && finding(p, "agent.layers") == "" {
			t.Fatalf("%d %v: %g cycles", i, what, got)
		}
	}
	if some < 450 {
		t.Errorf("%d of 500 streams gave a profile", some)
	}
}

// FuzzProtocol plays anything to the whole protocol: what comes out is a valid profile.
func FuzzProtocol(f *testing.F) {
	f.Add(steady(func(*board) {}, 3), uint8(40))
	f.Add(append(steady(func(*board) {}, 2)[:700], steady(func(b *board) { b.unit, b.num = unitNanoseconds, 7 }, 2)...), uint8(3))
	f.Add([]byte("printf only\n"), uint8(9))
	f.Fuzz(func(t *testing.T, p []byte, size uint8) {
		var sequence uint16
		for _, raw := range [][]byte{p, reframe(p, &sequence), append(steady(func(*board) {}, 2), reframe(p, &sequence)...)} {
			var got Outputs
			_, _ = measure(t, &tape{cutUp(raw, int(size)+1), io.EOF}, device.Rules{}, Options{Output: got.Add})
		}
	})
}
