package move

import (
	"fmt"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
)

// TestPieces checks that parts are joined along an axis and split again unchanged.
func TestPieces(t *testing.T) {
	t.Parallel()
	pool := workers.New(2, nil)
	defer pool.Close()
	bytes := func(v []uint8) Slice { return Slice{Bytes: v, Width: 1} }
	for _, c := range []struct {
		whole []int
		axis  int
		sizes []int
	}{
		{[]int{6}, 0, []int{1, 3, 2}},
		{[]int{5, 4}, 0, []int{2, 3}},
		{[]int{4, 5}, 1, []int{2, 0, 3}},
		{[]int{2, 5, 3}, 1, []int{4, 1}},
		{[]int{2, 3, 4}, 2, []int{4}},
		{[]int{300, 10, 30}, 1, []int{3, 7}},
	} {
		outer, inner, n := 1, 1, 1
		for i, d := range c.whole {
			n *= d
			if i < c.axis {
				outer *= d
			} else if i > c.axis {
				inner *= d
			}
		}
		row := c.whole[c.axis] * inner
		joined, want := make([]uint8, n), make([]uint8, n)
		in, out := Pieces(c.whole, c.axis, c.sizes, true), Pieces(c.whole, c.axis, c.sizes, false)
		at := 0
		var parts [][]uint8
		for i, s := range c.sizes {
			part := make([]uint8, outer*s*inner)
			for k := range part {
				part[k] = uint8(k*7 + 31*i + 1)
				want[k/max(1, s*inner)*row+at+k%max(1, s*inner)] = part[k]
			}
			parts = append(parts, part)
			at += s * inner
			in[i].Run(pool, bytes(joined), bytes(part))
		}
		if !slices.Equal(joined, want) {
			t.Errorf("%v along %d of %v are joined otherwise", c.sizes, c.axis, c.whole)
		}
		for i, part := range parts {
			got := make([]uint8, len(part))
			if out[i].Run(pool, bytes(got), bytes(joined)); !slices.Equal(got, part) {
				t.Errorf("part %d of %v along %d of %v is another", i, c.sizes, c.axis, c.whole)
			}
		}
	}
}

// TestPickSteps chooses between rows and single elements by a row or one condition.
func TestPickSteps(t *testing.T) {
	t.Parallel()
	x, y := []uint8{1, 2, 3, 4, 5}, []uint8{10, 20, 30, 40, 50}
	for _, cond := range [][]uint8{{1, 0, 0, 1, 0}, {0, 1, 1, 0, 1}, {7, 0, 255, 0, 1}} {
		for mask := range 8 {
			step := [3]int{mask & 1, mask >> 1 & 1, mask >> 2 & 1}
			for n := range 6 {
				got, want := make([]uint8, n), make([]uint8, n)
				for i := range want {
					if want[i] = y[i*step[2]]; cond[i*step[0]] != 0 {
						want[i] = x[i*step[1]]
					}
				}
				Pick(Slice{Bytes: got, Width: 1}, Slice{Bytes: x, Width: 1}, Slice{Bytes: y, Width: 1}, cond, step)
				if !slices.Equal(got, want) {
					t.Errorf("condition %v, steps %v: %v, want %v", cond, step, got, want)
				}
			}
		}
	}
}

// TestWidths checks that every element width is copied alike, strings included.
func TestWidths(t *testing.T) {
	t.Parallel()
	text := []string{"a", "b", "c", "d", "e", "f"}
	for _, width := range []int{0, 1, 2, 4, 8, 16} {
		src, dst, want := Slice{Width: width}, Slice{Width: width}, Slice{Width: width}
		if width == 0 {
			src.Strings, dst.Strings, want.Strings = text, make([]string, 6), []string{"d", "e", "f", "a", "b", "c"}
		} else {
			for i := range 6 * width {
				src.Bytes = append(src.Bytes, uint8(i+1))
			}
			dst.Bytes, want.Bytes = make([]uint8, 6*width), append(slices.Clone(src.Bytes[3*width:]), src.Bytes[:3*width]...)
		}
		if src.Len() != 6 || src.From(2).Len() != 4 || src.To(5).Len() != 5 || src.From(2).To(1).Len() != 1 {
			t.Errorf("%d bytes: %d elements, %d from the second", width, src.Len(), src.From(2).Len())
		}
		New([]int{3}, []int{1}, []int{1}, 3, 0).Run(nil, dst, src)
		New([]int{3}, []int{1}, []int{1}, 0, 3).Run(nil, dst, src)
		if fmt.Sprint(dst) != fmt.Sprint(want) {
			t.Errorf("%d bytes: %v, want %v", width, dst, want)
		}
	}
	defer func() {
		if e := recover(); e != "move: elements of 3 bytes" {
			t.Errorf("elements of three bytes: %v", e)
		}
	}()
	Fill(nil, Slice{Bytes: make([]uint8, 3), Width: 3}, Slice{Bytes: make([]uint8, 3), Width: 3})
}

func TestSetRows(t *testing.T) {
	t.Parallel()
	const rows, gap = 3, 2
	for n := range 80 {
		got := make([]int32, rows*(n+gap))
		setRows(got, rows, n+gap, n, 7)
		for i, v := range got {
			if want := int32(7); (v == want) != (i%(n+gap) < n) {
				t.Fatalf("%d elements a row: element %d is %d", n, i, v)
			}
		}
	}
}
