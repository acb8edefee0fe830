package ml

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// linear is a matrix of coefficients and intercepts.
type linear struct {
	*matrix
	bias []float64
	post transform
}

func newLinear(c *op.Call, targets int) (*linear, error) {
	weights, bias := float64s(c, "coefficients"), float64s(c, "intercepts")
	if targets < 1 {
		targets = max(len(bias), 1)
	}
	_, f, err := rows(c.In[0])
	if err != nil {
		return nil, err
	}
	if len(weights) != targets*f || len(bias) != 0 && len(bias) != targets {
		return nil, fmt.Errorf("%d coefficients and %d intercepts for %d targets of %d features", len(weights), len(bias), targets, f)
	}
	if bias == nil {
		bias = make([]float64, targets)
	}
	post, err := postTransform(c)
	return &linear{newMatrix(weights, targets, f), bias, post}, err
}

// scores computes the scores of some rows, one row after the other.
func (l *linear) scores(x, s []float64) {
	for at := 0; at < len(s); at += l.lines {
		copy(s[at:], l.bias)
	}
	l.addProducts(s, x)
}

func inferLinearRegressor(c *op.Call) error {
	return setRows(c, tensor.Float32, max(c.Node.Attrs.Int("targets", 1), 1))
}

func prepareLinearRegressor(c *op.Call) (op.Run, error) {
	l, err := newLinear(c, max(c.Node.Attrs.Int("targets", 1), 1))
	if err != nil {
		return nil, err
	}
	return eachRows(c, l.lines, 0, func(c *op.Call, first int, x, s, _ []float64) {
		l.scores(x, s)
		l.post.rows(s, l.lines)
		tensor.Convert(tensor.Of[float32](c.Out[0])[first*l.lines:][:len(s)], s)
	})
}

// linearClasses returns the number of targets and the width of a linear classifier's scores. With
// one row of coefficients and two labels both classes are written.
func linearClasses(c *op.Call) (targets, width int) {
	targets = max(len(float64s(c, "intercepts")), 1)
	if targets == 1 && classLabels(c).len() == 2 {
		return 1, 2
	}
	return targets, targets
}

func inferLinearClassifier(c *op.Call) error {
	if err := inferClassifier(c); err != nil {
		return err
	}
	if c.Wants(1) {
		_, c.Out[1].Shape[1] = linearClasses(c)
	}
	return nil
}

func prepareLinearClassifier(c *op.Call) (op.Run, error) {
	targets, width := linearClasses(c)
	l, err := newLinear(c, targets)
	if err != nil {
		return nil, err
	}
	names := classLabels(c)
	return eachRows(c, targets, 0, func(c *op.Call, first int, x, s, _ []float64) {
		l.scores(x, s)
		n := len(s) / targets
		for i := range n {
			k := 0
			if width != targets {
				k = int(tensor.Truth(s[i] > 0))
			} else {
				for j, v := range s[i*targets:][:targets] {
					if v > s[i*targets+k] {
						k = j
					}
				}
			}
			names.write(c.Out[0], first+i, k)
		}
		if !c.Wants(1) {
			return
		}
		y := tensor.Of[float32](c.Out[1])[first*width:][:n*width]
		if width == targets {
			l.post.rows(s, targets)
			tensor.Convert(y, s)
			return
		}
		// One score decides between two classes.
		if l.post == logistic {
			sigmoids(s)
		}
		for i, v := range s {
			y[2*i], y[2*i+1] = float32(1-v), float32(v)
		}
	})
}
