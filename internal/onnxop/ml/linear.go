package ml

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/op"
	"github.com/opmeter/opmeter/internal/tensor"
)

// linear is a matrix of coefficients, one row a target, and intercepts; both are followed by zeros up to a multiple of four targets.
type linear struct {
	weights, bias []float64
	targets       int
	features      int
}

func newLinear(c *op.Call, targets int) (*linear, error) {
	l := &linear{weights: float64s(c, "coefficients"), bias: float64s(c, "intercepts"), targets: targets}
	if l.targets < 1 {
		l.targets = max(len(l.bias), 1)
	}
	_, f, err := rows(c.In[0])
	if err != nil {
		return nil, err
	}
	l.features = f
	if len(l.weights) != l.targets*f || len(l.bias) != 0 && len(l.bias) != l.targets {
		return nil, fmt.Errorf("%d coefficients and %d intercepts for %d targets of %d features", len(l.weights), len(l.bias), l.targets, f)
	}
	for len(l.bias) < (l.targets+3)/4*4 {
		l.bias = append(l.bias, 0)
	}
	l.weights = append(l.weights, make([]float64, len(l.bias)*f-len(l.weights))...)
	return l, nil
}

// scores are sums over the features, for four targets at a time.
func (l *linear) scores(x, s []float64) {
	n := l.features
	x = x[:n]
	for t := 0; t < len(s); t += 4 {
		a, b, c, d := l.bias[t], l.bias[t+1], l.bias[t+2], l.bias[t+3]
		w := l.weights[t*n:]
		p, q, r, u := w[:n], w[n:][:n], w[2*n:][:n], w[3*n:][:n]
		for j, v := range x {
			a += p[j] * v
			b += q[j] * v
			c += r[j] * v
			d += u[j] * v
		}
		sums := [4]float64{a, b, c, d}
		copy(s[t:], sums[:])
	}
}

func inferLinearRegressor(c *op.Call) error {
	if err := c.NeedInputs(1); err != nil {
		return err
	}
	n, _, err := rows(c.In[0])
	if err != nil {
		return err
	}
	c.SetOut(0, tensor.Float32, []int{n, max(c.Node.Attrs.Int("targets", 1), 1)})
	return nil
}

func prepareLinearRegressor(c *op.Call) (op.Run, error) {
	l, err := newLinear(c, max(c.Node.Attrs.Int("targets", 1), 1))
	if err != nil {
		return nil, err
	}
	post, err := postTransform(c)
	if err != nil {
		return nil, err
	}
	return eachRow(c, l.targets, func(c *op.Call, i int, x, s []float64, _ []bool) {
		l.scores(x, s)
		post.apply(s)
		tensor.Convert(tensor.Of[float32](c.Out[0])[i*l.targets:][:l.targets], s)
	}), nil
}

// classes is the width of a linear classifier's scores: with one row of
// coefficients and two labels both classes are written.
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
	post, err := postTransform(c)
	if err != nil {
		return nil, err
	}
	names := classLabels(c)
	return eachRow(c, width, func(c *op.Call, i int, x, s []float64, _ []bool) {
		l.scores(x, s[:targets])
		k := 0
		for j, v := range s[:targets] {
			if v > s[k] {
				k = j
			}
		}
		if width != targets {
			k = 0
			if s[0] > 0 {
				k = 1
			}
			// One score decides between two classes.
			if post == logistic {
				s[0] = sigmoid(s[0])
			}
			s[0], s[1] = 1-s[0], s[0]
		} else {
			post.apply(s)
		}
		names.write(c.Out[0], i, k)
		if c.Wants(1) {
			tensor.Convert(tensor.Of[float32](c.Out[1])[i*width:][:width], s)
		}
	}), nil
}
