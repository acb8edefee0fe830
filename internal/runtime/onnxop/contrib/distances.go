package contrib

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/elem"
	"github.com/opmeter/opmeter/internal/runtime/onnxop/matmul"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// CDist: A [m,k], B [n,k]. The result [m,n] holds the Euclidean distances between the rows of A
// and of B, or their squares.

func inferDistances(c *op.Call) error {
	a, b := c.In[0].Shape, c.In[1].Shape
	if len(a) != 2 || len(b) != 2 || a[1] != b[1] {
		return fmt.Errorf("rows of %s and %s are not points of one space", tensor.FormatShape(a), tensor.FormatShape(b))
	}
	switch m := c.Node.Attrs.Str("metric", "sqeuclidean"); m {
	case "sqeuclidean", "euclidean":
	default:
		return op.Unsupported("metric %q", m)
	}
	return c.Result(c.In[0].Type, []int{a[0], b[0]})
}

// prepareDistances computes |a|² + |b|² - 2·a·b, as ONNX Runtime does: small distances are less
// exact than the coordinates.
func prepareDistances[T tensor.Real](c *op.Call) (op.Run, error) {
	if err := elem.SameTypes(c, 0); err != nil {
		return nil, err
	}
	m, n, k := c.In[0].Shape[0], c.In[1].Shape[0], c.In[0].Shape[1]
	root := c.Node.Attrs.Str("metric", "sqeuclidean") == "euclidean"
	lengths := make([]T, n)
	return func(c *op.Call) error {
		a, b, y := tensor.Of[T](c.In[0]), tensor.Of[T](c.In[1]), tensor.Of[T](c.Out[0])
		for j := range lengths {
			lengths[j] = square(b[j*k:][:k])
		}
		matmul.Gemm(c.Pool, matmul.Matrices{M: m, N: n, K: k, TransB: true}, a, b, y)
		for i := range m {
			row, length := y[i*n:][:n], square(a[i*k:][:k])
			for j, v := range row {
				d := max(length+lengths[j]-2*v, 0)
				if root {
					d = T(math.Sqrt(float64(d)))
				}
				row[j] = d
			}
		}
		return nil
	}, nil
}

// square returns the sum of squares.
func square[T tensor.Real](v []T) T {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return T(sum)
}
