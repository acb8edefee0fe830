package quant

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/testing/optest"
)

// TestEveryType runs every definition on every type that it lists, and compares with the same
// operator in float64 if there is one.
func TestEveryType(t *testing.T) {
	t.Parallel()
	for _, d := range allDefs() {
		if d.Types == nil {
			continue
		}
		t.Run(fmt.Sprintf("%s:%s/%d", d.Domain, d.Name, d.Since), func(t *testing.T) {
			t.Parallel()
			for _, ty := range d.Types {
				everyType(t, d, ty)
			}
		})
	}
}

func everyType(t *testing.T, d op.Def, ty tensor.Type) {
	in, attrs := sample(d, ty)
	n := optest.Node{Domain: d.Domain, Op: d.Name, Version: max(1, d.Since), Attrs: attrs}
	if d.Domain == graph.ONNX && d.Since < 13 && !slices.Contains([]string{"ImageScaler", "Crop"}, d.Name) {
		n.Version = 28
	}
	if d.Name == "DynamicQuantizeLinear" {
		n.Outputs = 3
	}
	out, err := optest.Run(allDefs(), n, in...)
	if err != nil {
		t.Errorf("%v: %v", ty, err)
		return
	}
	if slices.Contains(d.Types, tensor.Float64) && (ty.IsInteger() && ty.Bits() >= 8 || ty.IsFloat()) && d.Name != "QuantizeLinear" &&
		(d.Name != "Sub" || ty.IsFloat() || ty.IsSigned()) {
		ref, attrs := sample(d, tensor.Float64)
		n.Attrs = attrs
		want, err := optest.Run(allDefs(), n, ref...)
		if err != nil {
			t.Fatal(err)
		}
		if out[0].Type.IsFloat() || !slices.Contains([]string{"Mod", "Div", "Erf", "Cast", "CastLike", "Shrink"}, d.Name) && !strings.HasPrefix(d.Name, "Reduce") {
			if got := out[0]; got.Type == tensor.String {
				return
			}
			for i, w := range reals(want[0]) {
				if w != w && d.Name != "Acosh" { // undefined for 0
					t.Errorf("%v: element %d of float64 is not a number", ty, i)
				}
			}
			tol := map[tensor.Type]float64{tensor.Float16: 2e-3, tensor.BFloat16: 2e-2}[ty]
			near(t, reals(out[0]), reals(want[0]), max(tol, 1e-5))
		}
	}
}

// sample makes inputs for a definition: small positive numbers that every type can represent, so
// that results agree between types.

func sample(d op.Def, ty tensor.Type) ([]*tensor.Tensor, graph.Attrs) {
	shape := []int{1, 2, 2, 2}
	v := []float64{1, 0, 1, 1, 0, 1, 0, 1}
	x := number(ty, shape, v...)
	one, scalar := number(ty, []int{1}, 1), f32(nil, 1)
	switch d.Name {
	case "Cast":
		return []*tensor.Tensor{x}, graph.Attrs{"to": int64(1)}
	case "CastLike":
		return []*tensor.Tensor{x, scalar}, nil
	case "BitShift":
		return []*tensor.Tensor{x, one}, graph.Attrs{"direction": "LEFT"}
	case "CumSum", "CumProd":
		return []*tensor.Tensor{x, i64(nil, 1)}, nil
	case "QuantizeLinear", "DequantizeLinear":
		return []*tensor.Tensor{x, scalar}, nil
	case "QLinearAdd", "QLinearMul":
		return []*tensor.Tensor{x, scalar, nil, one, scalar, nil, scalar}, nil
	case "LookUp":
		return []*tensor.Tensor{x, tensor.New(ty, 256)}, nil
	case "QLinearWhere":
		return []*tensor.Tensor{number(tensor.Bool, shape, v...), x, scalar, nil, x, scalar, nil, scalar}, nil
	case "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearReduceMean":
		return []*tensor.Tensor{x, scalar, nil, scalar}, nil
	case "Quant":
		return []*tensor.Tensor{x, scalar, f32(nil, 0), f32(nil, 8)}, nil
	case "Clip":
		return []*tensor.Tensor{x, one, one}, nil
	case "ImageScaler":
		return []*tensor.Tensor{x}, graph.Attrs{"bias": []float32{1, 2}}
	case "Crop":
		return []*tensor.Tensor{x}, graph.Attrs{"border": []int64{0, 1, 1, 0}}
	case "SwiGLU":
		return []*tensor.Tensor{x, x}, nil
	case "Add", "Sub", "Mul", "Div", "Mod", "PRelu", "Pow", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor",
		"BitwiseAnd", "BitwiseOr", "BitwiseXor", "Max", "Min", "Sum", "Mean":
		return []*tensor.Tensor{x, one}, nil
	case "BiasGelu", "FastGelu":
		return []*tensor.Tensor{x, number(ty, []int{2}, 1, 0)}, nil
	}
	return []*tensor.Tensor{x}, nil
}
