package loss

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/compress/sparsify"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/model/weights"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/study"
)

// network is a small classifier: convolutions with a branch, and dense layers.
func network(seed uint64) *builder {
	b := newBuilder("onnx", seed)
	x := b.input(tensor.Float32, 1, 4, 8, 8)
	relu := func(x int) int { return b.node("Relu", nil, tensor.Float32, x) }
	conv := func(x, in, out int) int {
		w := b.normal(0, out, in, 3, 3)
		for i, v := range tensor.Of[float32](w) {
			tensor.Of[float32](w)[i] = v / float32(3*math.Sqrt(float64(in)))
		}
		return b.node("Conv", graph.Attrs{"kernel_shape": []int64{3, 3}, "pads": []int64{1, 1, 1, 1}}, tensor.Float32, x, b.constant(w), b.random(0, out))
	}
	x = relu(conv(x, 4, 8))
	x = b.node("Add", nil, tensor.Float32, relu(conv(x, 8, 8)), conv(x, 8, 8))
	x = b.node("GlobalAveragePool", nil, tensor.Float32, x)
	x = b.node("Flatten", nil, tensor.Float32, x)
	x = relu(b.node("Gemm", nil, tensor.Float32, x, b.random(0, 8, 16), b.random(0, 16)))
	b.g.Outputs = []int{b.node("Gemm", nil, tensor.Float32, x, b.random(0, 16, 5), b.random(0, 5))}
	return b
}

// Outputs from kept values are those of running the whole changed model, bit for bit, whatever is
// kept at a time.
func TestEndToEndIsThatOfRunningTheWhole(t *testing.T) {
	t.Parallel()
	b := network(1)
	s := b.data(t, 7)
	ls := weights.Find(b.m, nil)
	cs := append(changes([]study.Structure{study.Unstructured, study.Filter, study.Channel}, 0, 0.5, 0.9), study.Change{Format: study.Weight8}, study.Change{Format: study.Weight4}, study.Change{Format: study.Half}, study.Change{Format: study.Int8}, study.Change{Format: study.Dynamic8})
	run := func(limit, threads int) (out []study.LossPoint) {
		j := &Job{Model: b.m, Layers: ls, Data: s, MaxBytes: limit, Threads: threads, Settings: study.LossSettings{Method: study.EndToEnd, Changes: cs}}
		j.Point = func(p study.LossPoint) error { out = append(out, p); return nil }
		if _, err := j.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := run(0, 1)
	for _, limit := range []int{1, 20000, 100000} {
		if again := run(limit, 2); !reflect.DeepEqual(got, again) {
			t.Errorf("with %d bytes the points are others", limit)
		}
	}
	if len(got) != len(ls)*len(cs) {
		t.Fatalf("%d points, want %d", len(got), len(ls)*len(cs))
	}
	ranges, err := Ranges(context.Background(), b.m, ls, s, MinMax, 1)
	if err != nil {
		t.Fatal(err)
	}
	base := wholeOutputs(t, b.m, s)
	for _, p := range got {
		var with []int
		// which are added up
		if p.Change.Level > 0 && (p.Layer == 1 || p.Layer == 2) && p.Change.Structure.Removes() {
			with = []int{3 - p.Layer}
		}
		if p.Change.Level > 0 && !slices.Equal(p.With, with) {
			t.Errorf("layer %d, %+v: with %v, want %v", p.Layer, p.Change, p.With, with)
		}
		changes := []rewrite.Change{{Layer: ls[p.Layer], Change: p.Change}}
		for _, l := range with {
			changes = append(changes, rewrite.Change{Layer: ls[l], Change: p.Change})
		}
		m, effects, err := rewrite.Apply(b.m, changes, rewrite.Options{Ranges: ranges})
		if err != nil {
			t.Fatal(err)
		}
		if effects[0].Cause != p.Cause {
			t.Errorf("layer %d, %+v: cause %q, want %q", p.Layer, p.Change, p.Cause, effects[0].Cause)
		}
		if p.Cause != "" {
			continue
		}
		num, den := 0.0, 0.0
		for i, o := range wholeOutputs(t, m, s) {
			n, d := squaredDistance(o, base[i])
			num, den = num+n, den+d
		}
		if v := *p.Value.Median; v != num/den {
			t.Errorf("layer %d, %+v: %v, want %v", p.Layer, p.Change, v, num/den)
		}
		if (num > 0) != (p.More[SNR] < maxDB) || p.More[Cosine] > 1+1e-12 || p.More[Top1] > 1 || p.More[KL] < 0 {
			t.Errorf("layer %d, %+v: %v", p.Layer, p.Change, p.More)
		}
		if with == nil {
			continue
		}
		// What is zero in all layers of a group is what would be taken out: sums in another order
		// differ in the last digits.
		m, effects, err = rewrite.Apply(b.m, changes, rewrite.Options{Remove: true})
		if err != nil || effects[0].Removed == 0 {
			t.Fatalf("layer %d, %+v: removed %d, error %v", p.Layer, p.Change, effects[0].Removed, err)
		}
		num = 0
		for i, o := range wholeOutputs(t, m, s) {
			n, _ := squaredDistance(o, base[i])
			num += n
		}
		if v := *p.Value.Median; math.Abs(v-num/den) > 1e-5*v {
			t.Errorf("layer %d, %+v: %v, taken out %v", p.Layer, p.Change, v, num/den)
		}
	}
}

func wholeOutputs(t *testing.T, m *graph.Model, s *samples.Set) (out [][]float64) {
	t.Helper()
	err := runAll(context.Background(), m, s, 1, func(_ int, e *engine.Session) error {
		out = append(out, toReal(e.Output(0)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What is there is skipped, a job that ends goes on, and an end of the context ends it.
func TestResume(t *testing.T) {
	t.Parallel()
	b := network(2)
	s := b.data(t, 3)
	ls := weights.Find(b.m, nil)
	for _, method := range []study.Method{study.OutputError, study.Calibrated, study.EndToEnd, study.Magnitude, study.Approximated, study.OneShot} {
		type key struct {
			layer int
			c     study.Change
		}
		have := map[key]study.LossPoint{}
		j := &Job{Model: b.m, Layers: ls, Data: s, Settings: study.LossSettings{Method: method, Changes: changes([]study.Structure{study.Unstructured}, 0.1, 0.5, 0.7)}}
		var all []study.LossPoint
		j.Point = func(p study.LossPoint) error { all = append(all, p); return nil }
		if _, err := j.Run(context.Background()); err != nil {
			t.Fatal(method, err)
		}
		j.Settings.Metric = ""
		j.Skip = func(layer int, c study.Change) bool { _, ok := have[key{layer, c}]; return ok }
		for range 40 {
			ctx, stop := context.WithCancel(context.Background())
			n := 0
			j.Point = func(p study.LossPoint) error {
				if _, ok := have[key{p.Layer, p.Change}]; ok {
					t.Fatalf("%s: %+v twice", method, p)
				}
				have[key{p.Layer, p.Change}] = p
				if n++; n == 4 {
					stop()
				}
				return nil
			}
			_, err := j.Run(ctx)
			stop()
			if err == nil {
				break
			}
		}
		if len(have) != len(all) || len(all) != len(ls)*3 {
			t.Fatalf("%s: %d points, want %d", method, len(have), len(all))
		}
		for _, p := range all {
			if got := have[key{p.Layer, p.Change}]; !reflect.DeepEqual(got, p) {
				t.Errorf("%s: %+v, want %+v", method, got, p)
			}
		}
	}
}

// A layer or a change that cannot be handled has a cause, and keeps nothing else from being found.
func TestCauses(t *testing.T) {
	t.Parallel()
	other := func(l *weights.Layer) { l.Const = l.Const.Clone() }
	for _, tt := range []struct {
		name   string
		method study.Method
		limit  int
		spoil  func(l *weights.Layer)
		cs     []study.Change
		want   study.Cause
	}{
		{"weights of another model", study.OutputError, 0, other, []study.Change{{Format: study.Weight8}}, study.NotRun},
		{"end to end", study.EndToEnd, 0, other, nil, study.NotRun},
		{"inputs above the limit", study.OutputError, 1000, func(l *weights.Layer) { l.MixedLayouts = true }, nil, study.NoMemory},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := network(6)
			s := b.data(t, 4)
			ls := weights.Find(b.m, nil)
			bad := *ls[1]
			tt.spoil(&bad)
			ls[1] = &bad
			cs := tt.cs
			if cs == nil {
				cs = changes([]study.Structure{study.Unstructured}, 0.5)
			}
			j := &Job{Model: b.m, Layers: ls, Data: s, MaxBytes: tt.limit, Settings: study.LossSettings{Method: tt.method, Changes: cs}}
			found := 0
			j.Point = func(p study.LossPoint) error {
				switch {
				case p.Layer == 1 && p.Cause != tt.want:
					t.Errorf("%+v, want the cause %q", p, tt.want)
				case p.Value != nil:
					found++
				}
				return nil
			}
			if _, err := j.Run(context.Background()); err != nil || found == 0 {
				t.Errorf("%d figures of other layers, %v", found, err)
			}
		})
	}
}

// Methods that look at weights or sizes give the values of the rules that they name.
func TestNamedMethods(t *testing.T) {
	t.Parallel()
	b := network(3)
	s := b.data(t, 3)
	ls := weights.Find(b.m, nil)
	levels := []float64{0, 0.1, 0.5, 0.95}
	j := &Job{Model: b.m, Layers: ls, Settings: study.LossSettings{Method: study.Magnitude, Changes: changes([]study.Structure{study.Unstructured}, levels...)}}
	got := points(t, j)
	for i, v := range sparsify.Magnitude(ls[0].Read(nil), levels) {
		if p := got[study.Change{Structure: study.Unstructured, Level: levels[i]}]; *p.Value.Median != v {
			t.Errorf("at %v: %v, want %v", levels[i], *p.Value.Median, v)
		}
	}
	j = &Job{Model: b.m, Layers: ls, Data: s, Settings: study.LossSettings{Method: study.OneShot, Changes: changes([]study.Structure{study.Unstructured}, 0.5)}}
	got = points(t, j)
	mat := ls[0].Read(nil)
	sparsify.Prune(mat, 0.5)
	base, pruned := wholeOutputs(t, b.m, s), wholeOutputs(t, weights.WithConstants(b.m, map[int]*tensor.Tensor{ls[0].Value: ls[0].Write(mat)}), s)
	want := 0.0
	for i := range base {
		want += sparsify.KL([][]float64{pruned[i]}, [][]float64{base[i]}) / float64(len(base))
	}
	if v := *got[study.Change{Structure: study.Unstructured, Level: 0.5}].Value.Median; math.Abs(v-want) > 1e-15 {
		t.Errorf("one shot %v, want %v", v, want)
	}
}

// Other numbers' errors are those of running the layer with them.
func TestFormatsOfOutput(t *testing.T) {
	t.Parallel()
	for i, tt := range layers {
		if tt.alone || !strings.HasPrefix(tt.name, "conv") && !slices.Contains([]string{"gemm", "matmul", "depthwise", "embedding", "embedding of codes"}, tt.name) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(tt.format, uint64(i))
			b.g.Outputs = []int{tt.build(b)}
			s := b.data(t, 5)
			ls := weights.Find(b.m, nil)
			cs := []study.Change{{Format: study.Weight8}, {Format: study.Half}, {Format: study.Weight8, Structure: study.Unstructured, Level: 0.5}, {Format: study.Dynamic8}, {Format: study.Int8}}
			got := points(t, &Job{Model: b.m, Layers: ls, Data: s, Settings: study.LossSettings{Method: study.OutputError, Changes: cs}})
			base := outputsBy(t, b.m, s)
			for _, c := range cs[:4] {
				m, effects, err := rewrite.Apply(b.m, []rewrite.Change{{Layer: ls[0], Change: c}}, rewrite.Options{})
				if err != nil || effects[0].Cause != got[c].Cause {
					t.Fatal(err, effects[0].Cause, got[c].Cause)
				}
				if effects[0].Cause != "" {
					continue
				}
				num, den := squaredDistance(outputsBy(t, m, s), base)
				if v, want := *got[c].Value.Median, num/den; math.Abs(v-want) > 0.01*want {
					t.Errorf("%+v: %v, want %v", c, v, want)
				}
			}
			// With 8-bit activations as well the error is larger than with such weights alone,
			// and still small.
			p := got[cs[4]]
			if p.Cause != "" {
				return
			}
			if v, w := *p.Value.Median, *got[cs[0]].Value.Median; v < w || v > 0.01 {
				t.Errorf("8-bit activations: %v, weights alone %v", v, w)
			}
		})
	}
}

// A correction never makes the error larger, keeps zeros, and is what running the layer shows.
func TestCorrect(t *testing.T) {
	t.Parallel()
	for i, tt := range layers {
		if tt.alone || tt.format != "onnx" || strings.Contains(tt.name, "integers") || tt.name == "embedding" || tt.name == "matmul by several" {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBuilder(tt.format, uint64(i))
			b.g.Outputs = []int{tt.build(b)}
			s := b.data(t, 12)
			l := weights.Find(b.m, nil)[0]
			mat := l.Read(nil)
			sparsify.Prune(mat, 0.5)
			got, err := CompensateErrors(context.Background(), b.m, []*weights.Layer{l}, [][]float32{mat}, false, s, 1, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			c := got[0]
			base := outputsBy(t, b.m, s)
			num, den := squaredDistance(outputsBy(t, weights.WithConstants(b.m, map[int]*tensor.Tensor{l.Value: l.Write(mat)}), s), base)
			if math.Abs(c.Before-num/den) > 1e-3*num/den {
				t.Errorf("before %v, want %v", c.Before, num/den)
			}
			for k, v := range mat {
				if v == 0 && c.Matrix[k] != 0 {
					t.Fatalf("weight %d is no longer zero", k)
				}
			}
			if c.After > c.Before {
				t.Errorf("after %v, before %v", c.After, c.Before)
			}
			after := outputsBy(t, weights.WithConstants(b.m, map[int]*tensor.Tensor{l.Value: l.Write(c.Matrix)}), s)
			num, den = squaredDistance(after, base)
			// The bias takes the square of the mean off.
			if num/den < c.After*0.99 {
				t.Errorf("after %v, running without the bias gives %v", c.After, num/den)
			}
			if num/den > c.Before*(1+1e-6) { // sums in another order
				t.Errorf("running gives %v, before it was %v", num/den, c.Before)
			}
			t.Logf("%.4f to %.4f", c.Before, c.After)
		})
	}
}

// Labels give accuracy, a command any number, and its faults are one line.
func TestLabelsAndCommand(t *testing.T) {
	t.Parallel()
	b := network(4)
	s := b.data(t, 9)
	base := wholeOutputs(t, b.m, s)
	right := 0.0
	for i, o := range base {
		best := slices.Index(o, slices.Max(o))
		s.Labels = append(s.Labels, float64(best))
		if i%3 == 0 {
			s.Labels[i] = float64((best + 1) % 5)
		} else {
			right++
		}
	}
	job := func(metric string) *Job {
		return &Job{Model: b.m, Layers: weights.Find(b.m, nil), Data: s, Point: func(study.LossPoint) error { return nil }, Settings: study.LossSettings{Method: study.EndToEnd, Metric: metric, Changes: changes([]study.Structure{study.Unstructured}, 0.5)}}
	}
	m, err := job(Accuracy).Run(context.Background())
	if err != nil || *m.Median != right/9 {
		t.Fatalf("accuracy %+v %v, want %v", m, err, right/9)
	}
	script := filepath.Join(t.TempDir(), "metric.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n[ -f \"$2/out_0.npy\" ] && [ -f \"$2/labels.npy\" ] && echo \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	j := job(Command)
	j.Command = []string{"/bin/sh", script, "0.25"}
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no shell to run a command with")
	}
	if m, err = j.Run(context.Background()); err != nil || *m.Median != 0.25 {
		t.Fatalf("command %+v %v", m, err)
	}
	for _, tt := range []struct {
		name, text, want string
		limit            time.Duration
	}{
		{"no number", "echo hello", `printed "hello", a number was expected`, 0},
		{"fails", "echo bad >&2; exit 3", "exit status 3: bad", 0},
		{"endless", "while true; do read x < /dev/zero; done", "had not ended after 50ms", 50 * time.Millisecond},
		{"much", "yes | head -c 200000", "a number was expected", 0},
	} {
		j := job(Command)
		j.Command, j.CommandTime = []string{"/bin/sh", "-c", tt.text}, tt.limit
		if _, err := j.Run(context.Background()); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Settings that make no sense are told before anything runs.
func TestRefused(t *testing.T) {
	t.Parallel()
	b := network(5)
	s := b.data(t, 2)
	ls := weights.Find(b.m, nil)
	for _, tt := range []struct {
		name string
		j    Job
		want string
	}{
		{"no layers", Job{Model: b.m, Data: s, Settings: study.LossSettings{Method: study.OutputError}}, "no weights"},
		{"metric", Job{Model: b.m, Data: s, Layers: ls, Settings: study.LossSettings{Method: study.OutputError, Metric: KL}}, `has no metric "kl"`},
		{"labels", Job{Model: b.m, Data: s, Layers: ls, Settings: study.LossSettings{Method: study.EndToEnd, Metric: Accuracy}}, "accuracy needs labels"},
		{"data", Job{Model: b.m, Layers: ls, Settings: study.LossSettings{Method: study.EndToEnd}}, "needs data"},
		{"level", Job{Model: b.m, Data: s, Layers: ls, Settings: study.LossSettings{Method: study.OutputError, Changes: []study.Change{{Structure: study.Filter, Level: 1.5}}}}, "level 1.5, want 0 to 1"},
		{"choice", Job{Model: b.m, Data: s, Layers: ls, Settings: study.LossSettings{Method: study.OutputError, Choice: "luck"}}, "luck"},
	} {
		if _, err := tt.j.Run(context.Background()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Histograms hold numbers of any size, and their ranges are within what was seen.
func TestRanges(t *testing.T) {
	t.Parallel()
	var h histogram
	var x []float32
	for i := range 100000 {
		x = append(x, float32(math.Sin(float64(i))))
	}
	h.add(x[:50000])
	h.add([]float32{100, float32(math.NaN()), float32(math.Inf(1))})
	h.add(x[50000:])
	for _, tt := range []struct {
		rule   RangeRule
		lo, hi float64
	}{{MinMax, -1, 100}, {Percentile, -1, 1.5}, {LeastError, -1, 100}} {
		r, ok := h.rangeOf(tt.rule)
		if !ok || float64(r.Lo) > tt.lo+0.1 || float64(r.Lo) < -1.01 || float64(r.Hi) > tt.hi*1.01 {
			t.Errorf("%q: %v", tt.rule, r)
		}
	}
	all, _ := h.rangeOf(MinMax)
	best, _ := h.rangeOf(LeastError)
	if h.squaredError(float64(best.Lo), float64(best.Hi)) > h.squaredError(float64(all.Lo), float64(all.Hi)) {
		t.Errorf("%v is worse than %v", best, all)
	}
}
