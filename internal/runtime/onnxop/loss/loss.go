// Package loss implements ONNX's losses and Dropout.
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

// Defs lists the operators of this package.
func Defs() []op.Def {
	nll, sce := "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"
	drop := elem.RealDef("Dropout", inferDropout, prepareDropout[float32], prepareDropout[float64])
	drop.Stateful = true // random in training
	return []op.Def{
		elem.RealDef(nll, op.Needs(2, op.Infer(newClassLoss)), prepareClassLoss[float32](false), prepareClassLoss[float64](false)),
		elem.RealDef(sce, op.Needs(2, op.Infer(newClassLoss)), prepareClassLoss[float32](true), prepareClassLoss[float64](true)),
		drop,
	}
}

// classLoss is the geometry of NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: scores
// [N,C,...], targets [N,...], weights [C].
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

// prepareClassLoss serves both; softmax says that the scores are not yet log probabilities.
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

// lossOf selects the targets' log probabilities, weighs and reduces them.
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
	default: // ONNX defines everything else, even an empty text, as a sum
		y[0] = T(sum)
	}
	return nil
}

// inferDropout: the mask is boolean since version 10.
func inferDropout(c *op.Call) error {
	if err := elem.Same(c); err != nil {
		return err
	}
	mask := tensor.Bool
	if c.Node.Version < 10 {
		mask = c.In[0].Type
	}
	c.SetOut(1, mask, slices.Clone(c.In[0].Shape))
	return nil
}

// prepareDropout copies its input unless training: training is an input since version 12, an
// attribute before 7.
func prepareDropout[T tensor.Real](c *op.Call) (op.Run, error) {
	a := c.Node.Attrs
	seed, seeded := uint32(a.Int("seed", 0)), a.Has("seed")
	calls := uint32(0)
	return func(c *op.Call) error {
		x, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.Out[0])
		ratio, train := float64(a.Float("ratio", 0.5)), c.Node.Version < 7 && !a.Bool("is_test", false)
		if c.Node.Version >= 12 {
			if ratio = 0.5; c.Has(1) && c.In[1].Len() > 0 {
				ratio = tensor.At(c.In[1], 0)
			}
			train = c.Has(2) && c.In[2].Len() > 0 && tensor.At(c.In[2], 0) != 0
		}
		if !train || ratio == 0 {
			copy(y, x)
			// Versions before 12 do not define the mask outside training.
			fillMask(c, nil)
			return nil
		}
		s := seed
		if !seeded {
			calls++ // without a seed every run differs, but each session has the same sequence
			s = calls
		}
		r := newTwister(s)
		scale := T(1 / (1 - ratio))
		keep := make([]bool, len(x))
		for i, v := range x {
			if keep[i] = r.float() >= ratio; keep[i] {
				y[i] = v * scale
			} else {
				y[i] = 0
			}
		}
		fillMask(c, func(i int) bool { return keep[i] })
		return nil
	}, nil
}

// fillMask writes which elements are kept. Without keep, all are kept since version 12, and none
// before.
func fillMask(c *op.Call, keep func(i int) bool) {
	if !c.Wants(1) {
		return
	}
	m := c.Out[1]
	if keep == nil && (c.Node.Version < 12 || m.Type == tensor.Bool) {
		v := byte(0)
		if c.Node.Version >= 12 {
			v = 1
		}
		element.Fill(m.Data, v)
		return
	}
	for i := range m.Len() {
		v := 0.0
		if keep == nil || keep(i) {
			v = 1
		}
		if m.Type == tensor.Bool {
			tensor.Of[uint8](m)[i] = uint8(v)
		} else {
			tensor.Put(m, i, v)
		}
	}
}

// twister is the 32-bit Mersenne twister, which the operator's definition uses for its masks.
type twister struct {
	state [624]uint32
	at    int
}

func newTwister(seed uint32) *twister {
	t := &twister{at: 624}
	t.state[0] = seed
	for i := 1; i < len(t.state); i++ {
		p := t.state[i-1]
		t.state[i] = 1812433253*(p^p>>30) + uint32(i)
	}
	return t
}

func (t *twister) next() uint32 {
	const n, m = 624, 397
	if t.at == n {
		for i := range n {
			y := t.state[i]&0x80000000 | t.state[(i+1)%n]&0x7fffffff
			v := t.state[(i+m)%n] ^ y>>1
			if y&1 == 1 {
				v ^= 0x9908b0df
			}
			t.state[i] = v
		}
		t.at = 0
	}
	y := t.state[t.at]
	t.at++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// float returns a number that is uniform on [0,1) with 53 bits.
func (t *twister) float() float64 {
	a, b := t.next()>>5, t.next()>>6
	return (float64(a)*67108864 + float64(b)) / 9007199254740992
}
