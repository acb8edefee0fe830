package report

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/opmeter/opmeter/internal/report/xlsx"
	"github.com/opmeter/opmeter/profile"
)

// TestExplained demands that every column of the workbook is explained.
func TestExplained(t *testing.T) {
	t.Parallel()
	for _, c := range columns(fixed()) {
		if c.key != "" && c.key != "layers" && c.only == "" && xlsx.Meaning[c.key] == "" && (c.quantity == nil || c.quantity.Doc == "") {
			t.Errorf("column %s has no explanation", c.key)
		}
	}
}

// large makes a profile of n layers with so many samples each.
func large(n, samples int) *profile.Profile {
	p := fixed()
	p.Layers = nil
	row := make([]float64, samples) // layers may share it: reports do not write to it
	for i := range n {
		l := product([]string{"MatMul", "Add", "Softmax", "Gemm"}[i%4], 1e-5*float64(1+i%7), 0.1, 64*int64(1+i%5), 64)
		l.Index, l.Name, l.Samples = int64(i), fmt.Sprintf("encoder/layer_%d/attention/output", i), row
		p.Layers = append(p.Layers, l)
	}
	return p
}

// BenchmarkWorkbook writes 1,000 layers with 10,000 samples each. The extra metric
// is the memory taken from the system meanwhile, at most.
func BenchmarkWorkbook(b *testing.B) {
	p := large(1000, 10_000)
	for _, format := range []string{"xlsx", "neural-engine"} {
		b.Run(format, func(b *testing.B) {
			b.ReportAllocs()
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for b.Loop() {
				if err := Write(io.Discard, p, format, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.Sys-before.Sys)/1e6, "MB-sys")
		})
	}
}
