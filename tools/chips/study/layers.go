package study

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
	"github.com/opmeter/opmeter/internal/model/modelfile"
)

// loadLayers reads measurements of single layers and kernels. Models gives the
// file of a model by name; where a table lists exactly the operators of a file,
// their work is taken from there, otherwise from the printed shapes.
func loadLayers(path, root string, models map[string]string) ([]*fit.Measurement, error) {
	t, err := fit.OpenTable(path)
	if err != nil {
		return nil, err
	}
	type table struct{ source, model, runtime string }
	rows := map[table][]map[string]string{}
	var order []table
	for _, r := range t.Rows {
		if !strings.HasPrefix(r["evidence"], "measured") || r["accelerator"] != "" || r["dtype"] != "int8" || r["cycles"] == "" {
			continue
		}
		k := table{r["source"] + r["core"], r["model_name"], r["runtime"]}
		if rows[k] == nil {
			order = append(order, k)
		}
		rows[k] = append(rows[k], r)
	}
	var out []*fit.Measurement
	for _, k := range order {
		var layers []cortexm.Layer
		kernels := cortexm.Kernels{Family: layerFamily(k.runtime), Tier: tierOf(coreID(rows[k][0]["core"]))}
		if file := models[k.model]; file != "" {
			if m, err := modelfile.Open(filepath.Join(root, file)); err == nil {
				layers = cortexm.Layers(m, m.Main(), kernels)
				if m.Close != nil {
					m.Close() //nolint:errcheck // only read
				}
			}
		}
		for i, r := range rows[k] {
			l := described(r)
			if len(layers) == len(rows[k]) {
				l = &layers[i]
			}
			if m := layerMeasurement(r, l); m != nil {
				out = append(out, m)
			}
		}
	}
	return out, nil
}

func layerMeasurement(r map[string]string, l *cortexm.Layer) *fit.Measurement {
	if l == nil || l.Missing != nil {
		return nil
	}
	m := &fit.Measurement{
		Source: source(r["source"]), Chip: r["mcu"], Model: r["model_name"] + "/" + r["layer_index"] + r["layer_type"] + r["input_shape"], Version: r["runtime_version"],
		Core: coreID(r["core"]), Work: l.Work, Layer: true,
	}
	m.Family = layerFamily(r["runtime"])
	m.Cycles, _ = strconv.ParseFloat(r["cycles"], 64)
	if m.Family == "" || m.Core == "" || m.Cycles < smallest {
		return nil
	}
	return m
}

// smallest layer that counts, in cycles: below it the way of measuring, with or
// without dispatch, is a good part of the figure.
const smallest = 5000

// layerFamily sorts the runtimes of the layer tables.
func layerFamily(runtime string) string {
	switch runtime {
	case "TFLM + CMSIS-NN (Helium)", "TFLM (MLTK)":
		return "tflm-cmsis-nn"
	case "TFLM (reference kernels)":
		return "tflm-reference"
	case "ESP-NN optimised":
		return "tflm-esp-nn"
	}
	return ""
}

// described builds a layer from printed shapes, nil when they do not suffice.
func described(r map[string]string) *cortexm.Layer {
	in, out, k := ints(r["input_shape"]), ints(r["output_shape"]), ints(r["kernel_shape"])
	if len(in) == 3 {
		in = append([]int{1}, in...)
	}
	if len(out) == 3 {
		out = append([]int{1}, out...)
	}
	var l cortexm.Layer
	switch typ := strings.ToLower(r["layer_type"]); {
	case strings.HasPrefix(typ, "conv") && len(in) == 4 && len(out) == 4 && len(k) >= 2:
		kh, kw := k[0], k[1]
		if len(k) == 4 {
			kh, kw = k[1], k[2]
		}
		l = cortexm.Conv(out[1], out[2], kh, kw, in[3], out[3], 1)
	case strings.HasPrefix(typ, "depthwise") && len(out) == 4 && len(k) >= 2:
		kh, kw := k[0], k[1]
		if len(k) == 4 {
			kh, kw = k[1], k[2]
		}
		l = cortexm.Depthwise(out[1], out[2], kh, kw, out[3], 1)
	case strings.HasPrefix(typ, "fully"):
		n, _ := strconv.ParseFloat(r["macs"], 64)
		outs := last(out)
		if n == 0 || outs == 0 {
			return nil
		}
		ins := int(n) / outs
		if len(in) > 0 {
			ins = last(in)
		}
		l = cortexm.Dense(1, ins, outs)
	case strings.HasPrefix(typ, "average_pool") && len(in) == 4 && len(out) == 4:
		l = cortexm.Each(cortexm.PoolElement, "pool", in[1]*in[2]*in[3])
	case strings.HasPrefix(typ, "softmax") && len(out) > 0:
		l = cortexm.Each(cortexm.TableElement, "softmax", last(out))
	case strings.HasPrefix(typ, "reshape") && len(out) > 0:
		l = cortexm.Each(cortexm.MoveElement, "copy", last(out))
	default:
		return nil
	}
	return &l
}

func ints(s string) []int {
	var out []int
	for _, p := range strings.Split(s, "x") {
		n, err := strconv.Atoi(p)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}

func last(v []int) int {
	if len(v) == 0 {
		return 0
	}
	return v[len(v)-1]
}
