// Command gemm measures matrix multiplications with packed weights in one thread against
// what the processor can do when nothing but products and sums has to be done, which is
// measured beside them in the same turns.
//
//	go run ./bench/gemm [-time 200ms] [-numbers int8]
//	OPMETER_CPU=avx2 go run ./bench/gemm
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/opmeter/opmeter/bench/rates"
	"github.com/opmeter/opmeter/internal/kernel/gemm"
	"github.com/opmeter/opmeter/internal/kernel/simd"
)

// shapes are rows, columns and steps: squares, and the layers of BERT-base and ResNet-50.
var shapes = [][3]int{
	{64, 64, 64},
	{128, 128, 128},
	{256, 256, 256},
	{384, 384, 384},
	{512, 512, 512},
	{768, 768, 768},
	{1024, 1024, 1024},
	{1536, 1536, 1536},
	{128, 768, 768},
	{128, 3072, 768},
	{128, 768, 3072},
	{1, 768, 768},
	{1, 1000, 2048},
}

func main() {
	each := flag.Duration("time", 200*time.Millisecond, "how long each is measured")
	numbers := flag.String("numbers", "", "only these: float32, float16, bfloat16 or int8")
	flag.Parse()
	if err := simd.Refused(); err != nil {
		fmt.Fprintln(os.Stderr, "gemm:", err)
		os.Exit(1)
	}
	fmt.Printf("set %s, one thread\n", simd.Current())
	t := rates.NewTable("rows\tcolumns\tsteps\tnumbers\tGOP/s\tpeak\tof it\tspread")
	for _, kind := range []struct {
		name string
		of   rates.Products
		make func(m, n, k int) func()
	}{
		{"float32", rates.Fused, func(m, n, k int) func() { return floats(m, n, k, 24) }},
		{"float16", rates.Fused, func(m, n, k int) func() { return floats(m, n, k, 11) }},
		{"bfloat16", rates.Fused, func(m, n, k int) func() { return floats(m, n, k, 8) }},
		{"int8", rates.Ints, bytes},
	} {
		name := kind.name
		if *numbers != "" && name != *numbers {
			continue
		}
		peak, ops, ok := rates.Peak(kind.of)
		for _, s := range shapes {
			m, n, k := s[0], s[1], s[2]
			work := []func(){kind.make(m, n, k)}
			if ok {
				work = append(work, peak)
			}
			times := rates.Beside(*each, work...)
			rate := 2 * float64(m*n*k) / times[0].Median / 1e9
			if !ok {
				t.Line("%d\t%d\t%d\t%s\t%.1f\t-\t-\t%.1f %%", m, n, k, name, rate, 100*times[0].Spread)
				continue
			}
			most := ops / times[1].Median / 1e9
			t.Line("%d\t%d\t%d\t%s\t%.1f\t%.1f\t%.0f %%\t%.1f %%", m, n, k, name, rate, most, 100*rate/most, 100*times[0].Spread)
		}
	}
	t.End()
}

// floats multiplies numbers of float32 of so many bits: those of float16 have 11, of bfloat16 8.
func floats(m, n, k, bits int) func() {
	a, b, c, state := make([]float32, m*k), make([]float32, n*k), make([]float32, m*n), uint32(1)
	for _, v := range [][]float32{a, b} {
		for i := range v {
			state = state*1664525 + 1013904223
			v[i] = float32(int32(state)>>(32-bits)) / float32(int(1)<<(bits-1))
		}
	}
	p := gemm.PackB(k, n, b, 0, false)
	return func() { gemm.MultiplyPacked(nil, gemm.Params{M: m, N: n, K: k}, a, p, c) }
}

// bytes gives sums of 32 bits, as ONNX's MatMulInteger does.
func bytes(m, n, k int) func() {
	x, w, y := make([]uint8, m*k), make([]int32, n*k), make([]int32, m*n)
	for i := range x {
		x[i] = uint8(i * 31)
	}
	for i := range w {
		w[i] = int32(i*37%255) - 127
	}
	p, tables := gemm.NewPackedInt8(n, k), make([]gemm.ByteTable, 1)
	p.Fill(w, k, 1)
	tables[0].Fill(false, 128)
	return func() { gemm.MultiplyInt8(nil, m, x, tables, p, y) }
}
