package align

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// description is what a layer is compared by beside its class.
type description struct {
	// exact hashes the operator, its options, and the types and shapes of all operands and results,
	// weighed the statistics of the weights, too.
	exact, weighed uint64
	// window is kernel size, stride, dilation and grouping, as far as they are not 1, without the
	// order of the axes, which differs between formats.
	window string
	// extent is the size of the result without batch and ones, in ascending order, so that layouts
	// do not count.
	extent string
}

func describe(l *profile.Layer) description {
	d := description{exact: exactly(l), window: windowOf(l)}
	d.weighed = d.exact
	if w := l.Weights; w != nil && w.Min != nil && w.Max != nil && w.Mean != nil && w.StdDev != nil {
		d.weighed = mix(d.exact, []uint64{math.Float64bits(*w.Min), math.Float64bits(*w.Max), math.Float64bits(*w.Mean), math.Float64bits(*w.StdDev)})
	}
	if len(l.Outputs) > 0 {
		d.extent = extentOf(l.Outputs[0].Shape)
	}
	return d
}

// number lists options that number a layer in its engine; they do not describe its operator.
var number = map[string]bool{"node_index": true}

func exactly(l *profile.Layer) uint64 {
	parts := []string{l.Domain, l.Op}
	for _, o := range l.Options {
		if !number[o.Key] {
			parts = append(parts, o.Key, o.Value)
		}
	}
	for _, ts := range [][]profile.Tensor{l.Inputs, l.Outputs} {
		parts = append(parts, "|")
		for k := range ts {
			parts = append(parts, ts[k].DType, profile.ShapeText(ts[k].Shape), strconv.FormatBool(ts[k].Constant))
		}
	}
	return text(parts...)
}

// labels of nodes, from what says much to what says little.
func weighedLabel(n *node) uint64 { return n.shape.weighed }
func exactLabel(n *node) uint64   { return n.shape.exact }
func sizedLabel(n *node) uint64   { return text(n.class, n.shape.window, n.shape.extent) }
func windowLabel(n *node) uint64  { return text(n.class, n.shape.window) }
func classLabel(n *node) uint64   { return text(n.class) }

// lite reports whether an operator is one of TFLite, which names them in upper case, and which has
// channels last.
func lite(l *profile.Layer) bool { return l.Op == strings.ToUpper(l.Op) }

// windowOf describes kernel size, stride, dilation and grouping of a layer.
func windowOf(l *profile.Layer) string {
	class := classOf(l.Op)
	var parts []string
	add := func(key string, ds []string) {
		ds = slices.DeleteFunc(ds, func(d string) bool { return d == "1" || d == "" })
		slices.Sort(ds)
		if len(ds) > 0 {
			parts = append(parts, key+strings.Join(ds, ","))
		}
	}
	option := func(key string) []string {
		return strings.FieldsFunc(l.Option(key), func(r rune) bool { return r == 'x' || r == ',' })
	}
	switch {
	case class == "averagepool" && global(l):
		return "global"
	case class == "conv" || class == "convtranspose":
		add("kernel", kernelOf(l, option("kernel")))
		if grouped(l) {
			parts = append(parts, "grouped")
		}
	case class == "averagepool" || class == "maxpool":
		add("kernel", append(option("kernel"), option("filter")...))
	default:
		return ""
	}
	add("stride", option("stride"))
	add("dilation", option("dilation"))
	return strings.Join(parts, " ")
}

// global reports whether a pooling operator takes the mean of all positions.
func global(l *profile.Layer) bool {
	op := strings.ToLower(l.Op)
	if strings.Contains(op, "global") || strings.Contains(op, "mean") {
		return true
	}
	if len(l.Outputs) == 0 || len(l.Outputs[0].Shape) < 3 {
		return false
	}
	large := 0
	for _, d := range l.Outputs[0].Shape[1:] {
		if d != 1 {
			large++
		}
	}
	return large <= 1
}

// kernelOf is the kernel size of a convolution by its option, else by the shape of its weights.
func kernelOf(l *profile.Layer, option []string) []string {
	if len(option) > 0 || len(l.Inputs) < 2 {
		return option
	}
	w := weightShape(l)
	var ds []int64
	switch {
	case len(w) < 3:
	case lite(l):
		ds = w[1 : len(w)-1]
	default:
		ds = w[2:]
	}
	var out []string
	for _, d := range ds {
		out = append(out, strconv.FormatInt(d, 10))
	}
	return out
}

// weightShape is the shape of the operand that a convolution or product multiplies with.
func weightShape(l *profile.Layer) []int64 {
	at := 1
	switch classOf(l.Op) {
	case "conv", "matmul", "convtranspose":
	default:
		at = -1
	}
	switch l.Op {
	case "QLinearConv", "QLinearMatMul", "QGemm":
		at = 3
	}
	if at >= 0 && at < len(l.Inputs) && len(l.Inputs[at].Shape) > 1 {
		return l.Inputs[at].Shape
	}
	for k := range l.Inputs {
		if t := &l.Inputs[k]; t.Constant && len(t.Shape) > 1 {
			return t.Shape
		}
	}
	if l.Weights != nil {
		return l.Weights.Shape
	}
	return nil
}

// grouped reports whether a convolution filters groups of channels apart.
func grouped(l *profile.Layer) bool {
	if strings.Contains(strings.ToLower(l.Op), "depthwise") {
		in := l.Inputs
		return len(in) == 0 || len(in[0].Shape) < 2 || in[0].Shape[len(in[0].Shape)-1] != 1
	}
	g := l.Option("group")
	return g != "" && g != "1"
}

func extentOf(shape []int64) string {
	if len(shape) < 2 {
		return ""
	}
	ds := slices.DeleteFunc(slices.Clone(shape[1:]), func(d int64) bool { return d == 1 })
	slices.Sort(ds)
	return fmt.Sprint(ds)
}
