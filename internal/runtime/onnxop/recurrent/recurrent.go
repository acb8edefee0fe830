// Package recurrent implements ONNX's recurrent layers: RNN, GRU and LSTM.
package recurrent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	return []op.Def{
		elem.RealDef("RNN", inferCell(1, "Tanh"), prepareRNN[float32], prepareRNN[float64]),
		elem.RealDef("GRU", inferCell(3, "Sigmoid", "Tanh"), prepareGRU[float32], prepareGRU[float64]),
		elem.RealDef("LSTM", inferCell(4, "Sigmoid", "Tanh", "Tanh"), prepareLSTM[float32], prepareLSTM[float64]),
		elem.InDomain(graph.Microsoft, elem.RealDef("DynamicQuantizeLSTM", inferCell(4, "Sigmoid", "Tanh", "Tanh"), prepareDynamicQuantizeLSTM, nil))[0],
	}
}

// Inputs of RNN, GRU and LSTM; the last two are LSTM's.
const (
	inX = iota
	inW
	inR
	inB
	inLens
	inH
	inC
	inP
)

// recurrentShape is the checked geometry of a recurrent layer.
type recurrentShape struct {
	seq, batch, in, hidden int
	dirs, gates            int
	batchFirst             bool // layout = 1
	reverse                []bool
	acts                   [][]Activation // by direction
	clip                   float64
	usual                  bool // the default activations, and no clip
	// Additional options of LSTM and GRU.
	inputForget, linearBeforeReset bool
}

// newRecurrent checks shapes and attributes for a cell with gates gates and
// nacts activation functions with the given defaults.
func newRecurrent(c *op.Call, gates int, defaults ...string) (*recurrentShape, error) {
	x, w, r, a := c.In[inX], c.In[inW], c.In[inR], c.Node.Attrs
	if x.Rank() != 3 || w.Rank() != 3 || r.Rank() != 3 {
		return nil, fmt.Errorf("input %s, W %s, R %s", tensor.FormatShape(x.Shape), tensor.FormatShape(w.Shape), tensor.FormatShape(r.Shape))
	}
	v := &recurrentShape{
		seq: x.Shape[0], batch: x.Shape[1], in: x.Shape[2], hidden: r.Shape[2], gates: gates,
		batchFirst:  a.Int("layout", 0) == 1,
		inputForget: a.Bool("input_forget", false), linearBeforeReset: a.Bool("linear_before_reset", false),
		clip: float64(a.Float("clip", 0)),
	}
	if outputsLast(c) {
		v.hidden = r.Shape[1]
	}
	if v.batchFirst {
		v.seq, v.batch = v.batch, v.seq
	}
	switch d := a.Str("direction", "forward"); d {
	case "forward":
		v.reverse = []bool{false}
	case "reverse":
		v.reverse = []bool{true}
	case "bidirectional":
		v.reverse = []bool{false, true}
	default:
		return nil, fmt.Errorf("direction %q", d)
	}
	v.dirs = len(v.reverse)
	d, h := v.dirs, v.hidden
	state := []int{d, v.batch, h}
	if v.batchFirst {
		state = []int{v.batch, d, h}
	}
	want := map[int][]int{
		inW: {d, gates * h, v.in}, inR: {d, gates * h, h}, inB: {d, 2 * gates * h},
		inLens: {v.batch}, inH: state, inC: state, inP: {d, 3 * h},
	}
	if outputsLast(c) {
		want[inW], want[inR] = []int{d, v.in, gates * h}, []int{d, h, gates * h}
	}
	for i := inW; i <= inP; i++ {
		if t := c.Input(i); t != nil && !slices.Equal(t.Shape, want[i]) {
			return nil, fmt.Errorf("input %d has shape %s, want %s", i, tensor.FormatShape(t.Shape), tensor.FormatShape(want[i]))
		}
	}
	if t := c.Input(inLens); t != nil && t.Type != tensor.Int32 {
		return nil, fmt.Errorf("sequence_lens of %v", t.Type)
	}
	var err error
	v.acts, err = newActivations(a, d, defaults, x.Type == tensor.Float64)
	v.usual = v.clip == 0
	for i, n := range a.Strs("activations") {
		v.usual = v.usual && strings.EqualFold(n, defaults[i%len(defaults)])
	}
	v.setOutputs(c)
	return v, err
}

func (v *recurrentShape) setOutputs(c *op.Call) {
	y, s := []int{v.seq, v.dirs, v.batch, v.hidden}, []int{v.dirs, v.batch, v.hidden}
	if v.batchFirst {
		y, s = []int{v.batch, v.seq, v.dirs, v.hidden}, []int{v.batch, v.dirs, v.hidden}
	}
	c.SetOut(0, c.In[inX].Type, y)
	c.SetOut(1, c.In[inX].Type, s)
	c.SetOut(2, c.In[inX].Type, slices.Clone(s))
}

// stateAt returns the offset of the state of a batch entry in initial_h and Y_h.
func (v *recurrentShape) stateAt(dir, b int) int {
	if v.batchFirst {
		return (b*v.dirs + dir) * v.hidden
	}
	return (dir*v.batch + b) * v.hidden
}

// row returns the row of X for time t of batch entry b.
func (v *recurrentShape) row(t, b int) int {
	if v.batchFirst {
		return b*v.seq + t
	}
	return t*v.batch + b
}

// outAt returns the offset of time t of batch entry b in Y.
func (v *recurrentShape) outAt(dir, t, b int) int {
	if v.batchFirst {
		return ((b*v.seq+t)*v.dirs + dir) * v.hidden
	}
	return ((t*v.dirs+dir)*v.batch + b) * v.hidden
}

// recurrent runs one kind of cell.
type recurrent[T tensor.Real] struct {
	*recurrentShape
	cell func(q *recurrent[T], c *op.Call, dir int, live []int)
	xw   []T // gates of the inputs, all times: seq*batch × gates*hidden
	pre  []T // gates of this step: batch × gates*hidden, of xw where they lie together there
	rec  []T // recurrent part of the gates, with its bias
	h, c []T // states: batch × hidden
	tmp  []T // batch × hidden
	live []int
	// Constant weights, float32 only, by direction: W, and R split into the gates that a step
	// multiplies at a time.
	packW []*gemm.PackedB
	packR [][]packedGates
	// 8-bit weights, nil for others.
	bytesW, bytesR *byteGates
	// inner multiplies the state by rows of R, from gate first on, for few rows of state.
	inner    func(lo, hi int)
	state, r []T
	first    int

	pool *workers.Pool // of a run; nil while the other direction has the other threads
	// other has its own scratch memory for the second direction if each thread can compute one;
	// nil otherwise.
	other *recurrent[T]
	both  func(lo, hi int)
	call  *op.Call
}

// packedGates holds the rows of R from gate first to end.
type packedGates struct {
	first, end int
	b          *gemm.PackedB
}

// pack packs constant weights; cuts are the gates between which R is split.
func (q *recurrent[T]) pack(c *op.Call, cuts []int) {
	h, g := q.hidden, q.gates*q.hidden
	if h == 0 || q.in == 0 {
		return
	}
	if w, ok := any(elem.Elements[T](c, inW)).([]float32); ok && c.Const(inW) {
		c.Keep(4 * len(w))
		for d := range q.dirs {
			q.packW = append(q.packW, gemm.PackB(q.in, g, w[d*g*q.in:][:g*q.in], 0, true))
		}
		c.Copied(inW)
	}
	if r, ok := any(elem.Elements[T](c, inR)).([]float32); ok && c.Const(inR) {
		c.Keep(4 * len(r))
		for d := range q.dirs {
			var parts []packedGates
			for k, first := range cuts[:len(cuts)-1] {
				end := cuts[k+1]
				parts = append(parts, packedGates{first, end, gemm.PackForRows(q.batch, c.ConstantsExceedCache(), h, (end-first)*h, r[(d*q.gates+first)*h*h:][:(end-first)*h*h], 0, true)})
			}
			q.packR = append(q.packR, parts)
		}
		c.Copied(inR)
	}
}

// packed finds the gates from first to end, nil if they are not packed.
func (q *recurrent[T]) packed(dir, first, end int) *gemm.PackedB {
	if q.packR != nil {
		for _, p := range q.packR[dir] {
			if p.first == first && p.end == end {
				return p.b
			}
		}
	}
	return nil
}

// newCells makes a layer with memory for its states and gates.
func newCells[T tensor.Real](c *op.Call, v *recurrentShape, cell func(q *recurrent[T], c *op.Call, dir int, live []int)) *recurrent[T] {
	g := v.gates * v.hidden
	q := &recurrent[T]{recurrentShape: v, cell: cell, live: make([]int, v.batch)}
	q.xw = op.ScratchOf[T](c, v.seq*v.batch*g)
	q.pre, q.rec = op.ScratchOf[T](c, v.batch*g), op.ScratchOf[T](c, v.batch*g)
	q.h, q.c, q.tmp = op.ScratchOf[T](c, v.batch*v.hidden), op.ScratchOf[T](c, v.batch*v.hidden), op.ScratchOf[T](c, v.batch*v.hidden)
	return q
}

func prepareRecurrent[T tensor.Real](c *op.Call, v *recurrentShape, cell func(q *recurrent[T], c *op.Call, dir int, live []int)) (op.Run, error) {
	q := newCells(c, v, cell)
	cuts := []int{0, v.gates}
	if c.Node.Op == "GRU" && !v.linearBeforeReset {
		cuts = []int{0, 2, 3}
	}
	q.pack(c, cuts)
	q.split(c)
	return q.run, nil
}

// split allocates scratch memory for one direction per thread, after everything that both share.
func (q *recurrent[T]) split(c *op.Call) {
	if q.dirs != 2 || c.Pool.Threads() < 2 || q.seq < 2 {
		return
	}
	o := newCells(c, q.recurrentShape, q.cell)
	o.packW, o.packR = q.packW, q.packR
	if q.bytesW != nil {
		o.bytesW, o.bytesR = q.bytesW, q.bytesR.twin(c)
	}
	q.other = o
	q.both = func(lo, hi int) {
		for dir := lo; dir < hi; dir++ {
			q.side(dir).direction(q.call, dir)
		}
	}
}

// side returns the state of a direction.
func (q *recurrent[T]) side(dir int) *recurrent[T] {
	if dir > 0 && q.other != nil {
		return q.other
	}
	return q
}

func (q *recurrent[T]) run(c *op.Call) error {
	if lens := elem.Elements[int32](c, inLens); lens != nil {
		for _, n := range lens {
			if n < 0 || int(n) > q.seq {
				return fmt.Errorf("sequence length %d of %d", n, q.seq)
			}
		}
	}
	if c.Wants(0) {
		clear(tensor.Of[T](c.Out[0]))
	}
	for dir := range q.dirs {
		side := q.side(dir)
		side.pool = c.Pool
		if side.inputs(c, dir); q.other == nil {
			side.direction(c, dir)
		}
	}
	if q.other != nil {
		q.call, q.pool, q.other.pool = c, nil, nil
		c.Pool.For(2, 1, q.both)
	}
	return nil
}

// inputs computes the contribution of X to the gates, for all times.
func (q *recurrent[T]) inputs(c *op.Call, dir int) {
	g, rows := q.gates*q.hidden, q.seq*q.batch
	x, bias := elem.Elements[T](c, inX), elem.Elements[T](c, inB)
	switch {
	case rows == 0 || g == 0:
	case q.bytesW != nil:
		q.bytesW.run(c, q.pool, dir, any(x).([]float32), any(q.xw).([]float32))
	case q.packW != nil:
		gemm.MultiplyPacked(q.pool, gemm.Params{M: rows, N: g, K: q.in}, any(x).([]float32), q.packW[dir], any(q.xw).([]float32))
	default:
		matmul.Gemm(q.pool, matmul.Matrices{M: rows, N: g, K: q.in, TransB: true}, x, elem.Elements[T](c, inW)[dir*g*q.in:][:g*q.in], q.xw)
	}
	if bias != nil {
		wb := bias[dir*2*g:][:g]
		for r := range rows {
			sumTo(q.xw[r*g:][:g], wb)
		}
	}
}

// direction processes the sequence in one direction.
func (q *recurrent[T]) direction(c *op.Call, dir int) {
	h, g := q.hidden, q.gates*q.hidden
	h0, c0 := elem.Elements[T](c, inH), elem.Elements[T](c, inC)
	lens := elem.Elements[int32](c, inLens)
	clear(q.h)
	clear(q.c)
	for b := range q.batch {
		if h0 != nil {
			copy(q.h[b*h:][:h], h0[q.stateAt(dir, b):])
		}
		if c0 != nil {
			copy(q.c[b*h:][:h], c0[q.stateAt(dir, b):])
		}
	}
	own := q.pre
	defer func() { q.pre = own }()
	together := lens == nil && (q.batch == 1 || !q.batchFirst)
	for step := range q.seq {
		if together {
			q.pre = q.xw[q.row(q.time(dir, step, q.seq), 0)*g:][:q.batch*g]
		}
		live := q.live[:0]
		for b := range q.batch {
			n := q.seq
			if lens != nil {
				n = int(lens[b])
			}
			if step < n {
				live = append(live, b)
				if !together {
					copy(q.pre[b*g:][:g], q.xw[q.row(q.time(dir, step, n), b)*g:])
				}
			}
		}
		q.cell(q, c, dir, live)
		if !c.Wants(0) {
			continue
		}
		y := tensor.Of[T](c.Out[0])
		for _, b := range live {
			n := q.seq
			if lens != nil {
				n = int(lens[b])
			}
			copy(y[q.outAt(dir, q.time(dir, step, n), b):][:h], q.h[b*h:])
		}
	}
	for i, s := range [][]T{q.h, q.c} {
		if !c.Wants(1 + i) {
			continue
		}
		y := tensor.Of[T](c.Out[1+i])
		for b := range q.batch {
			copy(y[q.stateAt(dir, b):][:h], s[b*h:])
		}
	}
}

func (q *recurrent[T]) time(dir, step, n int) int {
	if q.reverse[dir] {
		return n - 1 - step
	}
	return step
}

// project computes rec = state·Rᵀ + Rb for the gates from g0 to g1.
func (q *recurrent[T]) project(c *op.Call, dir int, state []T, g0, g1 int) {
	h, g := q.hidden, q.gates*q.hidden
	switch pack := q.packed(dir, g0, g1); {
	case h == 0 || q.batch == 0:
	case q.bytesR != nil:
		q.bytesR.run(c, q.pool, dir, any(state).([]float32), any(q.rec).([]float32))
	case pack != nil:
		gemm.MultiplyPacked(q.pool, gemm.Params{M: q.batch, N: (g1 - g0) * h, K: h, LDC: g}, any(state).([]float32), pack, any(q.rec).([]float32)[g0*h:])
	case q.batch <= 2:
		// Too few rows for packing to pay off: dot products with the rows of R.
		if q.inner == nil { // made once: a step must not allocate
			q.inner = func(lo, hi int) {
				h, g := q.hidden, q.gates*q.hidden
				for b := range q.batch {
					s, out := q.state[b*h:][:h], q.rec[b*g:][:g]
					for j := lo + q.first*h; j < hi+q.first*h; j++ {
						out[j] = matmul.Inner(s, q.r[j*h:][:h])
					}
				}
			}
		}
		q.state, q.r, q.first = state, elem.Elements[T](c, inR)[dir*g*h:][:g*h], g0
		q.pool.For((g1-g0)*h, max(1, 1<<15/h), q.inner)
	default:
		matmul.Gemm(q.pool, matmul.Matrices{M: q.batch, N: (g1 - g0) * h, K: h, TransB: true, Ldc: g}, state, elem.Elements[T](c, inR)[(dir*g+g0*h)*h:][:(g1-g0)*h*h], q.rec[g0*h:])
	}
	if bias := elem.Elements[T](c, inB); bias != nil {
		rb := bias[dir*2*g+g:][:g]
		for b := range q.batch {
			sumTo(q.rec[b*g:][g0*h:g1*h], rb[g0*h:])
		}
	}
}

// limit applies the clip attribute.
func (v *recurrentShape) limit(x float64) float64 {
	if v.clip > 0 {
		return min(max(x, -v.clip), v.clip)
	}
	return x
}
