package pytorch

import (
	"bytes"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/record/traceevent"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// ops numbers the different operators: names with the shapes and types of their inputs.
type ops struct {
	list []op
	at   map[string]int32
	key  []byte
}

type op struct {
	name   string
	inputs []profile.Tensor
	module string
	values []byte // arguments that are not tensors, as long as all calls agree
	varies bool
	flops  float64 // of a call, 0 for not known
}

// operator gives the number of the operator under way.
func (p *part) operator(name []byte, a *aux) int32 {
	var shapes, types, values, module, flops []byte
	p.e.Each(func(k, v []byte) {
		switch string(k) {
		case "External id", "external id":
			if n, ok := jsonscan.Int(v); ok {
				a.external = n
			}
		case "Input Dims", "Input dims":
			shapes = v
		case "Input type", "Input Types":
			types = v
		case "Concrete Inputs":
			values = v
		case "Module Hierarchy":
			module = v
		case "flops", "FLOPs":
			flops = v
		}
	})
	o := &p.run.ops
	o.key = append(append(append(append(append(o.key[:0], name...), 0), shapes...), 0), types...)
	n, ok := o.at[string(o.key)]
	if !ok {
		if o.at == nil {
			o.at = map[string]int32{}
		}
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

// inputs makes tensors of the lists of shapes and types.
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
			// old records do not tell numbers from tensors without dimensions
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
			out[i] = profile.Tensor{Absent: true} // no tensors: see the values
		default:
			out[i].DType = dtype(s)
		}
		i++
	})
	return out
}

// dtype is the name of an element type of C++ in opmeter's words; others stand as they are.
func dtype(s string) string {
	switch s {
	case "float":
		return "float32"
	case "double":
		return "float64"
	case "c10::Half":
		return "float16"
	case "c10::BFloat16":
		return "bfloat16"
	case "long int", "long", "long long":
		return "int64"
	case "int":
		return "int32"
	case "short", "short int":
		return "int16"
	case "signed char", "char":
		return "int8"
	case "unsigned char":
		return "uint8"
	case "c10::complex<float>":
		return "complex64"
	case "c10::complex<double>":
		return "complex128"
	}
	return track.Clip([]byte(strings.TrimPrefix(s, "c10::")))
}
