package index

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func scatterDefs() []op.Def {
	el := op.Def{Infer: op.Needs(3, inferScatterElements), Prepare: layout.WithUnpacked(prepareScatterElements), InPlace: true}
	old := el
	old.Name, el.Name = "Scatter", "ScatterElements"
	return slices.Concat(
		op.Versions(old, 9, 11),
		op.Versions(el, 11, 13, 16, 18),
		op.Versions(op.Def{Name: "ScatterND", Infer: op.Needs(3, inferScatterND), Prepare: layout.WithUnpacked(prepareScatterND), InPlace: true}, 11, 13, 16, 18),
	)
}

// checkUpdates checks what all scatters share and sets the output.
func checkUpdates(c *op.Call, want []int) error {
	x, u := c.In[0], c.In[2]
	if u.Type != x.Type {
		return fmt.Errorf("updates are %v and data is %v", u.Type, x.Type)
	}
	if !slices.Equal(u.Shape, want) {
		return fmt.Errorf("updates are %s, not %s", tensor.FormatShape(u.Shape), tensor.FormatShape(want))
	}
	if _, err := layout.Updater(x.Type, c.Node.Attrs.Str("reduction", "none")); err != nil {
		return err
	}
	return c.Result(x.Type, slices.Clone(x.Shape))
}

func inferScatterElements(c *op.Call) error {
	if err := sameRank(c); err != nil {
		return err
	}
	return checkUpdates(c, c.In[1].Shape)
}

// scatter runs offsets through the update of the node's reduction. Updates are applied in order,
// so that the last of several for one position wins.
func scatter(c *op.Call, block int, offsets func(c *op.Call) ([]int, error)) (op.Run, error) {
	f, err := layout.Updater(c.In[0].Type, c.Node.Attrs.Str("reduction", "none"))
	if err != nil {
		return nil, err
	}
	offsets = layout.Once(c, 1, offsets)
	return func(c *op.Call) error {
		at, err := offsets(c)
		if err != nil {
			return err
		}
		u := c.In[2]
		if layout.Aliased(c.Out[0], u) {
			u = u.Clone() // data scattered into itself, in place
		}
		layout.Copy(c.Pool, c.Out[0], c.In[0])
		f(c.Out[0], u, at, block)
		return nil
	}, nil
}

func prepareScatterElements(c *op.Call) (op.Run, error) {
	e := op.Must(elementsOf(c))
	return scatter(c, 1, func(c *op.Call) ([]int, error) { return e.offsets(c.Pool, c.In[1]) })
}

func inferScatterND(c *op.Call) error {
	if err := indexType(c.In[1]); err != nil {
		return err
	}
	g, err := layout.NewTuples(c.In[0].Shape, c.In[1].Shape, 0, true)
	if err != nil {
		return err
	}
	idx := c.In[1].Shape
	return checkUpdates(c, slices.Concat(idx[:len(idx)-1], c.In[0].Shape[g.K:]))
}

func prepareScatterND(c *op.Call) (op.Run, error) {
	g, err := layout.NewTuples(c.In[0].Shape, c.In[1].Shape, 0, true)
	if err != nil {
		return nil, err
	}
	return scatter(c, g.Block, func(c *op.Call) ([]int, error) { return g.Offsets(c.In[1]) })
}
