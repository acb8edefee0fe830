package simd

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkTileVariants shows what each variant of the float32 GEMM tile gains. The metric "rows"
// is the time of the two smaller tiles that replace it in the best way, divided by its own;
// "columns" that of the next wider tile with a mask. Rounds are interleaved and the quickest of
// each counts.
//
//	go test ./internal/kernel/simd -run '^$' -bench TileVariants -benchtime 1x
func BenchmarkTileVariants(b *testing.B) {
	const k = 320
	for _, set := range Available() {
		defer Use(set)()
		f := FloatKernels()
		if f == nil {
			continue
		}
		for _, exact := range []bool{false, true} {
			of := &f.fused
			if exact {
				of = &f.exact
			}
			variants := []struct {
				name        string
				tile, wider []func(*Tile)
				width       int
			}{{"whole", of.whole, nil, 0}, {"half", of.half, of.whole, f.Half}, {"short", of.short, of.whole, f.Half + f.Half/2}, {"tiny", of.tiny, of.half, f.Half / 2}}
			for _, v := range variants {
				for rows := range v.tile {
					b.Run(fmt.Sprintf("%s/exact=%t/%s/rows=%d", set, exact, v.name, rows+1), func(b *testing.B) {
						x, y, z := make([]float32, (rows+1)*k), make([]float32, k*f.Cols), make([]float32, (rows+1)*f.Cols)
						run := func(tile []func(*Tile), masked bool, parts ...int) time.Duration {
							start := time.Now()
							for range 100 {
								at := 0
								for _, n := range parts {
									t := Tile{A: &x[at*k], RowA: 4 * k, StepA: 4, SegA: 4 * k, K: k, Segs: 1, B: &y[0], StepB: 4 * f.Cols, C: &z[at*f.Cols], RowC: 4 * f.Cols}
									if masked {
										t.setMask(v.width)
									}
									tile[n-1](&t)
									at += n
								}
							}
							return time.Since(start)
						}
						own, split, wide := time.Hour, time.Hour, time.Hour
						for b.Loop() {
							for range 30 {
								own = min(own, run(v.tile, false, rows+1))
								for n := 1; n <= (rows+1)/2; n++ {
									split = min(split, run(v.tile, false, rows+1-n, n))
								}
								if v.wider != nil {
									wide = min(wide, run(v.wider, true, rows+1))
								}
							}
						}
						if rows > 0 {
							b.ReportMetric(float64(split)/float64(own), "rows")
						}
						if v.wider != nil {
							b.ReportMetric(float64(wide)/float64(own), "columns")
						}
						b.ReportMetric(0, "ns/op")
					})
				}
			}
		}
	}
}
