package memplan_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/runtime/memplan"
)

// TestCopiesTogether checks which copies share memory: the offsets of all buffers, with an
// alignment of four.
func TestCopiesTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		b      []memplan.Buffer
		copies []memplan.Copy
		at     []int // nil to compare only the size
		total  int
	}{
		{
			"two parts joined",
			[]memplan.Buffer{{Bytes: 8, First: 0, Last: 2}, {Bytes: 4, First: 1, Last: 2}, {Bytes: 12, First: 2, Last: 3}},
			[]memplan.Copy{{To: 2, From: 0, Bytes: 8}, {To: 2, At: 8, From: 1, Bytes: 4}},
			[]int{0, 8, 0},
			12,
		},
		{
			"two parts cut, the whole read again",
			[]memplan.Buffer{{Bytes: 12, First: 0, Last: 3}, {Bytes: 8, First: 1, Last: 4}, {Bytes: 4, First: 1, Last: 2}},
			[]memplan.Copy{{To: 1, From: 0, Bytes: 8}, {To: 2, From: 0, Read: 8, Bytes: 4}},
			[]int{0, 0, 8},
			12,
		},
		{
			"each sum of parts begins with the one before",
			[]memplan.Buffer{{Bytes: 4, First: 0, Last: 5}, {Bytes: 4, First: 1, Last: 5}, {Bytes: 8, First: 2, Last: 3}, {Bytes: 4, First: 3, Last: 5}, {Bytes: 12, First: 5, Last: 6}},
			[]memplan.Copy{{To: 2, From: 0, Bytes: 4}, {To: 2, At: 4, From: 1, Bytes: 4}, {To: 4, From: 0, Bytes: 4}, {To: 4, At: 4, From: 1, Bytes: 4}, {To: 4, At: 8, From: 3, Bytes: 4}},
			[]int{0, 4, 0, 8, 0},
			12,
		},
		{
			"one part twice: the second is copied",
			[]memplan.Buffer{{Bytes: 4, First: 0, Last: 1}, {Bytes: 8, First: 1, Last: 2}},
			[]memplan.Copy{{To: 1, From: 0, Bytes: 4}, {To: 1, At: 4, From: 0, Bytes: 4}},
			[]int{0, 0},
			8,
		},
		{
			"in two orders: the second time one is copied",
			[]memplan.Buffer{{Bytes: 4, First: 0, Last: 3}, {Bytes: 4, First: 1, Last: 3}, {Bytes: 8, First: 2, Last: 4}, {Bytes: 8, First: 3, Last: 4}},
			[]memplan.Copy{{To: 2, From: 0, Bytes: 4}, {To: 2, At: 4, From: 1, Bytes: 4}, {To: 3, From: 1, Bytes: 4}, {To: 3, At: 4, From: 0, Bytes: 4}},
			nil, 12,
		},
		{
			"in place of a part that is read later: apart",
			[]memplan.Buffer{{Bytes: 4, First: 0, Last: 2}, {Bytes: 4, First: 0, Last: 1}, {Bytes: 8, First: 1, Last: 4}, {Bytes: 4, First: 2, Last: 3, InPlace: 1}},
			[]memplan.Copy{{To: 2, From: 0, Bytes: 4}, {To: 2, At: 4, From: 1, Bytes: 4}},
			[]int{0, 4, 0, 8},
			12,
		},
		{
			"a part made in place",
			[]memplan.Buffer{{Bytes: 4, First: 0, Last: 1}, {Bytes: 4, First: 1, Last: 2, InPlace: 1}, {Bytes: 8, First: 2, Last: 3}},
			[]memplan.Copy{{To: 2, At: 4, From: 1, Bytes: 4}},
			[]int{4, 4, 0},
			8,
		},
		{
			"not aligned: copied",
			[]memplan.Buffer{{Bytes: 4, First: 0, Last: 1}, {Bytes: 6, First: 1, Last: 2}},
			[]memplan.Copy{{To: 1, At: 2, From: 0, Bytes: 4}},
			nil, 12,
		},
		{
			"that cannot be: there is no such part, or it lives at another time",
			[]memplan.Buffer{{Bytes: 4, First: 0, Last: 1}, {Bytes: 4, First: 2, Last: 3}, {Bytes: 4, First: 2, Last: 3}},
			[]memplan.Copy{{To: 1, From: 0, Bytes: 4}, {To: 1, From: 9, Bytes: 4}, {To: 1, From: -1, Bytes: 4}, {To: 1, From: 1, Bytes: 4}, {To: 1, From: 2, Bytes: 4}, {To: 2, From: 0, Bytes: 8}, {To: 7, From: 0, Bytes: 4}},
			nil, 8,
		},
	} {
		at, total := memplan.Greedy(c.b, 4, c.copies...)
		if c.at != nil && !slices.Equal(at, c.at) || total != c.total {
			t.Errorf("%s: at %v of %d, want %v of %d", c.name, at, total, c.at, c.total)
		}
	}
}

// TestCopiesKeepBytes runs random plans on one block of memory and on separate buffers: each must
// hold the same bytes for its whole lifetime.
func TestCopiesKeepBytes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 32))
	saved := 0
	for round := range 3000 {
		n, align := 2+r.IntN(24), 1<<r.IntN(4)
		b := make([]memplan.Buffer, n)
		var copies []memplan.Copy
		for i := range b {
			b[i] = memplan.Buffer{Bytes: align * r.IntN(6), First: i, Last: i + r.IntN(5)}
			if r.IntN(6) == 0 && i > 0 {
				b[i].First = i - 1 // two outputs of one step
			}
			if r.IntN(8) == 0 {
				b[i].Bytes += r.IntN(align)
			}
			if r.IntN(3) == 0 && i > 0 {
				b[i].InPlace = 1 + r.IntN(i)
			}
			// Concatenated parts, or a slice. The source stays live.
			at := 0
			for range r.IntN(4) {
				if i == 0 || b[i].First == 0 {
					break
				}
				k := r.IntN(b[i].First)
				if r.IntN(2) == 0 {
					k = max(0, b[i].First-1-r.IntN(3))
				}
				if b[k].First >= b[i].First {
					continue
				}
				c := memplan.Copy{To: i, At: at, From: k, Bytes: b[k].Bytes}
				if r.IntN(4) == 0 && b[k].Bytes > align {
					c.Read = align * r.IntN(b[k].Bytes/align)
					c.Bytes = r.IntN(b[k].Bytes-c.Read) + 1
				}
				at += c.Bytes
				b[i].Bytes = max(b[i].Bytes, at)
				b[k].Last = max(b[k].Last, b[i].First)
				copies = append(copies, c)
			}
		}
		at, total := memplan.Greedy(b, align, copies...)
		memory, want := make([]byte, total), make([][]byte, n)
		end := 0
		for _, x := range b {
			end = max(end, x.Last)
		}
		for step := range end + 1 {
			// A step that works in place reads before it writes.
			type write struct {
				at   int
				data []byte
			}
			var writes []write
			for i, x := range b {
				if x.First != step || x.Bytes == 0 {
					continue
				}
				want[i] = make([]byte, x.Bytes)
				written := make([]bool, x.Bytes)
				for _, c := range copies {
					if c.To != i {
						continue
					}
					for k := range c.Bytes {
						written[c.At+k] = true
					}
					copy(want[i][c.At:], want[c.From][c.Read:][:c.Bytes])
					if at[i]+c.At == at[c.From]+c.Read {
						saved += c.Bytes
						continue
					}
					writes = append(writes, write{at[i] + c.At, bytes.Clone(memory[at[c.From]+c.Read:][:c.Bytes])})
				}
				for k, is := range written {
					if !is {
						want[i][k] = byte(r.Uint32())
						writes = append(writes, write{at[i] + k, want[i][k : k+1]})
					}
				}
			}
			for _, w := range writes {
				copy(memory[w.at:], w.data)
			}
			for i, x := range b {
				if x.Bytes == 0 || step < x.First || step > x.Last {
					continue
				}
				over := slices.ContainsFunc(b, func(y memplan.Buffer) bool { return y.First == step && y.InPlace == i+1 && x.Last == step })
				if !over && !bytes.Equal(memory[at[i]:][:x.Bytes], want[i]) {
					t.Fatalf("round %d, step %d: buffer %d of %+v with %+v at %v", round, step, i, b, copies, at)
				}
			}
		}
	}
	if saved < 10000 {
		t.Errorf("%d bytes were not copied, that is next to none", saved)
	}
}

// TestCopiesOfMany bounds the time for parts that cannot all overlap.
func TestCopiesOfMany(t *testing.T) {
	t.Parallel()
	const n = 3000
	b := make([]memplan.Buffer, n)
	var copies []memplan.Copy
	for i := range b {
		b[i] = memplan.Buffer{Bytes: 64, First: i, Last: n}
		copies = append(copies, memplan.Copy{To: n, At: 64 * i, From: i, Bytes: 64})
	}
	b = append(b, memplan.Buffer{Bytes: 64 * n, First: n, Last: n + 1})
	for i := range n {
		copies = append(copies, memplan.Copy{To: n + 1, At: 64 * i, From: i % 7, Bytes: 64})
	}
	b = append(b, memplan.Buffer{Bytes: 64 * n, First: n, Last: n + 1})
	if _, total := memplan.Greedy(b, 64, copies...); total > 3*64*n {
		t.Errorf("%d bytes", total)
	}
}
