package conv

import (
	"strings"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

func newWide(c *op.Call, channels int) (*gemm.Requant16, error) {
	by, err := layer.ChannelMultipliers(c.In[0], c.In[1], c.Out[0], channels)
	if err != nil {
		return nil, err
	}
	return layer.Requant16(c, by, 2)
}

// wideConv is a convolution of int16 activations with weights of 8 or fewer bits.
func wideConv(c *op.Call, s conv.Shape, depthwise bool) (op.Run, error) {
	if c.Out[0].Type != tensor.Int16 {
		return nil, op.Unsupported("int16 input with %v output", c.Out[0].Type)
	}
	q, err := newWide(c, s.OC)
	if err != nil {
		return nil, err
	}
	wv, err := layer.Integers(c.In[1])
	if err != nil {
		return nil, err
	}
	c.Recipe = recipe.Conv{Shape: s, Depthwise: depthwise, Sums: layer.WideSumsOf(q)}
	if !depthwise && (s.Groups == 1 || s.C > s.Groups) && !plainProduct(&s) {
		if run := inPlaceWide(c, s, q, wv); run != nil {
			return run, nil
		}
	}
	if k := s.KH * s.KW * s.C; !depthwise && s.Groups == 1 && k > 0 && s.OC > 0 {
		if p := gemm.NewPackedInt16(s.OC, k); p.UsesSIMD() {
			p.Fill(wv, k, 1)
			return packedWide(c, s, p, q), nil
		}
	}
	if steps := s.KH * s.KW * s.C / s.Groups; s.Groups > 0 && steps > 0 && steps <= gemm.SplitSteps && s.OC > 0 && bytes(wv) {
		return splitConv(c, s, q, wv, depthwise), nil
	}
	cg, og := s.C/s.Groups, s.OC/s.Groups
	// Element of the filter for output channel o, tap t, input channel i.
	so, st := s.KH*s.KW*cg, cg
	if depthwise {
		so, st = 1, s.OC
	}
	return layer.Ranges(s.N*s.OH*s.OW, max(1, 4096/max(1, s.OC*s.KH*s.KW*cg)), func(y, x []int16, lo, hi int) {
		for p := lo; p < hi; p++ {
			n, oy, ox := p/s.OW/s.OH, p/s.OW%s.OH, p%s.OW
			for o := range s.OC {
				var acc int64
				for ky := range s.KH {
					iy := oy*s.StrideH - s.PadT + ky*s.DilH
					if uint(iy) >= uint(s.H) {
						continue
					}
					for kx := range s.KW {
						ix := ox*s.StrideW - s.PadL + kx*s.DilW
						if uint(ix) >= uint(s.W) {
							continue
						}
						src := x[((n*s.H+iy)*s.W+ix)*s.C+o/og*cg:][:cg]
						w := wv[o*so+(ky*s.KW+kx)*st:][:cg]
						for i, v := range src {
							acc += int64(v) * int64(w[i])
						}
					}
				}
				y[p*s.OC+o] = q.One(acc, o)
			}
		}
	}), nil
}

// bytes reports whether all weights have 8 bits.
func bytes(w []int32) bool {
	for _, v := range w {
		if v < -128 || v > 127 {
			return false
		}
	}
	return true
}

// splitConv convolves the high and low bytes of 16-bit numbers in float32.
func splitConv(c *op.Call, s conv.Shape, q *gemm.Requant16, w []int32, depthwise bool) op.Run {
	prepare := conv.NewNHWC
	if depthwise {
		prepare = conv.NewDepthwiseNHWC
	}
	conv := prepare(s, reals(w), nil, activation.Clamp{})
	c.Kernel = conv.Name()
	return halved(c, 0, q, s.OC, conv.Run)
}

// reals converts integer weights to float32.
func reals[T int8 | int32](w []T) []float32 {
	v := make([]float32, len(w))
	for i, x := range w {
		v[i] = float32(x)
	}
	return v
}

// halved computes with the high and low bytes of the 16-bit input in, with run in float32.
func halved(c *op.Call, in int, q *gemm.Requant16, channels int, run func(p *workers.Pool, x, y []float32)) op.Run {
	split := gemm.NewSplitInt16(q, channels, c.In[in].Len(), c.Out[0].Len(), func(n int) []float32 { return op.ScratchOf[float32](c, n) }, run)
	return on(in, split.Run)
}

// on is [layer.Direct] for input in.
func on[X, Y tensor.Number](in int, run func(p *workers.Pool, x []X, y []Y)) op.Run {
	return func(c *op.Call) error {
		run(c.Pool, tensor.Of[X](c.In[in]), tensor.Of[Y](c.Out[0]))
		return nil
	}
}

// widePatches is the number of patches that are multiplied together.
const widePatches = 48

// inPlaceWide reads the input in place; it returns nil where no kernel can.
func inPlaceWide(c *op.Call, s conv.Shape, q *gemm.Requant16, w []int32) op.Run {
	conv := conv.NewInt16(w, q, s)
	if conv == nil {
		return nil
	}
	c.Kernel = conv.Name(widePatches)
	workspace := op.ScratchOf[int16](c, conv.ScratchSize())
	return layer.Direct(func(p *workers.Pool, x, y []int16) { conv.Run(p, x, y, workspace) })
}

// plainProduct tells whether each position makes one of the results.
func plainProduct(s *conv.Shape) bool {
	return s.Groups == 1 && s.KH*s.KW*s.StrideH*s.StrideW == 1 && s.PadT|s.PadL == 0 && s.OH == s.H && s.OW == s.W
}

// packedWide multiplies patches by packed weights.
func packedWide(c *op.Call, s conv.Shape, p *gemm.PackedInt8, q *gemm.Requant16) op.Run {
	c.Kernel = "im2col/" + strings.TrimPrefix(p.Name(widePatches), "packed/")
	product := gemm.NewInt16(p, q)
	if plainProduct(&s) {
		c.Kernel = p.Name(widePatches)
		return layer.Direct(func(p *workers.Pool, x, y []int16) { product.Run(p, s.N*s.H*s.W, x, y) })
	}
	line := product.RowLength()
	patches := op.ScratchOf[int16](c, c.Pool.Threads()*widePatches*line)
	return func(c *op.Call) error {
		x, y := tensor.Of[int16](c.In[0]), tensor.Of[int16](c.Out[0])
		all := s.N * s.OH * s.OW
		c.Pool.ForWorker((all+widePatches-1)/widePatches, 1, func(worker, lo, hi int) {
			workspace := patches[worker*widePatches*line:]
			for at := lo * widePatches; at < min(all, hi*widePatches); at += widePatches {
				n := min(widePatches, all-at)
				for i := range n {
					widePatch(workspace[i*line:], x, &s, at+i)
				}
				product.RunRows(nil, n, workspace, y[at*s.OC:][:n*s.OC])
			}
		})
		return nil
	}
}

// widePatch writes the receptive field of output position at, zero beyond the borders.
func widePatch(dst, x []int16, s *conv.Shape, at int) {
	n, oy, ox := at/s.OW/s.OH, at/s.OW%s.OH, at%s.OW
	// how often values are copied for a line of taps, and how many taps at a time
	taps, each := s.KW, 1
	if s.DilW == 1 {
		taps, each = 1, s.KW
	}
	for ky := range s.KH {
		iy := oy*s.StrideH - s.PadT + ky*s.DilH
		for kx := range taps {
			ix := ox*s.StrideW - s.PadL + kx*s.DilW
			d := dst[:each*s.C]
			dst = dst[len(d):]
			first, last := max(0, -ix), min(each, s.W-ix)
			if uint(iy) >= uint(s.H) || first >= last {
				clear(d)
				continue
			}
			clear(d[:first*s.C])
			copy(d[first*s.C:last*s.C], x[((n*s.H+iy)*s.W+ix+first)*s.C:])
			clear(d[last*s.C:])
		}
	}
}
