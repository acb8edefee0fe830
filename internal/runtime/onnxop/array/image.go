package array

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// columns is the geometry of Col2Im: the image, the block and, per axis, the number of blocks and
// their positions.
type columns struct {
	image, block, stride, dilation, pad, count []int
	channels                                   int
}

func columnsOf(c *op.Call) (*columns, error) {
	image, err := op.Ints(c.In[1])
	if err != nil {
		return nil, err
	}
	block, err := op.Ints(c.In[2])
	if err != nil {
		return nil, err
	}
	r := len(image)
	g := &columns{image: image, block: block, count: make([]int, r)}
	list := func(name string, n, def int) []int {
		if v := c.Node.Attrs.Ints(name); len(v) > 0 || err != nil {
			if len(v) != n {
				err = fmt.Errorf("%s has %d elements, not %d", name, len(v), n)
			}
			return v
		}
		return slices.Repeat([]int{def}, n)
	}
	g.stride, g.dilation, g.pad = list("strides", r, 1), list("dilations", r, 1), list("pads", 2*r, 0)
	if err != nil {
		return nil, err
	}
	if len(block) != r || r == 0 || c.In[0].Rank() != 3 {
		return nil, fmt.Errorf("image %v, block %v and input of rank %d do not fit", image, block, c.In[0].Rank())
	}
	size, total := 1, 1
	for i := range r {
		for _, v := range []int{image[i], block[i], g.stride[i], g.dilation[i], g.pad[i] + 1, g.pad[r+i] + 1} {
			if v < 1 || v > 1<<30 {
				return nil, fmt.Errorf("axis %d: image %d, block %d, stride %d, dilation %d, pads %d and %d",
					i, image[i], block[i], g.stride[i], g.dilation[i], g.pad[i], g.pad[r+i])
			}
		}
		free := image[i] + g.pad[i] + g.pad[r+i] - g.dilation[i]*(block[i]-1) - 1
		if free < 0 {
			return nil, fmt.Errorf("block %v is larger than image %v", block, image)
		}
		g.count[i] = free/g.stride[i] + 1
		if size > tensor.MaxBytes/block[i] || total > tensor.MaxBytes/g.count[i] {
			return nil, errors.New("blocks are too large")
		}
		size *= block[i]
		total *= g.count[i]
	}
	if s := c.In[0].Shape; s[1]%size != 0 || s[2] != total {
		return nil, fmt.Errorf("input %s has not %d blocks of %d elements", tensor.FormatShape(s), total, size)
	}
	g.channels = c.In[0].Shape[1] / size
	return g, nil
}

func inferCol2Im(c *op.Call) error {
	g, err := columnsOf(c)
	if err != nil {
		return err
	}
	return c.Result(c.In[0].Type, append([]int{c.In[0].Shape[0], g.channels}, g.image...))
}

func prepareCol2Im(c *op.Call) (op.Run, error) {
	if run := tensor.PickNumber(c.In[0].Type, col2im[float32], col2im[float64], col2im[int8], col2im[int16], col2im[int32], col2im[int64],
		col2im[uint8], col2im[uint16], col2im[uint32], col2im[uint64]); run != nil {
		return run, nil
	}
	switch c.In[0].Type {
	case tensor.Float16, tensor.BFloat16:
		return func(c *op.Call) error {
			v, err := tensor.All[float64](c.In[0])
			if err != nil {
				return err
			}
			w := *c
			w.In = slices.Clone(c.In)
			w.In[0] = tensor.From(tensor.Float64, c.In[0].Shape, v)
			w.Out = []*tensor.Tensor{tensor.New(tensor.Float64, c.Out[0].Shape...)}
			if err := col2im[float64](&w); err != nil {
				return err
			}
			sum := tensor.Of[float64](w.Out[0])
			tensor.Fill(c.Out[0], func(i int) float64 { return sum[i] })
			return nil
		}, nil
	}
	return nil, op.Unsupported("Col2Im of %v", c.In[0].Type)
}

// col2im adds every column element to the pixel that it was taken from. Planes are independent
// and divided among threads.
func col2im[T tensor.Number](c *op.Call) error {
	g, err := columnsOf(c)
	if err != nil {
		return err
	}
	x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
	last := len(g.image) - 1
	cells, blocks, pixels := tensor.Elements(g.block), tensor.Elements(g.count), tensor.Elements(g.image)
	line, lines := g.count[last], blocks/g.count[last]
	strides := tensor.Strides(g.image)
	planes := c.In[0].Shape[0] * g.channels
	c.Pool.For(planes, max(1, 1<<14/(cells*blocks)), func(lo, hi int) {
		at := make([]int, last+1) // cell within the block
		pos := make([]int, last)  // line of blocks
		for p := lo; p < hi; p++ {
			out := y[p*pixels : (p+1)*pixels]
			clear(out)
			clear(at)
			for cell := range cells {
				col := x[(p*cells+cell)*blocks:][:blocks]
				// Blocks from first to before end have this cell within the image's columns.
				off, step := at[last]*g.dilation[last]-g.pad[last], g.stride[last]
				first, end := max(0, (step-1-off)/step), min(line, (g.image[last]-off+step-1)/step)
				clear(pos)
				for l := range lines {
					o, inside := off+first*step, first < end
					for i, b := range pos {
						q := b*g.stride[i] + at[i]*g.dilation[i] - g.pad[i]
						inside = inside && q >= 0 && q < g.image[i]
						o += q * strides[i]
					}
					if inside {
						addStrided(out[o:], col[l*line:][first:end], step)
					}
					advance(pos, g.count[:last])
				}
				advance(at, g.block)
			}
		}
	})
	return nil
}

// addStrided adds values to elements step apart.
func addStrided[T tensor.Number](dst, v []T, step int) {
	switch step {
	case 1:
		dst = dst[:len(v)]
		element.AddTo(dst, dst, v)
		return
	case 2:
		dst = dst[:2*len(v)-1]
		for i, x := range v {
			dst[2*i] += x
		}
		return
	}
	at := 0
	for _, x := range v {
		dst[at] += x
		at += step
	}
}

// advance moves an index to the next position in row-major order.
func advance(at, dims []int) {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < dims[i] {
			return
		}
		at[i] = 0
	}
}

func inferDet(c *op.Call) error {
	s := c.In[0].Shape
	r := len(s)
	if r < 2 || s[r-1] != s[r-2] {
		return fmt.Errorf("input %s is not a list of square matrices", tensor.FormatShape(s))
	}
	if !c.In[0].Type.IsFloat() || !c.In[0].Type.IsNumber() {
		return op.Unsupported("Det of %v", c.In[0].Type)
	}
	return c.Result(c.In[0].Type, slices.Clone(s[:r-2]))
}

func runDet(c *op.Call) error {
	n := c.In[0].Shape[c.In[0].Rank()-1]
	v, err := tensor.All[float64](c.In[0])
	if err != nil {
		return err
	}
	out := make([]float64, c.Out[0].Len())
	c.Pool.For(len(out), max(1, 4096/max(1, n*n*n)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out[i] = determinant(v[i*n*n:(i+1)*n*n], n)
		}
	})
	tensor.Fill(c.Out[0], func(i int) float64 { return out[i] })
	return nil
}

// determinant eliminates in place with partial pivoting.
func determinant(m []float64, n int) float64 {
	det := 1.0
	for k := range n {
		p := k
		for i := k + 1; i < n; i++ {
			if math.Abs(m[i*n+k]) > math.Abs(m[p*n+k]) {
				p = i
			}
		}
		pivot := m[p*n+k]
		if pivot == 0 {
			return 0
		}
		if p != k {
			for j := range n {
				m[p*n+j], m[k*n+j] = m[k*n+j], m[p*n+j]
			}
			det = -det
		}
		det *= pivot
		for i := k + 1; i < n; i++ {
			f := m[i*n+k] / pivot
			for j := k + 1; j < n; j++ {
				m[i*n+j] -= f * m[k*n+j]
			}
		}
	}
	return det
}
