// Package stacks is shared by importers of sampling profiles. It collects stacks of functions
// with their counts. Functions become layers with their own time and the time with callees.
// Consecutive samples become bars of a timeline.
//
// It is independent of any format. A stack is a path in a tree that begins at the outermost
// function, so memory depends on the number of different stacks, not of samples.
package stacks

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// Limits of what is kept.
const (
	MaxNodes   = 2_000_000 // of the tree of stacks
	MaxDepth   = 2000      // functions of a stack; deeper ones are left out
	maxColumns = 32        // counts of each sample
	maxEntries = 4_000_000 // of each of [Tables]
	maxLine    = 4 << 20   // bytes of a line of text
)

// Function is a function of a program.
type Function struct {
	// File, Line and Library are the place of the function, Category is its purpose. Unknown
	// fields are "" or 0.
	Name, File, Library, Category string
	Line                          int64
}

// Set collects samples. The zero value is ready.
type Set struct {
	// Dropped counts skipped data.
	Dropped runlog.Dropped

	functions []Function
	at        map[Function]int32
	tree      []node
	children  map[[2]int32]int32
	columns   []column
}

// node is a function in the tree of stacks.
type node struct{ parent, function, depth int32 }

// column holds one count of each node.
type column struct {
	what   profile.Quantity
	scale  float64
	values []float64 // by node
}

// Root is the empty stack.
const Root = int32(-1)

// Function returns the number of a function. All functions beyond [track.MaxLayers] share one
// number.
func (s *Set) Function(f Function) int32 {
	f.Name, f.File, f.Library, f.Category = clip(f.Name), clip(f.File), clip(f.Library), clip(f.Category)
	if i, ok := s.at[f]; ok {
		return i
	}
	if s.at == nil {
		s.at = map[Function]int32{}
	}
	if len(s.functions) >= track.MaxLayers {
		f = Function{Name: fmt.Sprintf("all beyond %d functions", track.MaxLayers)}
		if i, ok := s.at[f]; ok {
			return i
		}
	}
	i := int32(len(s.functions))
	s.functions = append(s.functions, f)
	s.at[f] = i
	return i
}

func clip(s string) string { return track.Clip([]byte(s)) }

// Name returns the name of a function.
func (s *Set) Name(function int32) string { return s.functions[function].Name }

// Call returns the stack of a function that is called from the stack caller. Beyond the limits it
// returns caller.
func (s *Set) Call(caller, function int32) int32 {
	if i, ok := s.children[[2]int32{caller, function}]; ok {
		return i
	}
	depth := int32(0)
	if caller >= 0 {
		depth = s.tree[caller].depth + 1
	}
	if len(s.tree) >= MaxNodes || depth >= MaxDepth {
		s.Dropped.Add("calls deeper or in more places than are kept", 1)
		return caller
	}
	if s.children == nil {
		s.children = map[[2]int32]int32{}
	}
	i := int32(len(s.tree))
	s.tree = append(s.tree, node{caller, function, depth})
	s.children[[2]int32{caller, function}] = i
	return i
}

// Chain returns the stack of a frame in a format whose frames name their callers. frame returns the
// function of a frame and its caller; ok is false for the caller of outermost frames. known holds
// the stacks of earlier calls.
func Chain[K comparable](s *Set, known map[K]int32, id K, frame func(K) (f Function, caller K, ok bool)) int32 {
	var way []K
	place := Root
	for {
		if p, ok := known[id]; ok {
			place = p
			break
		}
		_, caller, ok := frame(id)
		if !ok {
			break
		}
		known[id] = Root // a cycle of callers ends here
		way, id = append(way, id), caller
	}
	for _, id := range slices.Backward(way) {
		f, _, _ := frame(id)
		f.Name = cmp.Or(f.Name, "(anonymous)")
		place = s.Call(place, s.Function(f))
		known[id] = place
	}
	return place
}

// Count returns the number of the column of a quantity. Values of the column times scale are in
// the unit of the quantity. ok is false if there are too many columns.
func (s *Set) Count(q profile.Quantity, scale float64) (n int, ok bool) {
	for i := range s.columns {
		if s.columns[i].what.Key == q.Key {
			return i, true
		}
	}
	if len(s.columns) >= maxColumns {
		return 0, false
	}
	s.columns = append(s.columns, column{what: q, scale: scale})
	return len(s.columns) - 1, true
}

// Add adds a value to a column of a stack. A sample with an empty stack is dropped.
func (s *Set) Add(column int, place int32, v float64) {
	if place < 0 {
		s.Dropped.Add("samples without a stack", 1)
		return
	}
	c := &s.columns[column]
	c.values = append(c.values, make([]float64, len(s.tree)-len(c.values))...)
	c.values[place] += v
}

// Path appends the functions of a stack, the outermost first.
func (s *Set) Path(place int32, to []int32) []int32 {
	if place < 0 {
		return to
	}
	n := int(s.tree[place].depth) + 1
	at := len(to)
	to = append(to, make([]int32, n)...)
	for i := at + n - 1; place >= 0; i, place = i-1, s.tree[place].parent {
		to[i] = s.tree[place].function
	}
	return to
}

// Time, Samples and Cycles are the counts of most profilers.
var (
	Time    = profile.Quantity{Key: "latency_s"}
	Samples = profile.Quantity{Key: "samples", Name: "Samples", Head: "samples", Group: "Record", Doc: "Samples in which the function itself ran.", Adds: true, Whole: true}
	Cycles  = profile.Quantity{Key: "cpu_cycles"}
)

// callees returns the quantity of a count that includes callees.
func callees(q *profile.Quantity) profile.Quantity {
	if q.Key == "latency_s" {
		return profile.Quantity{Key: "with_callees_s"}
	}
	name := cmp.Or(q.Name, q.Key)
	return profile.Quantity{
		Key: q.Key + "_with_callees", Unit: q.Unit, Name: name + " with callees", Head: cmp.Or(q.Head, name) + " w. callees",
		Group: cmp.Or(q.Group, "Record"), Whole: q.Whole, Doc: "The same with what the function calls, each sample once.",
	}
}

// Fill makes the layers of a profile: all functions on stacks with a count, in the order of first
// appearance. number holds the layer of each function, -1 without one.
func (s *Set) Fill(r *runlog.Run, qs *runlog.Quantities) (number []int32) {
	number = slices.Repeat([]int32{-1}, len(s.functions))
	p := r.Profile
	order, self, total := s.sums()
	for _, f := range order {
		number[f] = int32(len(p.Layers))
		fn := &s.functions[f]
		l := profile.Layer{Name: fn.Name, Op: "function"}
		for _, o := range []profile.Option{{Key: "file", Value: fn.File}, {Key: "library", Value: fn.Library}, {Key: "category", Value: fn.Category}} {
			if o.Value != "" {
				l.Options = append(l.Options, o)
			}
		}
		if fn.Line > 0 {
			l.Options = append(l.Options, profile.Option{Key: "line", Value: fmt.Sprint(fn.Line)})
		}
		p.Layers = append(p.Layers, l)
	}
	for c := range s.columns {
		q := s.columns[c].what
		w := callees(&q)
		for i, f := range order {
			l := &p.Layers[i]
			track.Set(qs, l, q, self[c][f]*s.columns[c].scale)
			track.Set(qs, l, w, total[c][f]*s.columns[c].scale)
		}
	}
	p.Quantities = qs.List
	s.Dropped.To(r)
	return number
}

// sums adds the counts of each function: its own, and those with callees. Recursion counts a
// sample once. order lists the functions with a count.
func (s *Set) sums() (order []int32, self, total [][]float64) {
	n := len(s.tree)
	seen := make([]bool, len(s.functions))
	under := make([][]float64, len(s.columns)) // counts of nodes including children
	for c := range s.columns {
		v := make([]float64, n)
		copy(v, s.columns[c].values)
		under[c] = v
		self, total = append(self, make([]float64, len(s.functions))), append(total, make([]float64, len(s.functions)))
		for i := range s.columns[c].values {
			self[c][s.tree[i].function] += s.columns[c].values[i]
		}
		for i := n - 1; i >= 0; i-- {
			if p := s.tree[i].parent; p >= 0 {
				v[p] += v[i]
			}
		}
	}
	for i := range s.tree {
		f := s.tree[i].function
		for c := range under {
			if under[c][i] != 0 && !seen[f] {
				seen[f] = true
				order = append(order, f)
			}
		}
	}
	s.outermost(func(i int32) {
		for c := range under {
			total[c][s.tree[i].function] += under[c][i]
		}
	})
	return order, self, total
}

// outermost calls f for each stack whose last function does not occur before on the stack.
func (s *Set) outermost(f func(place int32)) {
	n := len(s.tree)
	// Children are lists by parent; the last list is that of the root.
	first, next := slices.Repeat([]int32{-1}, n+1), make([]int32, n)
	for i := n - 1; i >= 0; i-- {
		p := s.tree[i].parent
		if p < 0 {
			p = int32(n)
		}
		next[i], first[p] = first[p], int32(i)
	}
	on := make([]int32, len(s.functions)) // occurrences of each function on the path
	var way []int32
	for at := first[n]; ; {
		if at >= 0 {
			fn := s.tree[at].function
			if on[fn]++; on[fn] == 1 {
				f(at)
			}
			way = append(way, at)
			at = first[at]
			continue
		}
		if len(way) == 0 {
			return
		}
		last := way[len(way)-1]
		way = way[:len(way)-1]
		on[s.tree[last].function]--
		at = next[last]
	}
}

// Sampled is the method of timelines that [Chart] makes of samples.
const Sampled = "samples of the stack: a function lasts from the first sample that has it to the next one that has not"

// Finish makes the layers of a run, and the timeline of a trace whose slices are functions.
func Finish(r *runlog.Run, s *Set, t *track.Trace, method string) {
	var qs runlog.Quantities
	number := s.Fill(r, &qs)
	t.Relabel(number)
	t.Nest()
	r.Profile.Timeline = t.Timeline("first sample", method)
	t.Dropped.To(r)
}

// Each calls f for each stack whose innermost function has a count. The outermost function is the
// first of path, values are in the units of the quantities.
func (s *Set) Each(f func(path []int32, values []float64)) {
	var path []int32
	values := make([]float64, len(s.columns))
	for i := range s.tree {
		some := false
		for c := range s.columns {
			values[c] = 0
			if v := s.columns[c].values; i < len(v) {
				values[c] = v[i] * s.columns[c].scale
			}
			some = some || values[c] != 0
		}
		if some {
			path = s.Path(int32(i), path[:0])
			f(path, values)
		}
	}
}

// Lines calls use for each line of a file, without its line ending. It stops with an error that
// names the line if a line is too long, and when the context ends.
func Lines(ctx context.Context, f *record.File, use func(line []byte)) error {
	return f.With(func(r io.Reader) error {
		s := bufio.NewScanner(r)
		s.Buffer(make([]byte, 0, 64<<10), maxLine)
		n := 0
		for ; s.Scan(); n++ {
			use(s.Bytes())
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if err := s.Err(); err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
		return nil
	})
}
