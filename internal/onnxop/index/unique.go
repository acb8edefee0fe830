package index

import (
	"slices"

	"github.com/opmeter/opmeter/internal/onnxop/move"
	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

func uniqueDefs() []op.Def {
	return op.Versions(op.Def{Name: "Unique", Infer: inferUnique, Prepare: op.Simple(runUnique)}, 11, 28)
}

// inferUnique never knows the count: finding it is the whole work.
func inferUnique(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	if c.Node.Attrs.Has("axis") {
		if _, err := axisOf(c, 0); err != nil {
			return err
		}
	}
	if !ordered(c.In[0].Type) {
		return op.Unsupported("Unique of %v", c.In[0].Type)
	}
	return op.ErrDynamic
}

// groups is what Unique finds: for each distinct row its first place and its
// count, and for each row the group that it belongs to.
type groups struct {
	first, count, of []int
}

func runUnique(c *op.Call) error {
	x := c.In[0]
	rows, outer, inner := x.Len(), 1, 1
	var axis int
	flat := !c.Node.Attrs.Has("axis")
	if !flat {
		var err error
		if axis, err = axisOf(c, 0); err != nil {
			return err
		}
		rows, outer, inner = x.Shape[axis], tensor.Elements(x.Shape[:axis]), tensor.Elements(x.Shape[axis+1:])
	}
	sorted := c.Node.Attrs.Bool("sorted", true)
	var g groups
	s := sorter{
		uniqueOf[float32](&g, rows, outer, inner, sorted), uniqueOf[float64](&g, rows, outer, inner, sorted),
		uniqueOf[int8](&g, rows, outer, inner, sorted), uniqueOf[int16](&g, rows, outer, inner, sorted),
		uniqueOf[int32](&g, rows, outer, inner, sorted), uniqueOf[int64](&g, rows, outer, inner, sorted),
		uniqueOf[uint8](&g, rows, outer, inner, sorted), uniqueOf[uint16](&g, rows, outer, inner, sorted),
		uniqueOf[uint32](&g, rows, outer, inner, sorted), uniqueOf[uint64](&g, rows, outer, inner, sorted),
		uniqueOf[string](&g, rows, outer, inner, sorted),
	}
	if err := s.apply(x); err != nil {
		return err
	}
	if c.Wants(0) {
		shape := []int{len(g.first)}
		if !flat {
			shape = slices.Clone(x.Shape)
			shape[axis] = len(g.first)
		}
		y, err := c.Make(0, x.Type, shape)
		if err != nil {
			return err
		}
		b := move.Blocks{Rows: outer, SrcRow: rows * inner, At: g.first, Len: inner}
		b.Gather(c.Pool, y, x)
	}
	for i, v := range [][]int{g.first, g.of, g.count} {
		if !c.Wants(i + 1) {
			continue
		}
		y, err := c.Make(i+1, tensor.Int64, []int{len(v)})
		if err != nil {
			return err
		}
		out := tensor.Of[int64](y)
		for j, n := range v {
			out[j] = int64(n)
		}
	}
	return nil
}

// uniqueOf groups equal rows; a row is every element with one index along the
// axis, compared from the first to the last.
func uniqueOf[T sortable](g *groups, rows, outer, inner int, sorted bool) func(*tensor.Tensor, []T) error {
	return func(_ *tensor.Tensor, v []T) error {
		compare := func(a, b int) int {
			for o := range outer {
				ra, rb := v[(o*rows+a)*inner:], v[(o*rows+b)*inner:]
				for i := range inner {
					if c := order(ra[i], rb[i]); c != 0 {
						return c
					}
				}
			}
			return 0
		}
		at := make([]int, rows)
		for i := range at {
			at[i] = i
		}
		slices.SortStableFunc(at, compare)
		g.of = make([]int, rows)
		for i, a := range at {
			if i == 0 || compare(at[i-1], a) != 0 {
				g.first, g.count = append(g.first, a), append(g.count, 0)
			}
			k := len(g.first) - 1
			g.count[k]++
			g.of[a] = k
		}
		if sorted {
			return nil
		}
		// In order of first occurrence: number the groups anew.
		by := make([]int, len(g.first))
		for i := range by {
			by[i] = i
		}
		slices.SortFunc(by, func(a, b int) int { return g.first[a] - g.first[b] })
		to := make([]int, len(by))
		first, count := make([]int, len(by)), make([]int, len(by))
		for i, k := range by {
			to[k], first[i], count[i] = i, g.first[k], g.count[k]
		}
		g.first, g.count = first, count
		for i, k := range g.of {
			g.of[i] = to[k]
		}
		return nil
	}
}
