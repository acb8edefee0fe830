package contrib

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/pool"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/quant"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// QLinearAveragePool and QLinearGlobalAveragePool: x, x_scale, x_zero, y_scale,
// y_zero. With channels_last the layout is [N,...,C].

func channelsLast(c *op.Call) bool { return c.Node.Attrs.Bool("channels_last", false) }

// channelsFirst views a call's input in [N,C,...] for the pooling geometry.
func channelsFirst(c *op.Call) *op.Call {
	if !channelsLast(c) || c.In[0].Rank() < 3 {
		return c
	}
	s := c.In[0].Shape
	n := len(s)
	shape := append([]int{s[0], s[n-1]}, s[1:n-1]...)
	return &op.Call{Node: c.Node, In: []*tensor.Tensor{{Type: c.In[0].Type, Shape: shape}}}
}

func checkQLinearPool(c *op.Call) error {
	for _, i := range []int{0, 1, 3} {
		if !c.Has(i) {
			return fmt.Errorf("input %d is missing", i)
		}
	}
	if !quant.IsByte(c.In[0]) || c.In[1].Len() != 1 || c.In[3].Len() != 1 || c.In[0].Rank() < 3 {
		return op.Unsupported("%s of %v %s", c.Node.Op, c.In[0].Type, tensor.FormatShape(c.In[0].Shape))
	}
	return nil
}

func inferQLinearAveragePool(c *op.Call) error {
	if err := checkQLinearPool(c); err != nil {
		return err
	}
	w, err := pool.NewPool(channelsFirst(c))
	if err != nil {
		return err
	}
	s := c.In[0].Shape
	shape := append(slices.Clone(s[:2]), w.Out...)
	if channelsLast(c) {
		shape = append(append([]int{s[0]}, w.Out...), s[len(s)-1])
	}
	return c.Result(c.In[0].Type, shape)
}

func inferQLinearGlobalPool(c *op.Call) error {
	if err := checkQLinearPool(c); err != nil {
		return err
	}
	shape := slices.Clone(c.In[0].Shape)
	for i := range shape {
		if i != 0 && (channelsLast(c) && i != len(shape)-1 || !channelsLast(c) && i != 1) {
			shape[i] = 1
		}
	}
	return c.Result(c.In[0].Type, shape)
}

// lastAveragePool is lastGlobalPool for windows that cover a whole image.
func lastAveragePool(c *op.Call) op.NHWCSupport {
	if w, err := pool.NewPool(channelsFirst(c)); err != nil || !w.Whole() || tensor.Elements(w.Out) != 1 {
		return op.NHWCNever
	}
	return lastGlobalPool(c)
}

// averageOfFloats computes windows that lie in lines of memory.
var averageOfFloats = quant.AroundFloat(pool.PrepareAveragePool[float32])

func prepareQLinearAveragePool(c *op.Call) (op.Run, error) {
	w := op.Must(pool.NewPool(channelsFirst(c)))
	if !channelsLast(c) && !w.Whole() {
		return averageOfFloats(c)
	}
	include := c.Node.Attrs.Bool("count_include_pad", false)
	return prepareQuantizedMean(c, w.In, w.Out, w.Whole(), func(at []int, f func(pos int)) int {
		n := 0
		w.Taps(at, func(pos int) { f(pos); n++ })
		if include {
			return w.Cells(at)
		}
		return n
	})
}

// lastGlobalPool: a result of one position has its channels last in any order.
func lastGlobalPool(c *op.Call) op.NHWCSupport {
	if channelsLast(c) || c.In[0].Rank() != 4 {
		return op.NHWCNever
	}
	return op.NHWCAny
}

func prepareQLinearGlobalPool(c *op.Call) (op.Run, error) {
	s := channelsFirst(c).In[0].Shape[2:]
	area, one := tensor.Elements(s), make([]int, len(s))
	element.Fill(one, 1)
	return prepareQuantizedMean(c, s, one, true, func(_ []int, f func(pos int)) int {
		for i := range area {
			f(i)
		}
		return area
	})
}

// total adds up bytes with some of their bits turned, eight at a time in lanes of 16 bits.
func total(v []byte, flip byte) int64 {
	const lanes, ones = 0x00ff00ff00ff00ff, 0x0101010101010101
	sum, turn := int64(0), uint64(flip)*ones
	for len(v) >= 8 {
		// No lane overflows in 128 steps of two bytes.
		n := min(len(v)/8, 128)
		acc := uint64(0)
		for ; n > 0; n, v = n-1, v[8:] {
			x := binary.LittleEndian.Uint64(v) ^ turn
			acc += x&lanes + x>>8&lanes
		}
		acc = acc&0x0000ffff0000ffff + acc>>16&0x0000ffff0000ffff
		sum += int64(acc&math.MaxUint32 + acc>>32)
	}
	for _, b := range v {
		sum += int64(b ^ flip)
	}
	return sum
}

// prepareQuantizedMean averages the taps of every output position, or all of a plane, and rescales.
func prepareQuantizedMean(c *op.Call, in, out []int, all bool, taps func(at []int, f func(pos int)) int) (op.Run, error) {
	x := c.In[0]
	inArea, area := tensor.Elements(in), tensor.Elements(out)
	n := x.Shape[0]
	ch, last := x.Shape[1], channelsLast(c)
	if last {
		ch = x.Shape[x.Rank()-1]
	}
	last = last || c.NHWCIn
	all = all && area == 1
	var lifted []int32
	if !all {
		lifted = op.ScratchOf[int32](c, x.Len())
	}
	// What a run has, whose loop is made once.
	var xs, ys float32
	var xz, yz int32
	var y *tensor.Tensor
	var data []byte
	flip := byte(0)
	if x.Type == tensor.Int8 {
		flip = 0x80 // then there are 128 too many in each
	}
	planes := func(lo, hi int) {
		for i := lo; i < hi; i++ {
			var sum int64
			if last {
				at := i/ch*inArea*ch + i%ch
				for range inArea {
					sum += int64(data[at] ^ flip)
					at += ch
				}
			} else {
				sum = total(data[i*inArea:][:inArea], flip)
			}
			sum -= int64(inArea) * (int64(xz) + int64(flip))
			quant.QuantizeOne(y, i, float32(sum)*xs/float32(max(inArea, 1)), ys, yz)
		}
	}
	// Several threads run the loop: each takes a workspace for where it is and what it adds up.
	type workspace struct {
		at   []int
		base int
		sum  float32
		add  func(pos int)
	}
	workspaces := sync.Pool{New: func() any {
		r := &workspace{at: make([]int, len(out))}
		r.add = func(pos int) {
			p := r.base + pos
			if last {
				p = r.base + pos*ch
			}
			r.sum += float32(lifted[p]) * xs
		}
		return r
	}}
	windows := func(lo, hi int) {
		r := workspaces.Get().(*workspace)
		for i := lo; i < hi; i++ {
			b, k := i/ch, i%ch
			clear(r.at)
			for o := range area {
				p := i*area + o
				if r.base = i * inArea; last {
					r.base, p = b*inArea*ch+k, (b*area+o)*ch+k
				}
				r.sum = 0
				count := taps(r.at, r.add)
				quant.QuantizeOne(y, p, r.sum/float32(max(count, 1)), ys, yz)
				tensor.Next(r.at, out)
			}
		}
		workspaces.Put(r)
	}
	var sums []int32
	vec := simd.PoolKernels()
	if all && last && vec != nil && inArea > 0 && inArea < 1<<23 {
		sums = op.ScratchOf[int32](c, ch)
	}
	image := 0 // of the run, whose loop is made once
	means := func(lo, hi int) {
		vec.AddBytes(sums[lo:hi], data[image*inArea*ch+lo:], ch, inArea, flip != 0)
		for k := lo; k < hi; k++ {
			quant.QuantizeOne(y, image*ch+k, float32(sums[k]-int32(inArea)*xz)*xs/float32(inArea), ys, yz)
		}
	}
	return func(c *op.Call) error {
		xs, xz = quant.ScalarScale(c, 1)
		ys, yz = quant.ScalarScale(c, 3)
		y = c.Out[0]
		data = c.In[0].Data
		if sums != nil {
			for image = range n {
				c.Pool.For(ch, max(64, 1<<15/inArea), means)
			}
			return nil
		}
		if all {
			c.Pool.For(n*ch, max(1, 1<<12/max(inArea, 1)), planes)
			return nil
		}
		quant.Lift(lifted, c.In[0], xz)
		c.Pool.For(n*ch, max(1, 1<<12/max(inArea, 1)), windows)
		return nil
	}, nil
}
