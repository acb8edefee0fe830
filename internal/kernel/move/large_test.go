package move

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/base/workers"
)

// TestLargePlans copies more than a thread's share between views of all kinds: dense, reversed,
// repeated, with gaps, transposed, with few rows and with few columns.
func TestLargePlans(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	src := make([]uint8, 1<<20)
	for i := range src {
		src[i] = uint8(r.Uint32())
	}
	for _, c := range []struct {
		name      string
		dims      []int
		dst, from []int
		to, at    int
	}{
		{"dense", []int{100000}, []int{1}, []int{1}, 0, 5},
		{"more, dense", []int{300000}, []int{1}, []int{1}, 0, 5},
		{"more rows with gaps", []int{1200, 250}, []int{260, 1}, []int{270, 1}, 4, 9},
		{"more short rows", []int{90000, 3}, []int{4, 1}, []int{5, 1}, 0, 1},
		{"more matrices", []int{30, 150, 60}, []int{9000, 60, 1}, []int{9000, 1, 150}, 0, 0},
		{"a few matrices of few rows", []int{2, 3, 50000}, []int{150000, 50000, 1}, []int{150000, 1, 3}, 0, 0},
		{"a large matrix", []int{900, 250}, []int{250, 1}, []int{1, 900}, 0, 0},
		{"one value", []int{100000}, []int{1}, []int{0}, 3, 7},
		{"every second", []int{100000}, []int{1}, []int{2}, 0, 1},
		{"into every second", []int{100000}, []int{2}, []int{1}, 1, 0},
		{"backwards", []int{100000}, []int{1}, []int{-1}, 0, 99999},
		{"written backwards", []int{100000}, []int{-1}, []int{1}, 99999, 2},
		{"gaps on both sides", []int{70000}, []int{3}, []int{2}, 2, 1},
		{"rows with gaps", []int{300, 250}, []int{260, 1}, []int{270, 1}, 4, 9},
		{"short rows", []int{30000, 3}, []int{4, 1}, []int{5, 1}, 0, 1},
		{"repeated rows", []int{300, 250}, []int{250, 1}, []int{0, 1}, 0, 0},
		{"repeated columns", []int{300, 250}, []int{250, 1}, []int{1, 0}, 0, 0},
		{"a matrix", []int{300, 250}, []int{250, 1}, []int{1, 300}, 0, 0},
		{"a matrix from its end", []int{40, 60}, []int{60, 1}, []int{1, -40}, 0, 2360},
		{"a matrix to its end", []int{40, 60}, []int{-60, 1}, []int{1, 40}, 2340, 0},
		{"a matrix with gaps", []int{257, 301}, []int{310, 1}, []int{1, 260}, 2, 3},
		{"few rows", []int{3, 30000}, []int{30000, 1}, []int{1, 3}, 0, 0},
		{"few columns", []int{30000, 3}, []int{3, 1}, []int{1, 30000}, 0, 0},
		{"eight rows", []int{8, 10000}, []int{10000, 1}, []int{1, 8}, 0, 0},
		{"eight columns", []int{10000, 8}, []int{8, 1}, []int{1, 10000}, 0, 0},
		{"some matrices", []int{3, 150, 170}, []int{25500, 170, 1}, []int{25500, 1, 150}, 0, 0},
		{"many matrices", []int{900, 10, 11}, []int{110, 11, 1}, []int{110, 1, 10}, 0, 0},
		{"axes in a circle", []int{50, 60, 30}, []int{1800, 30, 1}, []int{1, 1500, 50}, 0, 0},
		{"four axes", []int{9, 40, 10, 30}, []int{12000, 300, 30, 1}, []int{1, 9, 10800, 360}, 0, 0},
		{"axes of one", []int{1, 300, 1, 250}, []int{7, 250, 9, 1}, []int{5, 1, 3, 300}, 0, 0},
	} {
		n := c.to + 1
		for i, d := range c.dims {
			n += max(0, c.dst[i]) * (d - 1)
		}
		want := make([]uint8, n)
		at := make([]int, len(c.dims))
		for count := 0; ; count++ {
			d, s := c.to, c.at
			for i, v := range at {
				d, s = d+v*c.dst[i], s+v*c.from[i]
			}
			want[d] = src[s]
			i := len(at) - 1
			for ; i >= 0; i-- {
				if at[i]++; at[i] < c.dims[i] {
					break
				}
				at[i] = 0
			}
			if i < 0 {
				break
			}
		}
		for _, threads := range []int{1, 3} {
			pool := workers.New(threads, nil)
			p := New(c.dims, c.dst, c.from, c.to, c.at)
			for _, width := range []int{1, 2, 4} {
				got := make([]uint8, n*width)
				p.Run(pool, Slice{Bytes: got, Width: width}, Slice{Bytes: repeated(src, width), Width: width})
				if i := slices.IndexFunc(seq(n*width), func(i int) bool { return got[i] != want[i/width] }); i >= 0 {
					t.Fatalf("%s, %d threads, %d bytes: byte %d is %d, want %d", c.name, threads, width, i, got[i], want[i/width])
				}
			}
			pool.Close()
		}
	}
}

// repeated contains each byte several times.
func repeated(v []uint8, n int) []uint8 {
	out := make([]uint8, 0, len(v)*n)
	for _, b := range v {
		for range n {
			out = append(out, b)
		}
	}
	return out
}

// TestView checks views with a dense destination.
func TestView(t *testing.T) {
	t.Parallel()
	src := []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for _, c := range []struct {
		dims, from []int
		at         int
		want       []uint8
	}{
		{[]int{2, 2, 2}, []int{6, 3, 1}, 1, []uint8{1, 2, 4, 5, 7, 8, 10, 11}},
		{[]int{3}, []int{-2}, 5, []uint8{5, 3, 1}},
		{nil, nil, 4, []uint8{4}},
		{[]int{0, 3}, []int{1, 1}, 0, nil},
	} {
		p := View(c.dims, c.from, c.at)
		got := make([]uint8, p.Len())
		p.Run(nil, Slice{Bytes: got, Width: 1}, Slice{Bytes: src, Width: 1})
		if string(got) != string(c.want) {
			t.Errorf("%v by %v from %d: %v, want %v", c.dims, c.from, c.at, got, c.want)
		}
	}
}

// Blocks and maps of more than a thread's share.
func TestLargeBlocks(t *testing.T) {
	t.Parallel()
	for _, threads := range []int{1, 3} {
		pool := workers.New(threads, nil)
		defer pool.Close()
		for _, n := range []int{1, 3, 700} {
			const rows, blocks = 5, 40
			count := 300000/n/rows + 1
			src, at := make([]uint8, rows*blocks*n), make([]int, count)
			for i := range src {
				src[i] = uint8(i*31 + i/256)
			}
			for i := range at {
				at[i] = i * 7 % blocks
			}
			got := make([]uint8, rows*count*n)
			b := Blocks{Rows: rows, SrcRow: blocks * n, At: at, Len: n}
			b.Gather(pool, Slice{Bytes: got, Width: 1}, Slice{Bytes: src, Width: 1})
			for i, v := range got {
				row, block, k := i/n/count, i/n%count, i%n
				if want := src[(row*blocks+at[block])*n+k]; v != want {
					t.Fatalf("%d threads, blocks of %d: element %d is %d, want %d", threads, n, i, v, want)
				}
			}
		}
		dst := make([]uint8, 2*parallelBytes+5)
		Fill(pool, Slice{Bytes: dst, Width: 1}, Slice{Bytes: []uint8{9}, Width: 1})
		for i, v := range dst {
			if v != 9 {
				t.Fatalf("element %d is %d after filling", i, v)
			}
		}
		// Padding on all sides of an outer and an inner axis.
		src := make([]uint8, 200*300)
		for i := range src {
			src[i] = uint8(i*13%251 + 1)
		}
		axis := func(n, pad int) (a []int) {
			for i := -pad; i < n+pad; i++ {
				if i < 0 || i >= n {
					a = append(a, -1)
				} else {
					a = append(a, i)
				}
			}
			return a
		}
		m := NewMaps([]int{200, 300}, [][]int{axis(200, 4), axis(300, 6)})
		got := make([]uint8, 208*312)
		m.Run(pool, Slice{Bytes: got, Width: 1}, Slice{Bytes: src, Width: 1}, Slice{Bytes: []uint8{0}, Width: 1})
		for i, v := range got {
			y, x, want := i/312-4, i%312-6, uint8(0)
			if y >= 0 && y < 200 && x >= 0 && x < 300 {
				want = src[y*300+x]
			}
			if v != want {
				t.Fatalf("%d threads: element %d is %d, want %d", threads, i, v, want)
			}
		}
	}
}
