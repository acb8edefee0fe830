// Package signal implements TFLite's spectral operators (RFFT2D and complex numbers) and the
// Signal operators of TensorFlow Lite Micro, the fixed-point front end of audio models: windows,
// Fourier transforms, filter banks, noise suppression, gain control, and the stateful buffers
// between frames. The fixed-point operators are bit-exact with the reference library.
package signal

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/flexbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
	"github.com/opmeter/opmeter/internal/runtime/tfliteop/layer"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	short, waves := []tensor.Type{tensor.Int16}, []tensor.Type{tensor.Int16, tensor.Int32, tensor.Float32}
	word, points := []tensor.Type{tensor.Uint32}, []tensor.Type{tensor.Complex64, tensor.Complex128}
	def := func(name string, types []tensor.Type) op.Def {
		return op.Def{Domain: graph.TFLiteCustom, Name: name, Types: types}
	}
	simple := func(name string, types []tensor.Type, infer func(c *op.Call) error, prepare func(c *op.Call) (op.Run, error)) op.Def {
		d := def(name, types)
		d.Infer, d.Prepare = infer, prepare
		return d
	}
	stateful := func(d op.Def) op.Def {
		d.Stateful = true
		return d
	}
	lite := func(d op.Def) op.Def {
		d.Domain = graph.TFLite
		return d
	}
	return []op.Def{
		simple("SignalWindow", short, like(tensor.Int16, checkWindow, tensor.Int16, tensor.Int16), withOptions(prepareWindow)),
		simple("SignalFftAutoScale", short, like(tensor.Int16, inferShift, tensor.Int16), op.Simple(runAutoScale)),
		simple("SignalEnergy", short, inferEnergy, withOptions(prepareEnergy)),
		simple("SignalFilterBank", word, inferFilterBank, op.Simple(runFilterBank)),
		simple("SignalFilterBankSquareRoot", []tensor.Type{tensor.Uint64}, like(tensor.Uint32, checkScale, tensor.Uint64, tensor.Int32), op.Simple(runSquareRoot)),
		stateful(simple("SignalFilterBankSpectralSubtraction", word, like(tensor.Uint32, inferNoise, tensor.Uint32), withOptions(prepareSubtraction))),
		simple("SignalPCAN", word, like(tensor.Uint32, checkPCAN, tensor.Uint32, tensor.Uint32, tensor.Int16), withOptions(preparePCAN)),
		simple("SignalFilterBankLog", word, like(tensor.Int16, nil, tensor.Uint32), withOptions(prepareLog)),
		layer.Shaped(def("SignalRfft", waves), shapeRfft, inferTransform, prepareRfft),
		layer.Shaped(def("SignalIrfft", waves), shapeIrfft, inferTransform, prepareIrfft),
		stateful(simple("SignalDelay", short, like(tensor.Int16, nil, tensor.Int16), withOptions(prepareDelay))),
		stateful(layer.Shaped(def("SignalOverlapAdd", []tensor.Type{tensor.Int16, tensor.Float32}), shapeOverlap, inferOverlapAdd, prepareOverlapAdd)),
		stateful(layer.Shaped(def("SignalFramer", short), shapeFramer, inferFramer, prepareFramer)),
		stateful(layer.Shaped(def("SignalStacker", short), shapeStacker, inferStacker, prepareStacker)),
		stateful(simple("CIRCULAR_BUFFER", []tensor.Type{tensor.Int8}, inferCircular, prepareCircular)),
		lite(simple("RFFT2D", []tensor.Type{tensor.Float32}, inferRfft2D, prepareRfft2D)),
		lite(simple("COMPLEX_ABS", points, inferPart, op.Simple(runPart(size)))),
		lite(simple("REAL", points, inferPart, op.Simple(runPart(func(z complex128) float64 { return real(z) })))),
		lite(simple("IMAG", points, inferPart, op.Simple(runPart(func(z complex128) float64 { return imag(z) })))),
	}
}

// optionsOf parses a custom operator's options. Absent options are an empty map.
func optionsOf(c *op.Call) (flexbuffer.Value, error) {
	if b, _ := c.Node.Attrs["custom_options"].([]byte); len(b) == 0 {
		return flexbuffer.Value{}, nil
	}
	return layer.Options(c)
}

// sessionSlice returns memory that the node keeps between runs, zero before the first one.
func sessionSlice[T any](c *op.Call, n int) []T {
	key := fmt.Sprintf("signal/%d/%d", c.Graph.Index, c.Node.Index)
	if s, ok := c.Env.State(key).([]T); ok && len(s) == n {
		return s
	}
	s := make([]T, n)
	c.Env.SetState(key, s)
	return s
}

// lastAxis splits a shape into its rows and their length.
func lastAxis(x *tensor.Tensor) (rows, n int, err error) {
	if x.Rank() == 0 {
		return 0, 0, fmt.Errorf("a scalar has no last axis")
	}
	n = x.Shape[x.Rank()-1]
	return tensor.Elements(x.Shape[:x.Rank()-1]), n, nil
}

// withLast replaces the last dimension.
func withLast(shape []int, n ...int) []int {
	return append(slices.Clone(shape[:len(shape)-1]), n...)
}

// withOptions makes a Prepare function from one that takes the options.
func withOptions(prepare func(c *op.Call, o flexbuffer.Value) (op.Run, error)) func(c *op.Call) (op.Run, error) {
	return func(c *op.Call) (op.Run, error) {
		o, err := optionsOf(c)
		if err != nil {
			return nil, err
		}
		return prepare(c, o)
	}
}

// want checks the types of the inputs.
func want(c *op.Call, types ...tensor.Type) error {
	if err := c.NeedInputs(len(types)); err != nil {
		return err
	}
	for i, t := range types {
		if c.In[i].Type != t {
			return op.Unsupported("input %d of type %v", i, c.In[i].Type)
		}
	}
	return nil
}

// like gives output 0 a type and the shape of input 0. It checks the types of the inputs and calls
// check, which may be nil.
func like(out tensor.Type, check func(c *op.Call) error, in ...tensor.Type) func(c *op.Call) error {
	return func(c *op.Call) error {
		if err := want(c, in...); err != nil {
			return err
		}
		c.SetOut(0, out, c.In[0].Shape)
		if check == nil {
			return nil
		}
		return check(c)
	}
}
