// Command sparse measures what leaving out zeros gains: layers of MobileNet, ResNet-50
// and BERT with 50 to 95 % of their weights zero, single ones or in blocks of four
// neighbouring outputs, against the same layers without zeros, in the same turns.
//
//	go run ./bench/sparse [-time 200ms] [-threads 1]
//
// Where leaving them out gains nothing, the engine computes with the zeros: the speed-up
// is 1 then, and the kernel the dense one.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/opmeter/opmeter/bench/rates"
	"github.com/opmeter/opmeter/internal/kernel"
	"github.com/opmeter/opmeter/internal/kernel/activation"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/workers"
)

// layer is a convolution, or a product where Size is 0.
type layer struct {
	name              string
	in, out, size, kn int // channels, height and width of the output, of the kernel
	stride            int
}

var layers = []layer{
	{"MobileNet 1×1, 56²", 64, 128, 56, 1, 1},
	{"MobileNet 1×1, 28²", 128, 128, 28, 1, 1},
	{"MobileNet 1×1, 14²", 512, 512, 14, 1, 1},
	{"MobileNet 1×1, 7²", 1024, 1024, 7, 1, 1},
	{"ResNet-50 1×1, 56²", 64, 256, 56, 1, 1},
	{"ResNet-50 3×3, 56²", 64, 64, 56, 3, 1},
	{"ResNet-50 3×3, 28²", 128, 128, 28, 3, 1},
	{"ResNet-50 3×3, 14²", 256, 256, 14, 3, 1},
	{"ResNet-50 3×3, 7²", 512, 512, 7, 3, 1},
	{"BERT 768×768, 128 rows", 768, 768, 0, 0, 0},
	{"BERT 3072×768, 128 rows", 768, 3072, 0, 0, 0},
	{"BERT 768×3072, 128 rows", 3072, 768, 0, 0, 0},
}

const rows = 128 // of a product

func main() {
	each := flag.Duration("time", 200*time.Millisecond, "how long each is measured")
	threads := flag.Int("threads", 1, "number of threads")
	flag.Parse()
	if err := simd.Refused(); err != nil {
		fmt.Fprintln(os.Stderr, "sparse:", err)
		os.Exit(1)
	}
	pool := workers.New(*threads, nil)
	defer pool.Close()
	levels := []float64{.5, .6, .7, .8, .9, .95}
	fmt.Printf("set %s, threads %d: time of the layer without zeros, and how many times faster it is with a share of zeros\n", simd.Current(), *threads)
	heading := "layer\tnumbers\tlayout\tzeros\tdense ms"
	for _, l := range levels {
		heading += fmt.Sprintf("\t%.0f %%", 100*l)
	}
	t := rates.NewTable(heading)
	for _, l := range layers {
		layouts := []string{"NCHW", "NHWC"}
		if l.size == 0 {
			layouts = []string{"rows"}
		}
		for _, layout := range layouts {
			for _, block := range []int{1, simd.SparseRows} {
				work := []func(){l.make(pool, layout, 0, 1)}
				for _, share := range levels {
					work = append(work, l.make(pool, layout, share, block))
				}
				times := rates.Beside(*each, work...)
				gains := ""
				for _, v := range times[1:] {
					gains += fmt.Sprintf("\t%.2f", times[0].Median/v.Median)
				}
				t.Line("%s\tfloat32\t%s\t%s\t%.3f%s", l.name, layout, structures[block], 1e3*times[0].Median, gains)
			}
		}
	}
	t.End()
	fmt.Println(strings.TrimSpace("structures: single weights; blocks of 4 outputs at the same input"))
}

var structures = map[int]string{1: "single", simd.SparseRows: "4×1"}

// make returns a run of the layer with a share of zeros among its weights.
func (l layer) make(pool *workers.Pool, layout string, share float64, block int) func() {
	r := rand.New(rand.NewPCG(1, 2))
	k := l.in * max(1, l.kn*l.kn)
	w := make([]float32, l.out*k) // a row for each output
	for o := 0; o < l.out; o += block {
		for i := range k {
			zero := r.Float64() < share
			for j := range block {
				if w[(o+j)*k+i] = float32(r.NormFloat64()); zero {
					w[(o+j)*k+i] = 0
				}
			}
		}
	}
	if l.size == 0 {
		x, y := values(r, rows*l.in), make([]float32, rows*l.out)
		p := kernel.PackB(l.in, l.out, w, 0, true)
		return func() { kernel.GemmPacked(pool, kernel.GemmParams{M: rows, N: l.out, K: l.in}, x, p, y) }
	}
	s := kernel.ConvShape{
		N: 1, C: l.in, H: l.size * l.stride, W: l.size * l.stride, OC: l.out, OH: l.size, OW: l.size, KH: l.kn, KW: l.kn,
		StrideH: l.stride, StrideW: l.stride, DilH: 1, DilW: 1, PadT: l.kn / 2, PadL: l.kn / 2,
	}
	x, y := values(r, s.C*s.H*s.W), make([]float32, s.OC*s.OH*s.OW)
	build := kernel.NewConvNCHW
	if layout == "NHWC" {
		build = kernel.NewConvNHWC
	}
	c := build(s, w, nil, activation.Clamp{})
	return func() { c.Run(pool, x, y) }
}

func values(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}
