package study

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/chip/cortexm"
	"github.com/opmeter/opmeter/internal/chip/fit"
	"github.com/opmeter/opmeter/internal/read/modelfile"
)

// Load reads measurements of whole models. Model files are looked for relative to
// root; well-known networks without a file are built from their description.
// Rows that cannot be used are left out and counted in skipped by reason.
func Load(path, root string) (ms []*fit.Measurement, skipped map[string]int, err error) {
	t, err := fit.OpenTable(path)
	if err != nil {
		return nil, nil, err
	}
	skipped = map[string]int{}
	files := map[string]*fit.Work{}
	for _, r := range t.Rows {
		m, why := measurement(r, root, files)
		if why != "" {
			skipped[why]++
			continue
		}
		ms = append(ms, m)
	}
	return ms, skipped, nil
}

// internalKiB is the largest internal RAM of the measured chips; larger
// activations lie outside, at a cost that depends on the board.
const internalKiB = 1024

func measurement(r map[string]string, root string, files map[string]*fit.Work) (*fit.Measurement, string) {
	if r["suggested_use"] == "exclude" {
		return nil, "excluded by the table"
	}
	if !strings.HasPrefix(r["evidence"], "measured") {
		return nil, "not measured"
	}
	if r["accelerator"] != "" {
		return nil, "with accelerator"
	}
	if r["dtype"] == "float32" {
		return floatMeasurement(r, root)
	}
	if r["dtype"] != "int8" {
		return nil, "neither int8 nor float32"
	}
	m := &fit.Measurement{Source: source(r["source"]), Chip: r["mcu"], Model: r["model_name"], Version: r["runtime_version"]}
	m.Core = coreID(r["core"])
	m.Family, m.Era = family(r["runtime"], r["runtime_version"], m.Core)
	if m.Family == "" || m.Core == "" {
		return nil, "runtime or core without a model: " + r["runtime"]
	}
	mhz, _ := strconv.ParseFloat(r["clock_mhz"], 64)
	ms, _ := strconv.ParseFloat(r["latency_ms"], 64)
	m.Clock, m.Cycles, m.Seconds = mhz*1e6, mhz*1e3*ms, ms/1e3
	if c, err := strconv.ParseFloat(r["cycles"], 64); err == nil && c > 0 {
		m.Cycles = c
	}
	if m.Cycles <= 0 {
		return nil, "no latency"
	}
	if strings.Contains(r["notes"], "external SDRAM") {
		return nil, "activations in external memory"
	}
	if kib, _ := strconv.ParseFloat(r["activation_kib"], 64); kib > internalKiB {
		return nil, "activations in external memory"
	}
	uj, _ := strconv.ParseFloat(r["energy_uj"], 64)
	m.Joules = uj / 1e6
	m.Volts = volts(r["notes"])
	kernels := cortexm.Kernels{Family: m.Family, Tier: tier(m.Family, m.Core)}
	file := r["model_file"] + "|" + kernels.Family + "|" + kernels.Tier
	n := files[file]
	if n == nil && strings.HasPrefix(r["model_file"], "models/") {
		n = open(filepath.Join(root, r["model_file"]), kernels)
		files[file] = n
	}
	if n == nil {
		n = known(r["model_name"], r["input_shape"], r)
	}
	if n == nil {
		return nil, "network is not known"
	}
	m.Work = n.All
	if prunes(m.Family, m.Era) {
		m.Work = n.Live
	}
	return m, ""
}

func open(path string, k cortexm.Kernels) *fit.Work {
	m, err := modelfile.Open(path)
	if err != nil {
		return nil
	}
	if m.Close != nil {
		defer m.Close() //nolint:errcheck // only read
	}
	return fit.Total(cortexm.Layers(m, m.Main(), k))
}

var (
	mlperf     = regexp.MustCompile(`^MLPerf Tiny (v[\d.]+) results .* (closed|open)/([^/]+)/`)
	repository = regexp.MustCompile(`([\w.-]+/[\w.-]+)@([0-9a-f]+)`)
	supply     = regexp.MustCompile(`supply (\d(?:\.\d+)?) ?V`)
)

// source names a publication: a submitter's round, a commit of a repository, or
// the source as printed.
func source(s string) string {
	if m := mlperf.FindStringSubmatch(s); m != nil {
		return "MLPerf Tiny " + m[1] + " " + m[3]
	}
	if m := repository.FindStringSubmatch(s); m != nil {
		return m[1] + "@" + m[2]
	}
	return s
}

func volts(notes string) float64 {
	if m := supply.FindStringSubmatch(notes); m != nil {
		v, _ := strconv.ParseFloat(m[1], 64)
		return v
	}
	return 0
}

// coreID turns a core as printed into the id of a core in target files.
func coreID(s string) string {
	s = strings.ToLower(s)
	for _, c := range []struct{ prefix, id string }{
		{"cortex-m0+", "cortex-m0plus"},
		{"cortex-m0", "cortex-m0plus"},
		{"cortex-m3 ", "cortex-m3"},
		{"cortex-m33", "cortex-m33"},
		{"cortex-m3", "cortex-m3"},
		{"cortex-m4", "cortex-m4"},
		{"cortex-m7", "cortex-m7"},
		{"cortex-m55", "cortex-m55"},
		{"cortex-m85", "cortex-m85"},
		{"rxv2", "rxv2"},
		{"xtensa lx7", "xtensa-lx7"},
		{"xtensa lx6", "xtensa-lx6"},
		{"risc-v hp core", "rv32-p4"},
		{"risc-v rv32imc", "rv32imc"},
		{"rv32imac + fpu", "rv32imac"},
		{"rv32imacp (d25f", "rv32p-d25f"},
		{"rv32imacp (d45", "rv32p-d45"},
		{"risc-v vexriscv", "rv32-vexriscv"},
	} {
		if strings.HasPrefix(s, c.prefix) {
			return c.id
		}
	}
	return ""
}

// family sorts a runtime and its version into a family of kernels and an era in
// which they did not change much.
func family(runtime, version, core string) (name, era string) {
	switch {
	case strings.HasPrefix(runtime, "X-CUBE-AI"), strings.HasPrefix(runtime, "ST Edge AI Core"):
		switch {
		case strings.HasPrefix(version, "7.1"):
			return "x-cube-ai", "7.1"
		case strings.HasPrefix(version, "7.3"), strings.HasPrefix(version, "8.0"):
			return "x-cube-ai", "7.3"
		case strings.HasPrefix(version, "8.1"):
			return "x-cube-ai", "8.1"
		case version == "":
			return "", ""
		}
		return "x-cube-ai", "9"
	case runtime == "TFLM without ESP-NN", strings.Contains(runtime, "reference kernels"):
		return "tflm-reference", ""
	case runtime == "TFLM + ESP-NN":
		return "tflm-esp-nn", ""
	case strings.Contains(runtime, "Andes"):
		return "tflm-andes-nn", ""
	case runtime == "TFLM (reference submission, mbed-os)":
		return "tflm-cmsis-nn", "2020" // kernels of before the int8 rewrite
	case runtime == "TFLM + CMSIS-NN", runtime == "TFLM + CMSIS-NN (Helium)", runtime == "TFLM (neuralSPOT, CMSIS-NN Helium)",
		runtime == "TFLM + CMSIS-NN modified for RX",
		strings.HasPrefix(runtime, "TFLM + MVP kernels + CMSIS-NN (MLTK"):
		return "tflm-cmsis-nn", ""
	}
	return "", ""
}

// prunes tells runtimes that leave out channels whose weights are all zero.
func prunes(family, era string) bool { return family == "x-cube-ai" && (era == "8.1" || era == "9") }

// Data is everything measured.
type Data struct {
	// Measurements of models and layers in 8-bit integers, and Float of models in
	// floating point.
	Measurements, Float []*fit.Measurement
	// Plain is what operators without optimised kernels cost.
	Plain *Plain
	// Skipped counts rows of whole models that are of no use, by reason.
	Skipped map[string]int
}

// LoadAll reads both tables below root: whole models and layers.
func LoadAll(root string) (*Data, error) {
	path := filepath.Join(root, "data", "mcu_measured.csv")
	ms, skipped, err := Load(path, root)
	if err != nil {
		return nil, err
	}
	t, err := fit.OpenTable(path)
	if err != nil {
		return nil, err
	}
	models := map[string]string{}
	for _, r := range t.Rows {
		if strings.HasPrefix(r["model_file"], "models/") {
			models[r["model_name"]] = r["model_file"]
		}
	}
	path = filepath.Join(root, "data", "mcu_measured_layers.csv")
	layers, err := loadLayers(path, root, models)
	if err != nil {
		return nil, err
	}
	d := &Data{Skipped: skipped}
	for _, m := range append(ms, layers...) {
		if isFloat(m.Family) {
			d.Float = append(d.Float, m)
		} else {
			d.Measurements = append(d.Measurements, m)
		}
	}
	d.Plain, err = LoadPlain(path)
	return d, err
}
