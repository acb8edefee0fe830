package mvp

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func shipped(t testing.TB, runtime string) *fitted {
	t.Helper()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find("efr32xg24-mvp")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newFitted(tg.Runtime(runtime))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Device cycles of published layers: mean absolute error at most 1.3 %, and the
// column of predictions to the cycle.
func TestDeviceCycles(t *testing.T) {
	t.Parallel()
	chips := map[Library]*fitted{Second: shipped(t, "tflm-mvp"), First: shipped(t, "tflm-mvp-baseline")}
	errs := map[string][]float64{}
	var all []float64
	off := 0
	for _, r := range material.Table(t, "data", "mltk_cycle_model.csv") {
		lib := libraries[r["conv_kernel"]]
		c, err := countRow(t, r["opcode"], r["input_shape"], r["output_shape"], r["options"], lib)
		if err != nil {
			t.Fatal(err)
		}
		v := float64(c.Simulated())
		if r["mode"] == "device" {
			v = chips[lib].device(c)
		}
		want, _ := strconv.ParseFloat(r["predicted_acc_cycles"], 64)
		if math.Abs(v-want) > 1 {
			off++
			if off < 20 {
				t.Errorf("%s/%s %s: %v, want %v", r["table_id"], r["index"], r["algorithm"], v, want)
			}
		}
		pub, err := strconv.ParseFloat(r["published_acc_cycles"], 64)
		if r["mode"] != "device" || err != nil || pub == 0 {
			continue
		}
		e := v/pub - 1
		all = append(all, math.Abs(e))
		g := string(lib) + " " + string(c.Kernel)
		errs[g] = append(errs[g], e)
	}
	if mean := mean(all); mean > 0.013 {
		t.Errorf("mean absolute error %.2f %%, want at most 1.3 %%", 100*mean)
	}
	t.Logf("%d layers, mean absolute error %.3f %%; %d predictions differ", len(all), 100*mean(all), off)
	for g, e := range errs {
		t.Logf("%-22s n %3d mean %.2f %% p90 %.2f %%", g, len(e), 100*mean(abs(e)), 100*stats.Quantile(slices.Sorted(slices.Values(abs(e))), 0.9))
	}
}

func abs(v []float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = math.Abs(v[i])
	}
	return out
}

func mean(v []float64) (s float64) {
	for _, x := range v {
		s += x / float64(len(v))
	}
	return s
}
