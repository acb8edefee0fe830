package signal

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/op/layout"
)

func windowDefs() []op.Def {
	window := func(name string, f func(turn float64) float64) op.Def {
		return op.Def{Name: name, Since: 17, Infer: op.Needs(1, inferWindow), Prepare: op.Simple(func(c *op.Call) error {
			n := c.Out[0].Len()
			period := n
			if !c.Node.Attrs.Bool("periodic", true) {
				period = max(n-1, 1)
			}
			tensor.Fill(c.Out[0], func(i int) float64 {
				if n == 1 {
					return 1
				}
				return f(2 * math.Pi * float64(i) / float64(period))
			})
			return nil
		})}
	}
	return []op.Def{
		window("HannWindow", func(t float64) float64 { return 0.5 - 0.5*math.Cos(t) }),
		window("HammingWindow", func(t float64) float64 { return 25./46 - 21./46*math.Cos(t) }),
		window("BlackmanWindow", func(t float64) float64 { return 0.42 - 0.5*math.Cos(t) + 0.08*math.Cos(2*t) }),
		{Name: "MelWeightMatrix", Since: 17, Infer: op.Needs(5, inferMel), Prepare: op.Simple(runMel)},
	}
}

func outType(c *op.Call) (tensor.Type, error) {
	t, err := elem.FromCode(c.Node.Attrs.Int("output_datatype", 1))
	if err == nil && !t.IsNumber() {
		err = op.Unsupported("output of type %v", t)
	}
	return t, err
}

func inferWindow(c *op.Call) error {
	t, err := outType(c)
	if err != nil {
		return err
	}
	n, err := layout.Scalar(c.In[0])
	if err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("size is %d", n)
	}
	return c.Result(t, []int{n})
}

func inferMel(c *op.Call) error {
	t, err := outType(c)
	if err != nil {
		return err
	}
	bins, err := layout.Scalar(c.In[0])
	if err != nil {
		return err
	}
	length, err := layout.Scalar(c.In[1])
	if err != nil {
		return err
	}
	if bins < 0 || length < 0 || length > maxLength {
		return fmt.Errorf("%d mel bins of a transform of length %d", bins, length)
	}
	for _, x := range c.In[2:5] {
		if x.Len() != 1 {
			return fmt.Errorf("%d elements where one is expected", x.Len())
		}
	}
	return c.Result(t, []int{length/2 + 1, bins})
}

// runMel draws one triangle a column: it rises from the edge of the previous
// band to one at its own and falls to the next. Edges are equally spaced on the
// mel scale and rounded down to spectrogram bins.
func runMel(c *op.Call) error {
	var p [3]float64 // sample rate, lowest and highest frequency
	for i := range p {
		v, err := tensor.All[float64](c.In[2+i])
		if err != nil {
			return err
		}
		p[i] = v[0]
	}
	length, err := layout.Scalar(c.In[1])
	if err != nil {
		return err
	}
	rows, bands := c.Out[0].Shape[0], c.Out[0].Shape[1]
	low, high := mel(p[1]), mel(p[2])
	edge := make([]int, bands+2)
	for i := range edge {
		m := low + float64(i)*(high-low)/float64(bands+2)
		f := 700 * (math.Pow(10, m/2595) - 1)
		v := math.Floor(float64(length+1) * f / p[0])
		if !(v >= 0 && v <= float64(rows)) {
			return fmt.Errorf("frequency %g is outside the spectrogram", f)
		}
		edge[i] = int(v)
	}
	w := make([]float64, rows*bands)
	put := func(row, band int, v float64) {
		if row < rows {
			w[row*bands+band] = v
		}
	}
	for b := range bands {
		lo, mid, hi := edge[b], edge[b+1], edge[b+2]
		for r := lo; r < mid; r++ {
			put(r, b, float64(r-lo)/float64(mid-lo))
		}
		put(mid, b, 1)
		for r := mid + 1; r < hi; r++ {
			put(r, b, float64(hi-r)/float64(hi-mid))
		}
	}
	tensor.Fill(c.Out[0], func(i int) float64 { return w[i] })
	return nil
}

func mel(hertz float64) float64 { return 2595 * math.Log10(1+hertz/700) }
