package contrib

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// asBytes are what rows are after they were quantised together to uint8 over their range.
func asBytes(x []float64) []float64 {
	lo, hi := 0.0, 0.0
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	scale, zero := (hi-lo)/255, 0.0
	if lo == hi {
		scale = 1
	} else {
		zero = min(max(math.RoundToEven(-lo/scale), 0), 255)
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = (min(max(math.RoundToEven(v/scale)+zero, 0), 255) - zero) * scale
	}
	return out
}

// dequantised are numbers of codes; scales and zero points are one for each of the elements of an
// outer part, or one for each column of it.
func dequantised(x, scale, zero *tensor.Tensor, outer, cols int) []float64 {
	out := numbersOf(x)
	for i := range out {
		k := i / (len(out) / outer)
		if n := scale.Len() / outer; n > 1 {
			k = k*n + i%cols
		}
		out[i] = (out[i] - tensor.At(zero, k)) * tensor.At(scale, k)
	}
	return out
}

// TestDynamicQuantizeLSTM compares with the equations of LSTM of what is quantised: all inputs
// together, the state of each step and batch row on its own.
func TestDynamicQuantizeLSTM(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(elem.Bytes).Draw(t, "type")
		dirs, seq, batch := rapid.IntRange(1, 2).Draw(t, "directions"), rapid.IntRange(1, 3).Draw(t, "seq"), rapid.IntRange(1, 3).Draw(t, "batch")
		in, hid, each := rapid.IntRange(1, 5).Draw(t, "in"), rapid.IntRange(1, 5).Draw(t, "hidden"), rapid.Bool().Draw(t, "each output")
		rnd := source(rapid.Uint64().Draw(t, "seed"))
		scales := []int{dirs}
		if each {
			scales = []int{dirs, 4 * hid}
		}
		x, b := random(rnd, tensor.Float32, seq, batch, in), random(rnd, tensor.Float32, dirs, 8*hid)
		w, r := random(rnd, kind, dirs, in, 4*hid), random(rnd, kind, dirs, hid, 4*hid)
		ws, rs, wz, rz := random(rnd, tensor.Float32, scales...), random(rnd, tensor.Float32, scales...), random(rnd, kind, scales...), random(rnd, kind, scales...)
		for _, s := range []*tensor.Tensor{ws, rs} {
			for i := range s.Len() {
				tensor.Put(s, i, math.Abs(tensor.At(s, i))/300+1e-4)
			}
		}
		fixed := make([]bool, 12)
		for i := range fixed {
			fixed[i] = i > 0 && (i != 2 || rnd.IntN(2) == 0)
		}
		direction := []string{"forward", "bidirectional"}[dirs-1]
		out, err := optest.Run(defs, optest.Node{
			Domain: graph.Microsoft, Op: "DynamicQuantizeLSTM", Version: 1, Outputs: 3, Const: fixed,
			Attrs: graph.Attrs{"direction": direction, "hidden_size": int64(hid)},
		}, x, w, r, b, nil, nil, nil, nil, ws, wz, rs, rz)
		if err != nil {
			t.Fatal(err)
		}
		xs, wd, rd := asBytes(numbersOf(x)), dequantised(w, ws, wz, dirs, 4*hid), dequantised(r, rs, rz, dirs, 4*hid)
		want := make([]float64, out[0].Len())
		for d := range dirs {
			h, c := make([]float64, batch*hid), make([]float64, batch*hid)
			times := func(m []float64) func(int, int, []float64) float64 {
				return func(g, j int, v []float64) (s float64) {
					for q, e := range v {
						s += e * m[(d*len(v)+q)*4*hid+g*hid+j]
					}
					return s
				}
			}
			for s := range seq {
				tm := s
				if d == 1 {
					tm = seq - 1 - s
				}
				for n := range batch {
					nh, nc := naiveLSTM(xs[(tm*batch+n)*in:][:in], asBytes(h[n*hid:][:hid]), c[n*hid:][:hid], times(wd), times(rd), func(half, g, j int) float64 {
						return tensor.At(b, ((d*2+half)*4+g)*hid+j)
					})
					copy(h[n*hid:], nh)
					copy(c[n*hid:], nc)
					copy(want[((tm*dirs+d)*batch+n)*hid:], nh)
				}
			}
		}
		// A state that lies in the middle between codes may be rounded the other way: by one of
		// 255 steps of at most 2, times weights of at most 255/300.
		optest.Near(t, "y", out[0], want, 2.0/255*float64(seq), 0)
	})
}

// TestQAttention compares with Attention of what the codes stand for.
func TestQAttention(t *testing.T) {
	t.Parallel()
	for _, kind := range elem.Bytes {
		for _, each := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, each), func(t *testing.T) {
				t.Parallel()
				r := source(31)
				const batch, rows, in, hidden, past = 2, 3, 5, 8, 2
				scales := []int{}
				if each {
					scales = []int{3 * hidden}
				}
				x, w, b := random(r, tensor.Uint8, batch, rows, in), random(r, kind, in, 3*hidden), random(r, tensor.Float32, 3*hidden)
				wz := random(r, kind, scales...)
				ws := tensor.New(tensor.Float32, scales...)
				tensor.Fill(ws, func(i int) float64 { return 0.001 * float64(i+1) })
				mask := tensor.From(tensor.Int32, []int{batch, rows + past}, []int32{1, 1, 1, 0, 1, 1, 0, 1, 1, 1})
				state := random(r, tensor.Float32, 2, batch, 2, past, hidden/2)
				xz := one8(131)
				attrs := graph.Attrs{"num_heads": int64(2), "unidirectional": int64(1)}
				got := run(t, optest.Node{Domain: graph.Microsoft, Op: "QAttention", Version: 1, Outputs: 2, Attrs: attrs, Const: []bool{false, each, each, each, each, false, each, each}},
					x, w, b, one(0.02), ws, mask, xz, wz, state)
				xf, wf := tensor.New(tensor.Float32, x.Shape...), tensor.New(tensor.Float32, w.Shape...)
				tensor.Fill(xf, func(i int) float64 { return (tensor.At(x, i) - 131) * 0.02 })
				all := dequantised(w, ws, wz, 1, 3*hidden)
				tensor.Fill(wf, func(i int) float64 { return all[i] })
				want := run(t, optest.Node{Domain: graph.Microsoft, Op: "Attention", Version: 1, Outputs: 2, Attrs: attrs}, xf, wf, b, mask, state)
				near(t, "output", got[0], numbersOf(want[0]), 1e-5)
				near(t, "present", got[1], numbersOf(want[1]), 1e-5)
			})
		}
	}
}

func one8(v uint8) *tensor.Tensor { return tensor.From(tensor.Uint8, []int{}, []uint8{v}) }

// TestQEmbedding compares with EmbedLayerNormalization of what the codes stand for.
func TestQEmbedding(t *testing.T) {
	t.Parallel()
	for _, segments := range []bool{false, true} {
		r := source(33)
		ids, mask := tensor.From(tensor.Int32, []int{1, 3}, []int32{2, 0, 1}), tensor.From(tensor.Int32, []int{1, 3}, []int32{1, 1, 0})
		tables := []*tensor.Tensor{random(r, tensor.Uint8, 3, 4), random(r, tensor.Uint8, 5, 4), random(r, tensor.Uint8, 2, 4), random(r, tensor.Uint8, 4), random(r, tensor.Uint8, 4)}
		codes := []*tensor.Tensor{ids, tensor.From(tensor.Int32, []int{1, 3}, []int32{0, 1, 1})}
		floats := append([]*tensor.Tensor{}, codes...)
		var scales, zeros []*tensor.Tensor
		for i, x := range tables {
			s, z := 0.01*float64(i+1), uint8(100+i)
			scales, zeros = append(scales, one(float32(s))), append(zeros, one8(z))
			f := tensor.New(tensor.Float32, x.Shape...)
			tensor.Fill(f, func(k int) float64 { return (tensor.At(x, k) - float64(z)) * s })
			codes, floats = append(codes, x), append(floats, f)
		}
		codes, floats = append(append(append(codes, mask), scales...), zeros...), append(floats, mask)
		if !segments {
			codes[1], codes[4], codes[10], codes[15], floats[1], floats[4] = nil, nil, nil, nil, nil, nil
		}
		got := run(t, optest.Node{Domain: graph.Microsoft, Op: "QEmbedLayerNormalization", Version: 1, Outputs: 2}, codes...)
		want := run(t, optest.Node{Domain: graph.Microsoft, Op: "EmbedLayerNormalization", Version: 1, Outputs: 2}, floats...)
		near(t, "normalised", got[0], numbersOf(want[0]), 1e-5)
		near(t, "mask index", got[1], numbersOf(want[1]), 0)
	}
}

// TestGatherBlockQuantized fetches along any axis from blocks along any other, and along the same.
func TestGatherBlockQuantized(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := source(rapid.Uint64().Draw(t, "seed"))
		kind := rapid.SampledFrom([]tensor.Type{tensor.Int4, tensor.Uint4, tensor.Uint8}).Draw(t, "type")
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 2, 3).Draw(t, "shape")
		rank := len(shape)
		axis, along, block := rapid.IntRange(0, rank-1).Draw(t, "axis"), rapid.IntRange(0, rank-1).Draw(t, "blocks along"), rapid.IntRange(1, 4).Draw(t, "block")
		if rapid.Bool().Draw(t, "long") {
			shape[rank-1] *= 25
			block *= 12
		}
		bits, middle := 4, 0.0
		if kind == tensor.Uint8 {
			bits, middle = rapid.SampledFrom([]int{4, 8}).Draw(t, "bits"), 8
			if shape[rank-1] *= 8 / bits; bits == 8 {
				middle = 128
			}
		}
		blocks := append([]int{}, shape...)
		blocks[along] = (shape[along] + block - 1) / block
		unpacked := kind
		if kind == tensor.Uint8 && bits == 4 {
			unpacked = tensor.Uint4
		}
		// Codes that begin on a byte in each row.
		pack := func(shape []int) (*tensor.Tensor, []float64) {
			values := make([]float64, tensor.Elements(shape))
			for i := range values {
				values[i] = float64(r.IntN(1 << bits))
				if kind == tensor.Int4 {
					values[i] -= 8
				}
			}
			if kind != tensor.Uint8 || bits == 8 {
				x := tensor.New(kind, shape...)
				if kind == tensor.Uint8 {
					tensor.Fill(x, func(i int) float64 { return values[i] })
				} else {
					codes := make([]uint8, len(values))
					for i, v := range values {
						codes[i] = uint8(int8(v))
					}
					tensor.Pack(x, codes)
				}
				return x, values
			}
			row := shape[len(shape)-1]
			s := append([]int{}, shape...)
			s[len(s)-1] = (row + 1) / 2
			x := tensor.New(tensor.Uint8, s...)
			for i, v := range values {
				x.Data[i/row*s[len(s)-1]+i%row/2] |= uint8(v) << (i % row % 2 * 4)
			}
			return x, values
		}
		data, codes := pack(shape)
		in := []*tensor.Tensor{data, tensor.From(tensor.Int64, []int{2}, []int64{int64(r.IntN(shape[axis])), -1}), random(r, tensor.Float32, blocks...)}
		var zeros []float64
		if rapid.Bool().Draw(t, "zero points") {
			z, values := pack(blocks)
			in, zeros = append(in, z), values
		}
		out, err := optest.Run(defs, optest.Node{
			Domain: graph.Microsoft, Op: "GatherBlockQuantized", Version: 1,
			Attrs: graph.Attrs{"gather_axis": int64(axis), "quantize_axis": int64(along), "block_size": int64(block), "bits": int64(bits)},
		}, in...)
		if err != nil {
			t.Fatal(unpacked, err)
		}
		outShape := append([]int{}, shape...)
		outShape[axis] = 2
		at := make([]int, rank)
		var want []float64
		for range tensor.Elements(outShape) {
			e, s := 0, 0
			for a, k := range at {
				if a == axis {
					if k = int(tensor.At(in[1], k)); k < 0 {
						k += shape[a]
					}
				}
				e = e*shape[a] + k
				if a == along {
					k /= block
				}
				s = s*blocks[a] + k
			}
			zero := middle
			if zeros != nil {
				zero = zeros[s]
			}
			want = append(want, (codes[e]-zero)*tensor.At(in[2], s))
			tensor.Next(at, outShape)
		}
		optest.Near(t, "fetched", out[0], want, 1e-5, 1e-5)
	})
}
