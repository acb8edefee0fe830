package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// chained connects the layers of a profile in a row, and takes their nodes away.
func chained(p *profile.Profile, hash, dtype string) *profile.Profile {
	p.Model.StructureSHA256 = strings.Repeat(hash, 64)
	for i := range p.Layers {
		l := &p.Layers[i]
		l.Provenance, l.Name = nil, ""
		tensor := func(k int) []profile.Tensor {
			return []profile.Tensor{{Name: hash + string(rune('a'+k)), DType: dtype, Shape: []int64{1, 8, 4, 4}}}
		}
		l.Inputs, l.Outputs = tensor(i), tensor(i+1)
	}
	return p
}

// TestGroupKinds: rows of different models say how their layers differ from those of the first.
func TestGroupKinds(t *testing.T) {
	t.Parallel()
	float := chained(run("a", 10, .1, row("Conv", 4, .1), row("Relu", 1, .1), row("MaxPool", 2, .1), row("Softmax", 3, .1)), "a", "float32")
	half := chained(run("b", 8, .1, row("Conv", 3, .1), row("Relu", 1, .1), row("MaxPool", 2, .1), row("Softmax", 2, .1)), "b", "float16")
	shorter := chained(run("c", 7, .1, row("Conv", 4, .1), row("MaxPool", 2, .1), row("Softmax", 1, .1)), "c", "float32")
	for _, tt := range []struct {
		name string
		ps   []*profile.Profile
		want []string
	}{
		{"half precision", []*profile.Profile{float, half}, []string{"Conv quantised certain", "Relu quantised certain", "MaxPool quantised certain", "Softmax quantised certain"}},
		{"one less", []*profile.Profile{float, shorter}, []string{"Conv same certain", "Relu removed", "MaxPool same certain", "Softmax same certain"}},
		{"one more", []*profile.Profile{shorter, float}, []string{"Conv same certain", "MaxPool same certain", "Softmax same certain", "Relu inserted"}},
		{"three", []*profile.Profile{float, half, shorter}, []string{"Conv quantised certain", "Relu quantised certain", "MaxPool quantised certain", "Softmax quantised certain"}},
	} {
		var got []string
		for _, g := range table(t, tt.ps...).Groups {
			s := g.Op + " " + string(g.Kind)
			if g.Certain {
				s += " certain"
			}
			if g.Kind != align.Removed && g.Kind != align.Inserted && g.Confidence != align.ByStructure {
				t.Errorf("%s: %s was found %s", tt.name, g.Op, g.Confidence)
			}
			got = append(got, s)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
