package loss

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/kernel/element"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/reduce"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// classLoss is the geometry of NegativeLogLikelihoodLoss and
// SoftmaxCrossEntropyLoss: scores [N,C,...], targets [N,...], weights [C].
type classLoss struct {
	n, classes, area int
	reduction        string
	ignore           int
	hasIgnore        bool
}

func newClassLoss(c *op.Call) (*classLoss, error) {
	x, t := c.In[0].Shape, c.In[1].Shape
	if len(x) < 2 || !slices.Equal(t, append([]int{x[0]}, x[2:]...)) {
		return nil, fmt.Errorf("scores %s with targets %s", tensor.FormatShape(x), tensor.FormatShape(t))
	}
	if w := c.Input(2); w != nil && w.Len() != x[1] {
		return nil, fmt.Errorf("weights %s for %d classes", tensor.FormatShape(w.Shape), x[1])
	}
	l := &classLoss{n: x[0], classes: x[1], area: tensor.Elements(x[2:]), reduction: c.Node.Attrs.Str("reduction", "mean")}
	l.hasIgnore, l.ignore = c.Node.Attrs.Has("ignore_index"), c.Node.Attrs.Int("ignore_index", 0)
	shape := []int{}
	if l.reduction == "none" {
		shape = slices.Clone(t)
	}
	c.SetOut(0, c.In[0].Type, shape)
	c.SetOut(1, c.In[0].Type, slices.Clone(x)) // log probabilities
	return l, nil
}

// prepareClassLoss serves both; softmax says that the scores are not yet log
// probabilities.
func prepareClassLoss[T tensor.Real](softmax bool) elem.Prepare {
	return func(c *op.Call) (op.Run, error) {
		l := op.Must(newClassLoss(c))
		if !softmax {
			return func(c *op.Call) error { return lossOf(c, l, tensor.Of[T](c.In[0])) }, nil
		}
		// The logarithms are those of LogSoftmax along the classes.
		n := *c.Node
		n.Attrs, n.Version = graph.Attrs{"axis": int64(1)}, 13
		w := *c
		w.Node, w.In, w.Out = &n, []*tensor.Tensor{c.In[0]}, []*tensor.Tensor{nil}
		if !c.Wants(1) {
			w.Out[0] = &tensor.Tensor{Type: c.In[0].Type, Shape: c.In[0].Shape, Data: c.Scratch(c.In[0].Type.Bits() / 8 * c.In[0].Len())}
		}
		logs, err := reduce.PrepareSoftmax(&w, reduce.LogSoftmax)
		if err != nil {
			return nil, err
		}
		return func(c *op.Call) error {
			if w.Pool, w.In[0] = c.Pool, c.In[0]; c.Wants(1) {
				w.Out[0] = c.Out[1]
			}
			if err := logs(&w); err != nil {
				return err
			}
			return lossOf(c, l, tensor.Of[T](w.Out[0]))
		}, nil
	}
}

// lossOf picks the targets' log probabilities, weighs and reduces them.
func lossOf[T tensor.Real](c *op.Call, l *classLoss, x []T) error {
	y, weights := tensor.Of[T](c.Out[0]), elem.Elements[T](c, 2)
	var sum, total float64
	var targets [element.Block]int64
	for i := range l.n * l.area {
		if i%element.Block == 0 {
			tensor.Read(targets[:min(element.Block, l.n*l.area-i)], c.In[1], i)
		}
		t := int(targets[i%element.Block])
		var v, w float64
		if !l.hasIgnore || t != l.ignore {
			if t < 0 || t >= l.classes {
				return fmt.Errorf("target %d of %d classes", t, l.classes)
			}
			w = 1
			if weights != nil {
				w = float64(weights[t])
			}
			v = -w * float64(x[(i/l.area*l.classes+t)*l.area+i%l.area])
		}
		sum += v
		total += w
		if l.reduction == "none" {
			y[i] = T(v)
		}
	}
	switch l.reduction {
	case "none":
	case "mean":
		y[0] = T(sum / total)
	default: // by ONNX's definition anything else is a sum, an empty text too
		y[0] = T(sum)
	}
	return nil
}
