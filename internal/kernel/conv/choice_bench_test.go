package conv

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/kernel/activation"
)

// choices are shapes of common networks: input and output channels, output positions of a side,
// window, stride.
var choices = [][5]int{
	{3, 32, 112, 3, 2},
	{3, 64, 112, 7, 2},
	{3, 16, 64, 3, 1},
	{1, 8, 25, 3, 1},
	{8, 16, 48, 1, 1},
	{16, 32, 48, 3, 2},
	{16, 96, 112, 1, 1},
	{24, 144, 56, 1, 1},
	{144, 24, 56, 1, 1},
	{32, 32, 32, 3, 1},
	{16, 16, 32, 3, 1},
	{64, 64, 8, 3, 1},
	{64, 64, 56, 3, 1},
	{64, 256, 56, 1, 1},
	{256, 64, 56, 1, 1},
	{128, 128, 28, 3, 1},
	{128, 128, 28, 3, 2},
	{128, 512, 28, 1, 1},
	{256, 512, 28, 1, 2},
	{256, 256, 14, 3, 1},
	{512, 512, 14, 1, 1},
	{512, 512, 7, 3, 1},
	{1024, 1024, 7, 1, 1},
	{320, 1280, 7, 1, 1},
	{24, 24, 80, 3, 1},
	{48, 12, 40, 3, 1},
	{64, 6, 30, 3, 1},
	{32, 1, 80, 3, 1},
	{32, 64, 40, 5, 1},
	{96, 96, 10, 3, 1},
	{48, 48, 20, 3, 1},
}

// BenchmarkChoices measures the algorithms that apply to shapes, interleaved, and reports how much
// longer the chosen ones take than the fastest ones.
func BenchmarkChoices(b *testing.B) {
	for range b.N {
		all, n := 0.0, 0.0
		for _, nhwc := range []bool{false, true} {
			for _, d := range choices {
				k := d[3]
				s := Shape{N: 1, C: d[0], H: d[2] * d[4], W: d[2] * d[4], OC: d[1], OH: d[2], OW: d[2], KH: k, KW: k, StrideH: d[4], StrideW: d[4], DilH: 1, DilW: 1, PadT: k / 2, PadL: k / 2, Groups: 1}
				w := make([]float32, s.OC*s.C*k*k)
				for i := range w {
					w[i] = float32(i%7+1) / 8
				}
				build := NewNCHW
				if nhwc {
					build = NewNHWC
				}
				chosen := build(s, w, nil, activation.Clamp{})
				ways := map[string]*Float32{"chosen " + chosen.algorithm.name: chosen}
				force := func(name string, set func(c *Float32) bool) {
					c := build(s, w, nil, activation.Clamp{})
					if c.algorithm.name != name && set(c) {
						ways[name] = c
					}
				}
				for _, a := range algorithms {
					force(a.name, func(c *Float32) bool {
						switch a.name {
						case "Winograd F(4×4, 3×3)":
							if c.winograd4 == nil && c.usesPlanes() {
								c.winograd4 = c.newWinograd4()
							}
							if c.winograd4 == nil {
								return false
							}
						case "output pixels as columns":
							old := pixelColumnGain
							pixelColumnGain = math.Inf(1)
							defer func() { pixelColumnGain = old }()
							if c.pixelColumns == nil && !c.planPixelColumns() {
								return false
							}
						case "split bfloat16":
							return false
						default:
							if !a.plan(c) {
								return false
							}
						}
						c.dense = a
						c.SetWeights(w, nil)
						return c.algorithm == a
					})
				}
				force("im2row", func(c *Float32) bool {
					if !c.usesPlanes() {
						return false
					}
					c.dense = algorithmNamed(b, "gathered panels")
					c.SetWeights(w, nil)
					c.packIm2row(w)
					return true
				})
				x, y := make([]float32, s.C*s.H*s.W), make([]float32, s.OC*s.OH*s.OW)
				for i := range x {
					x[i] = float32(i % 5)
				}
				least := map[string]time.Duration{}
				for range 15 {
					for name, c := range ways {
						c.Run(nil, x, y)
						t := time.Now()
						c.Run(nil, x, y)
						if e := time.Since(t); least[name] == 0 || e < least[name] {
							least[name] = e
						}
					}
				}
				best, mine, text := time.Hour, time.Duration(0), ""
				for name, t := range least {
					best = min(best, t)
					text += fmt.Sprintf("  %s %.3f", name, 1e3*t.Seconds())
					if ways[name] == chosen {
						mine = t
					}
				}
				r := mine.Seconds() / best.Seconds()
				if all += math.Log(r); r > 1.05 {
					b.Logf("%v NHWC %v: %.2f%s", d, nhwc, r, text)
				}
				n++
			}
		}
		b.ReportMetric(math.Exp(all/n), "chosen/fastest")
	}
}
