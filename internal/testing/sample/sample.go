package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Options sets the size of a made-up profile. The zero value gives a small one
// with one of everything.
type Options struct {
	Layers     int    // operators, at least 12 (default 60)
	Iterations int    // inferences (default 20)
	Cores      int    // cores of the accelerator (default 2)
	Samples    bool   // keep a sample for each layer and iteration
	Bars       int    // about this many bars on the timeline (default: from layers and iterations)
	Hostile    bool   // names that try to break what shows them
	Seed       uint64 // of the noise
}

// Hostile are texts that must be shown and never be executed or obeyed.
var Hostile = []string{
	`</script><script>window.__pwned=1</script>`,
	`<img src=x onerror="window.__pwned=1">`,
	`"><svg/onload=window.__pwned=1>`,
	`=HYPERLINK("http://127.0.0.1/","click")`,
	`+cmd|' /C calc'!A0`, `@SUM(1+1)`, `-1+1`,
	"\x1b[31mred\x1b[0m\x07", "tab\there\nnewline\rreturn\x00nul",
	"\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
	`it's "quoted", back\slash and | pipe`, "`code` *bold* _it_ [x](javascript:alert(1))",
	"{{constructor.constructor('window.__pwned=1')()}}", "${window.__pwned=1}", "%s%n%x",
	`quoted "name", with comma and \ backslash`, "separators \u2028 \u2029 \ufeff \u0085", "日本語の層 ✓", "a b=c/d-8", " ", "{}[]:,'%s%00", "<!--",
	"zero\u200bwidth\u2060", "\U0001f600 emoji \u0301combining", strings.Repeat("long", 2500),
}

// kinds are the operators of a block with their work, operations an element.
var kinds = []struct {
	op   string
	work float64
}{
	{"CONV_2D", 600}, {"DEPTHWISE_CONV_2D", 40}, {"CONV_2D", 300}, {"ADD", 1}, {"RELU6", 2}, {"AVERAGE_POOL_2D", 9}, {"FULLY_CONNECTED", 900}, {"SOFTMAX", 5},
}

// others are the layers of which not each ran, by their index.
var others = map[int]struct {
	state profile.State
	cause *profile.Cause
}{
	5:  {profile.Fused, nil},
	17: {profile.Folded, nil},
	23: {profile.Unsupported, &profile.Cause{Code: profile.ByOperator, Text: "version 99"}},
	25: {profile.Skipped, &profile.Cause{Code: profile.ByInput}},
	29: {profile.Lost, &profile.Cause{Code: profile.ByRecord, Text: "the buffer was full"}},
	31: {profile.NotReached, nil},
	37: {profile.NoEstimate, &profile.Cause{Code: profile.ByNoFigures, Text: "nobody has measured it"}},
	42: {profile.Fused, nil},
	43: {profile.Failed, &profile.Cause{Code: profile.ByError, Text: "its inputs contradict each other"}},
	48: {profile.Folded, nil},
}

// Quantities are the figures that made-up profiles have of their own.
var Quantities = []profile.Quantity{
	{Key: "bank_conflicts", Head: "conflicts", Name: "Bank conflicts", Group: "Tensor unit", Adds: true, Whole: true, Better: -1, Doc: "How often two accesses met in a bank of the local memory."},
	{Key: "memory_wait_s", Unit: "s", Head: "memory wait", Name: "Wait for memory", Group: "Tensor unit", Adds: true, Better: -1, Doc: "Time in which the tensor unit waited for memory."},
	{Key: "temperature_c", Unit: "°C", Head: "temp.", Name: "Temperature", Group: "Board", Doc: "Temperature of the chip after the layer."},
}

// New makes a profile. Equal options give equal profiles.
func New(o Options) *profile.Profile {
	if o.Layers == 0 {
		o.Layers = 60
	}
	o.Layers = max(12, o.Layers)
	if o.Iterations == 0 {
		o.Iterations = 20
	}
	if o.Cores == 0 {
		o.Cores = 2
	}
	g := &generator{o: o, rng: rand.New(rand.NewPCG(o.Seed, 1))}
	g.p = &profile.Profile{
		Schema: profile.SchemaV1, Created: "2026-11-01T12:00:00Z",
		Model: profile.Model{
			Name: g.name("sample net"), Path: "sample.tflite", Format: "tflite", SHA256: strings.Repeat("0123456789abcdef", 4), FileBytes: new(int64(3_400_000)),
			Producer: "made up", Warnings: []string{"This model does not exist."},
			Inputs:  []profile.Tensor{{Name: "input", DType: "int8", Shape: []int64{1, 96, 96, 3}, Bytes: new(int64(27648))}},
			Outputs: []profile.Tensor{{Name: "scores", DType: "int8", Shape: []int64{1, 10}, Bytes: new(int64(10))}},
		},
		Target: profile.Target{
			ID: "made-up", Kind: profile.TargetImport, ClockHz: new(1e9), Accelerator: "made-up tensor unit", Engine: "made up", Description: "An accelerator that does not exist",
			PeakOpsPerSecond: new(2e12), PeakBytesPerSecond: new(25e9), PeakMethod: "made up",
		},
		Settings: profile.Settings{Version: "0", Seed: new(o.Seed), InputKind: "random", Threads: new(int64(2)), Batch: new(int64(1))},
		Host:     &profile.Host{OS: "linux", Arch: "amd64"},
	}
	g.p.Quantities = Quantities
	g.layers()
	g.memory()
	g.timeline()
	g.totals()
	for i := range g.p.Layers {
		g.p.Layers[i].Roof = g.p.Target.RoofOf(&g.p.Layers[i])
	}
	return g.p
}

type generator struct {
	o     Options
	rng   *rand.Rand
	p     *profile.Profile
	times []float64 // median time of each layer, seconds
	named int
}

// name gives a harmless name, or a hostile one in turn.
func (g *generator) name(s string) string {
	if !g.o.Hostile {
		return s
	}
	g.named++
	return s + Hostile[g.named%len(Hostile)]
}

// noise is about 1, skewed to the right as times are.
func (g *generator) noise(spread float64) float64 { return 1 + spread*g.rng.ExpFloat64() }

func (g *generator) layers() {
	const block = 6
	out := "input"
	skip := out
	size := int64(96 * 96 * 8)
	for i := range g.o.Layers {
		k := kinds[i%block]
		if i >= g.o.Layers-2 {
			k = kinds[len(kinds)-g.o.Layers+i]
		}
		scope := fmt.Sprintf("stage%d/block%d", i/(4*block), i/block)
		l := profile.Layer{
			Index: int64(i), Name: g.name(fmt.Sprintf("%s/%s_%d", scope, strings.ToLower(k.op), i)), Op: k.op, Scope: g.name(scope), Version: new(int64(3)),
			Options: []profile.Option{{Key: "padding", Value: "same"}, {Key: "stride", Value: "1x1"}, {Key: "activation", Value: "relu6"}}, Kernel: "made/up",
			Provenance: &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Node: int64(i), Name: fmt.Sprintf("node_%d", i), Op: k.op}}},
		}
		shape := []int64{1, 48, 48, size / (48 * 48)}
		in := profile.Tensor{Name: out, DType: "int8", Shape: shape, Bytes: new(size), Scale: new(0.02), ZeroPoint: new(int64(-1))}
		l.Inputs = []profile.Tensor{in}
		weights := int64(0)
		if k.work >= 40 {
			weights = int64(k.work) * 12
			l.Inputs = append(l.Inputs, profile.Tensor{Name: fmt.Sprintf("w%d", i), DType: "int8", Shape: []int64{8, weights / 8}, Bytes: new(weights), Constant: true})
			l.MACs = new(int64(float64(size) * k.work / 2))
			l.Params, l.WeightsBytes = new(weights), new(weights)
		}
		if k.op == "ADD" {
			l.Inputs = append(l.Inputs, profile.Tensor{Name: skip, DType: "int8", Shape: shape, Bytes: new(size)})
		}
		out = g.name(fmt.Sprintf("t%d", i))
		l.Outputs = []profile.Tensor{{Name: out, DType: "int8", Shape: shape, Bytes: new(size)}}
		if i%block == block-1 {
			skip = out
		}
		l.Ops = new(int64(float64(size) * k.work))
		l.BytesRead, l.BytesWritten = new(size+weights), new(size)
		t := (float64(*l.Ops)/1.2e12 + float64(*l.BytesRead)/20e9 + 2e-6) * g.noise(0.3)
		l.State, l.Placement = profile.Ran, &profile.Placement{On: g.p.Target.Accelerator}
		if i%23 == 11 {
			l.Placement = &profile.Placement{On: profile.CPU, Cause: profile.ByLimit, Text: g.name("filter larger than 16 x 16")}
			t *= 6
		}
		if x, ok := others[i]; ok {
			l.State, l.Cause, t = x.state, x.cause, 0
			if x.cause != nil {
				l.Cause = &profile.Cause{Code: x.cause.Code, Text: g.name(x.cause.Text)}
			}
			if l.State == profile.Fused {
				l.FusedInto = new(int64(i - 1))
			}
		}
		g.times = append(g.times, t)
		if t > 0 {
			g.figures(&l, t)
		}
		g.p.Layers = append(g.p.Layers, l)
	}
	var sum float64
	for _, t := range g.times {
		sum += t
	}
	for i := range g.p.Layers {
		if g.times[i] > 0 {
			g.p.Layers[i].Share = new(g.times[i] / sum)
		}
	}
	for i, r := range profile.Ranks(g.p.Layers) {
		l := &g.p.Layers[i]
		if l.Rank = r; r != nil {
			l.ShareCI95 = &[2]float64{l.Latency.CI95[0] / sum, l.Latency.CI95[1] / sum}
		}
	}
}

// figures gives a layer its times, measured and expected, cycles and energy.
func (g *generator) figures(l *profile.Layer, t float64) {
	m := &profile.Metric{
		Kind: profile.Measured, N: new(int64(g.o.Iterations)), Median: new(t), Mean: new(t * 1.02), Min: new(t * 0.95), Max: new(t * 1.6), P90: new(t * 1.1),
		StdDev: new(t * 0.06), MAD: new(t * 0.02), CI95: &[2]float64{t * 0.99, t * 1.01}, Outliers: new(int64(g.o.Iterations / 50)), Method: "made up",
	}
	l.Latency = m
	e := t * (0.8 + 0.4*g.rng.Float64())
	l.Expected = &profile.Metric{Kind: profile.Estimated, Median: &e, Band: &[2]float64{e * 0.85, e * 1.2}, Method: "made up"}
	if yes, _ := l.Accelerated(); yes {
		l.AcceleratorCycles = profile.Value(profile.Measured, math.Round(t*1e9), "made up")
		l.SimulatorCycles = profile.Value(profile.Simulated, math.Round(t*0.8e9), "made up")
	}
	l.Energy = profile.Value(profile.Estimated, t*2.5, "made up")
	l.Figures = map[string]*profile.Metric{
		"bank_conflicts": profile.Value(profile.Imported, math.Round(t*1e8), ""),
		"memory_wait_s":  profile.Value(profile.Imported, t*0.1, "made up"),
		"temperature_c":  profile.Value(profile.Imported, 40+float64(l.Index)/10, ""),
	}
	if g.o.Samples {
		l.Samples = make([]float64, g.o.Iterations)
		for i := range l.Samples {
			l.Samples[i] = math.Round(t*(0.95+0.05*g.rng.ExpFloat64()+0.05*float64(i)/float64(g.o.Iterations))*1e9) / 1e9
		}
		s := l.Samples
		lo, hi := s[0], s[0]
		for _, v := range s {
			lo, hi = min(lo, v), max(hi, v)
		}
		l.Latency.Min, l.Latency.Max = new(min(lo, *m.Min)), new(max(hi, *m.Max))
	}
}

func (g *generator) memory() {
	m := &profile.Memory{Planner: "made up", AlignBytes: new(int64(16)), PersistentBytes: new(int64(4096))}
	var top int64
	for i := range g.p.Layers {
		l := &g.p.Layers[i]
		b := *l.Outputs[0].Bytes
		last := int64(i + 1)
		if i%6 == 5 {
			last = int64(i + 4)
		}
		last = min(last, int64(len(g.p.Layers)-1))
		e := profile.Buffer{Name: l.Outputs[0].Name, Bytes: b, Offset: int64(i%4) * b, First: int64(i), Last: last}
		if i%6 == 5 {
			e.Offset = 4 * b
		}
		m.Plan = append(m.Plan, e)
		if i%6 == 0 {
			m.Plan = append(m.Plan, profile.Buffer{Name: "scratch of " + l.Op, Bytes: b / 4, Offset: 5 * b, First: int64(i), Last: int64(i), Scratch: true})
		}
		top = max(top, 5*b+b/4)
	}
	var peak int64
	for step := range g.p.Layers {
		var alive int64
		for _, e := range m.Plan {
			if e.First <= int64(step) && int64(step) <= e.Last {
				alive += e.Bytes
			}
		}
		peak = max(peak, alive)
	}
	m.ArenaBytes, m.PeakBytes, m.ScratchBytes = new(top), &peak, new(top/21)
	g.p.Memory = m
}

// timeline lays the layers of every iteration on the engines of the cores: a
// transfer in, the work, a transfer out, the next transfer beside the work.
func (g *generator) timeline() {
	t := &timeline.Timeline{Origin: "start of the first iteration", Iterations: new(int64(g.o.Iterations)), Dropped: new(int64(3)), Method: "made up", Subnets: []string{"TPU (static)", "CPU (topk)"}}
	word := func(s string) int32 {
		for i, n := range t.Names {
			if n == s {
				return int32(i)
			}
		}
		t.Names = append(t.Names, s)
		return int32(len(t.Names) - 1)
	}
	load, store := word("DDR to local"), word("local to DDR")
	t.Clocks = []timeline.Clock{{Name: "computer", OffsetS: new(0.0), Method: "made up"}}
	iter := timeline.Lane{Name: "iterations", Kind: timeline.Iteration}
	host := timeline.Lane{Name: "host", Kind: timeline.Host, Clock: "computer"}
	layer := timeline.Lane{Name: "layers", Kind: timeline.Layer}
	group := timeline.Lane{Name: "layer groups", Kind: timeline.LayerGroup}
	sub := timeline.Lane{Name: "subnets", Kind: timeline.Subnet}
	busy, dma := make([]timeline.Lane, g.o.Cores), make([]timeline.Lane, g.o.Cores)
	for c := range g.o.Cores {
		core := fmt.Sprintf("core %d", c)
		busy[c] = timeline.Lane{Name: "tensor unit", Kind: timeline.Engine, Group: core, Figures: map[string][]float64{}}
		dma[c] = timeline.Lane{Name: "DMA", Kind: timeline.Engine, Group: core}
	}
	bandwidth := timeline.Counter{Name: "DDR bandwidth", Unit: "B/s"}
	space := timeline.Memory{Name: "local", Group: "core 0"}
	for b := range 16 {
		space.Partitions = append(space.Partitions, timeline.Partition{Name: fmt.Sprintf("bank %d", b), Address: int64(b) << 14, Bytes: 1 << 14})
	}
	global := timeline.Memory{Name: "global", Partitions: []timeline.Partition{{Name: "weights", Address: 1 << 32, Bytes: 4 << 20}, {Name: "activations", Address: 1<<32 + 4<<20, Bytes: 8 << 20}}}

	timed := 0
	for _, s := range g.times {
		if s > 0 {
			timed++
		}
	}
	// Bars beyond those of the iterations come from commands inside the layers: of
	// each there are three on a core.
	commands := 1
	if n := 3 * timed * g.o.Cores * g.o.Iterations; g.o.Bars > n {
		commands = (g.o.Bars - timed*g.o.Iterations + n - 1) / n
	}
	add := func(l *timeline.Lane, start, length float64, layer, label, iteration int32) int32 {
		l.Starts, l.Durations = append(l.Starts, round(start)), append(l.Durations, round(start+length)-round(start))
		l.Layers, l.Labels, l.Iterations = append(l.Layers, layer), append(l.Labels, label), append(l.Iterations, iteration)
		return int32(len(l.Starts) - 1)
	}
	now := 0.0
	for it := range g.o.Iterations {
		n := int32(it)
		begin := now
		add(&host, now, 20e-6, -1, word("copy input"), n)
		now += 25e-6
		net := now
		block, from := -1, 0.0
		for i, s := range g.times {
			if s == 0 {
				continue
			}
			d := s * g.noise(0.05)
			li := int32(i)
			if i/6 != block {
				block, from = i/6, now
			}
			add(&layer, now, d, li, -1, n)
			for c := range g.o.Cores {
				step := d / float64(commands)
				for k := range commands {
					at := now + float64(k)*step
					bytes := (*g.p.Layers[i].BytesRead + *g.p.Layers[i].BytesWritten) / int64(g.o.Cores*commands)
					a := add(&dma[c], at, step*0.25, li, word("load"), n)
					dma[c].Bytes, dma[c].Directions = append(dma[c].Bytes, bytes*2/3), append(dma[c].Directions, load)
					b := add(&busy[c], at+step*0.25, step*0.6, li, word(g.p.Layers[i].Op), n)
					busy[c].Stalls = append(busy[c].Stalls, round(step*0.6*0.2*g.rng.Float64()))
					busy[c].Utilisation = append(busy[c].Utilisation, 0.4+0.6*g.rng.Float64())
					busy[c].Figures["bank_conflicts"] = append(busy[c].Figures["bank_conflicts"], float64(g.rng.IntN(50)-1))
					add(&dma[c], at+step*0.85, step*0.12, li, word("store"), n)
					dma[c].Bytes, dma[c].Directions = append(dma[c].Bytes, bytes/3), append(dma[c].Directions, store)
					if it == 0 && k == 0 {
						first := int32(5 + 2*c)
						t.Links = append(t.Links, timeline.Link{FromLane: first + 1, FromBar: a, ToLane: first, ToBar: b})
					}
				}
			}
			if it < 4 {
				bandwidth.Times = append(bandwidth.Times, round(now), round(now+d*0.25))
				bandwidth.Values = append(bandwidth.Values, 20e9*g.rng.Float64(), 1e9)
				access(&space, now, d*0.25, int64(g.rng.IntN(12))<<14, 1<<14, 1, li)
				access(&space, now+d*0.25, d*0.6, int64(g.rng.IntN(12))<<14, 1<<13, 0, li)
				access(&global, now+d*0.3, d*0.25, 1<<32+int64(i)*1024, 1<<16, 0, li)
				access(&global, now+d*0.85, d*0.12, 1<<32+4<<20+int64(i%4)<<18, 1<<17, 1, li)
			}
			now += d
			if i%6 == 5 {
				add(&group, from, now-from, -1, word(fmt.Sprintf("group %d", i/6)), n)
				from = now
			}
		}
		add(&sub, net, now-net, -1, -1, n)
		sub.Subnets = append(sub.Subnets, 0)
		add(&host, now, 30e-6, -1, word("copy output"), n)
		now += 40e-6
		add(&iter, begin, now-begin, -1, -1, n)
	}
	t.Lanes = append(t.Lanes, iter, host, sub, group, layer)
	for c := range g.o.Cores {
		t.Lanes = append(t.Lanes, busy[c], dma[c])
	}
	t.Counters = []timeline.Counter{bandwidth}
	t.Memories = []timeline.Memory{space, global}
	g.p.Timeline = t
}

func access(m *timeline.Memory, start, length float64, address, size int64, write, layer int32) {
	m.Starts, m.Ends = append(m.Starts, round(start)), append(m.Ends, round(start+length))
	m.Addresses, m.Sizes = append(m.Addresses, address), append(m.Sizes, size)
	m.Writes, m.Layers = append(m.Writes, write), append(m.Layers, layer)
}

// round to whole nanoseconds.
func round(s float64) float64 { return math.Round(s*1e9) / 1e9 }

func (g *generator) totals() {
	p := g.p
	t := &p.Totals
	var sum, energy float64
	add := func(to **int64, v *int64) {
		if v == nil {
			return
		}
		if *to == nil {
			*to = new(int64(0))
		}
		**to += *v
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		add(&t.Ops, l.Ops)
		add(&t.MACs, l.MACs)
		add(&t.Params, l.Params)
		add(&t.WeightsBytes, l.WeightsBytes)
		add(&t.BytesRead, l.BytesRead)
		add(&t.BytesWritten, l.BytesWritten)
		sum += g.times[i]
		energy += g.times[i] * 2.5
	}
	t.Layers = new(int64(len(p.Layers)))
	t.RAMBytes, t.FlashBytes = p.Memory.ArenaBytes, p.Model.FileBytes
	t.Latency = &profile.Metric{
		Kind: profile.Measured, N: new(int64(g.o.Iterations)), Median: new(sum * 1.05), Mean: new(sum * 1.06), Min: new(sum), Max: new(sum * 1.5), P90: new(sum * 1.2),
		StdDev: new(sum * 0.04), MAD: new(sum * 0.01), CI95: &[2]float64{sum * 1.04, sum * 1.06}, Outliers: new(int64(1)), Method: "made up",
	}
	t.Energy = profile.Value(profile.Estimated, energy, "made up")
	for _, key := range []string{"bank_conflicts", "memory_wait_s"} {
		v, _ := p.Select(func(*profile.Layer) bool { return true }).Sum(key)
		if err := t.Set(key, profile.Value(profile.Imported, v, "sum of the layers")); err != nil {
			panic(err) // the keys stand above
		}
	}
	if g.o.Samples {
		t.LatencySamples = make([]float64, g.o.Iterations)
		for i := range t.LatencySamples {
			t.LatencySamples[i] = round(sum * (1 + 0.05*g.rng.ExpFloat64()))
		}
	}
	p.Reconcile = &profile.Reconcile{
		WallS: new(sum * 1.06), OperatorsS: new(sum * 1.05), GapsS: new(sum * 0.01), PlainS: new(sum * 1.05), ProfiledS: new(sum * 1.055), Unassigned: new(0.0),
		OverheadS: profile.Value(profile.Measured, sum*0.005, "made up"),
	}
	p.Phases = &profile.Phases{LoadS: new(0.002), PlanS: new(0.001), FirstRunS: new(sum * 2), Warmup: &profile.Warmup{TimeS: new(0.5), Count: new(int64(10)), Steady: new(true)}}
	p.Incomplete = []profile.Missing{{Cause: profile.ByRecord, Text: g.name("the buffer of core 1 was full"), Want: new(int64(3))}}
	for i := range p.Layers {
		if p.Layers[i].State == profile.Lost {
			p.Incomplete[0].Layers = append(p.Incomplete[0].Layers, int64(i))
		}
	}
	p.Findings = []profile.Finding{
		{ID: "sample.slow", Severity: profile.Warning, Text: g.name("Layer 11 runs on the processor and takes six times as long."), Layers: []int64{11}},
		{ID: "sample.info", Severity: profile.Info, Text: "This profile is made up."},
		{ID: "sample.lost", Severity: profile.Problem, Text: "Three records were lost."},
	}
}
