package study

import (
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	c "github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// floatMeasurement reads a row of a network in floating point.
func floatMeasurement(r map[string]string, root string) (*fit.Measurement, string) {
	m := &fit.Measurement{Source: source(r["source"]), Chip: r["mcu"], Core: coreID(r["core"]), Model: r["model_name"], Version: r["runtime_version"]}
	switch rt := r["runtime"]; {
	case strings.HasPrefix(rt, "TFLM + CMSIS-NN") && strings.HasPrefix(r["source"], "EdgeMark"), rt == "TFLM (reference kernels)", rt == "Edge Impulse SDK":
		m.Family = c.FloatTFLM
		_, m.Era = family(rt, r["runtime_version"], m.Core)
		if strings.HasSuffix(rt, "FPU off") {
			m.Core = noUnit
		}
	case rt == "TFLM", rt == "TFLM (Arduino, reference kernels)":
		m.Family = c.FloatTFLM
		// One publication compares many boards with compilers and options of their
		// own: leaving out a board is what leaving out a source is elsewhere.
		m.Source += ", " + m.Chip
	case (strings.HasPrefix(rt, "X-CUBE-AI") || strings.HasPrefix(rt, "ST Edge AI")) && family1(r) != "":
		m.Family = c.FloatXCubeAI
	}
	if m.Family == "" || m.Core == "" {
		return nil, "runtime or core without a model in floating point: " + r["runtime"]
	}
	mhz, _ := strconv.ParseFloat(r["clock_mhz"], 64)
	ms, _ := strconv.ParseFloat(r["latency_ms"], 64)
	m.Clock, m.Cycles, m.Seconds = mhz*1e6, mhz*1e3*ms, ms/1e3
	if m.Cycles <= 0 {
		return nil, "no latency, or no clock to make cycles of it"
	}
	n := floatNetwork(r)
	if n == nil && strings.HasPrefix(r["model_file"], "models/") && (strings.HasSuffix(r["model_file"], ".tflite") || strings.HasSuffix(r["model_file"], ".yaml")) {
		n = open(filepath.Join(root, r["model_file"]), c.Kernels{Family: "tflm-reference"})
	}
	if n == nil {
		return nil, "network is not known"
	}
	m.Code = code(r, root)
	m.Work = n.All
	return m, ""
}

// noUnit is a Cortex-M4 whose unit for floating point is not used.
const noUnit = "cortex-m4-soft"

// family1 is the era of an X-CUBE-AI release that is stated.
func family1(r map[string]string) string {
	_, era := family(r["runtime"], r["runtime_version"], "")
	return era
}

var (
	perceptron = regexp.MustCompile(`^tinymlbench_FC (1 x 10|10 x 10|10\+50)_(\w+)`)
	window     = regexp.MustCompile(`:(GMP|IGN) wl (\d+)`)
)

// floatNetwork builds small networks that the tables describe by name; the printed
// multiply-accumulates must agree.
func floatNetwork(r map[string]string) *fit.Work {
	var layers []c.Layer
	name := r["model_name"]
	want, _ := strconv.ParseFloat(r["macs_millions"], 64)
	tolerance := 0.01
	if p := perceptron.FindStringSubmatch(name); p != nil {
		in := last(ints(r["input_shape"]))
		hidden := map[string][]int{"1 x 10": {10}, "10 x 10": {10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, "10+50": {10, 50}}[p[1]]
		classes := map[string]int{"Iris": 3, "Wine": 3, "Breast": 2, "Digits": 10}[p[2]]
		for _, n := range append(hidden, classes) {
			layers = append(layers, c.Dense(1, in, n))
			in = n
		}
		layers = append(layers, c.Each(c.PlainTable, "softmax", classes))
	} else if p := window.FindStringSubmatch(name); p != nil {
		// Human-activity networks of the STM32 model zoo on three axes. Its counts have
		// activations and normalisation in them.
		length, _ := strconv.Atoi(p[2])
		tolerance = 0.12
		if p[1] == "IGN" {
			h := length - 15
			layers = append(layers, c.Conv(h, 3, 16, 1, 1, 24, 1), c.Each(c.PoolElement, "pool", h*3*24), c.Dense(1, h/3*3*24, 12), c.Dense(1, 12, 4))
		} else {
			layers = append(layers, c.Each(c.Element, "normalise", length*3), c.Conv(length-4, 3, 5, 1, 1, 16, 1), c.Each(c.Element, "normalise", (length-4)*3*16),
				c.Conv(length-8, 3, 5, 1, 16, 16, 1), c.Each(c.PoolElement, "pool", (length-8)*3*16), c.Dense(1, 16, 4))
		}
		layers = append(layers, c.Each(c.TableElement, "softmax", 4))
	}
	if len(layers) == 0 {
		return nil
	}
	got := 0.0
	for i := range layers {
		got += layers[i].MACs / 1e6
	}
	if math.Abs(got-want) > max(tolerance*want, 1e-5) {
		return nil
	}
	return fit.Total(layers)
}
