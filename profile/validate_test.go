package profile

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile/timeline"
)

// spoiled lists what Validate refuses, with the place that the error names.
var spoiled = []struct {
	name string
	do   func(p *Profile)
	want string
}{
	{"schema", func(p *Profile) { p.Schema = "x" }, "schema"},
	{"target kind", func(p *Profile) { p.Target.Kind = "moon" }, "target.kind"},
	{"target id", func(p *Profile) { p.Target.ID = "" }, "target.id is missing"},
	{"model name", func(p *Profile) { p.Model.Name = "" }, "model.name is missing"},
	{"hash", func(p *Profile) { p.Model.SHA256 = "0A" }, "model.sha256"},
	{"hash in capitals", func(p *Profile) { p.Model.SHA256 = strings.Repeat("0A", 32) }, "model.sha256"},
	{"structure hash", func(p *Profile) { p.Model.StructureSHA256 = "x" }, "model.structure_sha256"},
	{"weights hash", func(p *Profile) { p.Model.WeightsSHA256 = "x" }, "model.weights_sha256"},
	{"input hash", func(p *Profile) { p.Settings.Inputs["x"] = InputSource{SHA256: "x"} }, "settings.inputs.x.sha256"},
	{"file bytes", func(p *Profile) { p.Model.FileBytes = new(int64(-1)) }, "model.file_bytes is -1"},
	{"dimension", func(p *Profile) { p.Model.Inputs[0].Shape[0] = -2 }, "model.inputs[0].shape"},
	{"declared dimension", func(p *Profile) { p.Model.Inputs[0].Declared = []int64{-2} }, "model.inputs[0].declared"},
	{"output", func(p *Profile) { p.Model.Outputs = []Tensor{{Bytes: new(int64(-1))}} }, "model.outputs[0].bytes"},
	{"scale", func(p *Profile) { p.Layers[0].Inputs = []Tensor{{Scale: new(math.NaN())}} }, "layers[0].inputs[0].scale"},
	{"target hash", func(p *Profile) { p.Settings.TargetSHA256 = "x" }, "settings.target_sha256"},
	{"batch", func(p *Profile) { p.Settings.Batch = new(int64(-1)) }, "settings.batch"},
	{"time", func(p *Profile) { p.Settings.TimeS = new(math.Inf(1)) }, "settings.time_s"},
	{"clock", func(p *Profile) { p.Target.ClockHz = new(-1.0) }, "target.clock_hz"},
	{"negative count", func(p *Profile) { p.Totals.Ops = new(int64(-1)) }, "totals.ops"},
	{"negative count of a layer", func(p *Profile) { p.Layers[0].LiveBytes = new(int64(-1)) }, "layers[0].live_bytes"},
	{"metric kind", func(p *Profile) { p.Totals.Latency.Kind = "" }, "totals.latency_s: kind"},
	{"metric order", func(p *Profile) { p.Layers[0].Latency.Median = new(9.0) }, "layers[0].latency_s: median 9 lies outside"},
	{"number of samples", func(p *Profile) { p.Layers[0].Latency.N = new(int64(-1)) }, "layers[0].latency_s: n is -1"},
	{"outliers", func(p *Profile) { p.Layers[0].Latency.Outliers = new(int64(-1)) }, "layers[0].latency_s: outliers is -1"},
	{"spread", func(p *Profile) { p.Layers[0].Latency.MAD = new(-1.0) }, "layers[0].latency_s: a spread"},
	{"interval", func(p *Profile) { p.Layers[0].Latency.CI95 = &[2]float64{2, 1} }, "ci95"},
	{"band", func(p *Profile) { p.Layers[0].Latency.Band = &[2]float64{0, math.Inf(1)} }, "band"},
	{"infinite", func(p *Profile) { p.Layers[0].Latency.Max = new(math.Inf(1)) }, "layers[0].latency_s"},
	{"negative time", func(p *Profile) { p.Totals.Latency.Median = new(-1.0) }, "totals.latency_s"},
	{"figure of the whole", func(p *Profile) { p.Totals.Figures = map[string]*Metric{"x": {Kind: "guess"}} }, "totals.figures.x: kind"},
	{"figure", func(p *Profile) { p.Layers[0].Figures = map[string]*Metric{"x": nil} }, "layers[0].figures.x is null"},
	{"key of a figure", func(p *Profile) { p.Layers[0].Figures = map[string]*Metric{"X": {Kind: Counted}} }, `layers[0].figures: key "X"`},
	{"quantity", func(p *Profile) { p.Quantities = []Quantity{{Key: "x"}} }, `quantities[0]: quantity "x" has no name`},
	{"key of a quantity", func(p *Profile) { p.Quantities = []Quantity{{Key: "a b", Name: "x"}} }, "quantities[0]: key"},
	{"direction of a quantity", func(p *Profile) { p.Quantities = []Quantity{{Key: "x", Name: "x", Better: 2}} }, "quantities[0]"},
	{"half a quotient", func(p *Profile) { p.Quantities = []Quantity{{Key: "x", Name: "x", Of: []string{"ops"}}} }, "one of of and per"},
	{"quotient of itself", func(p *Profile) {
		p.Quantities = []Quantity{{Key: "x", Name: "x", Of: []string{"x"}, Per: []string{"ops"}}}
	}, "quotient with itself"},
	{"quantity twice", func(p *Profile) { p.Quantities = []Quantity{{Key: "x", Name: "x"}, {Key: "x", Name: "y"}} }, "quantities[1].key"},
	{"index", func(p *Profile) { p.Layers[1].Index = 5 }, "layers[1].index"},
	{"op", func(p *Profile) { p.Layers[1].Op = "" }, "layers[1].op"},
	{"parent", func(p *Profile) { p.Layers[1].Parent = new(int64(1)) }, "layers[1].parent"},
	{"fused into none", func(p *Profile) { p.Layers[1].State, p.Layers[1].FusedInto = Fused, new(int64(2)) }, "layers[1].fused_into names"},
	{"fused into itself", func(p *Profile) { p.Layers[1].State, p.Layers[1].FusedInto = Fused, new(int64(1)) }, "is the layer itself"},
	{"fused nowhere", func(p *Profile) { p.Layers[1].State = Fused }, "layers[1].fused_into and state"},
	{"fused and run", func(p *Profile) { p.Layers[1].FusedInto = new(int64(0)) }, "layers[1].fused_into and state"},
	{"state", func(p *Profile) { p.Layers[0].State = "" }, "layers[0].state"},
	{"cause", func(p *Profile) { p.Layers[1].Cause.Code = "because" }, "layers[1].cause.code"},
	{"placement", func(p *Profile) { p.Layers[1].Placement.On = "" }, "layers[1].placement.on is missing"},
	{"another engine without figures or cause", func(p *Profile) { p.Other = &OtherEngine{Engine: "litert", Title: "LiteRT"} }, "other_engine needs"},
	{"another engine with figures and cause", func(p *Profile) {
		p.Other = &OtherEngine{Engine: "litert", Title: "LiteRT", Cause: &Cause{Code: ByError}, Latency: Value(Measured, 1, "")}
	}, "other_engine needs"},
	{"another engine without name", func(p *Profile) { p.Other = &OtherEngine{Title: "LiteRT", Cause: &Cause{Code: ByError}} }, "other_engine.engine"},
	{"share of another engine", func(p *Profile) {
		p.Other = &OtherEngine{Engine: "litert", Title: "LiteRT", Latency: Value(Measured, 1, ""), Operators: []OperatorShare{{"Conv", 1.5}}}
	}, "other_engine.operators[0].share"},
	{"cause of a placement", func(p *Profile) { p.Layers[1].Placement.Cause = "maybe" }, "layers[1].placement.cause"},
	{"option", func(p *Profile) { p.Layers[0].Options[0].Key = "" }, "layers[0].options[0].key"},
	{"share", func(p *Profile) { p.Layers[0].Share = new(1.5) }, "layers[0].share"},
	{"calls", func(p *Profile) { p.Layers[0].Calls = new(-1.0) }, "layers[0].calls"},
	{"samples", func(p *Profile) { p.Layers[0].Samples = []float64{1, math.NaN()} }, "layers[0].samples_s has NaN at 1"},
	{"samples of the whole", func(p *Profile) { p.Totals.LatencySamples = []float64{-1} }, "totals.latency_samples_s"},
	{"confidence", func(p *Profile) { p.Layers[1].Provenance.Confidence = "" }, "layers[1].provenance.confidence"},
	{"source node", func(p *Profile) { p.Layers[1].Provenance.SourceNodes[0].Node = -1 }, "names node -1"},
	{"confidence of a node", func(p *Profile) { p.Layers[1].Provenance.SourceNodes[0].Confidence = "so" }, "source_nodes.confidence"},
	{"share of a node", func(p *Profile) { p.Layers[1].Provenance.SourceNodes[0].Share = new(2.0) }, "source_nodes.share"},
	{"weights statistic", func(p *Profile) { p.Layers[0].Weights = &Weights{DType: "int8", Mean: new(math.NaN())} }, "layers[0].weights"},
	{"channel scales", func(p *Profile) { p.Model.Inputs[0].ChannelScales = &[2]float64{2, 1} }, "model.inputs[0].channel_scales"},
	{"channel axis", func(p *Profile) { p.Model.Inputs[0].ChannelAxis = new(int64(-1)) }, "model.inputs[0].channel_axis"},
	{"sparsity", func(p *Profile) { p.Layers[0].Sparsity = &Sparsity{Weights: new(-0.1)} }, "layers[0].sparsity.weights"},
	{"zero outputs", func(p *Profile) { p.Layers[0].Sparsity = &Sparsity{Activations: new(1.1)} }, "layers[0].sparsity.activations"},
	{"blocks", func(p *Profile) { p.Layers[0].Sparsity = &Sparsity{Blocks: map[string]float64{"1x4": 2}} }, "layers[0].sparsity.blocks.1x4"},
	{"stored bytes", func(p *Profile) { p.Layers[0].Sparsity = &Sparsity{StoredBytes: new(int64(-1))} }, "layers[0].sparsity.stored_bytes"},
	{"missing for no cause", func(p *Profile) { p.Incomplete = []Missing{{}} }, "incomplete[0].cause"},
	{"missing layer", func(p *Profile) { p.Incomplete = []Missing{{Cause: ByEnd, Layers: []int64{2}}} }, "incomplete[0].layers"},
	{"missing number", func(p *Profile) { p.Incomplete = []Missing{{Cause: ByEnd, Want: new(int64(-1))}} }, "incomplete[0].want"},
	{"finding", func(p *Profile) { p.Findings[0].Layers[0] = 2 }, "findings[0].layers"},
	{"finding's name", func(p *Profile) { p.Findings[0].ID = "" }, "findings[0].id"},
	{"finding's text", func(p *Profile) { p.Findings[0].Text = "" }, "findings[0].text"},
	{"severity", func(p *Profile) { p.Findings[0].Severity = "" }, "severity"},
	{"phases", func(p *Profile) { p.Phases = &Phases{PeaksS: new(-1.0)} }, "phases.peaks_s"},
	{"warm-up", func(p *Profile) { p.Phases = &Phases{Warmup: &Warmup{Count: new(int64(-1))}} }, "phases.warmup.count"},
	{"wall time", func(p *Profile) { p.Reconcile.WallS = new(-1.0) }, "reconcile.wall_s"},
	{"overhead", func(p *Profile) { p.Reconcile.OverheadS.Kind = "" }, "reconcile.overhead_s"},
	{"unassigned", func(p *Profile) { p.Reconcile.Unassigned = new(math.NaN()) }, "reconcile.unassigned"},
	{"memory", func(p *Profile) { p.Memory = &Memory{Plan: []Buffer{{Offset: -1}}} }, "memory.plan[0]"},
	{"memory steps", func(p *Profile) { p.Memory = &Memory{StepLayers: []int64{-1, 99}} }, "memory.step_layers[1]"},
	{"arena", func(p *Profile) { p.Memory = &Memory{TFLMArenaBytes: new(int64(-1))} }, "memory.tflm_arena_bytes"},
	{"host", func(p *Profile) { p.Host = &Host{Before: &HostState{TemperatureC: new(-300.0)}} }, "host.before.temperature_c"},
	{"host count", func(p *Profile) { p.Host = &Host{Cores: new(int64(-1))} }, "host.cores"},
	{"host real", func(p *Profile) { p.Host = &Host{After: &HostState{LoadAverage: new(-1.0)}} }, "host.after.load_average"},
	{"verdict", func(p *Profile) { p.Trust = &Trust{Verdict: "perhaps"} }, "trust.verdict"},
	{"reason", func(p *Profile) { p.Trust = NewTrust([]Doubt{{Code: "rain", Verdict: Fair}}) }, "trust.doubts[0].code"},
	{"reason below the verdict", func(p *Profile) {
		p.Trust = &Trust{Verdict: Good, Doubts: []Doubt{{Code: DoubtDrift, Verdict: Unreliable}}}
	}, "trust.doubts[0].verdict"},
	{"shared parameters of none", func(p *Profile) { p.Layers[0].Params, p.Layers[0].SharedParams = nil, new(int64(1)) }, "layers[0].shared_params"},
	{"more shared weights than weights", func(p *Profile) {
		p.Layers[0].WeightsBytes, p.Layers[0].SharedWeightsBytes = new(int64(4)), new(int64(5))
	}, "layers[0].shared_weights_bytes"},
	{"scope", func(p *Profile) { p.Trust = &Trust{Verdict: Good, Interval: "ever"} }, "trust.interval"},
	{"fit", func(p *Profile) { p.Trust = &Trust{Verdict: Good, Fit: "all"} }, "trust.fit"},
	{"tolerance", func(p *Profile) { p.Trust = &Trust{Verdict: Good, Tolerance: new(-0.1)} }, "trust.tolerance"},
	{"quote", func(p *Profile) { p.Trust = &Trust{Verdict: Good, Quote: "the best one"} }, "trust.quote"},
	{"peak", func(p *Profile) { p.Target.Peaks = []Peak{{DType: "int8", OpsPerSecond: -1}} }, "target.peaks[0].ops_per_second"},
	{"peak's type", func(p *Profile) { p.Target.Peaks = []Peak{{OpsPerSecond: 1}} }, "target.peaks[0].dtype"},
	{"level", func(p *Profile) { p.Target.Levels = []Level{{Name: "L1", Bytes: new(int64(-1))}} }, "target.levels[0].bytes"},
	{"level's spread", func(p *Profile) { p.Target.Levels = []Level{{Name: "L1", Spread: new(1.5)}} }, "target.levels[0].spread"},
	{"phase", func(p *Profile) {
		p.Language = &LanguageModel{Cache: KVCache{DType: "float32"}, Phases: []Phase{{Kind: "warm"}}}
	}, "language_model.phases[0].kind"},
	{"phase's quantity", func(p *Profile) {
		p.Language = &LanguageModel{Cache: KVCache{DType: "float32"}, Phases: []Phase{{Kind: DecodePhase, Quantity: "a b"}}}
	}, "language_model.phases[0].quantity"},
	{"cache", func(p *Profile) { p.Language = &LanguageModel{Cache: KVCache{DType: "float32", Layers: -1}} }, "language_model.cache.layers"},
	{"blocks", func(p *Profile) { p.Blocks = []Block{{}} }, "blocks[0].count"},
	{"a block's part", func(p *Profile) { p.Blocks = []Block{{Count: 1, Part: "tail"}} }, "blocks[0].part"},
	{"layers of blocks", func(p *Profile) { p.Blocks = []Block{{Count: 2, Layers: []BlockLayer{{Layers: []int64{0}}}}} }, "blocks[0].layers[0].layers"},
	{"layer of a block", func(p *Profile) { p.Blocks = []Block{{Count: 1, Layers: []BlockLayer{{Layers: []int64{99}}}}} }, "names layer 99"},
	{"layer in two blocks", func(p *Profile) {
		p.Blocks = []Block{{Count: 1, Layers: []BlockLayer{{Layers: []int64{0}, With: []int64{0}}}}}
	}, "layer 0 is in two places"},
	{"roof", func(p *Profile) { p.Layers[0].Roof = &Roof{Bound: "sky"} }, "layers[0].roof.bound"},
	{"timeline", func(p *Profile) { p.Timeline = &timeline.Timeline{Dropped: new(int64(-1))} }, "timeline.dropped"},
	{"timeline's layers", func(p *Profile) {
		p.Timeline = &timeline.Timeline{Lanes: []timeline.Lane{{Name: "x", Kind: timeline.Host, Starts: []float64{0}, Durations: []float64{0}, Layers: []int32{2}}}}
	}, "timeline.lanes[0].layers has 2 at 0"},
}

func TestValidate(t *testing.T) {
	t.Parallel()
	if err := example().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range spoiled {
		p := example()
		tt.do(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Validate = %v, want %q", tt.name, err, tt.want)
		}
	}
	if err := (*Profile)(nil).Validate(); err == nil {
		t.Error("nil is valid")
	}
}

// TestNoFigureEscapes puts what is not a number into every real of a profile that has
// every field: JSON has no way to write it, so that Validate must find it.
func TestNoFigureEscapes(t *testing.T) {
	t.Parallel()
	var p Profile
	fillAll(reflect.ValueOf(&p).Elem())
	all := map[string]bool{}
	var walk func(v reflect.Value, at string)
	walk = func(v reflect.Value, at string) {
		switch v.Kind() {
		case reflect.Pointer:
			walk(v.Elem(), at)
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), at+"."+v.Type().Field(i).Name)
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				walk(v.Index(i), at+"[]")
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				if e := v.MapIndex(k); e.Kind() != reflect.Float64 {
					walk(e, at+"{}")
				}
			}
		case reflect.Float64:
			old := v.Float()
			v.SetFloat(math.NaN())
			c := *validated(&p)
			if err := c.Validate(); err == nil {
				t.Errorf("NaN in %s is valid", at)
			}
			all[at] = true
			v.SetFloat(old)
		}
	}
	if err := validated(&p).Validate(); err != nil {
		t.Fatal(err)
	}
	walk(reflect.ValueOf(&p).Elem(), "profile")
	if len(all) < 80 {
		t.Errorf("%d reals were tried", len(all))
	}
}

// validated gives the words and references of a profile with every field set values
// that are right.
func validated(from *Profile) *Profile {
	p := deep(from)
	p.Schema, p.Target.Kind = SchemaV1, TargetHost
	hash := strings.Repeat("0", 64)
	p.Model.SHA256, p.Model.StructureSHA256, p.Model.WeightsSHA256 = hash, hash, hash
	p.Settings.TargetSHA256 = hash
	for k, in := range p.Settings.Inputs {
		in.SHA256 = hash
		p.Settings.Inputs[k] = in
	}
	p.Memory.StepLayers = []int64{0}
	p.Model.Inputs[0].Assumed, p.Model.Outputs[0].Assumed = []int64{0}, []int64{0}
	l := &p.Layers[0]
	for _, ts := range [][]Tensor{l.Inputs, l.Outputs} {
		ts[0].Assumed = []int64{0}
	}
	l.Index, l.Parent, l.FusedInto, l.State = 0, nil, nil, Ran
	l.Cause.Code, l.Placement.Cause, l.Provenance.Confidence = ByEnd, ByEnd, Exact
	l.Provenance.SourceNodes[0].Confidence = Exact
	p.Incomplete[0].Cause, p.Incomplete[0].Layers = ByEnd, []int64{0}
	p.Findings[0].Severity, p.Findings[0].Layers = Info, []int64{0}
	p.Settings.Scenario, p.Settings.Cold = Throughput, ColdCaches
	l.Roof.Bound, l.Check.Outcome = BoundMemory, CheckAgrees
	p.Bounds[0].Bound = BoundUnknown
	b := &p.Blocks[0]
	b.Count, b.Part, b.Parts[0].Name, b.Layers[0].Part, b.Layers[0].Layers, b.Layers[0].With = 1, PartHead, PartHead, PartHead, []int64{0}, nil
	p.Target.Peaks[0].ReachedBy, p.Target.Levels[0].ReachedBy = new(int64(0)), new(int64(0))
	p.Differences[0].State, p.Differences[0].Cause.Code = NotComparable, ByEnd
	p.Other.Cause = nil
	ph := &p.Language.Phases[0]
	ph.Kind, ph.Roof.Bound = DecodePhase, BoundMemory
	for _, t := range []*Trust{p.Trust, ph.Trust} {
		t.Verdict, t.Fit, t.Interval = Fair, FitShares, OfRepeats
		t.Doubts[0].Code, t.Doubts[0].Verdict = DoubtDrift, Fair
	}
	p.Quantities[0].Key, p.Quantities[0].Of, p.Quantities[0].Per = "key", nil, nil
	for _, v := range []*Metric{
		p.Totals.Latency, p.Totals.CPUCycles, p.Totals.AcceleratorCycles, p.Totals.SimulatorCycles, p.Totals.Energy, p.Totals.Figures["key"],
		l.Latency, l.Total, l.CPUCycles, l.AcceleratorCycles, l.SimulatorCycles, l.Expected, l.Energy, l.Figures["key"],
		p.Reconcile.OverheadS, p.Reconcile.OverheadPerOperatorS, p.Other.Latency,
		b.Figures["key"], b.Parts[0].Figures["key"], b.Layers[0].Figures["key"], ph.Latency, ph.TokensPerS, ph.Reconcile.OverheadS, ph.Reconcile.OverheadPerOperatorS,
	} {
		v.Kind = Measured
	}
	t := p.Timeline
	lane := &t.Lanes[0]
	t.Clocks[0].Name, lane.Kind, lane.Clock, t.Counters[0].Clock, t.Memories[0].Clock = "x", timeline.Host, "x", "x", "x"
	for c := range lane.Columns() {
		if c.Int32 != nil {
			*c.Int32 = []int32{0}
		}
	}
	t.Memories[0].Layers, t.Links[0] = []int32{0}, timeline.Link{}
	return p
}
