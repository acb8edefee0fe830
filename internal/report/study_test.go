package report

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// studied is a study of three layers with a bit of everything.
func studied() *study.Study {
	value := func(v, low, high float64) *profile.Metric {
		m := profile.Value(profile.Measured, v, "")
		m.CI95, m.N = &[2]float64{low, high}, new(int64(8))
		return m
	}
	half, most := study.Change{Structure: study.Unstructured, Level: .5}, study.Change{Structure: study.Unstructured, Level: .9}
	macs := int64(1000)
	s := &study.Study{
		Model: profile.Model{Name: "net", Format: "onnx"},
		Layers: []study.Layer{
			{Node: 0, ID: "a", Name: "first", Op: "Conv", Rows: 4, Cols: 9, Params: 40, MACs: &macs, Weight: "w0", Shape: []int{4, 1, 3, 3}, Type: "float32"},
			{Node: 2, ID: "b", Name: "=second", Op: "Conv", Rows: 8, Cols: 36, Params: 296, Zeros: 72},
			{Node: 4, ID: "c", Name: "last", Op: "Gemm", Rows: 3, Cols: 8, Params: 27, Fixed: study.NoZero},
		},
	}
	s.Speeds = []*study.Speed{{
		SpeedSettings: study.SpeedSettings{Name: "host", Target: "host", Threads: 1, KernelSet: "go", Changes: []study.Change{half, most}},
		Latency:       value(100e-6, 99e-6, 101e-6), Done: true,
		Layers: []study.LayerTime{{Layer: 0, Latency: value(30e-6, 29e-6, 31e-6), Kernel: "direct", Limit: "compute", Fused: []int{1}}, {Layer: 1, Latency: value(60e-6, 59e-6, 61e-6)}, {Layer: 2, Latency: value(1e-6, 1e-6, 1e-6)}},
		Points: []study.SpeedPoint{
			{Layer: 0, Change: half, Ratio: value(1, .99, 1.01), Cause: study.NoKernel},
			{Layer: 0, Change: most, Ratio: value(1, .98, 1.02), Cause: study.NoKernel},
			{Layer: 1, Change: half, Ratio: value(.8, .79, .81), Latency: value(48e-6, 47e-6, 49e-6)},
			{Layer: 1, Change: most, Ratio: value(.4, .39, .41)},
		},
	}}
	s.Losses = []*study.Loss{{
		LossSettings: study.LossSettings{Name: "accuracy", Method: study.EndToEnd, Metric: "accuracy", Higher: true, Data: "x.npy", Samples: 100, Changes: []study.Change{half, most}},
		Base:         value(.9, .85, .95), Done: true,
		Points: []study.LossPoint{
			{Layer: 0, Change: half, Value: value(.9, .85, .95)},
			{Layer: 0, Change: most, Value: value(.5, .4, .6)},
			{Layer: 1, Change: half, Value: value(.88, .83, .93)},
			{Layer: 1, Change: most, Value: value(.75, .7, .8)},
			{Layer: 2, Change: half, Cause: study.NoZero},
		},
	}}
	s.Plans = []*study.Plan{{
		Name: "loss-0.05", Goal: study.Goal{MaxLoss: new(.05)}, Speed: "host", Loss: "accuracy", Gap: new(0.0),
		Choices:   []study.Choice{{Layer: 0, Cause: study.First}, {Layer: 1, Change: half}, {Layer: 2, Cause: study.NoZero}},
		Predicted: study.Outcome{LatencyS: value(88e-6, 87e-6, 89e-6), Speedup: value(1.14, 1.12, 1.15), Loss: value(.02, 0, .07), Params: new(int64(363)), Zeros: new(int64(150)), Bytes: new(int64(1452))},
		Measured:  &study.Outcome{LatencyS: value(89e-6, 88e-6, 90e-6), Speedup: value(1.12, 1.11, 1.14), Loss: value(.08, .02, .11)},
		Front:     []study.FrontPoint{{Cost: 64e-6, Loss: .2}, {Cost: 88e-6, Loss: .02, Chosen: true}},
	}}
	s.Benches = []*study.Bench{{Name: "loss-0.05", Points: []study.BenchPoint{
		{Engine: "opmeter", Threads: 1, Before: value(100e-6, 99e-6, 101e-6), After: value(89e-6, 88e-6, 90e-6), Speedup: value(1.12, 1.11, 1.13)},
		{Engine: "onnxruntime 1.20", Threads: 2, Batch: 8, Error: "the library is gone"},
	}}}
	return s
}

func TestGapWords(t *testing.T) {
	t.Parallel()
	for gap, want := range map[float64]string{
		0: "The plan is optimal for these profiles", 0.0004: "The plan is optimal for these profiles",
		-1e-9: "The plan is optimal for these profiles", 0.012: "At most 1.2 % from the optimum for these profiles",
	} {
		if got := gapWords(gap); got != want {
			t.Errorf("%v: %q, want %q", gap, got, want)
		}
	}
}

func TestStudyText(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteStudy(&b, studied(), "table", StudyOptions{}); err != nil {
		t.Fatal(err)
	}
	want := `Plan "loss-0.05": a loss of at most 5 %
Predicted  88.0 µs (87.0 µs to 89.0 µs), 1.14 × (1.12 × to 1.15 ×) as fast, loss 2 % (0 % to 7 %), 41.3 % of the weights zero, 1.42 KiB of weights
Measured   89.0 µs (88.0 µs to 90.0 µs), 1.12 × (1.11 × to 1.14 ×) as fast, loss 8 % (2 % to 11 %)
The plan is optimal for these profiles
! On held-out samples the loss exceeds the limit (within the confidence interval: use more samples).

Model  net (onnx), 3 layers with 348 weights, 20.7 % of them zero
Speed  "host", measured here, 1 thread, go, 100 µs per inference (99.0 µs to 101 µs)
       60.0 % of the time can be reduced; 31.0 % is in layers without a suitable kernel, 9.0 % in operators without weights
Loss   "accuracy", outputs of the model with one layer changed, on data, accuracy, 100 samples of x.npy, 0.9 unchanged

#  layer    op    params    zero     time   share  limit      gain  loss by level  at 50 %  at 90 %  rank  verdict
0  first    Conv      40          30.0 µs  30.0 %  compute          ▁█                   0      0.4     2  unchanged: the first layer
1  =second  Conv     296  25.0 %  60.0 µs  60.0 %           1.25 ×  ▂▅                0.02     0.15     1  unstructured 50 %
2  last     Gemm      27          1.00 µs   1.0 %                                                          unknown zero point

Bench "loss-0.05"
engine            threads   batch  unchanged  compressed                   speed-up  note
opmeter                 1  file's     100 µs     89.0 µs  1.12 × (1.11 × to 1.13 ×)
onnxruntime 1.20        2       8                                                    the library is gone
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

// The gain is that of the plan's change; without a plan the highest, which the head says. A change
// that leaves no work has no gain that could be timed.
func TestStudyGain(t *testing.T) {
	t.Parallel()
	s := studied()
	none := profile.Value(profile.Counted, 0, "")
	s.Speeds[0].Points = append(s.Speeds[0].Points, study.SpeedPoint{Layer: 1, Change: study.Change{Structure: study.Filter, Level: .99}, Ratio: none})
	show := func() string {
		var b bytes.Buffer
		if err := WriteStudy(&b, s, "table", StudyOptions{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := show(); !strings.Contains(got, "1.25 ×") || strings.Contains(got, "2.50 ×") || strings.Contains(got, "Inf") || strings.Contains(got, "max. gain") {
		t.Errorf("with a plan:\n%s", got)
	}
	s.Plans = nil
	if got := show(); !strings.Contains(got, "2.50 ×") || strings.Contains(got, "Inf") || !strings.Contains(got, "max. gain") {
		t.Errorf("without a plan:\n%s", got)
	}
}

// A default goal says so, and gains of the built-in engine name it.
func TestStudyDefaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		goal study.Goal
		want string
	}{
		{study.Goal{Speedup: new(1.14), Default: true}, "1.14 times as fast with the smallest loss (no goal was given; the default of 1.5 is out of reach)"},
		{study.Goal{Speedup: new(1.5), Default: true}, "(the default without a goal)"},
		{study.Goal{MaxLoss: new(.01), Default: true}, "a loss of at most 1 % (the default without a goal)"},
		{study.Goal{Speedup: new(1.5)}, "1.5 times as fast with the smallest loss\n"},
	} {
		s := studied()
		s.Plans[0].Goal, s.Benches = tt.goal, nil
		var b bytes.Buffer
		if err := WriteStudy(&b, s, "table", StudyOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, tt.want) || !strings.Contains(got, "Gains are those of opmeter's engine. For the engine that ships: opmeter compress bench net.onnx --engine NAME") {
			t.Errorf("want %q:\n%s", tt.want, got)
		}
	}
}

// An interval from a busy computer comes with advice.
func TestStudyVague(t *testing.T) {
	t.Parallel()
	s := studied()
	show := func() string {
		var b bytes.Buffer
		if err := WriteStudy(&b, s, "table", StudyOptions{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := show(); strings.Contains(got, "busy") {
		t.Error(got)
	}
	p := s.Plans[0]
	p.Predicted.LatencyS.CI95 = &[2]float64{0, 82.8e-3}
	if got := show(); !strings.Contains(got, "88.0 µs (at most 82.8 ms)") || !strings.Contains(got, "! The predicted interval is wide") {
		t.Error(got)
	}
	p.Measured.Speedup.CI95 = &[2]float64{.4, 2.1}
	if got := show(); !strings.Contains(got, "too wide to plan by") || !strings.Contains(got, "repeat in another file (--study)") {
		t.Error(got)
	}
	s.Speeds[0].Target = "stm32l4r5" // bands of estimates are not of this computer
	if got := show(); strings.Contains(got, "busy") {
		t.Error(got)
	}
}

// A limit that is finer than the samples says how many it needs.
func TestStudyFineLimit(t *testing.T) {
	t.Parallel()
	s := studied()
	s.Losses[0].Samples, s.Plans[0].Goal.MaxLoss = 25, new(.01)
	show := func() string {
		var b bytes.Buffer
		if err := WriteStudy(&b, s, "table", StudyOptions{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := show(); !strings.Contains(got, "! 25 samples cannot show a loss of 1 %: one of them is 4 %. Choose plans on at least 165.") {
		t.Error(got)
	}
	s.Losses[0].Tried = 165
	if got := show(); strings.Contains(got, "cannot show") {
		t.Error(got)
	}
}

// What a plan leaves unchanged has the reason that is true for its goal.
func TestStudyUnchanged(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		goal  study.Goal
		cause study.Cause
		want  string
	}{
		{"no change at all", study.Goal{MaxLoss: new(.05)}, study.Spent, "unchanged: no cheaper change was found to keep the loss within the limit"},
		{"no change needed", study.Goal{Speedup: new(1.0)}, study.Spent, "unchanged: the goal is met without a change"},
		{"budget", study.Goal{MaxLoss: new(.05)}, study.Spent, "unchanged: loss budget used up by other layers"},
		{"no budget", study.Goal{Speedup: new(1.5)}, study.Spent, "unchanged: other layers gain more for their loss"},
		{"much to gain", study.Goal{MaxLoss: new(.05)}, study.Head, "unchanged: makes an output of the model (--ends lets it change)"},
		{"gain without a loss", study.Goal{MaxLoss: new(.05)}, study.NoData, "unchanged: its loss is unknown"},
		{"other causes", study.Goal{MaxLoss: new(.05)}, study.NoFormat, "unchanged: the file format has no such type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := studied()
			s.Plans[0].Goal, s.Plans[0].Choices[1] = tt.goal, study.Choice{Layer: 1, Cause: tt.cause}
			for i := range s.Plans[0].Choices {
				s.Plans[0].Choices[i].Change = study.Change{}
			}
			if !strings.HasPrefix(tt.name, "no change") {
				s.Plans[0].Choices[0].Change = study.Change{Structure: study.Unstructured, Level: .5}
			}
			var b bytes.Buffer
			if err := WriteStudy(&b, s, "table", StudyOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); !strings.Contains(got, tt.want) {
				t.Errorf("want %q:\n%s", tt.want, got)
			}
		})
	}
}

// Tables fit every terminal.
func TestStudyNarrow(t *testing.T) {
	t.Parallel()
	for _, width := range []int{60, 80, 120} {
		var b bytes.Buffer
		if err := WriteStudy(&b, studied(), "table", StudyOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := text.Width(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d columns of %d: %q", n, width, line)
			}
		}
	}
}

// Random inputs give no loss of a plan.
func TestStudyRandom(t *testing.T) {
	t.Parallel()
	s := studied()
	s.Losses[0].Random = true
	var b bytes.Buffer
	if err := WriteStudy(&b, s, "table", StudyOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "! Random inputs") || strings.Contains(got, ", loss 2 %") ||
		strings.Count(got, "loss unknown (random inputs: sensitivity ranking only)") != 2 || strings.Contains(got, "0.9 unchanged") {
		t.Errorf("shows\n%s", got)
	}
}

// Weak evidence is said: few samples, an accuracy no better than guessing, samples not used.
func TestStudySamples(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		set       func(l *study.Loss)
		has, lack string
	}{
		{"enough", func(l *study.Loss) { l.HeldOut, l.Tried = 30, 70 }, "100 samples of x.npy, plans chosen on 100 and checked on 30 others", "! "},
		{"unused", func(l *study.Loss) { l.HeldOut, l.Available = 30, 500 }, "370 of 500 not used: --samples 500", "Only"},
		{"one", func(l *study.Loss) { l.Samples = 1 }, "! Only 1 sample: none is held out", "samples of"},
		{"guessing", func(l *study.Loss) { l.Base.CI95 = &[2]float64{.2, .4} }, "not clearly above that of guessing (33.3 %)", "Only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := studied()
			s.Plans = nil
			s.Model.Outputs = []profile.Tensor{{Name: "y", Shape: []int64{1, 3}}}
			tt.set(s.Losses[0])
			var b bytes.Buffer
			if err := WriteStudy(&b, s, "table", StudyOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); !strings.Contains(got, tt.has) || strings.Contains(got, tt.lack) {
				t.Errorf("want %q and not %q:\n%s", tt.has, tt.lack, got)
			}
		})
	}
}

func TestStudyNames(t *testing.T) {
	t.Parallel()
	for _, o := range []StudyOptions{{Speed: "x"}, {Loss: "x"}, {Plan: "x"}} {
		if err := WriteStudy(&bytes.Buffer{}, studied(), "table", o); err == nil || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestStudyFiles(t *testing.T) {
	t.Parallel()
	s := studied()
	var b bytes.Buffer
	if err := WriteStudy(&b, s, "csv", StudyOptions{}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, r := range rows[1:] {
		count[r[0]]++
	}
	if d := cmp.Diff(map[string]int{"layers": 3, "times": 3, "speed": 4, "loss": 5, "plans": 2, "choices": 3, "front": 2, "bench": 2}, count); d != "" {
		t.Error(d)
	}
	b.Reset()
	if err := WriteStudy(&b, s, "json", StudyOptions{}); err != nil {
		t.Fatal(err)
	}
	var again study.Study
	if err := jsonx.Unmarshal(b.Bytes(), &again); err != nil || len(again.Speeds[0].Points) != 4 {
		t.Errorf("%v: %+v", err, again)
	}
	b.Reset()
	if err := WriteStudy(&b, s, "xlsx", StudyOptions{}); err != nil {
		t.Fatal(err)
	}
	f, err := excelize.OpenReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if d := cmp.Diff([]string{"Layers", "Times", "Speed", "Loss", "Plans", "Choices", "Front", "Bench"}, f.GetSheetList()); d != "" {
		t.Error(d)
	}
	if v, err := f.GetCellValue("Layers", "D3"); err != nil || v != "=second" {
		t.Errorf("a name is %q (%v)", v, err)
	}
	if v, err := f.GetCellFormula("Layers", "D3"); err != nil || v != "" {
		t.Errorf("a name is a formula: %q (%v)", v, err)
	}
}
