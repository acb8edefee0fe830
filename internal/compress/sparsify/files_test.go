package sparsify

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

const pruned = `{"analysis": {
  "baseline": {"model": {"measurement": 0.01}, "ops": [{"id": "b", "name": "Conv", "index": 1, "measurement": 0.004}]},
  "pruning": {"model": {"baseline_measurement_key": "0.0", "measurements": {"0.0": 0.012, "0.9": 0.008}},
    "ops": [{"id": "b", "name": "Conv", "index": 1, "baseline_measurement_key": "0.83", "measurements": {"0.83": 0.004, "0.4": 0.004, "0.9": 0.003, "0.95": 0.002}}]},
  "quantization": null}}`

func layers() []study.Layer {
	return []study.Layer{
		{Node: 0, ID: "a", Name: "na", Op: "Conv", Weight: "a.w", Rows: 10, Cols: 10, Params: 110},
		{Node: 1, ID: "b", Name: "nb", Op: "Conv", Weight: "b.w", Rows: 10, Cols: 20, Params: 210, Zeros: 166},
		{Node: 2, ID: "c", Name: "nc", Op: "MatMul", Weight: "c.w", Rows: 10, Cols: 80, Params: 800},
	}
}

// TestPrunedLayer keeps a layer whose unpruned time stands at its own sparsity, in the order of
// the file.
func TestPrunedLayer(t *testing.T) {
	t.Parallel()
	p, err := ParseProfile([]byte(pruned), "p.json")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range p.Analysis.Pruning.Ops[0].Measurements {
		keys = append(keys, m.Name)
	}
	if want := []string{"0.83", "0.4", "0.9", "0.95"}; !slices.Equal(keys, want) {
		t.Errorf("keys %v, want %v", keys, want)
	}
	s, unmatched := ToSpeed(p, layers())
	if len(unmatched) != 0 || len(s.Layers) != 1 || *s.Layers[0].Latency.Median != 0.004 || len(s.Points) != 3 {
		t.Fatalf("unmatched %v, layers %+v, %d points", unmatched, s.Layers, len(s.Points))
	}
	for i, want := range []float64{1, 0.75, 0.5} {
		if got := *s.Points[i].Ratio.Median; got != want {
			t.Errorf("ratio %v, want %v", got, want)
		}
	}
	text, err := p.JSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseProfile(text, "again")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, back); d != "" {
		t.Error(d)
	}
	if !strings.Contains(string(text), `"quantization": null`) {
		t.Errorf("no null for quantisation: %s", text)
	}
}

// TestProfileOfStudy goes from a study to a profile and back.
func TestProfileOfStudy(t *testing.T) {
	t.Parallel()
	value := func(v float64) *profile.Metric { return profile.Value(profile.Measured, v, "") }
	s := &study.Speed{SpeedSettings: study.SpeedSettings{Name: "latency", Threads: 2, KernelSet: "avx512"}, Latency: value(0.01)}
	loss := &study.Loss{LossSettings: study.LossSettings{Name: "drop", Method: study.EndToEnd, Metric: "accuracy", Higher: true}, Base: value(0.9)}
	for i := range layers() {
		s.Layers = append(s.Layers, study.LayerTime{Layer: i, Latency: value(0.002)})
		for _, level := range []float64{0.95, 0.5} {
			c := study.Change{Structure: study.Unstructured, Level: level}
			s.Points = append(s.Points, study.SpeedPoint{Layer: i, Change: c, Ratio: value(1 - level/2), Latency: value(9)})
			loss.Points = append(loss.Points, study.LossPoint{Layer: i, Change: c, Value: value(0.9 - level/10)})
		}
	}
	p := FromSpeed(s, layers(), study.Unstructured)
	q := p.Analysis.Pruning
	if q.Ops[1].BaselineKey != "0.83" || q.Ops[0].BaselineKey != "0.0" || q.Ops[0].Measurements[1].Name != "0.5" || q.Ops[0].Measurements[1].Value != 0.0015 {
		t.Errorf("operators: %+v", q.Ops)
	}
	if got := q.Model.Measurements; len(got) != 3 || got[1].Name != "0.5" || round(got[1].Value, 9) != 0.0085 {
		t.Errorf("model: %+v", got)
	}
	back, unmatched := ToSpeed(p, layers())
	if len(back.Points) != len(s.Points) || len(unmatched) != 0 || back.Threads != 2 {
		t.Errorf("%d points of %d, unmatched %v", len(back.Points), len(s.Points), unmatched)
	}
	l := FromLoss(loss, layers(), study.Unstructured)
	if got := l.Analysis.Pruning.Ops[2].Measurements; len(got) != 3 || round(got[2].Value, 9) != 0.095 {
		t.Errorf("losses: %+v", got)
	}
	lost, _ := ToLoss(l, layers()[:2])
	if len(lost.Points) != 4 {
		t.Errorf("%d points", len(lost.Points))
	}
	if FromSpeed(nil, nil, study.Channel) != nil || FromLoss(nil, nil, study.Channel) != nil {
		t.Error("a profile of nothing")
	}
	plan, got := Plan(four(), layers(), p, l, Defaults())
	if plan.Compat != "sparsify" || plan.Choices[0].Cause != study.First || plan.Choices[1].Change.IsZero() || len(got.Layers) != 4 || plan.Predicted.Speedup == nil {
		t.Errorf("%+v", plan)
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"not JSON", "{", "f: "},
		{"nothing", "{}", "neither baseline nor pruning"},
		{"level", `{"pruning": {"model": {"baseline_measurement_key": "x", "measurements": {"x": 1}}, "ops": []}}`, "not a level"},
		{"beyond one", `{"pruning": {"model": {"baseline_measurement_key": "1.5", "measurements": {"1.5": 1}}, "ops": []}}`, "not a level"},
		{"no baseline", `{"pruning": {"model": {}, "ops": [{"id": "a", "baseline_measurement_key": "0.1", "measurements": {"0.2": 1}}]}}`, "ops[0] (a)"},
		{"negative", `{"baseline": {"model": {"measurement": -1}, "ops": []}}`, "below 0"},
	} {
		if _, err := ParseProfile([]byte(tt.text), "f"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	for _, text := range []string{"{}", `{"nodes": [null]}`, `{"nodes": [{"id": "a"}, {"id": "a"}]}`, `{"nodes": [{"id": "a", "prunable": true, "params": 1, "prunable_params": 2}]}`} {
		if _, err := ParseAnalysis([]byte(text), "f"); err == nil {
			t.Errorf("%s: read", text)
		}
	}
}

const recipe = `---
num_epochs: &num_epochs 10
lr: &lr 0.008
start: 1.0
prune: 4
update: 0.5
training_modifiers:
  - !EpochRangeModifier
    start_epoch: 0.0
    end_epoch: *num_epochs
  - !SetLearningRateModifier
    start_epoch: 0.0
    learning_rate: *lr
  - !LearningRateModifier
    lr_class: MultiStepLR
    lr_kwargs: {gamma: 0.1, milestones: [6, 8]}
    init_lr: eval(lr * 0.5)
    start_epoch: 5.0
    end_epoch: -1
  - !TrainableParamsModifier
    params: [c.w]
    trainable: False
pruning_modifiers:
  - !GMPruningModifier
    params:
      - a.w
      - re:b\..*
    init_sparsity: 0.05
    final_sparsity: 0.8
    start_epoch: eval(start)
    end_epoch: eval(start + (prune - 1) * 2)
    update_frequency: eval(update)
    inter_func: cubic
    mask_type: [1, 4]
  - !QuantizationModifier
    start_epoch: 8
    scheme:
      input_activations: {num_bits: 8, symmetric: False}
      weights: {num_bits: 8, symmetric: True}
    ignore: [c]
    scheme_overrides:
      b.w: {input_activations: null, weights: {num_bits: 4, symmetric: True}}
    num_calibration_steps: 64
---
# A heading
`

func TestRecipe(t *testing.T) {
	t.Parallel()
	r, err := ParseRecipe([]byte(recipe), "recipe.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []Modifier{
		{Kind: EpochRange, End: 10},
		{Kind: SetRate, End: -1, Rate: 0.008},
		{Kind: LearningRate, Start: 5, End: -1, Rate: 0.004, Class: "MultiStepLR", Gamma: 0.1, Milestones: []float64{6, 8}},
		{Kind: Trainable, Start: -1, End: -1, Params: []string{"c.w"}, Train: new(false)},
		{Kind: Pruning, Start: 1, End: 7, Params: []string{"a.w", `re:b\..*`}, InitSparsity: 0.05, FinalSparsity: 0.8, Update: 0.5, Mask: study.Block1x4},
		{
			Kind: Quantization, Start: 8, End: -1, Scheme: &Scheme{&Integers{Bits: 8}, &Integers{Bits: 8, Symmetric: true}}, Ignore: []string{"c"},
			Overrides: map[string]Scheme{"b.w": {nil, &Integers{Bits: 4, Symmetric: true}}},
		},
	}
	if d := cmp.Diff(want, r.Modifiers); d != "" {
		t.Error(d)
	}
	if want := []string{"line 33: GMPruningModifier: inter_func", "line 43: QuantizationModifier: num_calibration_steps"}; !slices.Equal(r.Ignored, want) {
		t.Errorf("ignored %q, want %q", r.Ignored, want)
	}
	for name, text := range map[string]func() ([]byte, error){"yaml": func() ([]byte, error) { return r.YAML(), nil }, "json": r.JSON} {
		b, err := text()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseRecipe(b, name)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, b)
		}
		if d := cmp.Diff(r.Modifiers, back.Modifiers); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	p, unmatched, err := r.Plan(layers())
	if err != nil || len(unmatched) != 0 || p.Choices[0].Change.Level != 0.8 || p.Choices[1].Change.Structure != study.Block1x4 ||
		p.Choices[0].Change.Format != study.Int8 || p.Choices[1].Change.Format != study.Weight4 {
		t.Errorf("%+v, unmatched %v, %v", p, unmatched, err)
	}
}

// TestLaterRecipe reads modifiers by name, in stages.
func TestLaterRecipe(t *testing.T) {
	t.Parallel()
	r, err := ParseRecipe([]byte("train:\n  run: 1\n  pruning_modifiers:\n    MagnitudePruningModifier:\n      final_sparsity: 0.5\n      start: 1\n      targets: [a.w]\n      mask_structure: '2:4'\n    SparseGPTModifier: {sparsity: 0.5}\n"), "r")
	if err != nil {
		t.Fatal(err)
	}
	want := []Modifier{{Kind: Pruning, Start: 1, End: -1, Params: []string{"a.w"}, FinalSparsity: 0.5, Mask: study.TwoOfFour}}
	if d := cmp.Diff(want, r.Modifiers); d != "" || len(r.Ignored) != 1 {
		t.Errorf("%s, ignored %q", d, r.Ignored)
	}
}

// TestSparsitiesByWeight has one modifier that stands for several.
func TestSparsitiesByWeight(t *testing.T) {
	t.Parallel()
	r, err := ParseRecipe([]byte("modifiers:\n  - !GMPruningModifier\n    params: []\n    init_sparsity: __FROM_PARAM__\n    final_sparsity: {0.8: [a.w, c.w], 0.9: b.w}\n"), "r")
	if err != nil {
		t.Fatal(err)
	}
	p, unmatched, err := r.Plan(layers())
	if err != nil || len(unmatched) != 0 || len(r.Modifiers) != 2 || p.Choices[0].Change.Level != 0.8 || p.Choices[1].Change.Level != 0.9 || p.Choices[2].Change.Level != 0.8 {
		t.Errorf("%+v, unmatched %v, %v", p, unmatched, err)
	}
}

// TestRecipeOfPlan has one modifier for each distinct structure and level.
func TestRecipeOfPlan(t *testing.T) {
	t.Parallel()
	p := &study.Plan{Choices: []study.Choice{
		{Layer: 0, Change: study.Change{Structure: study.Unstructured, Level: 0.8}},
		{Layer: 1, Change: study.Change{Structure: study.Channel, Level: 0.8}},
		{Layer: 2, Change: study.Change{Structure: study.Unstructured, Level: 0.8, Format: study.Int8}},
	}}
	r, lost := NewRecipe(p, layers(), Training{InitialRate: new(0.1), FinalRate: new(0.001), Trained: []string{"a.w"}, Frozen: []string{"b.w"}})
	if len(lost) != 0 {
		t.Errorf("lost %q", lost)
	}
	got := string(r.YAML())
	want := `modifiers:
  - !EpochRangeModifier
    start_epoch: 0.0
    end_epoch: 59.0

  - !GMPruningModifier
    start_epoch: 1.0
    end_epoch: 34.0
    params:
      - "a.w"
      - "c.w"
    init_sparsity: 0.05
    final_sparsity: 0.8
    update_frequency: 0.825
    mask_type: unstructured

  - !GMPruningModifier
    start_epoch: 1.0
    end_epoch: 34.0
    params:
      - "b.w"
    init_sparsity: 0.05
    final_sparsity: 0.8
    update_frequency: 0.825
    mask_type: channel

  - !QuantizationModifier
    start_epoch: 34.0
    end_epoch: -1.0
    scheme: {input_activations: {num_bits: 8, symmetric: false}, weights: {num_bits: 8, symmetric: true}}
    ignore:
      - "a.w"
      - "b.w"

  - !SetLearningRateModifier
    start_epoch: 0.0
    learning_rate: 0.0505

  - !LearningRateModifier
    start_epoch: 34.0
    end_epoch: -1.0
    lr_class: StepLR
    lr_kwargs: {gamma: 0.25, step_size: 6}
    init_lr: 0.012625

  - !TrainableParamsModifier
    start_epoch: 0.0
    end_epoch: -1.0
    params:
      - "a.w"
    trainable: true

  - !TrainableParamsModifier
    start_epoch: 0.0
    end_epoch: -1.0
    params:
      - "b.w"
    trainable: false
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestRecipeFormats writes all formats that training can prepare for and reads them again. Weights
// with one name for several layers get the names of the layers.
func TestRecipeFormats(t *testing.T) {
	t.Parallel()
	ls := layers()
	ls[0].Weight, ls[1].Weight = "conv/kernel", "conv/kernel"
	p := &study.Plan{Choices: []study.Choice{
		{Layer: 0, Change: study.Change{Format: study.Weight4}},
		{Layer: 1, Change: study.Change{Structure: study.Filter, Level: 0.5, Format: study.Int8}},
		{Layer: 2, Change: study.Change{Format: study.Half}},
	}}
	r, lost := NewRecipe(p, ls, Training{})
	if len(lost) != 3 || !strings.Contains(lost[0], `na: 2 layers have weights of the name "conv/kernel"`) || !strings.Contains(lost[2], "c.w: training does not change for float16") {
		t.Errorf("lost %q", lost)
	}
	back, err := ParseRecipe(r.YAML(), "r")
	if err != nil {
		t.Fatalf("%v\n%s", err, r.YAML())
	}
	if d := cmp.Diff(r.Modifiers, back.Modifiers); d != "" || len(back.Ignored) > 0 {
		t.Errorf("%s, ignored %q", d, back.Ignored)
	}
	got, unmatched, err := back.Plan(ls)
	if err != nil || len(unmatched) > 0 {
		t.Fatalf("unmatched %q, %v", unmatched, err)
	}
	p.Choices[2].Change = study.Change{}
	if d := cmp.Diff(p.Choices, got.Choices); d != "" {
		t.Error(d)
	}
}

// TestRecipeOfDynamicInt8 writes activations that are quantised in each run, beside fixed ones.
func TestRecipeOfDynamicInt8(t *testing.T) {
	t.Parallel()
	p := &study.Plan{Choices: []study.Choice{
		{Layer: 0, Change: study.Change{Format: study.Dynamic8}},
		{Layer: 1, Change: study.Change{Format: study.Int8}},
		{Layer: 2, Change: study.Change{Structure: study.Unstructured, Level: 0.5, Format: study.Dynamic8}},
	}}
	r, lost := NewRecipe(p, layers(), Training{})
	if len(lost) != 0 {
		t.Errorf("lost %q", lost)
	}
	if n := bytes.Count(r.YAML(), []byte("input_activations: {num_bits: 8, symmetric: false, dynamic: true}")); n != 2 {
		t.Errorf("%d layers with dynamic activations, want 2:\n%s", n, r.YAML())
	}
	text, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"yaml": r.YAML(), "json": text} {
		back, err := ParseRecipe(data, name)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, data)
		}
		got, unmatched, err := back.Plan(layers())
		if err != nil || len(unmatched) > 0 || len(back.Ignored) > 0 {
			t.Fatalf("%s: unmatched %q, ignored %q, %v", name, unmatched, back.Ignored, err)
		}
		if d := cmp.Diff(p.Choices, got.Choices); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestHostileRecipes(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 8 {
		name, prev := string(rune('b'+i)), string(rune('a'+i))
		bomb += name + ": &" + name + " [" + strings.Repeat("*"+prev+", ", 9) + "*" + prev + "]\n"
	}
	for _, tt := range []struct {
		name, text, want string
		line             int
	}{
		{"empty", "", "is empty", 0},
		{"not YAML", "a: [", "is not YAML", 0},
		{"no modifiers", "a: 1", "a recipe was expected", 1},
		{"aliases", bomb, "aliases multiply", 0},
		{"itself", "a: &a [*a]", "deeper", 0},
		{"deep", strings.Repeat("[", 100) + strings.Repeat("]", 100), "deeper", 1},
		{"large", strings.Repeat("# \n", 2<<20), "bytes long", 0},
		{"scalar", "modifiers:\n  - 7", "a modifier was expected", 2},
		{"sparsity", "modifiers:\n  - !GMPruningModifier\n    params: [a]\n    final_sparsity: 1.5", "from 0 to 1", 4},
		{"scheme", "modifiers:\n  - !QuantizationModifier\n    scheme: 8", "a mapping of input_activations and weights was expected", 3},
		{"bits", "modifiers:\n  - !QuantizationModifier\n    scheme: {weights: null, weights: 8}", "a mapping with num_bits was expected", 3},
		{"no sparsity", "modifiers:\n  - !GMPruningModifier\n    params: [a]", "final_sparsity was expected", 2},
		{"not finite", "modifiers:\n  - !SetLearningRateModifier\n    learning_rate: .inf", "a number was expected", 3},
		{"variable", "modifiers:\n  - !SetLearningRateModifier\n    learning_rate: eval(x)", "no variable", 3},
		{"circle", "x: eval(y)\ny: eval(x)\nmodifiers:\n  - !SetLearningRateModifier\n    learning_rate: eval(x)", "", 0},
		{"code", "modifiers:\n  - !SetLearningRateModifier\n    learning_rate: eval(__import__('os'))", "no variable", 3},
		{"brackets", "modifiers:\n  - !SetLearningRateModifier\n    learning_rate: eval(" + strings.Repeat("(", 1000) + ")", "deep", 3},
		{"by zero", "modifiers:\n  - !SetLearningRateModifier\n    learning_rate: eval(1/0)", "not finite", 3},
		{"rates", "modifiers:\n  - !LearningRateModifier\n    lr_class: Cosine", "StepLR", 2},
		{"twice", "modifiers:\n  - !SetLearningRateModifier\n    learning_rate: 1\n    learning_rate: 2", "", 0},
		{"mask", "modifiers:\n  - !GMPruningModifier\n    params: [a]\n    final_sparsity: 1\n    mask_type: [9]", "a block such as", 5},
		{"names", "modifiers:\n  - !GMPruningModifier\n    params: {a: b}\n    final_sparsity: 1", "a list of names", 3},
	} {
		_, err := ParseRecipe([]byte(tt.text), "r.yaml")
		var fe *FileError
		if err == nil || !errors.As(err, &fe) || fe.File != "r.yaml" {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || tt.line > 0 && fe.Line != tt.line {
			t.Errorf("%s: %v, want line %d: %q", tt.name, err, tt.line, tt.want)
		}
	}
	r, err := ParseRecipe([]byte("modifiers:\n  - !GMPruningModifier\n    params: ['re:(']\n    final_sparsity: 1"), "r")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Plan(layers()); err == nil {
		t.Error("a pattern that is none was taken")
	}
}

func TestExclusions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []int
		unmatched  []string
	}{
		{"nncf", `{"compression": {"algorithm": "magnitude_sparsity", "ignored_scopes": ["na", "{re}n[cd]", "gone"]}}`, []int{0, 2}, []string{"gone"}},
		{"nncf of several", `{"compression": [{"ignored_scopes": ["na"]}, {"ignored_scopes": "nb"}]}`, []int{0, 1}, nil},
		{"ignored scope", "ignored_scope:\n  names: [na]\n  types: [MatMul]\n  patterns: ['nb.*']", []int{0, 1, 2}, nil},
		{"neural compressor", "op_name_dict:\n  na: {weight: {dtype: [fp32]}, activation: {dtype: fp32}}\n  nb: {weight: {dtype: [int8]}}\nop_type_dict:\n  MatMul: {weight: {dtype: fp32}}", []int{0, 2}, nil},
		{"pruning", `excluded_op_names: ["n[ab]"]`, []int{0, 1}, nil},
	} {
		x, err := ParseExclusions([]byte(tt.text), "x")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, unmatched := x.Match(layers())
		if !slices.Equal(got, tt.want) || !slices.Equal(unmatched, tt.unmatched) {
			t.Errorf("%s: %v, unmatched %v; want %v, %v", tt.name, got, unmatched, tt.want, tt.unmatched)
		}
	}
	for _, text := range []string{"a: 1", "ignored_scopes: {a: b}", `ignored_scopes: ["{re}("]`, "op_name_dict: 3", "ignored_scope: [a]"} {
		if _, err := ParseExclusions([]byte(text), "x"); err == nil {
			t.Errorf("%s: read", text)
		}
	}
	nncf, err := NNCF(layers(), []int{2, 0})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"nncf": nncf, "neural compressor": NeuralCompressor(layers(), []int{2, 0}), "none": NeuralCompressor(layers(), nil)} {
		x, err := ParseExclusions(text, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, _ := x.Match(layers()); name != "none" && !slices.Equal(got, []int{0, 2}) || name == "none" && got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAllocationHolds says what is true of any allocation: no layer beyond the limits, the budget
// kept before layers are dropped.
func TestAllocationHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := &Analysis{}
		total := 0.0
		for i := range rapid.IntRange(1, 8).Draw(t, "layers") {
			n := rapid.Int64Range(1, 2000).Draw(t, "params")
			eq := rapid.Float64Range(0, 100).Draw(t, "sensitivity")
			a.Nodes = append(a.Nodes, &Node{ID: string(rune('a' + i)), OpType: "Conv", Prunable: true, Params: n, PrunableParams: n, PrunableEquationSensitivity: &eq})
			total += float64(n)
		}
		s := Settings{Sparsity: rapid.Float64Range(0, 1).Draw(t, "sparsity"), Balance: rapid.Float64Range(0, 1).Draw(t, "balance")}
		zero := 0.0
		for i, l := range Allocate(a, nil, nil, s).Layers {
			if l.Sparsity == nil {
				continue
			}
			if i == 0 || *l.Sparsity < 0 || *l.Sparsity > maxSparsity {
				t.Fatalf("layer %d: %v", i, *l.Sparsity)
			}
			zero += *l.Sparsity * float64(a.Nodes[i].Params)
		}
		// numbers of weights are rounded
		if slack := float64(len(a.Nodes)); zero > s.Sparsity*total+slack {
			t.Fatalf("%v of %v weights, %v asked for", zero, total, s.Sparsity)
		}
	})
}

func FuzzRecipe(f *testing.F) {
	f.Add([]byte(recipe))
	f.Add([]byte("- !GMPruningModifier\n  params: __ALL__\n  final_sparsity: eval((1+2)/4)"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRecipe(data, "f")
		if err != nil {
			var fe *FileError
			if !errors.As(err, &fe) {
				t.Fatalf("%v names no file", err)
			}
			return
		}
		_, _, _ = r.Plan(layers())
		if _, err := ParseRecipe(r.YAML(), "again"); err != nil {
			t.Fatalf("%v\n%s", err, r.YAML())
		}
	})
}

func FuzzExclusions(f *testing.F) {
	f.Add([]byte(`{"compression": {"ignored_scopes": ["na", "{re}n[cd]"]}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if x, err := ParseExclusions(data, "f"); err == nil {
			x.Match(layers())
		}
	})
}

func FuzzProfile(f *testing.F) {
	f.Add([]byte(pruned))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProfile(data, "f")
		if err != nil {
			return
		}
		ToSpeed(p, layers())
		ToLoss(p, layers())
		Allocate(four(), p, p, Defaults())
		text, err := p.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseProfile(text, "again"); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzAnalysis(f *testing.F) {
	f.Add([]byte(`{"nodes": [{"id": "a", "op_type": "Conv", "params": 10, "prunable": true, "prunable_params": 9, "input_shapes": [[1, null]], "attributes": {"group": 2}}]}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		a, err := ParseAnalysis(data, "f")
		if err != nil {
			return
		}
		for _, n := range a.Nodes {
			Flops(n)
			Sensitivity(n.InputShapes, n.OutputShapes, n.Params)
		}
		Allocate(a, nil, nil, Defaults())
	})
}
