package quantise

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/kernel/fixed"
)

// TestRequantOne checks (sum + bias)·m + zero within the limits.
func TestRequantOne(t *testing.T) {
	t.Parallel()
	half, quarter := fixed.FromReal(0.5), fixed.FromReal(0.25)
	for _, c := range []struct {
		q    Requant
		acc  int32
		ch   int
		want int32
	}{
		{Requant{Mul: []fixed.Multiplier{half}, Min: -128, Max: 127}, 10, 3, 5},
		{Requant{Mul: []fixed.Multiplier{half, quarter}, Min: -128, Max: 127}, 40, 1, 10},
		{Requant{Mul: []fixed.Multiplier{half, quarter}, Bias: []int32{4, 8}, Min: -128, Max: 127}, 40, 0, 22},
		{Requant{Mul: []fixed.Multiplier{half, quarter}, Bias: []int32{4, 8}, Zero: -3, Min: -128, Max: 127}, 40, 1, 9},
		{Requant{Mul: []fixed.Multiplier{half}, Zero: 100, Min: 0, Max: 120}, 60, 0, 120},
		{Requant{Mul: []fixed.Multiplier{half}, Zero: 100, Min: 90, Max: 120}, -60, 0, 90},
	} {
		if got := c.q.One(c.acc, c.ch); got != c.want {
			t.Errorf("%+v of channel %d: %d, want %d", c.q, c.ch, got, c.want)
		}
	}
	q := Requant{Mul: []fixed.Multiplier{half, quarter, half}, Bias: []int32{0, 4, 2}, Zero: 1, Min: -128, Max: 127}
	var sums []int32
	var want []int8
	for i := range 3000 {
		v := int32(i%37-18) * 4
		sums = append(sums, v)
		want = append(want, int8([]int32{v/2 + 1, (v+4)/4 + 1, (v+2)/2 + 1}[i%3]))
	}
	pool := workers.New(2, nil)
	defer pool.Close()
	y := make([]int8, len(sums))
	if RequantRows(pool, y, sums, 3, &q); !slices.Equal(y, want) {
		t.Errorf("rows %v, want %v", y[:9], want[:9])
	}
	RequantRows(pool, y[:0], nil, 0, &q) // no channels
}
