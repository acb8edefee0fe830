package tfliteop

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestEmpty runs the recorded operators with each extent of each input set to zero or one: they
// must return an error or an empty result, and never divide by an extent of zero.
func TestEmpty(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, c := range recorded {
		for i, r := range c.in {
			for d := range r.shape {
				for _, extent := range []int{0, 1} {
					in := make([]*tensor.Tensor, len(c.in))
					var constant []bool
					for k, o := range c.in {
						if k == i && o.whole == nil {
							o.shape = slices.Clone(o.shape)
							o.shape[d] = extent
						}
						in[k] = o.make()
						constant = append(constant, o.fixed || o.whole != nil)
					}
					var q *tensor.Quant
					if c.out.scale > 0 {
						q = optest.Affine(c.out.zero, c.out.scale)
					}
					tried++
					if why := crash(node(c.op, c.attrs, c.out.t, q, constant...), in); why != "" {
						t.Errorf("%s, input %d with %s: %s", c.name, i, tensor.FormatShape(in[i].Shape), why)
					}
				}
			}
		}
	}
	if tried < 600 {
		t.Errorf("%d variants", tried)
	}
}

func crash(n optest.Node, in []*tensor.Tensor) (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = fmt.Sprint(r) + string(debug.Stack())
		}
	}()
	_, _ = optest.Run(allDefs(), n, in...)
	return ""
}
