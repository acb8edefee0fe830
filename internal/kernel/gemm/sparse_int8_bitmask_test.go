package gemm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/simd"
	"github.com/opmeter/opmeter/internal/testing/kernels"
	"github.com/opmeter/opmeter/internal/testing/sets"
)

// TestBitmaskInt8 checks that a row times 8-bit bitmask weights has the sums of plain Go, for
// each zero point; likewise several rows.
func TestBitmaskInt8(t *testing.T) {
	sets.Every(t, func(t *testing.T, plain func(func())) {
		if simd.ExpandIntKernels() == nil {
			t.Skip("no kernels")
		}
		pool := workers.New(3, nil)
		defer pool.Close()
		r := rand.New(rand.NewPCG(9, 1))
		for range sets.Rounds(60) {
			k := 1 + r.IntN(700)
			n := bitmaskMin/k + 1 + r.IntN(90)
			m := 1
			if r.IntN(4) == 0 {
				m = 2 + r.IntN(3)
			}
			w, zeros := make([]int8, n*k), 0.65+0.4*r.Float64()
			for i := range w {
				if w[i] = int8(r.Uint32()); r.IntN(4) == 0 {
					w[i] = -128
				}
				if r.Float64() < zeros {
					w[i] = 0
				}
			}
			vec, elem := k, 1
			if r.IntN(2) == 0 {
				vec, elem = 1, n
			}
			x, signed := kernels.BytesOf(r, m*k), r.IntN(2) == 0
			tables := make([]ByteTable, []int{1, m}[r.IntN(2)])
			points := make([]int32, len(tables))
			for i := range points {
				points[i] = kernels.Value(uint8(r.Uint32()), signed)
			}
			product := func(expect bool) (y []int32, p *PackedInt8) {
				for i := range tables {
					tables[i].Fill(signed, points[i])
				}
				p = NewPackedInt8(n, k).SetRows(1, true)
				FillInt8(pool, p, w, 0, vec, elem)
				if expect {
					p = p.PrepareZero(&tables[0])
				}
				y = make([]int32, m*n)
				MultiplyInt8(pool, m, x, tables, p, y)
				return y, p
			}
			got, p := product(r.IntN(2) == 0)
			if p.bitmask == nil || p.Panels.Narrow != nil {
				t.Fatalf("%d by %d: zeros are kept", n, k)
			}
			var want []int32
			plain(func() { want, _ = product(false) })
			if !slices.Equal(got, want) {
				t.Fatalf("%d rows of %d by %d differ", m, k, n)
			}
		}
		// Weights with more than 8 bits, or few zeros, are not compressed.
		w := make([]int16, 300*300)
		w[7] = 300
		p := NewPackedInt8(300, 300).SetRows(1, true)
		if FillInt8(nil, p, w, 0, 300, 1); p.bitmask != nil {
			t.Error("16 bits have no list")
		}
		for i := range w {
			w[i] = 1
		}
		if FillInt8(nil, p, w, 0, 300, 1); p.bitmask != nil {
			t.Error("ones are listed")
		}
	})
}

// TestBitmaskInt8Allocate checks that runs only use pooled scratch memory.
func TestBitmaskInt8Allocate(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, which -short implies, drops pooled buffers")
	}
	if simd.ExpandIntKernels() == nil {
		t.Skip("no kernels")
	}
	pool := workers.New(1, nil)
	defer pool.Close()
	p, tables, x, y := NewPackedInt8(300, 400).SetRows(1, true), make([]ByteTable, 1), make([]uint8, 400), make([]int32, 300)
	w := make([]int8, 300*400)
	w[5] = 1
	FillInt8(pool, p, w, 0, 400, 1)
	tables[0].Fill(false, 3)
	if p = p.PrepareZero(&tables[0]); p.bitmask == nil {
		t.Fatal("zeros are kept")
	}
	MultiplyInt8(pool, 1, x, tables, p, y)
	if n := testing.AllocsPerRun(20, func() { MultiplyInt8(pool, 1, x, tables, p, y) }); n > 0.5 {
		t.Errorf("%v allocations a run", n)
	}
}
