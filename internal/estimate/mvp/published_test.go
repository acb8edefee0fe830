package mvp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// The tables have names of their own for generations and kernels.
var (
	libraries  = map[string]Library{"baseline": First, "speed_opt": Second}
	algorithms = map[string]Kernel{
		"conv": KernelConv, "fc": KernelDense, "dw_gen": KernelDepthwise, "dw_opt": KernelDepthwisePixel, "avg_gen": KernelAveragePool,
		"avg_opt": KernelAveragePoolPixel, "max_gen": KernelMaxPool, "add": KernelAdd, "mul": KernelMul, "tconv": KernelTransposeConv,
	}
)

func dims(s string) (d []int) {
	for p := range strings.SplitSeq(s, "x") {
		n, _ := strconv.Atoi(p)
		d = append(d, n)
	}
	return d
}

func pairOption(options, name string) (w, h int) {
	_, rest, ok := strings.Cut(strings.ToLower(options), name+":")
	if !ok {
		return 1, 1
	}
	_, _ = fmt.Sscanf(rest, "%dx%d", &w, &h)
	return w, h
}

// countRow counts a layer of the published tables from its shapes and options.
func countRow(t testing.TB, op, in, out, options string, lib Library) (*Counts, error) {
	t.Helper()
	parts := strings.Split(in, ",")
	i, o := dims(parts[0]), dims(out)
	switch op {
	case "fully_connected":
		f := dims(parts[1])
		return FullyConnected(1, f[1], f[0], false)
	case "add":
		n := int64(1)
		for _, d := range o {
			n *= int64(d)
		}
		return Add(n), nil
	}
	w := Window{Batch: 1, H: i[1], W: i[2], C: i[3], OH: o[1], OW: o[2], OC: o[3], DilationX: 1, DilationY: 1}
	w.StrideX, w.StrideY = pairOption(options, "stride")
	if len(parts) > 1 {
		f := dims(parts[1])
		w.FH, w.FW = f[1], f[2]
	} else {
		w.FW, w.FH = pairOption(options, "filter")
	}
	if strings.Contains(strings.ToLower(options), "padding:same") {
		w.samePadding()
	}
	switch op {
	case "conv_2d":
		return Conv(w, lib)
	case "depthwise_conv_2d":
		w.DepthMultiplier = w.OC / w.C
		return Depthwise(w)
	case "average_pool_2d":
		return AveragePool(w)
	case "max_pool_2d":
		return MaxPool(w)
	}
	t.Fatalf("operator %s", op)
	return nil, nil
}

// Every column of the test vectors.
func TestCycleModelVectors(t *testing.T) {
	t.Parallel()
	rows := material.Table(t, "data", "mltk_cycle_model.csv")
	bad := 0
	for _, r := range rows {
		lib := libraries[r["conv_kernel"]]
		c, err := countRow(t, r["opcode"], r["input_shape"], r["output_shape"], r["options"], lib)
		if err != nil {
			t.Errorf("%s/%s: %v", r["table_id"], r["index"], err)
			bad++
			continue
		}
		got := map[string]int64{
			"programs": c.Programs, "instructions": c.Instructions, "stalls": c.Stalls, "simulator_cycles": c.Simulated(),
			"parallel_mac_iterations": c.DoubleIterations, "real_mac_iterations": c.SingleIterations,
			"stores": c.Stores, "noops": c.NoOps, "clamp_iterations": c.ClampIterations,
		}
		for k, v := range got {
			want, err := strconv.ParseInt(r[k], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if v != want {
				t.Errorf("%s/%s %s %s %s %s: %s is %d, want %d", r["table_id"], r["index"], r["algorithm"], lib, r["input_shape"], r["options"], k, v, want)
				bad++
			}
		}
		if want := algorithms[r["algorithm"]]; c.Kernel != want {
			t.Errorf("%s/%s: kernel %s, want %s", r["table_id"], r["index"], c.Kernel, want)
			bad++
		}
	}
	t.Logf("%d vectors, %d differences", len(rows), bad)
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
	if scale == 1 {
		return math.Round(v)
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v/scale, 'f', 1, 64), 64)
	return r * scale
}

// Simulator cycles of all published layers, to the printed digit, from the shapes
// and options in the tables. Two differ and are named.
func TestPublishedSimulatorLayers(t *testing.T) {
	t.Parallel()
	known := map[string]string{
		"T56/4": "73 550 is a tie: it was printed as 73.6k",
		"T09/3": "release 0.6 still took this maximum pooling; since 0.8 (T44/3) it is refused",
	}
	ops := map[string]bool{"conv_2d": true, "depthwise_conv_2d": true, "fully_connected": true, "add": true, "max_pool_2d": true, "average_pool_2d": true}
	n, same := 0, 0
	for _, r := range material.Table(t, "data", "mltk_golden_layers.csv") {
		if r["mode"] != "mvp_sim" {
			continue
		}
		n++
		got := 0.0
		if ops[r["opcode"]] {
			// Layers over a limit have no accelerator cycles.
			if c, err := countRow(t, r["opcode"], r["input_shape"], r["output_shape"], r["options"], libraries[r["conv_kernel"]]); err == nil {
				got = printed(float64(c.Simulated()))
			}
		}
		want, _ := strconv.ParseFloat(r["acc_cycles"], 64)
		if math.Abs(got-want) < 1e-6*want || got == want {
			same++
			continue
		}
		id := r["table_id"] + "/" + r["index"]
		if known[id] == "" {
			t.Errorf("%s %s %s %s: %v, published %v", id, r["opcode"], r["input_shape"], r["options"], got, want)
		}
	}
	t.Logf("%d of %d layers", same, n)
}
