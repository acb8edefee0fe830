// Command conv measures convolutions in one thread against what limits them: products and sums by
// themselves, rounded apart over [N,H,W,C] as TFLite does, or, where that takes longer, copying
// as much as they read and write. Both limits are measured beside them in the same turns. Results
// of 8 bits are quantised besides, each sum with a product of 32 bits, which for a depthwise
// convolution is as much work as its own products or more: how long that takes by itself stands
// in a column of its own.
//
//	go run ./bench/conv [-time 200ms]
//	OPMETER_CPU=avx2 go run ./bench/conv
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/opmeter/opmeter/bench/rates"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/conv"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
	"github.com/opmeter/opmeter/internal/kernel/quantise"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// square is a convolution with an output of size by size and a window of kn by kn.
type square struct {
	kind                      string
	in, out, size, kn, stride int
	groups                    int // 0 for one, and for depthwise convolutions
}

// layer is a convolution whose window may have gaps, or be a line or a column of its square.
type layer struct {
	square
	dil    int    // 0 for none
	window string // "line" or "column" of the square, which it is without
}

var layers = []square{
	{"1×1", 16, 96, 112, 1, 1, 0},
	{"1×1", 64, 256, 56, 1, 1, 0},
	{"1×1", 256, 64, 56, 1, 1, 0},
	{"1×1", 128, 512, 28, 1, 1, 0},
	{"1×1", 512, 512, 14, 1, 1, 0},
	{"1×1", 1024, 1024, 7, 1, 1, 0},
	{"1×1 stride 2", 256, 512, 28, 1, 2, 0},
	{"3×3", 64, 64, 56, 3, 1, 0},
	{"3×3", 128, 128, 28, 3, 1, 0},
	{"3×3", 256, 256, 14, 3, 1, 0},
	{"3×3", 512, 512, 7, 3, 1, 0},
	{"3×3 stride 2", 128, 128, 28, 3, 2, 0},
	{"3×3 first", 3, 32, 112, 3, 2, 0},
	{"7×7 first", 3, 64, 112, 7, 2, 0},
	{"3×3 groups of 4", 128, 128, 56, 3, 1, 32},
	{"3×3 groups of 8", 256, 256, 28, 3, 1, 32},
	{"3×3 groups of 16", 64, 64, 56, 3, 2, 4},
	{"3×3 groups of 16", 320, 320, 14, 3, 1, 20},
	{"3×3 groups of 16", 784, 784, 7, 3, 2, 49},
	{"3×3 groups of 24", 216, 216, 28, 3, 1, 9},
	{"3×3 groups of 32", 512, 512, 8, 3, 2, 16},
	{"3×3 groups of 64", 256, 256, 28, 3, 1, 4},
	{"1×1 groups of 60", 240, 240, 28, 1, 1, 4},
	{"depthwise 3×3", 32, 32, 112, 3, 1, 0},
	{"depthwise 3×3", 144, 144, 56, 3, 1, 0},
	{"depthwise 3×3", 512, 512, 14, 3, 1, 0},
	{"depthwise 3×3 stride 2", 96, 96, 56, 3, 2, 0},
	{"depthwise 5×5", 240, 240, 28, 5, 1, 0},
	{"depthwise 5×5", 672, 672, 14, 5, 1, 0},
}

// rare are shapes that no list of layers has.
var rare = []layer{
	{square: square{"1×1", 8, 24, 97, 1, 1, 0}},
	{square: square{"1×1", 24, 48, 61, 1, 1, 0}},
	{square: square{"1×1", 48, 8, 75, 1, 1, 0}},
	{square: square{"1×1", 40, 17, 33, 1, 1, 0}},
	{square: square{"1×1", 32, 192, 56, 1, 1, 0}},
	{square: square{"1×1 stride 2", 48, 96, 23, 1, 2, 0}},
	{square: square{"3×3", 3, 16, 65, 3, 1, 0}},
	{square: square{"3×3", 12, 20, 45, 3, 1, 0}},
	{square: square{"3×3", 24, 24, 27, 3, 1, 0}},
	{square: square{"3×3 stride 2", 8, 24, 51, 3, 2, 0}},
	{square: square{"3×3 stride 2", 24, 40, 19, 3, 2, 0}},
	{square: square{"3×3", 16, 32, 33, 3, 1, 0}, dil: 2},
	{square: square{"5×5", 6, 16, 29, 5, 1, 0}},
	{square: square{"5×5 stride 2", 16, 24, 31, 5, 2, 0}},
	{square: square{"7×7 stride 2", 3, 24, 80, 7, 2, 0}},
	{square: square{"1×7", 128, 128, 17, 7, 1, 0}, window: "line"},
	{square: square{"7×1", 128, 192, 17, 7, 1, 0}, window: "column"},
	{square: square{"1×3", 16, 16, 64, 3, 1, 0}, window: "line"},
	{square: square{"3×1", 24, 24, 50, 3, 1, 0}, window: "column"},
	{square: square{"depthwise 1×5", 64, 64, 40, 5, 1, 0}, window: "line"},
	{square: square{"depthwise 3×1", 96, 96, 40, 3, 1, 0}, window: "column"},
	{square: square{"depthwise 3×3", 40, 40, 37, 3, 1, 0}},
	{square: square{"depthwise 3×3", 480, 480, 14, 3, 1, 0}},
	{square: square{"depthwise 3×3", 496, 496, 14, 3, 1, 0}},
	{square: square{"depthwise 3×3", 528, 528, 14, 3, 1, 0}},
	{square: square{"depthwise 3×3", 1024, 1024, 7, 3, 1, 0}},
	{square: square{"depthwise 3×3", 256, 256, 28, 3, 1, 0}},
	{square: square{"depthwise 3×3 stride 2", 576, 576, 14, 3, 2, 0}},
	{square: square{"depthwise 5×5 stride 2", 72, 72, 29, 5, 2, 0}},
	{square: square{"depthwise 7×7", 56, 56, 21, 7, 1, 0}},
	{square: square{"depthwise 7×7 stride 2", 96, 96, 28, 7, 2, 0}},
	{square: square{"depthwise 3×3 twofold", 48, 96, 35, 3, 1, 0}},
	{square: square{"depthwise 3×3 threefold", 20, 60, 28, 3, 1, 0}},
	{square: square{"depthwise 5×5 fourfold", 16, 64, 40, 5, 1, 0}},
	{square: square{"depthwise 3×3 stride 2 twofold", 32, 64, 48, 3, 2, 0}},
	{square: square{"depthwise 3×3 eightfold", 3, 24, 56, 3, 1, 0}},
	{square: square{"depthwise 3×3 gaps", 64, 64, 33, 3, 1, 0}, dil: 2},
}

// kinds are the numbers and layouts; size is that of a number in bytes.
var kinds = []struct {
	name string
	of   rates.Products
	size int
	make func(l layer) func()
}{
	{"float32 NCHW", rates.Fused, 4, layer.planes},
	{"float32 NHWC", rates.Exact, 4, layer.lines},
	{"int8 NHWC", rates.Ints, 1, layer.codes},
}

func main() {
	each := flag.Duration("time", 200*time.Millisecond, "how long each is measured")
	more := flag.Bool("rare", false, "measure shapes that no list has")
	only := flag.String("only", "", "measure those `kinds` alone whose line begins so, with kind, channels and output parted by blanks")
	numbers := flag.String("numbers", "", "measure these `numbers` alone, such as \"float32 NHWC\"")
	flag.Parse()
	all := rare
	if !*more {
		all = nil
		for _, l := range layers {
			all = append(all, layer{square: l})
		}
	}
	if err := simd.Refused(); err != nil {
		fmt.Fprintln(os.Stderr, "conv:", err)
		os.Exit(1)
	}
	fmt.Printf("set %s, one thread\n", simd.Current())
	t := rates.NewTable("kind\tchannels\toutput\tnumbers\tms\tGOP/s\tlimit ms\tby\tof it\tquantising ms\tspread")
	for _, k := range kinds {
		if !strings.HasPrefix(k.name, *numbers) {
			continue
		}
		peak, ops, ok := rates.Peak(k.of)
		for _, l := range all {
			if !strings.HasPrefix(fmt.Sprint(l.kind, " ", l.in, " ", l.out, " ", l.size), *only) {
				continue
			}
			s := l.shape()
			in, out := make([]byte, k.size*s.C*s.H*s.W), make([]byte, k.size*s.OC*s.OH*s.OW)
			work := []func(){k.make(l), func() { move(out, in) }}
			if ok {
				work = append(work, peak)
			}
			if k.of == rates.Ints {
				work = append(work, quantising(s.OC*s.OH*s.OW))
			}
			times := rates.Beside(*each, work...)
			took := times[0].Median
			n := 2 * float64(s.OC*s.OH*s.OW*s.KH*s.KW)
			if !l.depthwise() {
				n *= float64(s.C / s.Groups)
			}
			limit, by := times[1].Median, "copying"
			if ok {
				if p := n / (ops / times[2].Median); p > limit {
					limit, by = p, "products"
				}
			}
			quantised := ""
			if k.of == rates.Ints {
				quantised = fmt.Sprintf("%.3f", 1e3*times[len(times)-1].Median)
			}
			t.Line("%s\t%d → %d\t%d²\t%s\t%.3f\t%.1f\t%.3f\t%s\t%.0f %%\t%s\t%.1f %%", l.kind, l.in, l.out, l.size, k.name,
				1e3*took, n/took/1e9, 1e3*limit, by, 100*limit/took, quantised, 100*times[0].Spread)
		}
	}
	t.End()
}

func (l layer) depthwise() bool { return len(l.kind) > 9 && l.kind[:9] == "depthwise" }

func (l layer) shape() conv.Shape {
	s := conv.Shape{
		N: 1, C: l.in, H: l.size * l.stride, W: l.size * l.stride, OC: l.out, OH: l.size, OW: l.size, KH: l.kn, KW: l.kn,
		StrideH: l.stride, StrideW: l.stride, DilH: 1, DilW: 1, PadT: l.kn / 2, PadL: l.kn / 2, Groups: max(1, l.groups),
	}
	if l.depthwise() {
		s.Groups = l.in
	}
	if l.dil > 0 {
		s.DilH, s.DilW, s.PadT, s.PadL = l.dil, l.dil, l.dil*s.PadT, l.dil*s.PadL
	}
	switch l.window {
	case "line":
		s.KH, s.PadT = 1, 0
	case "column":
		s.KW, s.PadL = 1, 0
	}
	return s
}

// move reads all of in and writes all of out.
func move(out, in []byte) {
	n := copy(out, in)
	for from := n; from < len(in); from += copy(out, in[from:]) {
		// The rest is read as well.
	}
	for at := n; at < len(out); at += copy(out[at:], in) {
		// The rest is written as well.
	}
}

func (l layer) planes() func() { return l.floats(conv.NewNCHW) }

func (l layer) lines() func() { return l.floats(conv.NewNHWC) }

func (l layer) floats(build func(s conv.Shape, w, bias []float32, act activation.Clamp) *conv.Float32) func() {
	s := l.shape()
	x, y := numbers(s.C*s.H*s.W), make([]float32, s.OC*s.OH*s.OW)
	c := build(s, numbers(s.OC*s.C/s.Groups*s.KH*s.KW), numbers(s.OC), activation.Clamp{On: true, Min: 0, Max: 6})
	return func() { c.Run(nil, x, y) }
}

// codes are 8-bit numbers as TFLite has them.
func (l layer) codes() func() {
	s := l.shape()
	x, w, y := make([]int8, s.C*s.H*s.W), make([]int16, s.OC*s.C/s.Groups*s.KH*s.KW), make([]int8, s.OC*s.OH*s.OW)
	for i := range x {
		x[i] = int8(i * 31)
	}
	for i := range w {
		w[i] = int16(int8(i*37%255 - 127))
	}
	q := scales(s.OC)
	if l.depthwise() {
		c := conv.NewDepthwiseInt8[int8](s, w, -3, q)
		return func() { c.Run(nil, x, y) }
	}
	c := conv.NewInt8[int8](s, w, 0, -3, q)
	return func() { c.Run(nil, x, y) }
}

// scales are of channels with a ReLU6, as TFLite has it: the zero point is the least number.
func scales(n int) quantise.Requant {
	q := quantise.Requant{Zero: -128, Min: -128, Max: 127}
	for range n {
		q.Mul = append(q.Mul, fixed.Multiplier{M: 1<<30 + 12345, Shift: -8})
		q.Bias = append(q.Bias, 100)
	}
	return q
}

// quantising quantises n sums, from the first-level cache and to it.
func quantising(n int) func() {
	const channels, near = 64, 1 << 12
	q := scales(channels)
	q.SetSteps(9, 0)
	sums, y := make([]int32, near), make([]int8, near)
	return func() {
		for left := n; left > 0; left -= near {
			quantise.RequantRows(nil, y[:min(left, near)], sums, channels, &q)
		}
	}
}

func numbers(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i%7+1) / 8
	}
	return v
}
