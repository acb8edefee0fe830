package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

// copyDefs concatenate and slice vectors: Front and Back are the first 16 elements and the
// others.
func copyDefs() []op.Def {
	window := func(c *op.Call, from, to int) (layout.Geometry, error) {
		return layout.StridedSlice(c.In[0].Shape, []int{from}, []int{1}, []int{to - from})
	}
	return []op.Def{
		layout.Def("", "Join", 1, func(c *op.Call) (layout.Geometry, error) { return layout.Concat(c.In, 0) }, layout.None),
		layout.Def("", "Front", 1, func(c *op.Call) (layout.Geometry, error) { return window(c, 0, min(16, c.In[0].Len())) }, layout.None),
		layout.Def("", "Back", 1, func(c *op.Call) (layout.Geometry, error) { return window(c, min(16, c.In[0].Len()-1), c.In[0].Len()) }, layout.None),
		{Name: "Halves", Infer: func(c *op.Call) error {
			n := c.In[0].Len()
			layout.SetSplitOutputs(c, c.In[0], 0, []int{n / 2, n - n/2})
			return nil
		}, Prepare: func(c *op.Call) (op.Run, error) {
			n := c.In[0].Len()
			return layout.Split(c, 0, c.In[0].Shape, 0, []int{n / 2, n - n/2})
		}},
		{Name: "Keep", Infer: layout.SameAsInput, Prepare: layout.CopyAll, InPlace: true},
	}
}

// TestCopiesInPlace checks the placement of values that are concatenated and sliced. x is an
// input, which is outside the arena.
func TestCopiesInPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, out string
		lines     []string
		at        map[string]int // offsets relative to y, of values inside it
		arena     int
	}{
		{"joined", "y", []string{"Inc a x", "Inc b x", "Join y a b"}, map[string]int{"a": 0, "b": 64}, 128},
		{"with an input", "y", []string{"Inc a x", "Join y x a"}, map[string]int{"a": 64}, 128},
		{"twice", "y", []string{"Inc a x", "Join y a a"}, map[string]int{"a": 0}, 128},
		{"an output too", "y a", []string{"Inc a x", "Inc b x", "Join y b a"}, map[string]int{"a": 64, "b": 0}, 128},
		{"made in place", "y", []string{"Inc a x", "Twice b a", "Join y x b"}, map[string]int{"a": 64, "b": 64}, 128},
		{"read again later", "z", []string{"Inc a x", "Join y x a", "Twice b a", "Join z y b"}, map[string]int{"a": 64, "z": 0, "b": 128}, 192},
		{"cut", "z", []string{"Join y x x", "Front a y", "Back b y", "Sub z a b"}, map[string]int{"a": 0, "b": 64}, 192},
		{"halves", "z", []string{"Join y x x", "Halves a,b y", "Twice c a", "Sub z c b"}, map[string]int{"a": 0, "b": 64, "c": 0}, 192},
		{"kept and read again", "z", []string{"Inc y x", "Keep a y", "Sub z a y"}, map[string]int{"a": 0}, 128},
	} {
		g := build(0, nil, "x", c.out, c.lines...)
		s := start(t, Options{Registry: with(copyDefs()...)}, []*tensor.Tensor{vec(make([]float32, 16)...)}, g)
		places := map[string]int{}
		for _, p := range s.Plan() {
			places[p.Name] = p.Offset
		}
		if arena, _ := s.Memory(); arena != c.arena {
			t.Errorf("%s: %d bytes, want %d", c.name, arena, c.arena)
		}
		for n, at := range c.at {
			if places[n]-places["y"] != at {
				t.Errorf("%s: %s lies at %d and y at %d, want %d behind it", c.name, n, places[n], places["y"], at)
			}
		}
	}
}

// TestCopiesRandomly runs random graphs of copies, in-place operators and others, once with
// values in an arena and once with memory for each.
func TestCopiesRandomly(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(41, 42))
	for round := range 400 {
		names, sizes := []string{"x"}, map[string]int{"x": 16 * (1 + r.IntN(3))}
		if r.IntN(4) == 0 {
			sizes["x"]++
		}
		var lines, outs []string
		for i := range 3 + r.IntN(20) {
			pick := func() string { return names[max(0, len(names)-1-r.IntN(5))] }
			y, a := fmt.Sprint("v", i), pick()
			switch n := sizes[a]; r.IntN(8) {
			case 0, 1, 2:
				line, sum := "Join "+y, 0
				for range 1 + r.IntN(3) {
					b := pick()
					if sum+sizes[b] < 2000 {
						line += " " + b
						sum += sizes[b]
					}
				}
				if sum == 0 {
					continue
				}
				lines, sizes[y] = append(lines, line), sum
			case 3:
				lines, sizes[y] = append(lines, "Front "+y+" "+a), min(16, n)
			case 4:
				lines, sizes[y] = append(lines, "Back "+y+" "+a), n-min(16, n-1)
			case 5:
				if n < 2 {
					continue
				}
				lines, sizes[y], sizes[y+"b"] = append(lines, "Halves "+y+","+y+"b "+a), n/2, n-n/2
				names = append(names, y+"b")
			case 6:
				lines, sizes[y] = append(lines, "Keep "+y+" "+a), n
			default:
				lines, sizes[y] = append(lines, []string{"Inc ", "Twice ", "Twice "}[r.IntN(3)]+y+" "+a), n
			}
			names = append(names, y)
			if r.IntN(6) == 0 {
				outs = append(outs, y)
			}
		}
		if last := names[len(names)-1]; last != "x" && !slices.Contains(outs, last) {
			outs = append(outs, last)
		}
		if len(outs) == 0 {
			continue
		}
		o := Options{Registry: with(copyDefs()...), Threads: 1 + round%2}
		open := func(o Options) *Session {
			x := make([]float32, sizes["x"])
			return start(t, o, []*tensor.Tensor{vec(x...)}, build(0, nil, "x", strings.Join(outs, " "), lines...))
		}
		s := open(o)
		o.KeepAll = true
		k := open(o)
		for turn := range 2 {
			x := make([]float32, sizes["x"])
			for i := range x {
				x[i] = float32(100*turn + i)
			}
			for _, s := range []*Session{s, k} {
				s.SetInput(0, vec(x...))
				if err := s.Run(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			for i := range outs {
				if got, want := tensor.Of[float32](s.Output(i)), tensor.Of[float32](k.Output(i)); !slices.Equal(got, want) {
					t.Fatalf("round %d: output %s of %q is %v, want %v (places %+v)", round, outs[i], lines, got, want, s.Plan())
				}
			}
		}
	}
}
