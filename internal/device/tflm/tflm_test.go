package tflm_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/tflm"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/talk"
	"github.com/opmeter/opmeter/internal/testing/tflmdevice"
	"github.com/opmeter/opmeter/internal/testing/wire"
	"github.com/opmeter/opmeter/profile"
)

// mobile is the order of operators of a small MobileNet: its middle repeats.
var mobile = strings.Fields("CONV_2D " + strings.Repeat("DEPTHWISE_CONV_2D CONV_2D ", 6) + "AVERAGE_POOL_2D RESHAPE FULLY_CONNECTED SOFTMAX")

// known is a model with these operators.
func known(ops []string) *profile.Profile {
	p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}}
	for i, op := range ops {
		p.Layers = append(p.Layers, profile.Layer{
			Index: int64(i), Name: fmt.Sprint("node", i), Op: op, State: profile.NotReached, MACs: new(int64(i)),
			Provenance: &profile.Provenance{SourceNodes: []profile.SourceNode{{Node: int64(i)}}, Confidence: profile.Exact},
		})
	}
	return p
}

func finding(p *profile.Profile, id string) string {
	for _, f := range p.Findings {
		if f.ID == id {
			return f.Text
		}
	}
	return ""
}

// check compares ticks with those of the board, in inferences from first on. Sums of integers
// are exact.
func check(t *testing.T, b *tflmdevice.Board, p *profile.Profile, first, runs int) {
	t.Helper()
	if len(p.Layers) != len(b.Ops) {
		t.Fatalf("%d layers, want %d", len(p.Layers), len(b.Ops))
	}
	for i := range p.Layers {
		m := p.Layers[i].Figures["ticks"]
		if m == nil || m.Kind != profile.Measured {
			t.Fatalf("%d %s: %+v", i, p.Layers[i].Op, m)
		}
		lo, hi := float64(b.Ticks(first, i)), float64(b.Ticks(first+runs-1, i))
		if v, _ := m.Best(); p.Layers[i].Op != b.Ops[i] || runs == 1 && v != lo || runs > 1 && (*m.N != int64(runs) || *m.Min != lo || *m.Max != hi) {
			t.Errorf("%d %s: %+v, want %g to %g", i, p.Layers[i].Op, m, lo, hi)
		}
	}
}

// TestOrders: whatever stands between inferences, whatever a line ends with, with the model and
// without.
func TestOrders(t *testing.T) {
	t.Parallel()
	for _, form := range []tflmdevice.Form{tflmdevice.Lines, tflmdevice.Table} {
		for _, between := range []string{"", "\r\n", "inference done:\r\n", "heap 1234 free\r\n"} {
			for _, end := range []string{"\n", "\r\n", "\r"} {
				for _, model := range []*profile.Profile{nil, known(mobile)} {
					b := &tflmdevice.Board{Ops: mobile, ClockHz: 64e6, Form: form, Between: strings.ReplaceAll(between, "\r\n", end), End: end}
					p, err := talk.Bytes(t, tflm.Protocol(), b.Text(7), device.Rules{Model: model, ClockHz: 64e6})
					if err != nil {
						t.Fatalf("%d %q %q %v: %v", form, between, end, model != nil, err)
					}
					check(t, b, p, 0, 7)
					sum := 0.0
					for i := range p.Layers {
						v, _ := p.Layers[i].Value("ticks")
						sum += v
					}
					// sums in another order
					if v, _ := p.Totals.Latency.Best(); !(math.Abs(v-sum/64e6) <= 1e-12) {
						t.Errorf("%q: %g s, want %g", between, v, sum/64e6)
					}
					if model != nil && (p.Layers[3].MACs == nil || *p.Layers[3].MACs != 3) {
						t.Errorf("not joined with the model: %+v", p.Layers[3])
					}
					for _, f := range p.Findings {
						if f.Severity == profile.Warning {
							t.Errorf("%d %q %q %v: %s %s", form, between, end, model != nil, f.ID, f.Text)
						}
					}
				}
			}
		}
	}
}

// TestLive ends when there are enough, without the end of the stream.
func TestLive(t *testing.T) {
	t.Parallel()
	for _, model := range []*profile.Profile{nil, known(mobile)} {
		b := &tflmdevice.Board{Ops: mobile, ClockHz: 1e6, Between: "\r\n"}
		dev := func(w io.Writer, r io.Reader) {
			b.Run(1<<20)(w, r)
		}
		p, err := talk.Device(t, tflm.Protocol(), wire.Line{}, dev, device.Rules{Model: model, Runs: 5, Warmup: 2, ClockHz: 1e6}, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		check(t, b, p, 2, 5)
	}
	// One inference, then silence.
	b := &tflmdevice.Board{Ops: mobile, ClockHz: 1e6}
	p, err := talk.Device(t, tflm.Protocol(), wire.Line{}, b.Run(1), device.Rules{Runs: 2}, time.Second)
	if err == nil || p == nil || p.Incomplete == nil {
		t.Errorf("%v %+v", err, p)
	}
	check(t, b, p, 0, 1)
}

// TestClock: without one the printed milliseconds bound it, and with it the times.
func TestClock(t *testing.T) {
	t.Parallel()
	b := &tflmdevice.Board{Ops: mobile, ClockHz: 1e6, Between: "\r\n"}
	p, err := talk.Bytes(t, tflm.Protocol(), b.Text(3), device.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Layers {
		m := p.Layers[i].Latency
		if want := float64(b.Ticks(1, i)) / 1e6; m == nil || m.Band == nil || !(m.Band[0] <= want*(1+1e-5) && want*(1-1e-5) <= m.Band[1]) {
			t.Errorf("%d: %+v, true is %g", i, m, want)
		}
	}
	if s := finding(p, "tflm.clock"); !strings.Contains(s, "--clock 1000000,") {
		t.Error(s)
	}
	p, err = talk.Bytes(t, tflm.Protocol(), b.Text(3), device.Rules{ClockHz: 2e6})
	if v, _ := p.Layers[0].Latency.Best(); err != nil || v != float64(b.Ticks(1, 0))/2e6 || !strings.Contains(finding(p, "tflm.clock"), "contradicts") {
		t.Errorf("%v %g", err, v)
	}
}

// TestSums: a table of sums is all that there is, or confirms events.
func TestSums(t *testing.T) {
	t.Parallel()
	sums := &tflmdevice.Board{Ops: mobile, ClockHz: 1e6, Form: tflmdevice.Sums}
	p, err := talk.Bytes(t, tflm.Protocol(), sums.Text(4), device.Rules{ClockHz: 1e6})
	if err != nil || len(p.Layers) != 6 || finding(p, "tflm.tags") == "" {
		t.Fatalf("%v %+v", err, p)
	}
	want := 0.0
	for i, op := range mobile {
		if op == "CONV_2D" {
			want += float64(sums.Ticks(0, i))
		}
	}
	if m := p.Layers[0].Figures["ticks"]; *m.Min != want || *m.N != 4 {
		t.Errorf("%+v, want %g", m, want)
	}
	rows := &tflmdevice.Board{Ops: mobile, ClockHz: 1e6, Form: tflmdevice.Table}
	text := append(rows.Inference(0), sums.Inference(0)...)
	if p, err = talk.Bytes(t, tflm.Protocol(), text, device.Rules{}); err != nil || finding(p, "tflm.sums") != "" {
		t.Errorf("%v %s", err, finding(p, "tflm.sums"))
	}
	text = append(rows.Inference(0), sums.Inference(1)...)
	if p, err = talk.Bytes(t, tflm.Protocol(), text, device.Rules{}); err != nil || finding(p, "tflm.sums") == "" {
		t.Errorf("%v: a contradiction", err)
	}
}

// TestTraps: ticks of 32 bits that are printed as signed, console text within lines, things that
// are not operators.
func TestTraps(t *testing.T) {
	t.Parallel()
	text := "tflite::GetModel took 4 ticks (0 ms).\n\n" + strings.Repeat("[info] CONV_2D took -1294967296 ticks (3000 ms).\nI (123) net: SOFTMAX took 5 ticks (0 ms).\n\n", 3)
	p, err := talk.Bytes(t, tflm.Protocol(), []byte(text), device.Rules{ClockHz: 1e6})
	if err != nil || len(p.Layers) != 2 {
		t.Fatalf("%v %+v", err, p)
	}
	if v, _ := p.Layers[0].Latency.Best(); v != 3000 || finding(p, "tflm.others") == "" {
		t.Errorf("%g s, %q", v, finding(p, "tflm.others"))
	}
}

// TestReal: text of real boards gives the sums of its lines.
func TestReal(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		b, err := os.ReadFile(material.Path(t, "raw", "traces", "tflm", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	sum := func(text string) (n int, total float64) {
		for _, l := range strings.Split(text, "\n") {
			var tag string
			var v float64
			if k, _ := fmt.Sscanf(strings.TrimSpace(l), "%s took %f ticks", &tag, &v); k == 2 && !strings.Contains(tag, "Iterations") && !strings.Contains(tag, "::") {
				n++
				total += v
			}
		}
		return n, total
	}
	_, text, _ := strings.Cut(read("pico_person_detection_ticks.txt"), "Multi-core CONV2D and")
	n, want := sum(text)
	p, err := talk.Bytes(t, tflm.Protocol(), []byte(text), device.Rules{ClockHz: 1e6})
	if err != nil || len(p.Layers) != n {
		t.Fatalf("%v: %d layers, want %d", err, len(p.Layers), n)
	}
	got := 0.0
	for i := range p.Layers {
		v, _ := p.Layers[i].Value("ticks")
		got += v
	}
	if v, _ := p.Totals.Latency.Best(); got != want || v != 0.5874 { // as its benchmark prints it
		t.Errorf("%g ticks, want %g; %g s", got, want, v)
	}
	text = read("tflm_benchmark_readme_log.md")
	p, err = talk.Bytes(t, tflm.Protocol(), []byte(text), device.Rules{ClockHz: 25e6})
	if err != nil || p.Model.Name != "person_detect" || len(p.Layers) != 31 || *p.Totals.RAMBytes != 84436 {
		t.Fatalf("%v %+v", err, p)
	}
	if l := &p.Layers[2]; l.Name != "MobilenetV1/MobilenetV1/Conv2d_1_pointwise/Relu6" {
		t.Errorf("%s", l.Name)
	}
	p, err = talk.Bytes(t, tflm.Protocol(), []byte(read("microprofiler_log_csv.txt")), device.Rules{})
	if err != nil || len(p.Layers) != 5 {
		t.Fatalf("%v %+v", err, p)
	}
	if v, _ := p.Layers[2].Value("ticks"); v != 249561 {
		t.Errorf("%g", v)
	}
}

// TestModels joins boards with reference models by the order of operators.
func TestModels(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mlperf_vww_96_int8.tflite", "mlperf_ad01_int8.tflite", "mlperf_kws_ref_model.tflite"} {
		m, err := opmeter.Open(material.Path(t, "models", "mcu", name))
		if err != nil {
			t.Fatal(err)
		}
		model, err := opmeter.Count(m, opmeter.Inputs{})
		if err != nil {
			t.Fatal(err)
		}
		b := &tflmdevice.Board{ClockHz: 80e6, Between: "\r\n"}
		for i := range model.Layers {
			b.Ops = append(b.Ops, model.Layers[i].Op)
		}
		p, err := talk.Bytes(t, tflm.Protocol(), b.Text(3), device.Rules{Model: model, ClockHz: 80e6})
		if err != nil {
			t.Fatal(err)
		}
		check(t, b, p, 0, 3)
		for i := range p.Layers {
			if g, w := &p.Layers[i], &model.Layers[i]; g.Name != w.Name && len(g.Outputs) != len(w.Outputs) || (g.MACs == nil) != (w.MACs == nil) || g.MACs != nil && *g.MACs != *w.MACs {
				t.Errorf("%s: %d %s is joined with other work than %s", name, i, g.Name, w.Name)
			}
		}
	}
}

// TestFaults sends text over a wire with 10,000 faults in all. A figure that no inference of the
// board had may pass only where a digit became another one; the extremes of several
// inferences show it. All other faults are marked.
func TestFaults(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(11, 5))
	faults, silent, cases := 0, 0, 0
	for seed := uint64(0); faults < 10000; seed++ {
		b := &tflmdevice.Board{Ops: mobile, ClockHz: 1e6, Form: tflmdevice.Form(seed % 2), Between: []string{"", "\r\n"}[seed/2%2]}
		var model *profile.Profile
		if seed/4%2 == 0 {
			model = known(mobile)
		}
		const runs = 4
		rate := math.Pow(10, -2-2*rnd.Float64()) / 4
		got, places := wire.Faults{Seed: seed, Corrupt: rate, Cut: rate, Duplicate: rate, Reorder: rate}.Apply(b.Text(runs))
		faults += len(places)
		cases++
		p, err := talk.Bytes(t, tflm.Protocol(), got, device.Rules{Model: model})
		if p == nil {
			if err == nil {
				t.Fatal("neither a profile nor an error")
			}
			continue
		}
		bad := ""
		for i := range p.Layers {
			m := p.Layers[i].Figures["ticks"]
			if m == nil {
				continue
			}
			lo, hi := *m.Median, *m.Median
			if m.Min != nil {
				lo, hi = *m.Min, *m.Max
			}
			if i >= len(mobile) || lo < float64(b.Ticks(0, i)) || hi > float64(b.Ticks(runs-1, i)) {
				bad += fmt.Sprintf(" %d: %g to %g", i, lo, hi)
			}
		}
		marked := p.Incomplete != nil
		for _, f := range p.Findings {
			marked = marked || f.Severity == profile.Warning && f.ID != "tflm.clock" && f.ID != "device.no_clock"
		}
		if bad != "" && !marked {
			silent++
			t.Logf("seed %d (form %d, between %q, model %v): %v:%s", seed, b.Form, b.Between, model != nil, places, bad)
		}
	}
	t.Logf("%d faults in %d runs: %d runs with a wrong figure and no mark", faults, cases, silent)
	if silent*50 > faults {
		t.Errorf("%d of %d faults passed", silent, faults)
	}
}

// TestUnplugged pulls the plug anywhere.
func TestUnplugged(t *testing.T) {
	t.Parallel()
	b := &tflmdevice.Board{Ops: mobile[len(mobile)-5:], ClockHz: 1e6}
	n := len(b.Text(2))
	// The last line is whole without the two bytes of its end.
	for at := 1; at < n-2; at += 7 {
		p, err := talk.Device(t, tflm.Protocol(), wire.Line{UnplugAfter: int64(at)}, b.Run(2), device.Rules{Runs: 2}, 5*time.Second)
		if err == nil {
			t.Fatalf("after %d bytes: no error", at)
		}
		if p != nil && p.Incomplete == nil {
			t.Errorf("after %d bytes: a profile that does not say that it is incomplete", at)
		}
	}
}

func FuzzTFLM(f *testing.F) {
	for _, form := range []tflmdevice.Form{tflmdevice.Lines, tflmdevice.Table, tflmdevice.Sums} {
		b := &tflmdevice.Board{Ops: []string{"CONV_2D", "SOFTMAX"}, ClockHz: 1e6, Form: form, Between: "\r\n"}
		f.Add(b.Text(3), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, model bool) {
		p := tflm.Protocol()
		if n := p.Sure(b); n < 0 || n > 100 {
			t.Fatal(n)
		}
		p.Sure = func([]byte) int { return 100 }
		r := device.Rules{}
		if model {
			r.Model = known([]string{"CONV_2D", "CONV_2D", "SOFTMAX"})
		}
		_, _ = talk.Bytes(t, p, b, r)
	})
}
