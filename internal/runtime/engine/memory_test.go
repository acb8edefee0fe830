package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// TestPlaces compares the offsets of values with lifetimes worked out by hand: a value is live
// from the step that computes it to the last that reads it, an output beyond the last step.
// Values with overlapping lifetimes have disjoint memory, except where a step works in place.
func TestPlaces(t *testing.T) {
	t.Parallel()
	type life struct {
		name        string
		first, last int
	}
	ones := func(n int) *tensor.Tensor { return vec(make([]float32, n)...) }
	for _, c := range []struct {
		name, out string
		lines     []string
		lives     []life
		same      [][2]string // values that share memory
		arena     int         // arena size in bytes, -1 if not unique
	}{
		// 20 elements are 80 bytes, which take 128 of the arena: offsets are multiples of 64.
		{"chain", "y", []string{"Inc a x", "Inc b a", "Inc y b"}, []life{{"a", 0, 1}, {"b", 1, 2}, {"y", 2, 3}}, [][2]string{{"a", "y"}}, 256},
		{"in place", "y", []string{"Inc a x", "Twice b a", "Twice y b"}, []life{{"a", 0, 1}, {"b", 1, 2}, {"y", 2, 3}}, [][2]string{{"a", "b"}, {"b", "y"}}, 128},
		{"read again later", "y", []string{"Inc a x", "Twice b a", "Sub y b a"}, []life{{"a", 0, 2}, {"b", 1, 2}, {"y", 2, 3}}, nil, -1},
		{"output read in place", "a y", []string{"Inc a x", "Twice y a"}, []life{{"a", 0, 2}, {"y", 1, 2}}, nil, 256},
		{"nobody reads it", "y", []string{"Inc a x", "Inc y x"}, []life{{"a", 0, 0}, {"y", 1, 2}}, [][2]string{{"a", "y"}}, 128},
		{"input in place", "y", []string{"Twice y x"}, []life{{"y", 0, 1}}, nil, 128},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// The order of values in the file must not matter.
			for _, g := range []*graph.Graph{build(0, nil, "x", c.out, c.lines...), reversed(build(0, nil, "x", c.out, c.lines...))} {
				s := start(t, Options{}, []*tensor.Tensor{ones(20)}, g)
				at := map[string]Placed{}
				for _, p := range s.Plan() {
					at[p.Name] = p
				}
				if len(at) != len(c.lives) {
					t.Fatalf("%d places, want %d", len(at), len(c.lives))
				}
				arena, unshared := s.Memory()
				if unshared != 80*len(c.lives) || c.arena >= 0 && arena != c.arena {
					t.Errorf("memory %d and %d, want %d and %d", arena, unshared, c.arena, 80*len(c.lives))
				}
				for _, l := range c.lives {
					p := at[l.name]
					if p.First != l.first || p.Last != l.last || p.Bytes != 80 || p.Offset%64 != 0 || p.Offset < 0 || p.Offset+p.Bytes > arena {
						t.Errorf("%s is %+v, want life from %d to %d within %d bytes", l.name, p, l.first, l.last, arena)
					}
					if v := s.Value(p.Value); cap(v.Data) != 80 || len(v.Data) != 80 {
						t.Errorf("%s has %d bytes and room for %d", l.name, len(v.Data), cap(v.Data))
					}
					for _, m := range c.lives {
						q := at[m.name]
						together := l.first <= m.last && m.first <= l.last && l.name != m.name
						meant := slices.ContainsFunc(c.same, func(n [2]string) bool { return n == [2]string{l.name, m.name} || n == [2]string{m.name, l.name} })
						if together && !meant && p.Offset < q.Offset+q.Bytes && q.Offset < p.Offset+p.Bytes && !slices.Contains([]string{"in place"}, c.name) {
							t.Errorf("%s and %s overlap: %+v, %+v", l.name, m.name, p, q)
						}
					}
				}
				for _, n := range c.same {
					if at[n[0]].Offset != at[n[1]].Offset {
						t.Errorf("%s and %s do not share: %+v, %+v", n[0], n[1], at[n[0]], at[n[1]])
					}
				}
				k := start(t, Options{KeepAll: true}, []*tensor.Tensor{ones(20)}, g)
				if a, u := k.Memory(); a != 0 || u != 0 || len(k.Plan()) != 0 {
					t.Errorf("with KeepAll: memory %d, %d and %d places", a, u, len(k.Plan()))
				}
			}
		})
	}
}

// reversed numbers the values from the last to the first.
func reversed(g *graph.Graph) *graph.Graph {
	slices.Reverse(g.Values)
	for i, v := range g.Values {
		v.ID = i
	}
	turn := func(ids []int) {
		for i, id := range ids {
			if id >= 0 {
				ids[i] = len(g.Values) - 1 - id
			}
		}
	}
	turn(g.Inputs)
	turn(g.Outputs)
	for _, n := range g.Nodes {
		turn(n.Inputs)
		turn(n.Outputs)
	}
	return g
}

// TestPlaceOfCaptured: a value that only a nested graph reads is live until the step that runs
// it.
func TestPlaceOfCaptured(t *testing.T) {
	t.Parallel()
	main := build(0, nil, "x", "y", "Inc a x", "Inc b x", "Inc d b", "Repeat y d")
	main.Nodes[3].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
	inner := build(1, nil, "v", "o", "Sub o v outer")
	inner.Captures = []graph.Capture{{Inner: value(inner, "outer").ID, Outer: value(main, "a").ID}}
	inner.Parent = main
	s := start(t, Options{}, []*tensor.Tensor{vec(1, 5)}, main, inner)
	for _, p := range s.Plan() {
		want := map[string][2]int{"a": {0, 3}, "b": {1, 2}, "d": {2, 3}}[p.Name]
		if p.First != want[0] || p.Last != want[1] {
			t.Errorf("%s is %+v, want %v", p.Name, p, want)
		}
	}
	run(t, s)
	wantOut(t, s, 0, 1, 1) // (x+2) - (x+1)
}

// TestPlaceOfCarried: a carried output has two buffers of its own outside the arena, counted
// once.
func TestPlaceOfCarried(t *testing.T) {
	t.Parallel()
	g := build(0, nil, "x", "y", "Inc a x", "Inc y a")
	s := start(t, Options{Carry: []Carry{{0, 0}}}, []*tensor.Tensor{vec(make([]float32, 20)...)}, g)
	arena, unshared := s.Memory()
	if arena != 128+128 || unshared != 160 {
		t.Errorf("memory %d, %d; want 256, 160", arena, unshared)
	}
	want := []Placed{{"a", value(g, "a").ID, 0, 80, 0, 1}, {"y", value(g, "y").ID, 128, 80, 0, 1}}
	if got := s.Plan(); !slices.Equal(got, want) {
		t.Errorf("places %+v, want %+v", got, want)
	}
}

// TestPlanWithinLimit: a plan is rejected one byte beyond the limit, which covers the arena,
// values with their own memory and the second buffer of a carried output.
func TestPlanWithinLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		o     Options
		lines []string
		bytes int
	}{
		{"arena", Options{}, []string{"Inc a x", "Sub y a x"}, 2 * 64},
		{"all kept", Options{KeepAll: true}, []string{"Inc a x", "Twice b a", "Twice y b"}, 3 * 64},
		{"carried", Options{Carry: []Carry{{0, 0}}}, []string{"Twice y x"}, 2 * 64},
		{"carried twice", Options{Carry: []Carry{{0, 0}, {0, 1}}}, []string{"Twice y x"}, 2 * 64},
	} {
		for _, d := range []int{0, -1} {
			o := c.o
			o.MaxBytes = c.bytes + d
			s, err := open(t, o, []*tensor.Tensor{vec(make([]float32, 16)...), vec(make([]float32, 16)...)}, build(0, nil, "x z", "y", c.lines...))
			if d == 0 {
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
					continue
				}
				if s.held != c.bytes || s.freeBytes() != 1 {
					t.Errorf("%s: holds %d of %d, %d free", c.name, s.held, c.bytes, s.freeBytes())
				}
				continue
			}
			var le *op.LimitError
			if !errors.As(err, &le) || le.Want != c.bytes || le.Limit != c.bytes-1 {
				t.Errorf("%s: %v, want %d bytes of %d", c.name, err, c.bytes, c.bytes-1)
			}
		}
	}
}

// TestStepsOfOpenShape: a dynamic step reuses its memory if it suffices, is prepared again only
// for another shape, and is counted for what it holds now.
func TestStepsOfOpenShape(t *testing.T) {
	t.Parallel()
	prepared := 0
	take := testDefs()[slices.IndexFunc(testDefs(), func(d op.Def) bool { return d.Name == "Take" })]
	take.Name = "Part"
	prepare := take.Prepare
	take.Prepare = func(c *op.Call) (op.Run, error) {
		prepared++
		c.Scratch(100)
		return prepare(c)
	}
	for _, keep := range []bool{false, true} {
		prepared = 0
		g := build(0, nil, "x n", "y", "Part y x n")
		s := start(t, Options{Registry: with(take), KeepAll: keep}, []*tensor.Tensor{vec(1, 2, 3, 4), num(3)}, g)
		if st := s.Steps()[0]; st.State != Runs || prepared != 0 {
			t.Fatalf("state %v, prepared %d times before the shape is known", st.State, prepared)
		}
		var first *byte
		for i, c := range []struct {
			n        int64
			prepared int
		}{{3, 1}, {3, 1}, {2, 2}, {2, 2}, {0, 3}, {3, 4}} {
			s.SetInput(1, num(c.n))
			run(t, s)
			wantOut(t, s, 0, []float32{1, 2, 3}[:c.n]...)
			if prepared != c.prepared {
				t.Errorf("run %d: prepared %d times, want %d", i, prepared, c.prepared)
			}
			// Scratch memory for earlier shapes serves later ones.
			if want := 4*int(c.n) + 100; s.held != want {
				t.Errorf("run %d: holds %d bytes, want %d", i, s.held, want)
			}
			at := unsafe.SliceData(s.Output(0).Data)
			if i == 0 {
				first = at
			} else if same := at == first; c.n > 0 && same == keep {
				t.Errorf("run %d, KeepAll %v: same memory is %v", i, keep, same)
			}
		}
		s.SetInput(1, num(4)) // more than before
		run(t, s)
		wantOut(t, s, 0, 1, 2, 3, 4)
	}
}

// TestRunWithinLimit: a run stops at the step that requests more than is left, and the next run
// may request less. The error names all that the model would need and its whole limit.
func TestRunWithinLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first int64
		node  int // for which three elements are too many
		left  int // bytes left for it
	}{
		{3, 1, 4}, // the first step has 12 of 16 bytes
		{2, 0, 8}, // the second step still has 8
	} {
		s := start(t, Options{MaxBytes: 16}, []*tensor.Tensor{vec(1, 2, 3), num(2)}, build(0, nil, "x n", "y", "Take a x n", "Inc y a"))
		for _, n := range []int64{c.first, 3, 2, 2, 1} {
			s.SetInput(1, num(n))
			err := s.Run(context.Background())
			var le *op.LimitError
			var ne *NodeError
			switch {
			case n < 3 && err != nil:
				t.Fatalf("%d elements: %v", n, err)
			case n < 3 && s.held != 8*int(n):
				t.Errorf("%d elements: holds %d bytes, want %d", n, s.held, 8*n)
			case n == 3 && (!errors.As(err, &le) || !errors.As(err, &ne) || ne.Node.Index != c.node || le.Want != 12+16-c.left || le.Limit != 16):
				t.Errorf("%d elements: %v", n, err)
			}
		}
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	type ask struct {
		n       int
		bounded bool
		fails   bool
	}
	for _, c := range []struct {
		limit int
		asks  []ask
		held  int
	}{
		{100, []ask{{60, true, false}, {40, true, false}, {1, true, true}, {-1, true, false}}, 100},
		{100, []ask{{101, true, true}, {-50, true, false}, {49, true, false}}, 100},
		{0, []ask{{math.MaxInt32, true, false}, {1, true, false}}, math.MaxInt32 + 1},
		{0, []ask{{256 << 20, false, false}, {1, true, false}, {1, false, true}, {-2, false, false}, {1, false, false}}, 256<<20 + 1},
		{100, []ask{{101, false, true}}, 101},
	} {
		f := &frame{s: &Session{opts: Options{MaxBytes: c.limit}}}
		for i, a := range c.asks {
			err := f.Hold(a.n, a.bounded)
			var le *op.LimitError
			if (err != nil) != a.fails || a.fails && (!errors.As(err, &le) || le.Want <= le.Limit) {
				t.Errorf("limit %d, ask %d of %+v: %v", c.limit, i, c.asks, err)
			}
		}
		if f.s.held != c.held {
			t.Errorf("limit %d: holds %d, want %d", c.limit, f.s.held, c.held)
		}
	}
}

func TestTurn(t *testing.T) {
	t.Parallel()
	long := time.Now().Add(-time.Hour)
	soon := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name    string
		limit   time.Duration
		turns   int // iterations so far
		began   time.Time
		bounded bool
		fails   bool
	}{
		{"no limit", 0, manyIterations * 2, long, false, false},
		{"no end in sight", time.Minute, 0, long, false, true},
		{"there is time", 2 * time.Hour, 0, long, false, false},
		{"began later", time.Minute, 0, soon, false, false},
		{"known end", time.Minute, 0, long, true, false},
		{"known end, last free turn", time.Minute, manyIterations - 1, long, true, false},
		{"known end, too many turns", time.Minute, manyIterations, long, true, true},
	} {
		f := &frame{s: &Session{opts: Options{MaxLoop: c.limit}, iterations: c.turns}}
		err := f.Turn(c.began, c.bounded)
		var le *op.LoopError
		if (err != nil) != c.fails || c.fails && (!errors.As(err, &le) || le.Limit != c.limit) {
			t.Errorf("%s: %v", c.name, err)
		}
		if f.s.iterations != c.turns+1 {
			t.Errorf("%s: %d turns after %d", c.name, f.s.iterations, c.turns)
		}
	}
	done := make(chan struct{})
	close(done)
	if err := (&frame{s: &Session{done: done}}).Turn(long, true); !errors.Is(err, errStopped) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestFree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, held, want int }{{0, 50, 0}, {100, 0, 100}, {100, 99, 1}, {100, 100, 1}, {100, 200, 1}} {
		s := &Session{opts: Options{MaxBytes: c.limit}, held: c.held}
		if got := s.freeBytes(); got != c.want {
			t.Errorf("limit %d, held %d: %d free, want %d", c.limit, c.held, got, c.want)
		}
	}
}

// TestBodyKeepsPlans: a body keeps plans for the four most recently used combinations of shapes
// and releases the others.
func TestBodyKeepsPlans(t *testing.T) {
	t.Parallel()
	prepared := map[int]int{}
	count := op.Def{Name: "Count", Infer: func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil }, Prepare: func(c *op.Call) (op.Run, error) {
		prepared[c.In[0].Len()]++
		return func(c *op.Call) error { copy(c.Out[0].Data, c.In[0].Data); return nil }, nil
	}}
	main := build(0, nil, "x n", "y", "Take a x n", "Repeat y a")
	main.Nodes[1].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
	s := start(t, Options{Registry: with(count)}, []*tensor.Tensor{vec(1, 2, 3, 4, 5, 6), num(1)}, main, build(1, nil, "v", "o", "Count o v"))
	go1 := func(n int) {
		t.Helper()
		s.SetInput(1, num(int64(n)))
		run(t, s)
		wantOut(t, s, 0, []float32{1, 2, 3, 4, 5, 6}[:n]...)
	}
	for i, c := range []struct{ n, times int }{
		{1, 1},
		{2, 1},
		{3, 1},
		{4, 1}, // all plans are kept
		{1, 1},
		{2, 1},
		{3, 1},
		{4, 1},
		{1, 1},
		{5, 1}, // replaces 2, the least recently used
		{1, 1},
		{3, 1},
		{4, 1},
		{5, 1},
		{2, 2},
		{3, 1},
		{1, 2},
	} {
		go1(c.n)
		if prepared[c.n] != c.times {
			t.Fatalf("run %d with %d elements: prepared %d times, want %d", i, c.n, prepared[c.n], c.times)
		}
	}
	held := 0
	for i := range 3 {
		for n := 1; n <= 6; n++ {
			go1(n)
		}
		if i == 0 {
			held = s.held
		} else if s.held != held {
			t.Errorf("holds %d bytes after turn %d, %d before", s.held, i, held)
		}
	}
	// The two buffers of the output in each of four plans, and the latest outputs of the two
	// steps.
	if want := 2*4*(3+4+5+6) + 24 + 24; s.held != want {
		t.Errorf("holds %d bytes, want %d", s.held, want)
	}
}

// TestCaptureOfOpenShape: a captured value of another shape requires another plan.
func TestCaptureOfOpenShape(t *testing.T) {
	t.Parallel()
	sum := op.Def{Name: "Sum", Infer: func(c *op.Call) error { c.SetOut(0, tensor.Float32, []int{1}); return nil }, Prepare: func(c *op.Call) (op.Run, error) {
		n := c.In[0].Len() // at preparation
		return func(c *op.Call) error {
			x, y := tensor.Of[float32](c.In[0]), tensor.Of[float32](c.Out[0])
			y[0] = 0
			for i := range n {
				y[0] += x[i]
			}
			return nil
		}, nil
	}}
	main := build(0, nil, "x n", "y", "Take a x n", "Repeat y x")
	main.Nodes[1].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
	inner := build(1, nil, "v", "o", "Sum o outer")
	inner.Captures = []graph.Capture{{Inner: value(inner, "outer").ID, Outer: value(main, "a").ID}}
	inner.Parent = main
	s := start(t, Options{Registry: with(sum)}, []*tensor.Tensor{vec(1, 10, 100), num(1)}, main, inner)
	for _, c := range []struct {
		n    int64
		want float32
	}{{1, 1}, {3, 111}, {2, 11}, {3, 111}} {
		s.SetInput(1, num(c.n))
		run(t, s)
		wantOut(t, s, 0, c.want)
	}
}

func TestBodyErrors(t *testing.T) {
	t.Parallel()
	calls := op.Def{Name: "Calls", Infer: func(*op.Call) error { return op.ErrDynamic }, Prepare: op.Simple(func(c *op.Call) error {
		b, err := c.Env.Body(c.Node.Attrs.Int("g", 0))
		if err != nil {
			return err
		}
		out, err := b.Run(make([]*tensor.Tensor, c.Node.Attrs.Int("n", 0)))
		if err != nil {
			return err
		}
		if out[0] == nil {
			return errors.New("there is no output")
		}
		*c.Out[0] = *out[0]
		return nil
	})}
	for _, c := range []struct {
		name  string
		g, n  int
		inner *graph.Graph
		want  string
	}{
		{"graph below", -1, 0, build(1, nil, "", "", "Inc o x"), "graph -1 of 2"},
		{"graph above", 2, 0, build(1, nil, "", ""), "graph 2 of 2"},
		{"too few inputs", 1, 0, build(1, nil, "v", "o", "Inc o v"), `graph "g" takes 1 inputs, 0 given`},
		{"too many inputs", 1, 2, build(1, nil, "v", "o", "Inc o v"), `graph "g" takes 1 inputs, 2 given`},
		{"nobody can compute it", 1, 0, build(1, map[string]*tensor.Tensor{"c": vec(1)}, "", "o", "Twice a c", "Nope b c", "Inc o b"), `output "o" of graph "g" could not be computed: node 1 (Nope)`},
		{"its node fails", 1, 0, build(1, map[string]*tensor.Tensor{"c": vec(1)}, "", "o", "Boom o c"), `output "o" of graph "g" could not be computed: node 0 (Boom): `},
		{"absent output", 1, 0, build(1, nil, "", "_"), "there is no output"},
	} {
		g := c.inner
		if c.name == "graph below" {
			g = build(1, nil, "", "")
		}
		main := build(0, nil, "x", "y", "Calls y x")
		main.Nodes[0].Attrs = graph.Attrs{"g": int64(c.g), "n": int64(c.n)}
		s := start(t, Options{Registry: with(calls)}, []*tensor.Tensor{vec(1)}, main, g)
		err := s.Run(context.Background())
		if err == nil || !strings.Contains(err.Error(), `node 0 (Calls "y"): `) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if s.depth != 0 {
			t.Errorf("%s: depth %d after the run", c.name, s.depth)
		}
	}
}

// TestNesting: a graph that runs itself stops at the nesting limit, in every run.
func TestNesting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		depth int64 // nested runs of the body
		fails bool
	}{{1, false}, {64, false}, {65, true}} {
		left := int64(0)
		down := op.Def{Name: "Down", Stateful: true, Infer: func(*op.Call) error { return op.ErrDynamic }, Prepare: op.Simple(func(c *op.Call) error {
			x := c.In[0]
			if left--; left >= 0 {
				b, err := c.Env.Body(1)
				if err != nil {
					return err
				}
				out, err := b.Run([]*tensor.Tensor{x})
				if err != nil {
					return err
				}
				x = out[0]
			}
			*c.Out[0] = *x
			return nil
		})}
		s := start(t, Options{Registry: with(down)}, []*tensor.Tensor{vec(4)}, build(0, nil, "x", "y", "Down y x"), build(1, nil, "v", "o", "Down o v"))
		for range 2 {
			left = c.depth
			err := s.Run(context.Background())
			if (err != nil) != c.fails || c.fails && !strings.Contains(err.Error(), "control flow nests deeper than 64") {
				t.Errorf("%d deep: %v", c.depth, err)
			}
			if !c.fails {
				wantOut(t, s, 0, 4)
			}
		}
	}
}

// TestBodyResultsStay: a body's result stays valid during its next run and may be its input,
// whether it is passed on unchanged, twice, or as a copy.
func TestBodyResultsStay(t *testing.T) {
	t.Parallel()
	// From a, b, c, d the body computes a+1, a, b, d, and a+1 again.
	const turns = 9
	list := &tensor.Tensor{Type: tensor.Sequence, Elems: []*tensor.Tensor{vec(1), vec(2)}}
	loop := op.Def{Name: "Turns", Infer: func(*op.Call) error { return op.ErrDynamic }, Prepare: op.Simple(func(c *op.Call) error {
		b, err := c.Env.Body(1)
		if err != nil {
			return err
		}
		in := []*tensor.Tensor{vec(0, 100), vec(10, 110), vec(20, 120), list}
		var want [3]float32
		want[0], want[1], want[2] = 0, 10, 20
		var before []*tensor.Tensor
		var stood [3]float32
		for i := range turns {
			out, err := b.Run(in)
			if err != nil {
				return err
			}
			for k, x := range before {
				if k < 3 && tensor.Of[float32](x)[0] != stood[k] {
					return fmt.Errorf("turn %d: result %d of the turn before is %v, want %v", i, k, tensor.Of[float32](x), stood[k])
				}
			}
			want = [3]float32{want[0] + 1, want[0], want[1]}
			for k := range 3 {
				if got := tensor.Of[float32](out[k]); got[0] != want[k] || got[1] != want[k]+100 {
					return fmt.Errorf("turn %d: result %d is %v, want %v", i, k, got, want[k])
				}
			}
			if got := tensor.Of[float32](out[4])[0]; got != want[0] {
				return fmt.Errorf("turn %d: the first result is %v when it is named again, want %v", i, got, want[0])
			}
			if l := out[3]; l == in[3] || len(l.Elems) != 2 || l.Elems[0] != list.Elems[0] {
				return fmt.Errorf("turn %d: the list is %+v", i, l)
			}
			out[3].Elems[1] = nil
			if in[3].Elems[1] == nil {
				return errors.New("the list that is returned is that of the input")
			}
			out[3].Elems[1] = list.Elems[1]
			before, stood = out, want
			in = slices.Clone(out[:4])
		}
		*c.Out[0] = *in[0].Clone()
		return nil
	})}
	s := start(t, Options{Registry: with(loop)}, []*tensor.Tensor{vec(0)}, build(0, nil, "x", "y", "Turns y x"), build(1, nil, "a b c d", "o a b d o", "Inc o a"))
	for range 2 {
		run(t, s)
		wantOut(t, s, 0, turns, 100+turns)
	}
}

// TestStopsBetweenSteps: a stopped run starts no further step, in the main graph and in bodies.
func TestStopsBetweenSteps(t *testing.T) {
	t.Parallel()
	for _, timed := range []bool{false, true} {
		for _, nested := range []bool{false, true} {
			ctx, cancel := context.WithCancel(context.Background())
			ran := 0
			same := func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil }
			stop := op.Def{Name: "Stop", Infer: same, Prepare: op.Simple(func(*op.Call) error { cancel(); return nil })}
			see := op.Def{Name: "See", Infer: same, Prepare: op.Simple(func(*op.Call) error { ran++; return nil })}
			lines := []string{"See a v", "Stop b a", "See o b"}
			gs := []*graph.Graph{build(0, nil, "v", "o", lines...)}
			if nested {
				main := build(0, nil, "x", "y", "Repeat y x")
				main.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1), "times": int64(3)}
				gs = []*graph.Graph{main, build(1, nil, "v", "o", lines...)}
			}
			s := start(t, Options{Registry: with(stop, see)}, []*tensor.Tensor{vec(1)}, gs...)
			var tm *Timing
			if timed {
				tm = s.NewTiming()
			}
			if err := s.RunTimed(ctx, tm); !errors.Is(err, context.Canceled) || ran != 1 {
				t.Errorf("timed %v, nested %v: %v after %d steps", timed, nested, err, ran)
			}
			cancel()
		}
	}
}

// TestErrorInBody: the error of a node in a body names its graph, and the error of the enclosing
// node wraps it.
func TestErrorInBody(t *testing.T) {
	t.Parallel()
	main := build(0, nil, "x", "y", "Repeat y x")
	main.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1)}
	s := start(t, Options{}, []*tensor.Tensor{vec(1)}, main, build(1, nil, "v", "o", "Inc a v", "Boom o a"))
	err := s.Run(context.Background())
	var outer, inner *NodeError
	if !errors.As(err, &outer) || !errors.As(outer.Err, &inner) || outer.Graph != 0 || inner.Graph != 1 || inner.Node.Index != 1 {
		t.Fatalf("error %v", err)
	}
	if !strings.Contains(err.Error(), `node 0 (Repeat "y"): graph 1 node 1 (Boom "o"): `) {
		t.Errorf("error %q", err)
	}
	if !s.Disable(inner) {
		t.Fatal("the inner node cannot be taken out")
	}
	if err := s.Run(context.Background()); err == nil || !strings.Contains(err.Error(), `output "o" of graph "g" could not be computed: node 1 (Boom)`) {
		t.Errorf("without it: %v", err)
	}
}

// TestBodyTimesBeginAnew: the times of a body cover one run, not all.
func TestBodyTimesBeginAnew(t *testing.T) {
	t.Parallel()
	main := build(0, nil, "x", "y", "Repeat y x")
	main.Nodes[0].Attrs = graph.Attrs{"body": graph.GraphRef(1), "times": int64(3)}
	s := start(t, Options{}, []*tensor.Tensor{vec(1)}, main, build(1, nil, "v", "o", "Inc a v", "Nope q v", "Inc o a"))
	tm := s.NewTiming()
	if len(tm.Bodies) != 2 || tm.Bodies[0] != nil || len(tm.Bodies[1]) != 3 {
		t.Fatalf("bodies %v", tm.Bodies)
	}
	for range 3 {
		if err := s.RunTimed(context.Background(), tm); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int64{3, 0, 3} {
			if b := tm.Bodies[1][i]; b.Calls != want || b.Nanoseconds < 0 || want == 0 && b.Nanoseconds != 0 {
				t.Errorf("node %d: %+v, want %d calls", i, b, want)
			}
		}
	}
}

// TestCopiedConstants: the memory of a folded constant that its only reader has copied is reused
// for the next one.
func TestCopiedConstants(t *testing.T) {
	t.Parallel()
	const n = 1 << 15
	big := func(v float32) *tensor.Tensor {
		x := tensor.New(tensor.Float32, n)
		tensor.Of[float32](x)[n-1] = v
		return x
	}
	for _, c := range []struct {
		name  string
		keep  bool
		lines []string
		twice []bool // whether the constant reuses the memory of the one before it
		want  float32
	}{
		{"one reader each", false, []string{"Inc a ka", "Inc b kb", "Last p x a", "Last y p b"}, []bool{false, true}, 1 + 11 + 101},
		{"two readers of one", false, []string{"Inc a ka", "Inc b kb", "Last p x a", "Last q p a", "Last y q b"}, []bool{false, true, false}, 1 + 11 + 11 + 101},
		{"one that is kept between", false, []string{"Inc a ka", "Inc b kb", "Inc c kc", "Last p x a", "Last q p b", "Last r q b", "Last y r c"}, []bool{false, true, true, false}, 1 + 11 + 101 + 101 + 1001},
		{"all are kept", true, []string{"Inc a ka", "Inc b kb", "Last p x a", "Last y p b"}, []bool{false, false}, 1 + 11 + 101},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var at []*float32
			last := op.Def{
				Name: "Last", Infer: func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil },
				Prepare: func(c *op.Call) (op.Run, error) {
					w := tensor.Of[float32](c.In[1])
					at = append(at, &w[0])
					add := w[n-1]
					c.Copied(1)
					return func(c *op.Call) error {
						tensor.Of[float32](c.Out[0])[0] = tensor.Of[float32](c.In[0])[0] + add
						return nil
					}, nil
				},
			}
			g := build(0, map[string]*tensor.Tensor{"ka": big(10), "kb": big(100), "kc": big(1000)}, "x", "y", c.lines...)
			s := start(t, Options{Registry: with(last), KeepAll: c.keep}, []*tensor.Tensor{vec(1)}, g)
			for i, want := range c.twice {
				if got := i > 0 && at[i] == at[i-1]; got != want {
					t.Errorf("constant %d in the memory of the one before: %v, want %v", i, got, want)
				}
			}
			run(t, s)
			wantOut(t, s, 0, c.want)
			if err := s.Reset(); err != nil {
				t.Fatal(err)
			}
			run(t, s)
			wantOut(t, s, 0, c.want)
		})
	}
}

// TestSameConstants: a uniform constant is materialised only for readers that need its elements,
// and if all values are kept.
func TestSameConstants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		keep  bool
		lines []string
		known []bool // whether the readers got the elements
		want  float32
	}{
		{"one that does without", false, []string{"Fill a k", "Takes y x a"}, []bool{false}, 8},
		{"one that does not", false, []string{"Fill a k", "Reads y x a"}, []bool{true}, 8},
		{"both", false, []string{"Fill a k", "Takes p x a", "Reads y p a"}, []bool{false, true}, 15},
		{"both, the other way", false, []string{"Fill a k", "Reads p x a", "Takes y p a"}, []bool{true, true}, 15},
		{"all are kept", true, []string{"Fill a k", "Takes y x a"}, []bool{true}, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var known []bool
			reader := func(name string, takes bool) op.Def {
				d := op.Def{
					Name: name, Infer: func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil },
					Prepare: func(c *op.Call) (op.Run, error) {
						known = append(known, c.In[1].Known())
						one := c.In[1]
						if !one.Known() {
							one = c.Uniform[1]
						}
						add := tensor.Of[float32](one)[0]
						return func(c *op.Call) error {
							tensor.Of[float32](c.Out[0])[0] = tensor.Of[float32](c.In[0])[0] + add
							return nil
						}, nil
					},
				}
				if takes {
					d.AcceptsUniform = func(_ *op.Call, i int, _ *tensor.Tensor) bool { return i == 1 }
				}
				return d
			}
			fill := op.Def{
				Name: "Fill", Infer: func(c *op.Call) error { c.SetOut(0, tensor.Float32, []int{100}); return nil },
				Uniform: func(*op.Call) *tensor.Tensor { return vec(7) },
				Prepare: op.Simple(func(c *op.Call) error {
					for i, v := 0, tensor.Of[float32](c.Out[0]); i < len(v); i++ {
						v[i] = 7
					}
					return nil
				}),
			}
			g := build(0, map[string]*tensor.Tensor{"k": vec(1)}, "x", "y", c.lines...)
			s := start(t, Options{Registry: with(reader("Takes", true), reader("Reads", false), fill), KeepAll: c.keep}, []*tensor.Tensor{vec(1)}, g)
			if !slices.Equal(known, c.known) {
				t.Errorf("readers saw the elements: %v, want %v", known, c.known)
			}
			run(t, s)
			wantOut(t, s, 0, c.want)
		})
	}
}

// TestWorkingMemory: steps share scratch memory.
func TestWorkingMemory(t *testing.T) {
	t.Parallel()
	needs := func(name string, n int) op.Def {
		return op.Def{
			Name: name, Infer: func(c *op.Call) error { c.SetOut(0, c.In[0].Type, c.In[0].Shape); return nil },
			Prepare: func(c *op.Call) (op.Run, error) {
				workspace := op.ScratchOf[float32](c, n)
				return func(c *op.Call) error {
					for i := range workspace {
						workspace[i] = 1 + tensor.Of[float32](c.In[0])[0]
					}
					tensor.Of[float32](c.Out[0])[0] = workspace[n-1]
					return nil
				}, nil
			},
		}
	}
	s := start(t, Options{Registry: with(needs("Much", 100), needs("Little", 10))}, []*tensor.Tensor{vec(1)}, build(0, nil, "x", "y", "Much a x", "Little b a", "Much y b"))
	if got := s.Working(); got != 400 {
		t.Errorf("%d bytes of working memory, want 400", got)
	}
	for range 2 {
		run(t, s)
		wantOut(t, s, 0, 4)
	}
}
