package contrib

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// MatMulNBits: y = a·dequantised(b)ᵀ with b [N, blocks, bytes] in blocks along K. Inputs: a, b,
// scales, zero_points, g_idx (the block of a row of b, if it is not the one that contains it),
// bias.

type nBits struct {
	m, n, k, bits, block, blocks, bytes int
}

func newNBits(c *op.Call) (*nBits, error) {
	x, a := c.In[0].Shape, c.Node.Attrs
	v := &nBits{n: a.Int("N", 0), k: a.Int("K", 0), bits: a.Int("bits", 4), block: a.Int("block_size", 0)}
	if v.bits != 2 && v.bits != 4 && v.bits != 8 {
		return nil, op.Unsupported("%d bits", v.bits)
	}
	if len(x) < 1 || v.n < 1 || v.k < 1 || v.block < 8 || x[len(x)-1] != v.k {
		return nil, fmt.Errorf("input %s with K=%d, N=%d, block_size=%d", tensor.FormatShape(x), v.k, v.n, v.block)
	}
	v.m = tensor.Elements(x[:len(x)-1])
	v.blocks = (v.k + v.block - 1) / v.block
	v.bytes = v.block * v.bits / 8
	if len(c.In[1].Data) != 0 && len(c.In[1].Data) != v.n*v.blocks*v.bytes || c.In[1].Type != tensor.Uint8 || c.In[1].Len() != v.n*v.blocks*v.bytes {
		return nil, fmt.Errorf("weights %s of %v, want %d bytes", tensor.FormatShape(c.In[1].Shape), c.In[1].Type, v.n*v.blocks*v.bytes)
	}
	if c.In[2].Len() != v.n*v.blocks {
		return nil, fmt.Errorf("scales %s, want %d", tensor.FormatShape(c.In[2].Shape), v.n*v.blocks)
	}
	if z := c.Input(3); z != nil {
		want := v.n * v.blocks
		if z.Type == tensor.Uint8 {
			want = v.n * v.zeroBytes()
		}
		if z.Len() != want {
			return nil, fmt.Errorf("zero points %s of %v, want %d", tensor.FormatShape(z.Shape), z.Type, want)
		}
	}
	if g := c.Input(4); g != nil && g.Len() != v.k && g.Len() != v.blocks*v.block {
		return nil, fmt.Errorf("g_idx %s for K=%d", tensor.FormatShape(g.Shape), v.k)
	}
	if b := c.Input(5); b != nil && b.Len() != v.n {
		return nil, fmt.Errorf("bias %s for N=%d", tensor.FormatShape(b.Shape), v.n)
	}
	c.SetOut(0, c.In[0].Type, append(slices.Clone(x[:len(x)-1]), v.n))
	return v, nil
}

// zeroBytes is the size of one row of packed zero points.
func (v *nBits) zeroBytes() int { return (v.blocks*v.bits + 7) / 8 }

const (
	nBitsRows   = 64 // of weights are widened together
	nBitsMatrix = 4  // rows of the other side from which on that pays
	// bounds weights that are widened once and for all: larger ones are worth the memory that
	// they save
	nBitsKept = 1 << 17
)

func (v *nBits) shape() gemm.LowBitShape {
	return gemm.LowBitShape{Bits: v.bits, K: v.k, N: v.n, Block: v.block}
}

// roundsInput reports whether the rows of a are rounded to 8-bit integers per block:
// accuracy_level 4 permits that. It holds for any number of rows, so that a prompt and the steps
// after it have the same arithmetic. With g_idx or zero points in floating point, rows stay
// float32, as in ONNX Runtime. Readers of other formats ask for it by [graph.RoundsRows].
func (v *nBits) roundsInput(c *op.Call) bool {
	a := c.Node.Attrs
	return !c.Exact && !c.Has(4) && (a.Int(graph.RoundsRows, 0) == 1 || a.Int("accuracy_level", 0) == 4 && (!c.Has(3) || c.In[3].Type == tensor.Uint8))
}

// prepareNBits keeps the weights quantised and dequantises some rows at a time.
func prepareNBits(c *op.Call) (op.Run, error) {
	v := op.Must(newNBits(c))
	if level := c.Node.Attrs.Int("accuracy_level", 0); level < 0 || level > 4 {
		return nil, fmt.Errorf("accuracy_level %d, expected 0 to 4", level)
	}
	run, rounded, err := v.prepare(c)
	if err != nil || rounded || !v.roundsInput(c) {
		return run, err
	}
	rows := &tensor.Tensor{Type: tensor.Float32, Shape: c.In[0].Shape, Data: c.Scratch(4 * v.m * v.k)}
	in := slices.Clone(c.In)
	in[0] = rows
	var w op.Call
	return func(c *op.Call) error {
		gemm.RoundInt8(c.Pool, v.block, v.k, tensor.Of[float32](rows), tensor.Of[float32](c.In[0]))
		copy(in[1:], c.In[1:])
		w = *c
		w.In = in
		return run(&w)
	}, nil
}

// prepare returns the product, and whether it rounds its rows itself.
func (v *nBits) prepare(c *op.Call) (run op.Run, rounded bool, err error) {
	if v.n*v.k <= nBitsKept && (!v.shape().KeepsLowBit(v.m) || c.Has(4)) && c.Known(1, 2, 3, 4) {
		run, err = v.packed(c)
		return run, false, err
	}
	if w := v.fewBits(c); w != nil {
		c.Kernel = w.Name()
		multiply := w.Run
		if rounded = v.roundsInput(c); rounded {
			c.Computes, multiply = tensor.Int8, w.RunInt8
		}
		return func(c *op.Call) error {
			multiply(c.Pool, v.m, tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), elem.Elements[float32](c, 5), activation.Clamp{})
			return nil
		}, rounded, nil
	}
	if e := simd.ElementKernels(); e != nil && v.m < nBitsMatrix && v.bits == 4 && v.block%16 == 0 && !c.Has(4) {
		c.Kernel = "rows/" + e.Set.String()
		return v.nibbles(c, e), false, nil
	}
	return v.parts(c), false, nil
}

// parts dequantises some rows of the weights at a time.
func (v *nBits) parts(c *op.Call) op.Run {
	height, line := min(nBitsRows, v.n), v.blocks*v.block
	c.Kernel = gemm.Name(gemm.Params{M: v.m, N: height, K: v.k, TransB: true})
	rows := op.ScratchOf[float32](c, c.Pool.Threads()*height*line)
	return func(c *op.Call) error {
		row, err := v.rows(c)
		if err != nil {
			return err
		}
		x, y, bias := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), elem.Elements[float32](c, 5)
		c.Pool.ForWorker((v.n+height-1)/height, 1, func(worker, lo, hi int) {
			workspace := rows[worker*height*line:][:height*line]
			for n0 := lo * height; n0 < min(v.n, hi*height); n0 += height {
				g := gemm.Params{M: v.m, N: min(height, v.n-n0), K: v.k, TransB: true, LDB: line, LDC: v.n}
				for i := range g.N {
					row(workspace[i*line:][:line], n0+i)
				}
				if bias != nil {
					g.BiasN = bias[n0:][:g.N]
				}
				gemm.Multiply(nil, g, x, workspace, y[n0:])
			}
		})
		return nil
	}
}

// rows returns the function that dequantises row n of the weights.
func (v *nBits) rows(c *op.Call) (func(dst []float32, n int), error) {
	scales, w, zero := tensor.Of[float32](c.In[2]), tensor.Of[uint8](c.In[1]), v.zeroReader(c.Input(3))
	if !c.Has(4) {
		return func(dst []float32, n int) {
			for b := range v.blocks {
				v.widen(dst[b*v.block:][:v.block], w[(n*v.blocks+b)*v.bytes:][:v.bytes], scales[n*v.blocks+b], zero(n, b))
			}
		}, nil
	}
	blocks, err := op.Ints(c.In[4])
	if err != nil {
		return nil, err
	}
	for k, b := range blocks {
		if b < 0 || b >= v.blocks {
			return nil, fmt.Errorf("g_idx[%d] is %d of %d blocks", k, b, v.blocks)
		}
	}
	return func(dst []float32, n int) {
		v.widen(dst, w[n*v.blocks*v.bytes:][:v.blocks*v.bytes], 1, 0)
		for k := range v.k {
			dst[k] = (dst[k] - zero(n, blocks[k])) * scales[n*v.blocks+blocks[k]]
		}
	}, nil
}

// fewBits packs constant weights in their quantised form; nil if they are not constant or the
// instruction set has no kernels.
func (v *nBits) fewBits(c *op.Call) *gemm.LowBitMatrix {
	if !c.Known(1, 2, 3) || c.Has(4) {
		return nil
	}
	c.Keep(packedBytes(c))
	w := v.lowBit(c.In[1], c.In[2], c.Input(3))
	for i := 1; w != nil && i <= 3; i++ {
		if c.Has(i) {
			c.Copied(i)
		}
	}
	return w
}

// packedBytes is the size of quantised weights as they are packed: scales are float32, zero points
// bytes, or floats if they are not quantised values.
func packedBytes(c *op.Call) int {
	n := c.In[1].Bytes() + c.In[2].Bytes()
	switch z := c.Input(3); {
	case z == nil:
	case z.Type == tensor.Uint8:
		n += c.In[2].Len()
	default:
		n += c.In[2].Bytes()
	}
	return n
}

// lowBit packs weights in their quantised form; nil if the instruction set has no kernels. Zero
// points are nil for the middle of the range.
func (v *nBits) lowBit(codes, scales, zeros *tensor.Tensor) *gemm.LowBitMatrix {
	whole, ok := v.wholeZeros(zeros)
	s := tensor.Of[float32](scales)
	m := gemm.NewLowBitMatrix(v.shape(), tensor.Of[uint8](codes), false, s, whole)
	if m == nil || ok {
		return m
	}
	zero, middle := v.zeroReader(zeros), float32(int(1)<<(v.bits-1))
	offsets := make([]float32, len(s))
	for i := range offsets {
		offsets[i] = s[i] * (middle - zero(i/v.blocks, i%v.blocks))
	}
	m.SetOffsets(offsets)
	return m
}

// wholeZeros returns zero points less the middle of the range, nil for none. ok is false if some
// are not quantised values.
func (v *nBits) wholeZeros(z *tensor.Tensor) (zeros []int8, ok bool) {
	if z == nil {
		return nil, true
	}
	zero, middle := v.zeroReader(z), float32(int(1)<<(v.bits-1))
	zeros = make([]int8, v.n*v.blocks)
	for i := range zeros {
		at := zero(i/v.blocks, i%v.blocks) - middle
		if zeros[i] = int8(max(-128, min(at, 127))); float32(zeros[i]) != at {
			return nil, false
		}
	}
	return zeros, true
}

// packed dequantises the weights once.
func (v *nBits) packed(c *op.Call) (op.Run, error) {
	row, err := v.rows(c)
	if err != nil {
		return nil, err
	}
	line := v.blocks * v.block
	c.Keep(4 * v.n * line)
	wide := make([]float32, v.n*line)
	for n := range v.n {
		row(wide[n*line:][:line], n)
	}
	g, b := gemm.Params{M: v.m, N: v.n, K: v.k}, gemm.PackB(v.k, v.n, wide, line, true)
	c.Kernel = b.Name(g)
	return func(c *op.Call) error {
		g.BiasN = elem.Elements[float32](c, 5)
		gemm.MultiplyPacked(c.Pool, g, tensor.Of[float32](c.In[0]), b, tensor.Of[float32](c.Out[0]))
		return nil
	}, nil
}

// nibbles multiplies few rows by 4-bit weights in their quantised form.
func (v *nBits) nibbles(c *op.Call, e *simd.Elements) op.Run {
	line := v.blocks * v.block
	spread, sums := op.ScratchOf[float32](c, v.m*line), op.ScratchOf[float32](c, v.m*v.blocks)
	zeros := op.ScratchOf[float32](c, c.Pool.Threads()*v.blocks)
	return func(c *op.Call) error {
		x, y, bias := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0]), elem.Elements[float32](c, 5)
		scales, w := tensor.Of[float32](c.In[2]), tensor.Of[uint8](c.In[1])
		zero := v.zeroReader(c.Input(3))
		for m := range v.m {
			simd.SpreadNibbles(spread[m*line:][:line], sums[m*v.blocks:][:v.blocks], x[m*v.k:][:v.k])
		}
		c.Pool.ForWorker(v.n, max(1, 1<<16/line), func(worker, lo, hi int) {
			zeros := zeros[worker*v.blocks:][:v.blocks]
			for n := lo; n < hi; n++ {
				for b := range zeros {
					zeros[b] = zero(n, b)
				}
				for m := range v.m {
					s := e.DotNibbles(spread[m*line:][:line], w[n*v.blocks*v.bytes:][:v.blocks*v.bytes], scales[n*v.blocks:][:v.blocks], zeros, sums[m*v.blocks:][:v.blocks])
					if bias != nil {
						s += bias[n]
					}
					y[m*v.n+n] = s
				}
			}
		})
		return nil
	}
}

// zeroReader returns the zero point of a block: packed, in the type of the scales, or by default
// the middle of the range.
func (v *nBits) zeroReader(z *tensor.Tensor) func(n, b int) float32 {
	switch {
	case z == nil:
		mid := float32(int(1) << (v.bits - 1))
		return func(int, int) float32 { return mid }
	case z.Type == tensor.Uint8:
		p, per := tensor.Of[uint8](z), v.zeroBytes()
		return func(n, b int) float32 {
			bit := b * v.bits
			return float32(p[n*per+bit/8] >> (bit % 8) & byte(1<<v.bits-1))
		}
	}
	return func(n, b int) float32 { return float32(tensor.At(z, n*v.blocks+b)) }
}

func (v *nBits) widen(dst []float32, src []byte, scale, zero float32) {
	switch v.bits {
	case 8:
		for i, q := range src {
			dst[i] = (float32(q) - zero) * scale
		}
	case 4:
		if e := simd.ElementKernels(); e != nil {
			n := e.Nibbles(dst, src, zero, scale)
			dst, src = dst[n:], src[n/2:]
		}
		for i, q := range src {
			dst[2*i] = (float32(q&15) - zero) * scale
			dst[2*i+1] = (float32(q>>4) - zero) * scale
		}
	default:
		for i, q := range src {
			for j := range 4 {
				dst[4*i+j] = (float32(q>>(2*j)&3) - zero) * scale
			}
		}
	}
}

// GatherBlockQuantized gathers from block-quantised data: data, indices, scales, zero_points.
// uint8 data packs several low-bit values along the last axis, which without zero points are
// centred on the middle of their range; other data is centred on 0.

// gatherBlock is its geometry.
type gatherBlock struct {
	shape         []int // of the codes
	axis, along   int   // of the gather, of the blocks
	block, blocks int
	codes, zeros  tensor.Type // how data and zero points are packed
	middle        float32
	pre, ids      int // fetches: pre × ids, each of inner codes
	inner         int
}

func newGatherBlock(c *op.Call) (*gatherBlock, error) {
	data, scales, a := c.In[0], c.In[2], c.Node.Attrs
	g := &gatherBlock{shape: slices.Clone(data.Shape), codes: data.Type, block: a.Int("block_size", 128)}
	if g.block < 1 || len(g.shape) == 0 {
		return nil, fmt.Errorf("data %s in blocks of %d", tensor.FormatShape(data.Shape), g.block)
	}
	rank := len(g.shape)
	switch data.Type {
	case tensor.Uint8:
		kinds := map[int]tensor.Type{4: tensor.Uint4, 8: tensor.Uint8}
		bits := a.Int("bits", 4)
		if g.codes = kinds[bits]; g.codes == tensor.Invalid {
			return nil, op.Unsupported("codes of %d bits", bits)
		}
		g.shape[rank-1] *= 8 / bits
		g.middle = float32(int(1) << (bits - 1))
	case tensor.Int4, tensor.Uint4:
	default:
		return nil, op.Unsupported("codes of %v", data.Type)
	}
	var err error
	if g.axis, err = op.Axis(a.Int("gather_axis", 0), rank); err != nil {
		return nil, err
	}
	if g.along, err = op.Axis(a.Int("quantize_axis", 1), rank); err != nil {
		return nil, err
	}
	g.blocks = (g.shape[g.along] + g.block - 1) / g.block
	want := slices.Clone(g.shape)
	want[g.along] = g.blocks
	if !slices.Equal(scales.Shape, want) {
		return nil, fmt.Errorf("scales %s, want %s", tensor.FormatShape(scales.Shape), tensor.FormatShape(want))
	}
	if z := c.Input(3); z != nil {
		g.zeros = z.Type
		if data.Type == tensor.Uint8 && !z.Type.IsFloat() {
			g.zeros = g.codes
			per := 8 / g.codes.Bits()
			want[rank-1] = (want[rank-1] + per - 1) / per
		}
		if !slices.Equal(z.Shape, want) {
			return nil, fmt.Errorf("zero points %s, want %s", tensor.FormatShape(z.Shape), tensor.FormatShape(want))
		}
	}
	g.pre, g.ids, g.inner = tensor.Elements(g.shape[:g.axis]), c.In[1].Len(), tensor.Elements(g.shape[g.axis+1:])
	c.SetOut(0, c.In[2].Type, slices.Concat(g.shape[:g.axis], c.In[1].Shape, g.shape[g.axis+1:]))
	return g, nil
}

// code reads element i of packed values, whose rows begin on a byte boundary.
func code(x *tensor.Tensor, kind tensor.Type, i, row int) float32 {
	at := i
	if x.Type != kind { // bytes of several codes
		per := 8 / kind.Bits()
		at = i/row*((row+per-1)/per)*per + i%row
	}
	switch kind {
	case tensor.Uint8:
		return float32(x.Data[at])
	case tensor.Int4:
		return float32(int8(x.Data[at/2]>>(at%2*4)<<4) >> 4)
	}
	return float32(x.Data[at/2] >> (at % 2 * 4) & 15)
}

func prepareGatherBlock(c *op.Call) (op.Run, error) {
	g := op.Must(newGatherBlock(c))
	return func(c *op.Call) error {
		n := g.shape[g.axis]
		for i := range g.ids {
			if id := int(tensor.At(c.In[1], i)); id < -n || id >= n {
				return fmt.Errorf("index %d of %d", id, n)
			}
		}
		q := gatherArgs{g, c.In[0], c.In[1], c.Input(3), tensor.Of[float32](c.In[2]), tensor.Of[float32](c.Out[0])}
		workers.Each(c.Pool, g.pre*g.ids, max(1, 1<<12/max(1, g.inner)), q)
		return nil
	}, nil
}

// gatherArgs holds the arguments of a work item.
type gatherArgs struct {
	g                *gatherBlock
	data, ids, zeros *tensor.Tensor
	scales, y        []float32
}

// Piece computes fetches lo to hi.
func (q gatherArgs) Piece(lo, hi int) {
	g := q.g
	for i := lo; i < hi; i++ {
		id := int(tensor.At(q.ids, i%g.ids))
		if id < 0 {
			id += g.shape[g.axis]
		}
		q.fetch(q.y[i*g.inner:][:g.inner], (i/g.ids*g.shape[g.axis]+id)*g.inner)
	}
}

// fetch dequantises values starting at first: a block at a time if blocks run along the last
// axis.
func (q *gatherArgs) fetch(out []float32, first int) {
	g, last := q.g, len(q.g.shape)-1
	line, post := g.shape[last], tensor.Elements(g.shape[g.along+1:])
	lineOfScales := line
	if g.along == last {
		lineOfScales = g.blocks
	}
	for j := 0; j < len(out); {
		at, many := (first+j)/post, 1
		if post == 1 {
			in := at % line
			many = min(g.block-in%g.block, line-in, len(out)-j)
		}
		s := (at/g.shape[g.along]*g.blocks+at%g.shape[g.along]/g.block)*post + (first+j)%post
		zero := g.middle
		if q.zeros != nil {
			if g.zeros == tensor.Float32 { // as in MatMulNBits, which ONNX Runtime does not take here
				zero = tensor.Of[float32](q.zeros)[s]
			} else {
				zero = code(q.zeros, g.zeros, s, lineOfScales)
			}
		}
		q.block(out[j:j+many], first+j, zero, q.scales[s])
		j += many
	}
}

// block dequantises values starting at first that share a scale.
func (q *gatherArgs) block(out []float32, first int, zero, scale float32) {
	line := q.g.shape[len(q.g.shape)-1]
	if e := simd.ElementKernels(); e != nil && (q.data.Type == tensor.Uint4 || q.data.Type == tensor.Uint8 && q.g.codes == tensor.Uint4) {
		// One-byte values are contiguous.
		at := first
		if q.data.Type == tensor.Uint8 {
			at = first/line*((line+1)/2*2) + first%line
		}
		if at%2 == 0 {
			done := e.Nibbles(out, q.data.Data[at/2:], zero, scale)
			out, first = out[done:], first+done
		}
	}
	for j := range out {
		out[j] = (code(q.data, q.g.codes, first+j, line) - zero) * scale
	}
}
