package pytorch

import (
	"bytes"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// ops numbers operators by name, shapes and types of inputs.
type ops struct {
	list []op
	at   map[string]int32
	key  []byte
}

type op struct {
	name   string
	inputs []profile.Tensor
	module string
	values []byte // other arguments, if equal in all calls
	varies bool
	flops  float64 // per call, 0 if unknown
}

// operator returns the number of the current operator.
func (p *part) operator(name []byte, a *aux) int32 {
	var shapes, types, values, module, flops []byte
	p.e.Fields("External id", &a.external, "external id", &a.external, "Input Dims", &shapes, "Input dims", &shapes,
		"Input type", &types, "Input Types", &types, "Concrete Inputs", &values, "Module Hierarchy", &module,
		"flops", &flops, "FLOPs", &flops)
	o := &p.run.ops
	o.key = traceevent.Key(o.key, name, shapes, types)
	n, ok := o.at[string(o.key)]
	if !ok {
		if len(o.list) >= track.MaxLayers {
			o.key = append(o.key[:0], "operators beyond the first 50,000"...)
			name, shapes, types, values, module = o.key, nil, nil, nil, nil
			if n, ok := o.at[string(o.key)]; ok {
				return n
			}
		}
		n = int32(len(o.list))
		o.at[string(o.key)] = n
		x := op{name: track.Clip(name), inputs: inputs(shapes, types), module: track.Clip(traceevent.Text(module))}
		if x.name == "" {
			x.name = "(unnamed)"
		}
		x.flops, _ = jsonscan.Number(flops)
		if len(values) < 400 {
			x.values = bytes.Clone(values)
		}
		o.list = append(o.list, x)
		return n
	}
	if x := &o.list[n]; !x.varies && !bytes.Equal(x.values, values) {
		x.values, x.varies = nil, true
	}
	return n
}

// inputs returns tensors with these shapes and types.
func inputs(shapes, types []byte) (out []profile.Tensor) {
	const most = 200
	traceevent.Elements(shapes, func(v []byte) {
		if len(out) >= most {
			return
		}
		t := profile.Tensor{Shape: []int64{}}
		traceevent.Elements(v, func(d []byte) {
			n, ok := jsonscan.Int(d)
			if !ok || n < 0 || t.Shape == nil || len(t.Shape) >= 64 {
				t.Shape = nil // a list of tensors
				return
			}
			t.Shape = append(t.Shape, n)
		})
		out = append(out, t)
	})
	for i := range out {
		if types == nil && out[i].Shape != nil && len(out[i].Shape) == 0 {
			// Old traces do not distinguish numbers from tensors without dimensions.
			out[i] = profile.Tensor{Absent: true}
		}
	}
	i := 0
	traceevent.Elements(types, func(v []byte) {
		if i >= most {
			return
		}
		if i >= len(out) {
			out = append(out, profile.Tensor{})
		}
		switch s := string(traceevent.Text(v)); s {
		case "", "Scalar", "ScalarList":
			out[i] = profile.Tensor{Absent: true} // not a tensor
		default:
			out[i].DType = dtype(s)
		}
		i++
	})
	return out
}

// dtypes holds element types of C++ and their names in profiles.
var dtypes = map[string]string{
	"float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
	"long int": "int64", "long": "int64", "long long": "int64", "int": "int32",
	"short": "int16", "short int": "int16", "signed char": "int8", "char": "int8", "unsigned char": "uint8",
	"c10::complex<float>": "complex64", "c10::complex<double>": "complex128",
}

// dtype returns the name of an element type. Types that are not in the table keep their name.
func dtype(s string) string {
	if t, ok := dtypes[s]; ok {
		return t
	}
	return track.Clip([]byte(strings.TrimPrefix(s, "c10::")))
}
