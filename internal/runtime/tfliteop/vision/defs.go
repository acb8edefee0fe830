// Package vision implements the operators after vision models: selection of boxes (non-maximum
// suppression, detection post-processing), the decoder of PoseNet, and MediaPipe's operators on
// landmarks, image transforms and unpooling.
package vision

import (
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	floats := []tensor.Type{tensor.Float32}
	bytes := []tensor.Type{tensor.Float32, tensor.Uint8, tensor.Int8}
	custom := func(name string, types []tensor.Type) op.Def {
		return op.Def{Domain: graph.TFLiteCustom, Name: name, Types: types}
	}
	suppress := func(name string, inputs int) op.Def {
		return op.Def{Domain: graph.TFLite, Name: name, Types: floats, Infer: inferSuppress(inputs), Prepare: op.Simple(runSuppress)}
	}
	return []op.Def{
		suppress("NON_MAX_SUPPRESSION_V4", 5),
		suppress("NON_MAX_SUPPRESSION_V5", 6),
		layer.Shaped(custom("TFLite_Detection_PostProcess", bytes), detectionOf, inferDetect, prepareDetect),
		layer.Shaped(custom("PosenetDecoderOp", bytes), poseOptionsOf, inferPose, preparePose),
		layer.Shaped(custom("Landmarks2TransformMatrix", floats), regionOf, inferMatrix, prepareMatrix),
		layer.Shaped(custom("TransformTensorBilinear", floats), warpOf, inferWarp, prepareWarp),
		layer.Shaped(custom("TransformLandmarks", floats), transformOf, inferTransform, prepareTransform),
		layer.Shaped(custom("MaxPoolingWithArgmax2D", floats), poolOf, inferPool, preparePool),
		layer.Shaped(custom("MaxUnpooling2D", floats), unpoolOf, inferUnpool, prepareUnpool),
	}
}

// reals returns a function that reads a tensor as float32; 8-bit tensors are dequantised.
func reals(x *tensor.Tensor) (func(x *tensor.Tensor) []float32, error) {
	if x.Type == tensor.Float32 {
		return tensor.Of[float32], nil
	}
	if x.Type != tensor.Uint8 && x.Type != tensor.Int8 {
		return nil, op.Unsupported("elements of type %v", x.Type)
	}
	if q := x.Quant; q == nil || len(q.Scale) != 1 || len(q.Zero) != 1 {
		return nil, op.Unsupported("%v elements without one scale", x.Type)
	}
	var table [256]float32
	for i := range table {
		v := int64(i)
		if x.Type == tensor.Int8 {
			v = int64(int8(i))
		}
		table[i] = x.Quant.Scale[0] * float32(v-x.Quant.Zero[0])
	}
	y := make([]float32, x.Len())
	return func(x *tensor.Tensor) []float32 {
		for i, b := range x.Data {
			y[i] = table[b]
		}
		return y
	}, nil
}

// box is a rectangle, with its corners in the order of the operators.
type box struct{ y0, x0, y1, x1 float32 }

func (b box) area() float32 { return (b.y1 - b.y0) * (b.x1 - b.x0) }

// overlap is intersection over union, 0 for empty boxes.
func overlap(a, b box) float32 {
	sa, sb := a.area(), b.area()
	if sa <= 0 || sb <= 0 {
		return 0
	}
	both := max(min(a.y1, b.y1)-max(a.y0, b.y0), 0) * max(min(a.x1, b.x1)-max(a.x0, b.x0), 0)
	return both / (sa + sb - both)
}

// views returns a function for each input that reads it as real numbers, see [reals].
func views(in []*tensor.Tensor) (list []func(x *tensor.Tensor) []float32, err error) {
	list = make([]func(x *tensor.Tensor) []float32, len(in))
	for i, x := range in {
		if list[i], err = reals(x); err != nil {
			return nil, err
		}
	}
	return list, nil
}
