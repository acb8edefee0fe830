// Package whatif answers what a model would gain from sparse weights, by the
// model of Intel's Neural Engine profiler (Intel Extension for Transformers and,
// before, Neural Compressor): an operator whose weights can be pruned in blocks
// takes its measured time divided by a ratio that depends on the shape of its
// weights and on the sparsity aimed for.
//
// The ratios are the user's to set. The profiler fills its table with 4 for 90,
// 80 and 70 % alike, and its guide asks to replace them by ratios measured with
// one's own kernels; [Defaults] has these constants. An estimate of this kind says
// what would be if such kernels ran, not what a given engine will do: the Neural
// Engine itself chooses its sparse kernels for 8-bit weights of at least 70 %
// block sparsity only.
//
// The workbook and the comma-separated table of the profiler are made from one kind of
// [Table]; that of the workbook, where the ratios can be edited, is [Plain].
package whatif

import (
	"cmp"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// Targets are the sparsities that the first three ratios of a shape are for; the
// fourth is for every other.
var Targets = [3]float64{0.9, 0.8, 0.7}

// Defaults are the Neural Engine profiler's ratios, in the order of [Targets] and
// then for others.
var Defaults = [4]float64{4, 4, 4, 1}

// FirstTarget is the sparsity that the profiler aims for where nothing was set.
const FirstTarget = 0.9

// Sparse is the block sparsity from which on an operator counts as sparse already
// and gets no target.
const Sparse = 0.5

// Shape is a row of the ratio table.
type Shape struct {
	Name   string     // "256x1024"
	Dims   []int64    // of the weights, as stored
	Ratios [4]float64 // dense time over sparse time, in the order of [Defaults]
}

// Row is an operator.
type Row struct {
	Layer  int64    // its index in the profile
	Op     string   // as the model names it
	PostOp []string // operators fused into this one
	Name   string
	// Inputs and Outputs in the operator's order, absent ones left out.
	Inputs, Outputs Ports
	// WeightShape is set for operators of the kinds that can be sparse whose
	// weights are constant.
	WeightShape string
	// Block is the block that BlockSparsity is about, such as "4x16" (rows x
	// columns).
	Block string
	// BlockSparsity is the share of blocks of zeros, ElementSparsity that of zeros,
	// 0 to 1; nil where not known.
	BlockSparsity, ElementSparsity *float64
	// Blocks holds the sparsities by further blocks and patterns, see
	// [profile.Sparsity].
	Blocks map[string]float64
	// Shape is the place in [Table.Shapes], -1 for operators that cannot be sparse.
	Shape int
	// Latency is the time in seconds, nil where not known.
	Latency *float64
	// Target is the sparsity aimed for, nil for none.
	Target *float64
}

// Ports describes inputs or outputs, one element for each.
type Ports struct {
	Names  []string
	Shapes []string // dimensions joined by "x", nothing for a scalar
	Types  []string // as the Neural Engine calls them: fp32, s8
}

// Capable reports whether the operator can be sparse: a matrix product with
// constant weights of two dimensions, the first divisible by 4.
func (r *Row) Capable() bool { return r.Shape >= 0 }

// Table is the ratio table with the operators that run.
type Table struct {
	Shapes []Shape
	Rows   []Row
}

// kinds are the matrix products, which can be sparse: the Neural Engine's own two and what
// other formats and engines call them.
var kinds = map[string]bool{
	"InnerProduct": true, "Matmul": true, // Neural Engine
	"Gemm": true, "MatMul": true, "MatMulInteger": true, "QLinearMatMul": true, // ONNX
	"QGemm": true, "MatMulIntegerToFloat": true, "DynamicQuantizeMatMul": true, // ONNX Runtime
	"FusedGemm": true, "FusedMatMul": true, "FusedMatMulActivation": true, "GemmFastGelu": true,
	"FULLY_CONNECTED": true, "BATCH_MATMUL": true, // TFLite
}

// Product reports whether a layer is a matrix product: it is called one, or one of the model's
// operators that it runs is.
func Product(l *profile.Layer) bool {
	if kinds[l.Op] {
		return true
	}
	return l.Provenance != nil && slices.ContainsFunc(l.Provenance.SourceNodes, func(n profile.SourceNode) bool { return kinds[n.Op] })
}

// Plain is [New] with ratios of 1: nothing is gained until somebody puts in the ratios
// of kernels.
func Plain(p *profile.Profile) *Table {
	t := New(p)
	for i := range t.Shapes {
		t.Shapes[i].Ratios = [4]float64{1, 1, 1, 1}
	}
	return t
}

// New makes the table of a profile. Layers that take no time of their own
// (computed at load, fused into others) are left out.
func New(p *profile.Profile) *Table {
	t := &Table{}
	fused := map[int64][]string{}
	for i := range p.Layers {
		if l := &p.Layers[i]; l.FusedInto != nil {
			fused[*l.FusedInto] = append(fused[*l.FusedInto], strings.ToLower(l.Op))
		}
	}
	dims := map[string][]int64{}
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.State.Elsewhere() {
			continue
		}
		r := Row{Layer: int64(i), Op: l.Op, Name: l.Name, Shape: -1}
		post := fused[l.Index]
		if a := appended(l); a != "" {
			post = append([]string{a}, post...)
		}
		r.PostOp = post
		r.Inputs, r.Outputs = ports(l.Inputs), ports(l.Outputs)
		if v, ok := l.Latency.Best(); ok && l.State == profile.Ran {
			r.Latency = &v
		}
		if s := l.Sparsity; s != nil {
			r.ElementSparsity, r.Blocks = s.Weights, s.Blocks
		}
		if w := weights(l); w != nil {
			r.Inputs = ports(stored(l.Inputs, w))
			r.WeightShape = shape(w.Shape)
			r.Block = block(w.DType, w.Input)
			if v, ok := r.Blocks[r.Block]; ok {
				r.BlockSparsity = &v
			}
			if len(w.Shape) == 2 && w.Shape[0] > 0 && w.Shape[0]%4 == 0 && w.Shape[1] > 0 {
				dims[r.WeightShape] = w.Shape
				r.Shape = 0 // the place follows below
				if r.BlockSparsity == nil || *r.BlockSparsity < Sparse {
					r.Target = new(FirstTarget)
				}
			}
		}
		t.Rows = append(t.Rows, r)
	}
	for name, d := range dims {
		t.Shapes = append(t.Shapes, Shape{Name: name, Dims: d, Ratios: Defaults})
	}
	sorting.Func(t.Shapes, func(a, b Shape) int { return slices.Compare(a.Dims, b.Dims) })
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Capable() {
			r.Shape = slices.IndexFunc(t.Shapes, func(s Shape) bool { return s.Name == r.WeightShape })
		}
	}
	return t
}

// weights returns the constant operand of a matrix product.
func weights(l *profile.Layer) *profile.Weights {
	if !Product(l) {
		return nil
	}
	if l.Weights != nil {
		return l.Weights
	}
	for _, i := range []int{1, 0} {
		if i < len(l.Inputs) && l.Inputs[i].Constant && l.Inputs[i].Shape != nil {
			in := &l.Inputs[i]
			return &profile.Weights{Name: in.Name, DType: in.DType, Shape: in.Shape, Input: int64(i)}
		}
	}
	return nil
}

// stored returns the inputs with the weights as the file stores them, where the operator reads
// what another one makes of them.
func stored(in []profile.Tensor, w *profile.Weights) []profile.Tensor {
	named := func(t profile.Tensor) bool { return t.Constant && t.Name == w.Name }
	if w.Input >= int64(len(in)) || in[w.Input].Constant || slices.ContainsFunc(in, named) {
		return in
	}
	in = slices.Clone(in)
	in[w.Input] = profile.Tensor{Name: w.Name, DType: w.DType, Shape: w.Shape, Constant: true}
	return in
}

// block is the block, rows x columns, that the Neural Engine prunes by. It depends on
// the type of the weights and on whether they are the first operand (the layout of
// its sparse library).
func block(dtype string, at int64) string {
	switch {
	case !strings.Contains(dtype, "int"):
		return "1x16"
	case at == 0:
		return "4x1"
	}
	return "4x16"
}

// appended is the operator that the options name as fused.
func appended(l *profile.Layer) string {
	for _, o := range l.Options {
		if (o.Key == "append_op" || o.Key == "activation") && o.Value != "none" {
			return o.Value
		}
	}
	return ""
}

// types are the Neural Engine's names of element types.
var types = map[string]string{
	"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64",
	"int8": "s8", "uint8": "u8", "int16": "s16", "uint16": "u16", "int32": "s32", "uint32": "u32", "int64": "s64", "uint64": "u64",
}

// Type is the Neural Engine's name of an element type.
func Type(dtype string) string { return cmp.Or(types[dtype], dtype) }

func ports(ts []profile.Tensor) Ports {
	var p Ports
	for _, t := range ts {
		if t.Absent {
			continue
		}
		p.Names = append(p.Names, t.Name)
		p.Shapes = append(p.Shapes, shape(t.Shape))
		p.Types = append(p.Types, Type(t.DType))
	}
	return p
}

func shape(d []int64) string {
	if d == nil {
		return "?"
	}
	return words.Dims(d, "x")
}

// Ratio is the ratio that a row's time is divided by, false where it has no target.
func (t *Table) Ratio(r *Row) (float64, bool) {
	if !r.Capable() || r.Target == nil {
		return 0, false
	}
	ratios := &t.Shapes[r.Shape].Ratios
	for i, v := range Targets {
		if *r.Target == v {
			return ratios[i], true
		}
	}
	return ratios[len(Targets)], true
}

// Aim is the time of a row at its target in seconds: the time as it is where there
// is not a target or no ratio above zero; nil where it has no time.
func (t *Table) Aim(r *Row) *float64 {
	if r.Latency == nil {
		return nil
	}
	if v, ok := t.Ratio(r); ok && v > 0 {
		return new(*r.Latency / v)
	}
	return r.Latency
}

// Totals are sums over the rows, in seconds. Quotients are nil where they would
// divide by zero.
type Totals struct {
	Latency, Aim               float64  // of all operators
	SupportLatency, SupportAim float64  // of those that can be sparse
	Improve                    *float64 // Latency / Aim
	SupportShare, AimShare     *float64 // fractions of the totals, 0 to 1
}

// Totals sums up; nil when no row has a time.
func (t *Table) Totals() *Totals {
	var s Totals
	timed := false
	for i := range t.Rows {
		r := &t.Rows[i]
		aim := t.Aim(r)
		if aim == nil {
			continue
		}
		timed = true
		s.Latency += *r.Latency
		s.Aim += *aim
		if r.Capable() {
			s.SupportLatency += *r.Latency
			s.SupportAim += *aim
		}
	}
	if !timed {
		return nil
	}
	quotient := func(a, b float64) *float64 {
		if b <= 0 {
			return nil
		}
		return new(a / b)
	}
	s.Improve = quotient(s.Latency, s.Aim)
	s.SupportShare = quotient(s.SupportLatency, s.Latency)
	s.AimShare = quotient(s.SupportAim, s.Aim)
	return &s
}
