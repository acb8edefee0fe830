package study

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
	"github.com/opmeter/opmeter/internal/model/modelfile"
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
	doubtful := map[string]bool{}
	for _, r := range t.Rows {
		complete(r)
		if r["suggested_use"] == "doubtful" {
			doubtful[build(r)] = true
		}
	}
	for _, r := range t.Rows {
		m, why := measurement(r, root, files)
		if why == "" && m.Family == cortexm.Int16Reference && doubtful[build(r)] {
			why = "of the build of a doubtful row"
		}
		if why != "" {
			skipped[why]++
			continue
		}
		ms = append(ms, m)
	}
	return ms, skipped, nil
}

// loadUncached reads the rows that are doubtful for the reason that caches were off.
func loadUncached(path, root string) (ms []*fit.Measurement, err error) {
	t, err := fit.OpenTable(path)
	if err != nil {
		return nil, err
	}
	files := map[string]*fit.Work{}
	for _, r := range t.Rows {
		complete(r)
		if r["suggested_use"] != "doubtful" || !strings.Contains(r["notes"], "caches") {
			continue
		}
		r["suggested_use"] = "calibrate"
		if m, why := measurement(r, root, files); why == "" {
			ms = append(ms, m)
		}
	}
	return ms, nil
}

// complete fills in what tables of boards leave out: they name boards and not chips, hold
// nothing but measurements, and mark doubtful rows in a column of their own.
func complete(r map[string]string) {
	if _, full := r["evidence"]; full {
		return
	}
	r["evidence"], r["suggested_use"] = "measured", "calibrate"
	if r["doubtful"] == "yes" {
		r["suggested_use"] = "doubtful"
	}
	r["mcu"] = chipOf(r["board"])
	r["model_file"] = strings.TrimPrefix(r["model_file"], "shared/")
	if strings.HasPrefix(r["notes"], "-Os") {
		r["runtime"] += ", -Os"
	}
}

// chipOf is the chip on a board that is named without it, else the board's name.
func chipOf(board string) string {
	for _, b := range []struct{ part, chip string }{
		{"Nano 33 BLE", "nRF52840"},
		{"Portenta H7", "STM32H747XI"},
		{"LOLIN32", "ESP32"},
		{"F429ZI", "STM32F429ZI"},
		{"H745ZI", "STM32H747XI"}, // of one die
		{"MCXN947", "MCXN947"},
		{"N657", "STM32N657"},
	} {
		if strings.Contains(board, b.part) {
			return b.chip
		}
	}
	return board
}

// build names a network on a board with a runtime: what one image was made of. Where
// its row in 8-bit integers is doubtful, that in 16 bits is too.
func build(r map[string]string) string {
	return r["board"] + "|" + r["runtime"] + "|" + r["model_name"] + "|" + r["runtime_version"]
}

// internalKiB is the largest internal RAM of the measured chips; larger
// activations lie outside, at a cost that depends on the board.
const internalKiB = 1024

func measurement(r map[string]string, root string, files map[string]*fit.Work) (*fit.Measurement, string) {
	switch r["suggested_use"] {
	case "exclude":
		return nil, "excluded by the table"
	case "doubtful":
		return nil, "doubtful by the table"
	}
	if !strings.HasPrefix(r["evidence"], "measured") {
		return nil, "not measured"
	}
	if r["accelerator"] != "" {
		return nil, "with accelerator"
	}
	typ, ok := typeOf(r["dtype"])
	if !ok {
		return nil, "element type not stated, or weights of another type than the kernels take"
	}
	if typ == cortexm.Float {
		return floatMeasurement(r, root)
	}
	m := &fit.Measurement{Source: source(r["source"]), Chip: r["mcu"], Model: r["model_name"], Version: r["runtime_version"]}
	if strings.HasSuffix(r["runtime"], ", -Os") {
		m.Build = sizeBuild
	}
	m.Core = coreID(r["core"])
	m.Family, m.Era = family(r["runtime"], r["runtime_version"], m.Core)
	if typ == cortexm.Int16 {
		m.Family = map[string]string{"tflm-cmsis-nn": cortexm.Int16CMSISNN, reference: cortexm.Int16Reference}[m.Family]
	}
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
	kernels := cortexm.Kernels{Family: kernelsOf(m.Family), Tier: tier(m.Family, m.Core)}
	file := r["model_file"] + "|" + kernels.Family + "|" + kernels.Tier
	n := files[file]
	if n == nil && strings.HasPrefix(r["model_file"], "models/") {
		n = open(filepath.Join(root, r["model_file"]), kernels)
		files[file] = n
	}
	if n == nil && typ == cortexm.Int8 {
		n = known(r["model_name"], r["input_shape"], r)
	}
	if n == nil {
		return nil, "network is not known"
	}
	m.Code = code(r, root)
	m.Work = n.All
	if prunes(m.Family, m.Era) {
		m.Work = n.Live
	}
	return m, ""
}

// code is what the image of a row took beside the model.
func code(r map[string]string, root string) int64 {
	kib, _ := strconv.ParseFloat(r["flash_kib"], 64)
	info, err := os.Stat(filepath.Join(root, r["model_file"]))
	if err != nil || kib == 0 || !strings.Contains(r["notes"], "whole application image") {
		return 0
	}
	return int64(kib*1024) - info.Size()
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

// typeOf reads the element type of a row. A network whose inputs and outputs are of
// another type counts by its kernels.
func typeOf(printed string) (cortexm.Type, bool) {
	switch {
	case printed == "int8", printed == "int8 with float I/O":
		return cortexm.Int8, true
	case strings.HasPrefix(printed, "int16 activations"), strings.HasPrefix(printed, "int16/int8"):
		return cortexm.Int16, true
	case strings.HasPrefix(printed, "float32"):
		return cortexm.Float, true // pruned and clustered ones take the same time
	}
	return 0, false
}

// kernelsOf is the family that knows which operators have kernels of their own.
func kernelsOf(family string) string {
	switch family {
	case cortexm.Int16CMSISNN:
		return "tflm-cmsis-nn"
	case cortexm.Int16Reference, cortexm.FloatTFLM:
		return reference
	}
	return family
}

// source names a publication: a submitter's round, a commit of a repository, or
// the source as printed.
func source(s string) string {
	if m := mlperf.FindStringSubmatch(s); m != nil {
		return "MLPerf Tiny " + m[1] + " " + m[3]
	}
	if strings.HasPrefix(s, "EdgeMark ") {
		return "EdgeMark" // sheets of one publication
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
		case version == "7.x":
			return "x-cube-ai", "7.3" // of 2022
		case version == "":
			return "", ""
		}
		return "x-cube-ai", "9"
	case runtime == "Edge Impulse SDK" && core == "cortex-m4":
		return "tflm-cmsis-nn", edgeImpulse
	case runtime == "Edge Impulse SDK" && core != "":
		return reference, edgeImpulse
	case runtime == "TFLM + CMSIS-NN, -Os" && strings.HasPrefix(version, "Zephyr"):
		// modules/cmsis-nn/CMakeLists.txt of Zephyr compiles the kernels with -Ofast whatever the
		// option of the program.
		return "tflm-cmsis-nn", ""
	case runtime == "TFLM + CMSIS-NN, -Os":
		return "tflm-cmsis-nn", small
	case strings.HasPrefix(runtime, "TFLM (Arduino_TensorFlowLite, CMSIS-NN)"), runtime == "TFLM (Arduino)":
		return "tflm-cmsis-nn", small // the environment's default
	case runtime == "TFLM + CMSIS-NN, -Ofast", runtime == "TFLM + CMSIS-NN, FPU off":
		return "tflm-cmsis-nn", "" // kernels for integers are within one per cent of -O3
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

const (
	small       = "small"        // built for size, -Os
	edgeImpulse = "edge-impulse" // the library that Edge Impulse builds
)

// built reports whether an era is a way of building kernels that are known otherwise.
func built(era string) bool { return era == small || era == edgeImpulse }

// prunes tells runtimes that leave out channels whose weights are all zero.
func prunes(family, era string) bool { return family == "x-cube-ai" && (era == "8.1" || era == "9") }

// Data is everything measured.
type Data struct {
	// Measurements of models and layers.
	Measurements []*fit.Measurement
	// Plain is what operators without optimised kernels cost.
	Plain *Plain
	// Uncached are networks on a chip whose caches were off, as far as can be told.
	Uncached []*fit.Measurement
	// Skipped counts rows of whole models that are of no use, by reason.
	Skipped map[string]int
}

// LoadAll reads the tables below root: whole models and layers.
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
	more, left, err := Load(filepath.Join(root, "data", "mcu_measured_edgemark.csv"), root)
	if err != nil {
		return nil, err
	}
	for why, n := range left {
		skipped[why] += n
	}
	boards, left, err := Load(filepath.Join(root, "data", "mcu_measured_2026.csv"), root)
	if err != nil {
		return nil, err
	}
	for why, n := range left {
		skipped[why] += n
	}
	for _, m := range boards {
		m.Board = true
	}
	more = append(more, boards...)
	d := &Data{Measurements: slices.Concat(ms, more, layers), Skipped: skipped}
	if d.Uncached, err = loadUncached(filepath.Join(root, "data", "mcu_measured_2026.csv"), root); err != nil {
		return nil, err
	}
	d.Plain, err = LoadPlain(path)
	return d, err
}
