package signal

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/model/flexbuffer"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// Defs lists the operators of this package.
func Defs() []op.Def {
	defs := slices.Concat(frontendDefs(), transformDefs(), frameDefs(), complexDefs())
	for i := range defs {
		defs[i].Types = types[defs[i].Name]
	}
	return defs
}

// types lists the element types of the main inputs.
var types = func() map[string][]tensor.Type {
	short, word, points := []tensor.Type{tensor.Int16}, []tensor.Type{tensor.Uint32}, []tensor.Type{tensor.Complex64, tensor.Complex128}
	waves := []tensor.Type{tensor.Int16, tensor.Int32, tensor.Float32}
	return map[string][]tensor.Type{
		"SignalWindow": short, "SignalFftAutoScale": short, "SignalEnergy": short, "SignalDelay": short, "SignalFramer": short, "SignalStacker": short,
		"SignalRfft": waves, "SignalIrfft": waves, "SignalOverlapAdd": {tensor.Int16, tensor.Float32}, "SignalFilterBank": word,
		"SignalFilterBankSquareRoot": {tensor.Uint64}, "SignalFilterBankSpectralSubtraction": word, "SignalPCAN": word, "SignalFilterBankLog": word,
		"RFFT2D": {tensor.Float32}, "COMPLEX_ABS": points, "REAL": points, "IMAG": points, "CIRCULAR_BUFFER": {tensor.Int8},
	}
}()

func micro(name string, infer func(c *op.Call) error, prepare func(c *op.Call) (op.Run, error)) op.Def {
	return op.Def{Domain: graph.TFLiteCustom, Name: name, Infer: infer, Prepare: prepare}
}

func stateful(d op.Def) op.Def {
	d.Stateful = true
	return d
}

// optionsOf parses a custom operator's options. No options are an empty map.
func optionsOf(c *op.Call) (flexbuffer.Value, error) {
	b, _ := c.Node.Attrs["custom_options"].([]byte)
	if len(b) == 0 {
		return flexbuffer.Value{}, nil
	}
	v, err := flexbuffer.Parse(b)
	if err != nil {
		return flexbuffer.Value{}, fmt.Errorf("custom options: %w", err)
	}
	return v, nil
}

// sessionSlice returns the node's memory between runs, zero at first.
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
