// Command sparse measures what leaving out zeros gains: layers of MobileNet, ResNet-50, BERT,
// decoders and perceptrons with 50 to 95 % of their weights zero, against the same layers without
// zeros, interleaved.
//
//	go run ./bench/sparse [-time 200ms] [-threads 1] [-only WORD] [-numbers float32,int8]
//		[-levels 0.5,0.9] [-structures single]
//
// Zeros are single ones, two of four neighbouring inputs (2:4, at 50 %), four neighbouring inputs
// (1×4), four neighbouring outputs at the same input (4×1), or sixteen (16×1). Layers of 8-bit
// weights are convolutions of TFLite (NHWC), of ONNX with channels first, or last as in a chain of
// them, and products with 32-bit sums.
//
// Where leaving them out gains nothing, the engine computes with the zeros: the speed-up is 1
// then, and the kernel the dense one.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/bench/rates"
	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// layer is a convolution, or a product where Size is 0.
type layer struct {
	name              string
	in, out, size, kn int // channels, height and width of the output, of the kernel
	// stride of a convolution, rows of a product
	stride int
	// cached says that a single row finds its weights in caches.
	cached bool
}

var layers = []layer{
	{"MobileNet 1×1, 56²", 64, 128, 56, 1, 1, false},
	{"MobileNet 1×1, 28²", 128, 128, 28, 1, 1, false},
	{"MobileNet 1×1, 14²", 512, 512, 14, 1, 1, false},
	{"MobileNet 1×1, 7²", 1024, 1024, 7, 1, 1, false},
	{"ResNet-50 1×1, 56²", 64, 256, 56, 1, 1, false},
	{"ResNet-50 3×3, 56²", 64, 64, 56, 3, 1, false},
	{"ResNet-50 3×3, 28²", 128, 128, 28, 3, 1, false},
	{"ResNet-50 3×3, 14²", 256, 256, 14, 3, 1, false},
	{"ResNet-50 3×3, 7²", 512, 512, 7, 3, 1, false},
	{"BERT 768×768, 128 rows", 768, 768, 0, 0, 128, false},
	{"BERT 3072×768, 128 rows", 768, 3072, 0, 0, 128, false},
	{"BERT 768×3072, 128 rows", 3072, 768, 0, 0, 128, false},
	{"decoder 768×768, 1 row", 768, 768, 0, 0, 1, false},
	{"decoder 3072×768, 1 row", 768, 3072, 0, 0, 1, false},
	{"decoder 4096×2048, 1 row", 2048, 4096, 0, 0, 1, false},
	{"MLP 256×256, 1 row", 256, 256, 0, 0, 1, true},
	{"MLP 1000×300, 1 row", 1000, 300, 0, 0, 1, true},
	{"MLP 1024×1024, 1 row", 1024, 1024, 0, 0, 1, true},
	{"MLP 4096×4096, 1 row", 4096, 4096, 0, 0, 1, true},
}

// structure is a block of weights that are zero together: outputs by inputs.
type structure struct {
	name            string
	outputs, inputs int
	half            bool // two of four inputs
}

var structures = []structure{{"single", 1, 1, false}, {"2:4", 1, 4, true}, {"1×4", 1, 4, false}, {"4×1", 4, 1, false}, {"16×1", 16, 1, false}}

func main() {
	each := flag.Duration("time", 200*time.Millisecond, "how long each is measured")
	threads := flag.Int("threads", 1, "number of threads")
	only := flag.String("only", "", "measure the layers with this in their names")
	numbers := flag.String("numbers", "float32,int8", "types of numbers")
	shapes := flag.String("structures", "", "measure the structures with this in their names")
	shares := flag.String("levels", "0.5,0.6,0.7,0.8,0.9,0.95", "shares of zeros")
	flag.Parse()
	levels, err := parse(*shares)
	if err == nil {
		err = simd.Refused()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sparse:", err)
		os.Exit(1)
	}
	pool := workers.New(*threads, nil)
	defer pool.Close()
	fmt.Printf("set %s, threads %d: time of the layer without zeros, and how many times faster it is with a share of zeros\n", simd.Current(), *threads)
	heading := "layer\tnumbers\tlayout\tzeros\tdense ms"
	for _, l := range levels {
		heading += fmt.Sprintf("\t%.0f %%", 100*l)
	}
	t := rates.NewTable(heading)
	for _, l := range layers {
		if !strings.Contains(l.name, *only) {
			continue
		}
		for _, number := range strings.Split(*numbers, ",") {
			for _, layout := range l.layouts(number) {
				for _, s := range structures {
					if !strings.Contains(s.name, *shapes) {
						continue
					}
					line(t, pool, l, number, layout, s, levels, *each)
				}
			}
		}
	}
	t.End()
}

// line measures a layer with the zeros of a structure.
func line(t *rates.Table, pool *workers.Pool, l layer, number, layout string, s structure, levels []float64, each time.Duration) {
	work := []func(){l.make(pool, number, layout, 0, structures[0])}
	var names []float64
	for _, share := range levels {
		if !s.half || share == 0.5 {
			work, names = append(work, l.make(pool, number, layout, share, s)), append(names, share)
		}
	}
	times, gains, next := rates.Beside(each, work...), "", 0
	for _, share := range levels {
		if next < len(names) && names[next] == share {
			next++
			gains += fmt.Sprintf("\t%.2f", times[0].Median/times[next].Median)
		} else {
			gains += "\t"
		}
	}
	t.Line("%s\t%s\t%s\t%s\t%.3f%s", l.name, number, layout, s.name, 1e3*times[0].Median, gains)
}

func parse(list string) (levels []float64, err error) {
	for _, part := range strings.Split(list, ",") {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil || v < 0 || v > 1 {
			return nil, fmt.Errorf("-levels: %q is not a share from 0 to 1", part)
		}
		levels = append(levels, v)
	}
	return levels, nil
}

func (l layer) layouts(number string) []string {
	switch {
	case l.size == 0:
		return []string{"rows"}
	case number == "int8":
		if s := l.shape(); !s.SupportsNHWC() {
			return []string{"NCHW", "NHWC"}
		}
		return []string{"NCHW", "last", "NHWC"}
	}
	return []string{"NCHW", "NHWC"}
}

// zeros tells which of the weights, a row of k for each output with the channels last, are zero.
func (l layer) zeros(r *rand.Rand, k int, share float64, s structure) []bool {
	zero := make([]bool, l.out*k)
	for o := 0; o < l.out; o += s.outputs {
		for i := 0; i < k; i += s.inputs {
			if s.half {
				for _, j := range r.Perm(s.inputs)[:s.inputs/2] {
					zero[o*k+i+j] = share > 0
				}
				continue
			}
			gone := r.Float64() < share
			for j := range min(s.outputs, l.out-o) * s.inputs {
				zero[(o+j/s.inputs)*k+i+j%s.inputs] = gone
			}
		}
	}
	return zero
}

// make returns a run of the layer with a share of zeros among its weights.
func (l layer) make(pool *workers.Pool, number, layout string, share float64, s structure) func() {
	r := rand.New(rand.NewPCG(1, 2))
	k := l.in * max(1, l.kn*l.kn)
	zero := l.zeros(r, k, share, s)
	if layout == "NCHW" || layout == "last" {
		// Weights have the taps of a channel side by side.
		taps := max(1, l.kn*l.kn)
		first := make([]bool, len(zero))
		for i, v := range zero {
			o, tap, c := i/k, i%k/l.in, i%l.in
			first[o*k+c*taps+tap] = v
		}
		zero = first
	}
	if number == "int8" {
		return l.codes(pool, r, layout, zero)
	}
	w := values(r, len(zero))
	for i, v := range zero {
		if v {
			w[i] = 0
		}
	}
	if l.size == 0 {
		rows := l.stride
		x, y := values(r, rows*l.in), make([]float32, rows*l.out)
		copies := copiesOf(rows, l.cached, 4*len(w), func() *gemm.PackedB { return gemm.PackForRows(rows, !l.cached, l.in, l.out, w, 0, true) })
		at := 0
		return func() {
			gemm.MultiplyPacked(pool, gemm.Params{M: rows, N: l.out, K: l.in}, x, copies[at%len(copies)], y)
			at++
		}
	}
	shape := l.shape()
	x, y := values(r, shape.C*shape.H*shape.W), make([]float32, shape.OC*shape.OH*shape.OW)
	build := conv.NewNCHW
	if layout == "NHWC" {
		build = conv.NewNHWC
	}
	c := build(shape, w, nil, activation.Clamp{})
	return func() { c.Run(pool, x, y) }
}

// copiesOf are weights packed once, and several times for a single row that reads them from
// memory, as in a network whose weights together are more than caches hold.
func copiesOf[T any](rows int, cached bool, bytes int, packed func() T) []T {
	copies := []T{packed()}
	for rows == 1 && !cached && len(copies)*bytes < 160<<20 {
		copies = append(copies, packed())
	}
	return copies
}

// codes makes 8-bit weights.
func (l layer) codes(pool *workers.Pool, r *rand.Rand, layout string, zero []bool) func() {
	w := make([]int32, len(zero))
	for i, v := range zero {
		if w[i] = int32(1 + r.IntN(127)); v {
			w[i] = 0
		} else if r.IntN(2) == 0 {
			w[i] = -w[i]
		}
	}
	random := func(n int) []uint8 {
		v := make([]uint8, n)
		for i := range v {
			v[i] = uint8(r.Uint32())
		}
		return v
	}
	if l.size == 0 {
		rows := l.stride
		x, y := random(rows*l.in), make([]int32, rows*l.out)
		tables := make([]gemm.ByteTable, 1)
		tables[0].Fill(true, 3)
		packed := func() *gemm.PackedInt8 {
			p := gemm.NewPackedInt8(l.out, l.in).SetRows(rows, !l.cached)
			p.Fill(w, l.in, 1)
			return p.PrepareZero(&tables[0])
		}
		copies := copiesOf(rows, l.cached, len(w), packed)
		at := 0
		return func() {
			gemm.MultiplyInt8(pool, rows, x, tables, copies[at%len(copies)], y)
			at++
		}
	}
	s := l.shape()
	x, y := random(s.C*s.H*s.W), make([]uint8, s.OC*s.OH*s.OW)
	if layout == "NHWC" {
		q := quantise.Requant{Bias: make([]int32, l.out), Zero: -3, Min: -128, Max: 127}
		for range l.out {
			q.Mul = append(q.Mul, fixed.Multiplier{M: 1<<30 + r.Int32N(1<<30), Shift: -9})
		}
		narrow := make([]int8, len(w))
		for i, v := range w {
			narrow[i] = int8(v)
		}
		in, out := make([]int8, len(x)), make([]int8, len(y))
		for i, v := range x {
			in[i] = int8(v)
		}
		c := conv.NewInt8[int8](s, narrow, 0, 3, q)
		return func() { c.Run(pool, in, out) }
	}
	c := conv.NewSums(s, layout == "last", layout == "last")
	conv.SetSumWeights(c, w, 0)
	c.SetZero(true, 3)
	q := &quantise.Rescale{Bias: make([]int32, l.out), Zero: -3, Lo: -128, Hi: 127, Signed: true}
	for range l.out {
		q.Scales = append(q.Scales, 0.0005+0.001*r.Float32())
	}
	q.Prepare()
	return func() { c.RunRescaled(pool, x, y, q) }
}

func (l layer) shape() conv.Shape {
	return conv.Shape{
		N: 1, C: l.in, H: l.size * l.stride, W: l.size * l.stride, OC: l.out, OH: l.size, OW: l.size, KH: l.kn, KW: l.kn,
		StrideH: l.stride, StrideW: l.stride, DilH: 1, DilW: 1, PadT: l.kn / 2, PadL: l.kn / 2,
	}
}

func values(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}
