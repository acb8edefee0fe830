package deepsparse

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

// Benchmark is the export of deepsparse.benchmark.
type Benchmark struct {
	Engine     string  `json:"engine"`
	Version    string  `json:"version"`
	Original   string  `json:"orig_model_path"`
	Model      string  `json:"model_path"`
	BatchSize  int64   `json:"batch_size"`
	Shapes     *string `json:"input_shapes"`
	Cores      *int64  `json:"num_cores"`
	Scenario   string  `json:"scenario"`
	Scheduler  string  `json:"scheduler"`
	AskedS     float64 `json:"seconds_to_run"`
	NumStreams *int64  `json:"num_streams"`
	Result     Result  `json:"benchmark_result"`
	// Supported is the share of operators that the engine runs itself.
	Supported *float64 `json:"fraction_of_supported_ops"`
}

// Result are the statistics of a benchmark; times of inferences are in milliseconds.
type Result struct {
	Scenario    string   `json:"scenario"`
	ItemsPerSec float64  `json:"items_per_sec"`
	SecondsRan  float64  `json:"seconds_ran"`
	Iterations  int      `json:"iterations"`
	Median      *float64 `json:"median"`
	Mean        *float64 `json:"mean"`
	// Std is the standard deviation of the population.
	Std *float64 `json:"std"`
	P25 *float64 `json:"25.0%"`
	P50 *float64 `json:"50.0%"`
	P75 *float64 `json:"75.0%"`
	P90 *float64 `json:"90.0%"`
	P95 *float64 `json:"95.0%"`
	P99 *float64 `json:"99.0%"`
	P   *float64 `json:"99.9%"`
}

// Summarise makes the statistics of the times of inferences in seconds. batch is the size of the
// batches, ran the time from the start of the first to the end of the last inference. Percentiles
// are linear between samples.
func Summarise(scenario string, samples []float64, batch int64, ran float64) Result {
	r := Result{Scenario: scenario, SecondsRan: ran, Iterations: len(samples)}
	if ran > 0 {
		r.ItemsPerSec = float64(batch) * float64(len(samples)) / ran
	}
	if len(samples) == 0 {
		return r
	}
	ms := make([]float64, len(samples))
	for i, s := range samples {
		ms[i] = s * 1e3
	}
	slices.Sort(ms)
	mean := stats.Mean(ms)
	squares := 0.0
	for _, v := range ms {
		squares += (v - mean) * (v - mean)
	}
	r.Mean, r.Std = &mean, new(math.Sqrt(squares/float64(len(ms))))
	for _, q := range []struct {
		to **float64
		p  float64
	}{{&r.Median, .5}, {&r.P25, .25}, {&r.P50, .5}, {&r.P75, .75}, {&r.P90, .9}, {&r.P95, .95}, {&r.P99, .99}, {&r.P, .999}} {
		*q.to = new(stats.Quantile(ms, q.p))
	}
	return r
}

// BenchmarkOf makes a benchmark of a profile: of its samples in their order, or of its figures if
// it has no samples.
func BenchmarkOf(p *profile.Profile) *Benchmark {
	s := p.Settings
	b := &Benchmark{
		Engine: s.Engine, Version: s.EngineVersion, Original: p.Model.Path, Model: p.Model.Path, BatchSize: 1, Cores: s.Threads, Scenario: "sync", Scheduler: "Scheduler.single_stream",
		NumStreams: s.Streams,
	}
	if s.Batch != nil && *s.Batch > 0 {
		b.BatchSize = *s.Batch
	}
	samples := p.Totals.LatencySamples
	b.Result = Summarise("singlestream", samples, b.BatchSize, stats.Sum(samples))
	if m := p.Totals.Latency; m != nil && len(samples) == 0 {
		r := &b.Result
		r.Median, r.P50, r.Mean, r.P90, r.P95, r.P99 = times(m.Median, 1e3), times(m.Median, 1e3), times(m.Mean, 1e3), times(m.P90, 1e3), times(m.P95, 1e3), times(m.P99, 1e3)
		if m.N != nil {
			r.Iterations = int(*m.N)
		}
		if v := cmp.Or(m.Mean, m.Median); v != nil && *v > 0 {
			r.ItemsPerSec, r.SecondsRan = float64(b.BatchSize) / *v, *v*float64(r.Iterations)
		}
	}
	b.AskedS = b.Result.SecondsRan
	return b
}

// times returns *v times by, nil for nil.
func times(v *float64, by float64) *float64 {
	if v == nil {
		return nil
	}
	return new(*v * by)
}

// JSON writes it as deepsparse.benchmark does.
func (b *Benchmark) JSON() ([]byte, error) { return jsonx.MarshalIndent(b) }

// Layer is a layer as deepsparse.analyze exports it. Unknown figures are nil.
type Layer struct {
	Name          string   `json:"name"`
	CanonicalName string   `json:"canonical_name"`
	Output        Sizes    `json:"output_dims,omitempty"`
	Kernel        Sizes    `json:"kernel_dims,omitempty"`
	Strides       Sizes    `json:"strides,omitempty"`
	Sparsity      *float64 `json:"activation_sparsity,omitzero"`
	TimeMS        *float64 `json:"average_run_time_in_ms,omitzero"`
	Utilisation   *float64 `json:"average_utilization,omitzero"`
	TFLOPS        *float64 `json:"average_teraflops_per_second,omitzero"`
	Inside        []Layer  `json:"sub_layer_info"`
}

// Sizes are dimensions by their letters, in order.
type Sizes = jsonx.Object[int64]

// Analysis is the export of deepsparse.analyze.
type Analysis struct {
	BatchSize      int64     `json:"batch_size"`
	Threads        *int64    `json:"num_threads"`
	TotalMS        *float64  `json:"average_total_time"`
	ItemsPerSecond *float64  `json:"items_per_second"`
	IterationMS    []float64 `json:"iteration_times"`
	Layers         []Layer   `json:"layer_info"`
}

// AnalysisOf makes an analysis of the layers of a profile that ran, in their order.
func AnalysisOf(p *profile.Profile) *Analysis {
	a := &Analysis{BatchSize: 1, Threads: p.Settings.Threads, Layers: []Layer{}, IterationMS: []float64{}}
	if b := p.Settings.Batch; b != nil && *b > 0 {
		a.BatchSize = *b
	}
	for _, s := range p.Totals.LatencySamples {
		a.IterationMS = append(a.IterationMS, s*1e3)
	}
	if v, ok := p.Totals.Latency.Best(); ok && v > 0 {
		a.TotalMS, a.ItemsPerSecond = new(v*1e3), new(float64(a.BatchSize)/v)
	}
	for i := range p.Layers {
		if l, ok := layerOf(&p.Layers[i]); ok {
			a.Layers = append(a.Layers, l)
		}
	}
	return a
}

func layerOf(l *profile.Layer) (out Layer, ok bool) {
	t, ok := l.Latency.Best()
	if !ok {
		return out, false
	}
	out = Layer{Name: l.Op, CanonicalName: l.Name, TimeMS: new(t * 1e3), Inside: []Layer{}}
	if len(l.Outputs) > 0 {
		out.CanonicalName = cmp.Or(l.Outputs[0].Name, l.Name)
		out.Output = sizes(l.Outputs[0].Shape)
	}
	if len(l.Inputs) > 1 && l.Params != nil && *l.Params > 0 {
		out.Kernel = sizes(l.Inputs[1].Shape)
	}
	if w, h, is := strings.Cut(l.Option("stride")+l.Option("strides"), "x"); is {
		for _, s := range []struct{ letter, text string }{{"h", h}, {"w", w}} {
			if n, err := strconv.ParseInt(s.text, 10, 64); err == nil {
				out.Strides = append(out.Strides, jsonx.Member[int64]{Name: s.letter, Value: n})
			}
		}
	}
	if l.Sparsity != nil {
		out.Sparsity = l.Sparsity.Activations
	}
	if l.Ops != nil && t > 0 {
		out.TFLOPS = new(float64(*l.Ops) / t / 1e12)
	}
	if v, is := l.Value(utilisation.Key); is {
		out.Utilisation = &v
	}
	return out, true
}

// letters name the dimensions of shapes by their number.
var letters = map[int]string{1: "n", 2: "nc", 3: "ncw", 4: "nchw", 5: "ncdhw"}

func sizes(shape []int64) (out Sizes) {
	for i, d := range shape {
		if w := letters[len(shape)]; w != "" && d >= 0 {
			out = append(out, jsonx.Member[int64]{Name: w[i : i+1], Value: d})
		}
	}
	return out
}

// JSON writes it as deepsparse.analyze does.
func (a *Analysis) JSON() ([]byte, error) { return jsonx.MarshalIndent(a) }

// CSV writes a row for each layer, those inside others after them. Columns are always in the same
// order.
func (a *Analysis) CSV(w io.Writer) error {
	head := []string{"name", "canonical_name"}
	dims := []string{"output_dims", "kernel_dims", "strides"}
	for _, d := range dims {
		for _, k := range "ncdhw" {
			head = append(head, d+"_"+string(k))
		}
	}
	head = append(head, "activation_sparsity", "average_run_time_in_ms", "average_utilization", "average_teraflops_per_second")
	c := csv.NewWriter(w)
	rows := [][]string{head}
	var add func(ls []Layer)
	add = func(ls []Layer) {
		for _, l := range ls {
			row := []string{l.Name, l.CanonicalName}
			for _, s := range []Sizes{l.Output, l.Kernel, l.Strides} {
				for _, k := range "ncdhw" {
					cell := ""
					if v, ok := s.Get(string(k)); ok {
						cell = strconv.FormatInt(v, 10)
					}
					row = append(row, cell)
				}
			}
			for _, f := range []*float64{l.Sparsity, l.TimeMS, l.Utilisation, l.TFLOPS} {
				row = append(row, figure(f, -1))
			}
			rows = append(rows, row)
			add(l.Inside)
		}
	}
	add(a.Layers)
	return c.WriteAll(rows)
}

func figure(f *float64, digits int) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', digits, 64)
}

// Table writes the layers as deepsparse's debug analysis prints them, then sums by type of layer
// with their share of the time, and by size of the kernel if a type has several.
func (a *Analysis) Table() []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "Name\tOutDims\tKerDims\tStrides\tActSpars\tTime(ms)\tUtil(%)\tTFLOPS\tCanonical Name")
	sums := map[string]map[string]float64{}
	total := 0.0
	for _, l := range a.Layers {
		fmt.Fprintln(t, strings.Join([]string{
			l.Name, joined(l.Output), joined(l.Kernel), joined(l.Strides), figure(l.Sparsity, 3), figure(l.TimeMS, 4), figure(times(l.Utilisation, 100), 2), figure(l.TFLOPS, 4), l.CanonicalName,
		}, "\t"))
		if l.TimeMS == nil {
			continue
		}
		if sums[l.Name] == nil {
			sums[l.Name] = map[string]float64{}
		}
		kernel := ""
		if len(l.Kernel) > 2 {
			kernel = joined(l.Kernel[2:])
		}
		sums[l.Name][kernel] += *l.TimeMS
		total += *l.TimeMS
	}
	fmt.Fprintln(t)
	fmt.Fprintln(t, "Layer Type\tTime(ms)\tPercent")
	row := func(name string, ms float64) {
		fmt.Fprintf(t, "%s\t%.4f\t%.2f\n", name, ms, 100*ms/max(total, math.SmallestNonzeroFloat64))
	}
	for _, name := range heaviest(sums, sum) {
		row(name, sum(sums[name]))
		for _, kernel := range heaviest(sums[name], itself) {
			if kernel != "" {
				row("  kernel="+kernel, sums[name][kernel])
			}
		}
	}
	_ = t.Flush() // into memory
	return b.Bytes()
}

func itself(v float64) float64 { return v }

// sum adds in a fixed order, so that the result is always the same.
func sum(parts map[string]float64) (s float64) {
	for _, k := range heaviest(parts, itself) {
		s += parts[k]
	}
	return s
}

// heaviest returns the keys by falling weight, equal ones by name.
func heaviest[V any](m map[string]V, weight func(V) float64) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(m[b]), weight(m[a])), cmp.Compare(a, b))
	})
}

func joined(s Sizes) string {
	var parts []string
	for _, m := range s {
		parts = append(parts, strconv.FormatInt(m.Value, 10))
	}
	return strings.Join(parts, "x")
}
