package align

import (
	"fmt"

	"github.com/opmeter/opmeter/profile"
)

// maker makes profiles of ONNX networks with images of 8 × 8.
type maker struct {
	p profile.Profile
	// dtype is the element type, float32 if empty.
	dtype string
}

func (g *maker) profile() *profile.Profile {
	p := g.p
	p.Schema, p.Model.Name, p.Target = profile.SchemaV1, "net", profile.Target{ID: "host", Kind: profile.TargetHost}
	p.Model.StructureSHA256 = fmt.Sprintf("%064x", text(fmt.Sprint(len(p.Layers), p.Layers)))
	p.Model.SHA256 = p.Model.StructureSHA256
	return &p
}

func (g *maker) tensor(name string, shape []int64, constant bool) profile.Tensor {
	t := profile.Tensor{Name: name, DType: g.dtype, Shape: shape, Constant: constant}
	if t.DType == "" {
		t.DType = "float32"
	}
	return t
}

// last returns the layer that was added last.
func (g *maker) last() *profile.Layer { return &g.p.Layers[len(g.p.Layers)-1] }

// add adds a layer that reads tensors and makes one of its own name.
func (g *maker) add(op, name string, ins []string, shape []int64, constants ...[]int64) string {
	l := profile.Layer{Index: int64(len(g.p.Layers)), Op: op, Name: name, State: profile.Ran}
	for _, in := range ins {
		l.Inputs = append(l.Inputs, g.tensor(in, shape, false))
	}
	for k, c := range constants {
		l.Inputs = append(l.Inputs, g.tensor(fmt.Sprint(name, ".c", k), c, true))
	}
	l.Outputs = []profile.Tensor{g.tensor(name, shape, false)}
	g.p.Layers = append(g.p.Layers, l)
	return name
}

// conv adds a convolution.
func (g *maker) conv(name, in string, channels, kernel int64) string {
	g.add("Conv", name, []string{in}, []int64{1, channels, 8, 8}, []int64{channels, 8, kernel, kernel}, []int64{channels})
	if kernel > 1 {
		g.last().Options = []profile.Option{{Key: "kernel", Value: fmt.Sprintf("%dx%d", kernel, kernel)}}
	}
	return name
}
