package advise

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// Factor says what a change gains with an instruction set, as bench/advise measured it. A changed
// model takes the time of the layers that stay, that of the changed ones times the term of their
// class, and fixed costs for each changed layer and each of its output elements.
type Factor struct {
	Rule string `json:"rule"`
	// Set is the instruction set of the kernels, Format the model format it was measured on.
	Set    string `json:"set"`
	Format string `json:"format"`
	// Terms are ratios of time by class of layers, below 1 where they become faster.
	Terms map[string]float64 `json:"terms"`
	// PerOutputS and PerLayerS are seconds for each output element and each layer that changes.
	PerOutputS float64 `json:"per_output_s,omitzero"`
	PerLayerS  float64 `json:"per_layer_s,omitzero"`
	// Residual has the smallest and the largest of measured by expected times of the models, one
	// in twenty left out at each end.
	Residual [2]float64 `json:"residual"`
	// Machine and Date say where and when it was measured.
	Machine string `json:"machine"`
	Date    string `json:"date"`
	// Models are the models that it was fitted to.
	Models []string `json:"models"`
}

// Table is a set of factors.
type Table struct {
	Factors []Factor `json:"factors"`
}

//go:embed factors.json
var factorsJSON []byte

// Factors is what bench/advise measured.
var Factors = mustTable(factorsJSON)

// mustTable reads the embedded table; a test reads it, too.
func mustTable(b []byte) *Table {
	t := &Table{}
	if err := json.Unmarshal(b, t); err != nil {
		panic("factors.json: " + err.Error())
	}
	return t
}

// Of returns the factor of a rule, nil for an instruction set or format that was not measured.
func (t *Table) Of(rule, set, format string) *Factor {
	for i := range t.Factors {
		if f := &t.Factors[i]; f.Rule == rule && f.Set == set && (f.Format == format || f.Format == "") {
			return f
		}
	}
	return nil
}

// Work is a model as the terms of a factor see it.
type Work struct {
	// Shares are parts of the time by class; the rest of the time stays.
	Shares map[string]float64
	// Layers counts the layers that change, Outputs their output elements.
	Layers, Outputs int
	// Latency of an inference in seconds.
	Latency float64
}

// Changed is the part of the time that changes.
func (w *Work) Changed() (sum float64) {
	for _, s := range w.Shares {
		sum += s
	}
	return sum
}

// Expected is the time after a change as a part of the time before.
func (f *Factor) Expected(w *Work) float64 {
	ratio := 1 - w.Changed()
	for class, s := range w.Shares {
		term, ok := f.Terms[class]
		if !ok {
			term = 1
		}
		ratio += s * term
	}
	return ratio + (f.PerOutputS*float64(w.Outputs)+f.PerLayerS*float64(w.Layers))/w.Latency
}

// basis says where a factor was measured.
func (f *Factor) basis() string {
	return fmt.Sprintf("%d models with %s kernels on %s, %s", len(f.Models), f.Set, f.Machine, f.Date)
}

// WorkOf sums the shares of the layers by class; class returns "" for layers that stay.
func WorkOf(p *profile.Profile, class func(l *profile.Layer) string) (w Work, layers []int) {
	w.Shares = map[string]float64{}
	w.Latency, _ = p.Totals.Latency.Best()
	for i := range p.Layers {
		l := &p.Layers[i]
		c := class(l)
		if c == "" || l.State != profile.Ran || l.Share == nil {
			continue
		}
		w.Shares[c] += *l.Share
		w.Layers++
		w.Outputs += outputs(l)
		layers = append(layers, i)
	}
	return w, layers
}

// outputs is the number of elements of a layer's first output, 0 if unknown.
func outputs(l *profile.Layer) int {
	if len(l.Outputs) == 0 {
		return 0
	}
	n := 1
	for _, d := range l.Outputs[0].Shape {
		if d < 0 || d > 0 && n > math.MaxInt32/int(d) {
			return 0
		}
		n *= int(d)
	}
	return n
}

// Classes returns the classes of the layers for the factor of a rule, nil for a rule without.
func Classes(rule string) func(l *profile.Layer) string {
	switch rule {
	case "int8-static":
		return int8Class
	case "int8-dynamic":
		return dynamicClass
	case "batch":
		return boundClass
	}
	return nil
}

// int8Class is the class of a layer that multiplies float32 by constant weights.
func int8Class(l *profile.Layer) string {
	kernel := l.Kernel
	switch {
	case l.MACs == nil || *l.MACs == 0 || l.WeightsBytes == nil || *l.WeightsBytes == 0,
		l.ArithmeticType() != "float32", len(l.Inputs) == 0 || l.Inputs[0].DType != "float32",
		strings.HasPrefix(kernel, "sparse"), strings.HasPrefix(kernel, "hybrid"), strings.HasPrefix(kernel, "nibbles"):
		return ""
	}
	switch op := strings.ToLower(l.Op); {
	case strings.Contains(op, "transpose"):
		return ""
	case strings.HasPrefix(kernel, "depthwise"):
		return "depthwise"
	case strings.Contains(op, "conv"):
		return "conv"
	case op == "matmul", op == "gemm", op == "fully_connected":
		return "dense"
	}
	return ""
}

// dynamicClass is the class of a matrix multiplication of ONNX.
func dynamicClass(l *profile.Layer) string {
	if l.Op != "MatMul" && l.Op != "Gemm" {
		return ""
	}
	return int8Class(l)
}

// boundClass is the class of a layer by what bounds it; those that read weights from memory are a
// class of their own.
func boundClass(l *profile.Layer) string {
	if l.Roof == nil || l.Roof.Bound == "" {
		return ""
	}
	if w := l.WeightsBytes; l.Roof.Bound == profile.BoundMemory && w != nil && l.BytesRead != nil && *w*2 > *l.BytesRead {
		return "weights"
	}
	return string(l.Roof.Bound)
}
