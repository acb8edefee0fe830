package estimate

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tflite"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
)

func find(t testing.TB, id string) *chip.Target {
	t.Helper()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

func open(t testing.TB, path string) *graph.Model {
	t.Helper()
	m, err := tflite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if m.Close != nil {
			_ = m.Close()
		}
	})
	return m
}

func published(t testing.TB, sha string) *graph.Model {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(material.Path(t, "models", "mltk"), "*__"+sha+".tflite"))
	if len(files) == 0 {
		return nil
	}
	return open(t, files[0])
}

var runtimes = map[string]string{"baseline": "tflm-mvp-baseline", "speed_opt": "tflm-mvp"}

func estimate(t testing.TB, m *graph.Model, id, runtime string) *profile.Profile {
	t.Helper()
	p, err := Estimate(m, find(t, id), chip.Options{Runtime: runtime})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Errorf("%s: %v", m.Path, err)
	}
	return p
}

func best(m *profile.Metric) float64 {
	v, ok := m.Best()
	if !ok {
		return math.NaN()
	}
	return v
}

func number(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// printed rounds as the published tables do: a prefix and one decimal.
func printed(v float64) float64 {
	scale := 1.0
	for _, s := range []float64{1e12, 1e9, 1e6, 1e3} {
		if v >= s {
			scale = s
			break
		}
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v/scale, 'f', 1, 64), 64)
	if scale == 1 {
		r = math.Round(v)
	}
	return r * scale
}

// Simulator cycles of published layers, to the printed digit.
func TestPublishedSimulation(t *testing.T) {
	t.Parallel()
	// 73 550 is a tie of rounding. (TestPublishedSimulatorLayers of package mvp holds
	// the layers of tables without a model file too.)
	known := map[string]bool{"T56/4": true}
	profiles := map[string]*profile.Profile{}
	layers, same := 0, 0
	var off []string
	tables := map[string]map[string]string{}
	for _, r := range material.Table(t, "data", "mltk_golden.csv") {
		tables[r["table_id"]] = r
	}
	for _, r := range material.Table(t, "data", "mltk_golden_layers.csv") {
		tab := tables[r["table_id"]]
		if r["mode"] != "mvp_sim" || tab["tflite_match"] == "" || r["acc_cycles"] == "" {
			continue
		}
		p := profiles[r["table_id"]]
		if p == nil {
			m := published(t, tab["tflite_sha1_8"])
			if m == nil {
				continue
			}
			p = estimate(t, m, "efr32xg24-mvp", runtimes[tab["conv_kernel"]])
			profiles[r["table_id"]] = p
		}
		i, _ := strconv.Atoi(r["index"])
		l := p.Layers[i]
		if !strings.EqualFold(l.Op, r["opcode"]) {
			t.Fatalf("%s/%d is %s, want %s", r["table_id"], i, l.Op, r["opcode"])
		}
		got := 0.0
		if l.SimulatorCycles != nil {
			got = best(l.SimulatorCycles)
		}
		want := number(r["acc_cycles"])
		if yes, _ := l.Accelerated(); want == 0 && got == 0 && !yes {
			continue // not the accelerator's business
		}
		layers++
		if math.Abs(printed(got)-want) < 1e-6*want {
			same++
			continue
		}
		if !known[r["table_id"]+"/"+r["index"]] {
			t.Errorf("%s/%s: %v, published %v", r["table_id"], r["index"], got, want)
		}
		off = append(off, r["table_id"]+"/"+r["index"]+" "+r["opcode"]+" "+strconv.FormatFloat(got, 'f', 0, 64)+" published "+r["acc_cycles"])
	}
	t.Logf("%d of %d layers of %d tables; others: %v", same, layers, len(profiles), off)
}

// Time of published device tables: mean error per model at most 2.5 %.
func TestPublishedLatency(t *testing.T) {
	t.Parallel()
	var errs []float64
	layerErrs := map[string][]float64{}
	inside, layers, whole := 0, 0, 0
	cpuErrs := map[string][]float64{}
	byTable := map[string][]map[string]string{}
	for _, r := range material.Table(t, "data", "mltk_golden_layers.csv") {
		byTable[r["table_id"]] = append(byTable[r["table_id"]], r)
	}
	for _, r := range material.Table(t, "data", "mltk_golden.csv") {
		if r["mode"] != "device" || r["accelerator"] != "mvp" || r["tflite_match"] == "" {
			continue
		}
		m := published(t, r["tflite_sha1_8"])
		if m == nil {
			continue
		}
		runtime := runtimes[r["conv_kernel"]]
		if r["first_version"] == "0.6.0" {
			runtime = "tflm-mvp-0.6"
		}
		p := estimate(t, m, "efr32xg24-mvp", runtime)
		got := best(p.Totals.Latency) * 78e6 / number(r["clock_hz"])
		e := got/number(r["latency_s"]) - 1
		errs = append(errs, math.Abs(e))
		if b := p.Totals.Latency.Band; b[0] <= got/(1+e)*number(r["clock_hz"])/78e6 && got/(1+e)*number(r["clock_hz"])/78e6 <= b[1] {
			whole++
		}
		t.Logf("%s %-40s %-9s %.4f s, published %.4f (%+.1f %%), cpu %+.1f %%", r["table_id"], r["model"], r["conv_kernel"], got, number(r["latency_s"]), 100*e, 100*(best(p.Totals.CPUCycles)/number(r["cpu_cycles"])-1))
		for _, lr := range byTable[r["table_id"]] {
			i, _ := strconv.Atoi(lr["index"])
			l := p.Layers[i]
			if s := number(lr["time_s"]); s >= 0.0009 {
				layers++
				if b := l.Latency.Band; b != nil && b[0]*78e6/number(r["clock_hz"]) <= s*1.01 && s*0.99 <= b[1]*78e6/number(r["clock_hz"]) {
					inside++
				}
				g := l.Kernel
				layerErrs[g] = append(layerErrs[g], best(l.Latency)*78e6/number(r["clock_hz"])/s-1)
			}
			if c := number(lr["cpu_cycles"]); c > 0 {
				cpuErrs[l.Kernel] = append(cpuErrs[l.Kernel], best(l.CPUCycles)/c-1)
			}
		}
	}
	t.Logf("%d tables: mean %.2f %%, largest %.1f %%", len(errs), 100*average(errs), 100*slices.Max(errs))
	t.Logf("the bands hold %d of %d models and %d of %d layers of 0.9 ms and more", whole, len(errs), inside, layers)
	if average(errs) > 0.025 {
		t.Errorf("mean absolute error of latency is %.2f %%, want at most 2.5 %%", 100*average(errs))
	}
	for name, g := range map[string]map[string][]float64{"latency": layerErrs, "cpu": cpuErrs} {
		for k, e := range g {
			t.Logf("%s %-26s n %3d bias %+.1f %% mean %.1f %% p90 %.1f %%", name, k, len(e), 100*average(e), 100*average(abs(e)), 100*stats.Quantile(slices.Sorted(slices.Values(abs(e))), 0.9))
		}
	}
}

func abs(v []float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = math.Abs(v[i])
	}
	return out
}

func average(v []float64) (s float64) {
	for _, x := range v {
		s += x / float64(len(v))
	}
	return s
}

// MLPerf Tiny results of the vendor: time within 1 %, energy within 6.5 %. Energy
// and overlap figures were adjusted to these results: this guards against changes
// and is not an independent check.
func TestMLPerfTiny(t *testing.T) {
	t.Parallel()
	files := map[string]string{"ad01_int8": "mlperf_ad01_int8.tflite", "pretrainedResnet_quant": "mlperf_pretrainedResnet_quant.tflite", "kws_ref_model": "mlperf_kws_ref_model.tflite", "vww_96_int8": "mlperf_vww_96_int8.tflite"}
	for _, r := range material.Table(t, "data", "mltk_xg24_mlperf.csv") {
		m := open(t, material.Path(t, "models", "mcu", files[r["model"]]))
		p := estimate(t, m, "efr32xg24-mvp", runtimes[r["conv_kernel"]])
		e := 1/best(p.Totals.Latency)/number(r["measured_inf_per_s"]) - 1
		en := best(p.Totals.Energy)*1e6/number(r["measured_uj_per_inf"]) - 1
		t.Logf("%s %-24s %8.3f inf/s (%+.2f %%) %8.1f uJ (%+.2f %%); acc %.0f/%s cpu %.0f/%s", r["round"], r["model"], 1/best(p.Totals.Latency), 100*e, best(p.Totals.Energy)*1e6, 100*en,
			best(p.Totals.AcceleratorCycles), r["model_acc_cycles"], best(p.Totals.CPUCycles), r["model_cpu_cycles"])
		if math.Abs(e) > 0.01 {
			t.Errorf("%s %s: time is off by %.2f %%", r["round"], r["model"], 100*e)
		}
		if math.Abs(en) > 0.065 {
			t.Errorf("%s %s: energy is off by %.2f %%", r["round"], r["model"], 100*en)
		}
	}
}

// A thousand models and targets take less than five seconds.
func BenchmarkEstimate(b *testing.B) {
	m := published(b, "6ec32d10")
	tg := find(b, "efr32xg24-mvp")
	for b.Loop() {
		if _, err := Estimate(m, tg, chip.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
