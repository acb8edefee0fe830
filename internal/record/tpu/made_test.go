package tpu_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/testing/tpurecords"
	"github.com/opmeter/opmeter/profile"
)

// files makes a folder of what is in memory.
func files(m map[string][]byte) []*record.File {
	var out []*record.File
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, record.Bytes("made/"+name, m[name]))
	}
	return out
}

// profiles reads a folder and sends each run through a builder.
func profiles(t testing.TB, in *record.Input) ([]*profile.Profile, error) {
	t.Helper()
	runs, err := tpu.Format().Read(context.Background(), in)
	var out []*profile.Profile
	for _, r := range runs {
		b := profile.NewBuilder()
		if err := r.Run(context.Background(), b); err != nil {
			t.Fatalf("a run that is not valid: %v", err)
		}
		p := b.Profile()
		if err := p.Validate(); err != nil {
			t.Fatalf("a profile that is not valid: %v", err)
		}
		out = append(out, p)
	}
	return out, err
}

// one reads a folder with one run.
func one(t testing.TB, in *record.Input) *profile.Profile {
	t.Helper()
	ps, err := profiles(t, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(ps) != 1 {
		t.Fatalf("%d profiles, want 1", len(ps))
	}
	return ps[0]
}

func made(t testing.TB, o tpurecords.Options) (*tpurecords.Directory, *profile.Profile) {
	t.Helper()
	d := tpurecords.Make(o)
	return d, one(t, &record.Input{Files: files(d.Files)})
}

func total(t testing.TB, p *profile.Profile, key string) float64 {
	t.Helper()
	v, ok := p.Totals.Value(key)
	if !ok {
		t.Fatalf("no %s in the totals", key)
	}
	return v
}

func finding(p *profile.Profile, id string) *profile.Finding {
	for i := range p.Findings {
		if p.Findings[i].ID == id {
			return &p.Findings[i]
		}
	}
	return nil
}

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %.12g, want %.12g (difference %g, allowed %g)", what, got, want, got-want, tolerance)
	}
}

// truth compares a profile with the program that its records were made of.
func truth(t *testing.T, d *tpurecords.Directory, p *profile.Profile) {
	t.Helper()
	o := &d.Options
	cycle := 1 / min(o.TIUHz, o.CopyHz)
	var span, tiu, copies float64
	layers, lost := 0, 0
	for _, s := range d.Subnets {
		span += s.Span(o)
		a, perTIU := s.Busy(o, false)
		b, perCopy := s.Busy(o, true)
		tiu, copies = tiu+a, copies+b
		load, store := s.Moved()
		for i := range s.Layers {
			l := &p.Layers[layers+i]
			if l.Option("line") != "" && l.Op != "Add" {
				t.Fatalf("layer %d is %s", layers+i, l.Op)
			}
			for _, x := range []struct {
				key  string
				want float64
			}{{"tiu_busy_s", perTIU[i]}, {"dma_busy_s", perCopy[i]}, {"load_bytes", float64(load[i])}, {"store_bytes", float64(store[i])}} {
				// A sum of a few seconds-valued terms: 1e-9 relative is far above their rounding.
				got, _ := l.Value(x.key)
				near(t, l.Name+" "+x.key, got, x.want, 1e-9*x.want+1e-15)
			}
		}
		layers += s.Layers
		n, m := s.Lost()
		lost += n + m
	}
	if len(p.Layers) != layers {
		t.Errorf("%d layers, want %d", len(p.Layers), layers)
	}
	// The offset between engines is known to a few cycles: the program's ends may lie on
	// different engines.
	near(t, "latency", total(t, p, "latency_s"), span, 16*cycle*float64(len(d.Subnets)))
	near(t, "tiu_busy_s", total(t, p, "tiu_busy_s"), tiu, 1e-9*tiu)
	near(t, "dma_busy_s", total(t, p, "dma_busy_s"), copies, 1e-9*copies)
	if v, _ := p.Totals.Value("commands_lost"); int(v) != lost {
		t.Errorf("%v commands lost, want %d", v, lost)
	}
	sums(t, p)
	if f := finding(p, "tpu.waits"); f != nil {
		t.Errorf("dependencies are contradicted: %s", f.Text)
	}
}

// sums checks that layers and gaps add up to the latency.
func sums(t testing.TB, p *profile.Profile) {
	t.Helper()
	all := 0.0
	for i := range p.Layers {
		v, ok := p.Layers[i].Latency.Best()
		if ok {
			all += v
		}
	}
	r := p.Reconcile
	near(t, "sum of layers and gaps", all+*r.GapsS, total(t, p, "latency_s"), 1e-9*all)
	if *r.GapsS < 0 {
		t.Errorf("gaps are %v", *r.GapsS)
	}
}

// TestChips reads the same kind of program of every chip.
func TestChips(t *testing.T) {
	for _, chip := range command.Chips {
		t.Run(chip.Name, func(t *testing.T) {
			o := tpurecords.Options{Chip: chip, Commands: 300, Seed: 1, CopyStart: 200_000, Copies: chip != command.BM1690}
			if chip == command.BM1684 || chip == command.BM1684X {
				o.TIUStart = 132_868_181 // counters of their own
			}
			d, p := made(t, o)
			truth(t, d, p)
			want := strings.ToLower(chip.Name)
			if chip == command.CV186X {
				want = "bm1688" // nothing but a program tells them apart
			}
			if p.Target.ID != want {
				t.Errorf("target is %s, want %s", p.Target.ID, want)
			}
			if v := total(t, p, "expected_s"); !(v > total(t, p, "latency_s")) {
				t.Errorf("expected %v s, want more than the time", v)
			}
		})
	}
}

// TestCV186X takes the chip from the program beside the records.
func TestCV186X(t *testing.T) {
	d := tpurecords.Make(tpurecords.Options{Chip: command.CV186X})
	d.Files["final.mlir"] = []byte(`module @made_up attributes {module.FLOPs = 5 : i64, module.chip = "cv186x", module.cores = 1 : i64, module.mode = "F16"} {` + "\n}\n")
	p := one(t, &record.Input{Files: files(d.Files)})
	if p.Target.ID != "cv186x" {
		t.Errorf("target is %s", p.Target.ID)
	}
	truth(t, d, p)
}

// TestClocks finds the clocks of a chip that is not run at its nominal ones.
func TestClocks(t *testing.T) {
	o := tpurecords.Options{Chip: command.CV184X, Commands: 300, TIUHz: 500e6, CopyHz: 500e6, CopyStart: 1000}
	d, p := made(t, o)
	truth(t, d, p)
	if finding(p, "tpu.clock") == nil {
		t.Error("nothing is said of the clocks")
	}
	// A ratio that no pair of the chip has: the nominal clock of the tensor engine counts.
	d, p = made(t, tpurecords.Options{Chip: command.BM1688, Commands: 600, TIUHz: 900e6, CopyHz: 600e6, CopyStart: 1000})
	truth(t, d, p)
	if f := finding(p, "tpu.clock"); f == nil || !strings.Contains(f.Text, "1.5") {
		t.Errorf("finding about the clocks is %v", f)
	}
	// Clocks that the user gives.
	in := &record.Input{Files: files(d.Files), Options: record.Options{Clocks: map[string]float64{"tiu": 900e6, "dma": 600e6}}}
	if p := one(t, in); *p.Target.ClockHz != 900e6 || finding(p, "tpu.clock") != nil {
		t.Errorf("with the right clocks: %v Hz, %v", *p.Target.ClockHz, finding(p, "tpu.clock"))
	}
	in.Clocks["dma"] = 750e6
	if p := one(t, in); finding(p, "tpu.clock") == nil || finding(p, "tpu.waits") == nil {
		t.Error("nothing is said of clocks that contradict the record")
	}
	in.Clocks = map[string]float64{"dma": 300e6}
	// the ratio is solved, not exact
	near(t, "clock by the ratio", *one(t, in).Target.ClockHz, 450e6, 450e6*1e-6)
}

// TestWraps lets counters of time and of commands begin again.
func TestWraps(t *testing.T) {
	t.Run("time", func(t *testing.T) {
		d, p := made(t, tpurecords.Options{Commands: 400, TIUStart: 1<<32 - 3000, CopyStart: 1<<32 - 9000})
		truth(t, d, p)
	})
	t.Run("commands", func(t *testing.T) {
		d, p := made(t, tpurecords.Options{Commands: 200_000, LayerSize: 500, Small: true, TIUStart: 77})
		n := 0
		for _, c := range d.Subnets[0].Commands {
			if !c.DMA {
				n++
			}
		}
		if n <= 65_536 {
			t.Fatalf("%d tensor commands do not wrap", n)
		}
		truth(t, d, p)
	})
}

// TestLost takes records away and exchanges neighbours.
func TestLost(t *testing.T) {
	d, p := made(t, tpurecords.Options{Commands: 500, Lose: 13, TIUStart: 5})
	truth(t, d, p)
	if finding(p, "tpu.lost") == nil {
		t.Error("nothing is said of lost records")
	}
	d, p = made(t, tpurecords.Options{Chip: command.CV184X, Commands: 500, Swap: 17, CopyStart: 50_000, Copies: true})
	truth(t, d, p)
}

// TestMonitors leaves monitors and files out.
func TestMonitors(t *testing.T) {
	for _, x := range []struct {
		name    string
		o       tpurecords.Options
		finding string
	}{
		{"no tensor monitor", tpurecords.Options{NoTIU: true}, "tpu.monitor"},
		{"no copy monitor", tpurecords.Options{NoCopies: true}, "tpu.monitor"},
		{"no log", tpurecords.Options{NoLog: true, NoEstimate: true}, "tpu.layers"},
		{"no estimate", tpurecords.Options{NoEstimate: true}, ""},
		{"tick", tpurecords.Options{BadTick: true}, "tpu.firmware.clock"},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.o.TIUStart = 1000
			_, p := made(t, x.o)
			sums(t, p)
			if x.finding != "" && finding(p, x.finding) == nil {
				t.Errorf("no finding %s", x.finding)
			}
			if (p.Totals.Figure("expected_s") != nil) == x.o.NoEstimate {
				t.Error("expected time is wrong")
			}
		})
	}
	t.Run("no log", func(t *testing.T) {
		// The estimate names the layers.
		d, p := made(t, tpurecords.Options{NoLog: true, Commands: 300, TIUStart: 1000})
		truth(t, d, p)
	})
	t.Run("no stream", func(t *testing.T) {
		// The log has the dependencies, too.
		d, p := made(t, tpurecords.Options{NoStream: true, Commands: 300, TIUStart: 1000})
		truth(t, d, p)
	})
}

// TestSubnets reads a launch of several subnets, on the chip and on the host.
func TestSubnets(t *testing.T) {
	steps := []tpurecords.Step{
		{Number: 0, HostS: 0.1},
		{Number: 1, Kind: block.OnCPU, Subnet: 1, Extra: 0, HostS: 0.004},
		{Number: 2, Kind: block.Switch, Subnet: 2, Extra: 1, HostS: 0.001},
		{Number: 3, Subnet: 3, Dynamic: true, HostS: 0.1},
		{Number: 5, Kind: block.Merge, Subnet: 4, HostS: 0.002},
	}
	o := tpurecords.Options{Steps: steps, Commands: 100, TIUStart: 9}
	d, p := made(t, o)
	span := 0.007
	layers := 3
	for _, s := range d.Subnets {
		span += s.Span(&d.Options)
		layers += s.Layers
	}
	near(t, "latency", total(t, p, "latency_s"), span, 40e-9) // the offsets of two subnets' engines
	sums(t, p)
	if len(p.Layers) != layers {
		t.Errorf("%d layers, want %d", len(p.Layers), layers)
	}
	var onHost []string
	for i := range p.Layers {
		if yes, known := p.Layers[i].Accelerated(); known && !yes {
			onHost = append(onHost, p.Layers[i].Op)
		}
	}
	if want := []string{"SSD_DETECTION_OUTPUT", "SWITCH", "MERGE"}; !slices.Equal(onHost, want) {
		t.Errorf("on the host run %q, want %q", onHost, want)
	}
	if len(p.Timeline.Subnets) != 5 {
		t.Errorf("subnets are %q", p.Timeline.Subnets)
	}
	if f := finding(p, "tpu.steps"); f == nil || !strings.Contains(f.Text, "number 4") {
		t.Errorf("finding about steps is %v", f)
	}
	// The dynamic subnet's layers, without the log: the firmware tells of them.
	delete(d.Files, "global.profile")
	delete(d.Files, "net_stat.sim")
	p = one(t, &record.Input{Files: files(d.Files)})
	sub := d.Subnets[1]
	load, _ := sub.Moved()
	got := 0
	for i := range p.Layers {
		if strings.Contains(p.Layers[i].Name, "_") && p.Layers[i].Option("all_commands_of") == "" && p.Layers[i].Placement == nil {
			v, _ := p.Layers[i].Value("load_bytes")
			near(t, p.Layers[i].Name, v, float64(load[got]), 0)
			got++
		}
	}
	if got != sub.Layers {
		t.Errorf("%d layers of the firmware, want %d", got, sub.Layers)
	}
}

// TestInferences reads a launch that runs its first subnet again: figures are means.
func TestInferences(t *testing.T) {
	d, p := made(t, tpurecords.Options{Commands: 100, TIUStart: 9, Steps: []tpurecords.Step{{Number: 0, HostS: 1}, {Number: 1, HostS: 1}, {Number: 7, HostS: 1}}})
	s := d.Subnets[0]
	if n := p.Timeline.Iterations; n == nil || *n != 3 {
		t.Errorf("inferences: %v, want 3", n)
	}
	near(t, "latency", total(t, p, "latency_s"), s.Span(&d.Options), 20e-9)
	busy, _ := s.Busy(&d.Options, false)
	near(t, "tiu_busy_s", total(t, p, "tiu_busy_s"), busy, 1e-9*busy)
	if m := p.Totals.Latency; m.N == nil || *m.N != 3 {
		t.Errorf("latency is %+v", m)
	}
	sums(t, p)
}

// TestCut reads files that end early: what came before is right.
func TestCut(t *testing.T) {
	d := tpurecords.Make(tpurecords.Options{Commands: 200, TIUStart: 9})
	whole := d.Files["iter0.profile"]
	for _, n := range []int{3, 8, 40, 44, 60, 100, len(whole) / 3, len(whole) - 50, len(whole) - 1} {
		d.Files["iter0.profile"] = whole[:n]
		ps, err := profiles(t, &record.Input{Files: files(d.Files)})
		if err != nil {
			t.Errorf("%d bytes: %v", n, err)
			continue
		}
		if len(ps) != 1 {
			t.Errorf("%d bytes: %d profiles", n, len(ps))
		}
		if n > 100 && finding(ps[0], "tpu.dropped") == nil {
			t.Errorf("%d bytes: nothing is said of what is missing", n)
		}
		for _, x := range ps[0].Incomplete {
			// Records are counted, of which there are a few more than commands, and not bytes.
			if x.Want != nil && *x.Want > 300 {
				t.Errorf("%d bytes: %d records are lost of 200 commands: %s", n, *x.Want, x.Text)
			}
		}
	}
}

// TestArch asks for another chip than the record is of.
func TestArch(t *testing.T) {
	d := tpurecords.Make(tpurecords.Options{Commands: 200, TIUStart: 9})
	wrong := &record.Input{Files: files(d.Files), Options: record.Options{Arch: "bm1688"}}
	runs, err := tpu.Format().Read(t.Context(), wrong)
	if e, ok := errors.AsType[*capture.ChipError](err); !ok || len(runs) > 0 || e.Asked != "BM1688" || !strings.Contains(err.Error(), "global.profile says BM1684X") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	wrong.ForceArch = true
	p := one(t, wrong)
	if f := finding(p, "tpu.chip"); f == nil || !strings.Contains(f.Text, "BM1684X") {
		t.Errorf("finding is %v", f)
	}
	p = one(t, &record.Input{Files: files(d.Files), Options: record.Options{Arch: "BM1684x"}})
	if finding(p, "tpu.chip") != nil {
		t.Error("the right chip is called wrong")
	}
	// Without a word of it: by the records.
	for _, chip := range []*command.Chip{command.BM1684, command.BM1684X, command.BM1688, command.CV184X, command.BM1690} {
		d := tpurecords.Make(tpurecords.Options{Chip: chip, Commands: 200, NoLog: true, NoEstimate: true, CopyStart: 500, TIUStart: 400})
		if p := one(t, &record.Input{Files: files(d.Files)}); p.Target.ID != strings.ToLower(chip.Name) {
			t.Errorf("records of %s are taken for those of %s", chip.Name, p.Target.ID)
		}
	}
}

// TestPlaces takes layers from tensor_location.json where there is no log, and compares
// the two where there is one.
func TestPlaces(t *testing.T) {
	for _, chip := range []*command.Chip{command.BM1688, command.BM1690} {
		d := tpurecords.Make(tpurecords.Options{Chip: chip, Commands: 300, CopyStart: 100_000})
		d.Files["tensor_location.json"] = d.Places(0)
		p := one(t, &record.Input{Files: files(d.Files)})
		truth(t, d, p)
		if f := finding(p, "tpu.layers.disagree"); f != nil {
			t.Error(f.Text)
		}
		d.Files["tensor_location.json"] = d.Places(1)
		p = one(t, &record.Input{Files: files(d.Files)})
		truth(t, d, p) // the log is followed
		if f := finding(p, "tpu.layers.disagree"); f == nil || !strings.HasPrefix(f.Text, fmt.Sprintf("%[1]d of %[1]d", len(d.Subnets[0].Commands))) {
			t.Errorf("finding is %v", f)
		}
		d.Files["tensor_location.json"] = d.Places(0)
		delete(d.Files, "global.profile")
		delete(d.Files, "net_stat.sim")
		p = one(t, &record.Input{Files: files(d.Files), Options: record.Options{Arch: chip.Name}})
		truth(t, d, p)
	}
}

// TestOverlap has engines at work at once, and cores and layers share that time.
func TestOverlap(t *testing.T) {
	d, p := made(t, tpurecords.Options{Commands: 300, TIUStart: 9})
	truth(t, d, p)
	// By the truth's own times, cycle by cycle.
	s := d.Subnets[0]
	busy := map[int64]int{}
	for _, c := range s.Commands {
		for at := c.Start; at < c.End; at++ {
			busy[at]++
		}
	}
	any, both := 0, 0
	for _, n := range busy {
		any++
		if n > 1 {
			both++
		}
	}
	if both == 0 {
		t.Fatal("nothing overlaps")
	}
	n := float64(len(s.Commands))
	// Every overlap may be off by the cycles that the offset leaves open.
	near(t, "parallel_s", total(t, p, "parallel_s"), float64(both)*1e-9, 8e-9*n)
	near(t, "operators", *p.Reconcile.OperatorsS, float64(any)*1e-9, 8e-9*n)
}
