package profile

import "testing"

func TestLayerAt(t *testing.T) {
	t.Parallel()
	layers := make([]Layer, 3)
	plain := &Profile{Layers: layers, Memory: &Memory{}}
	scopes := &Profile{Layers: layers, Memory: &Memory{StepLayers: []int64{-1, 0, 0, 1, 2}}}
	for _, tt := range []struct {
		name  string
		p     *Profile
		step  int64
		layer int64
		ok    bool
	}{
		{"layers themselves", plain, 2, 2, true},
		{"after the last layer", plain, 3, 0, false},
		{"never", plain, -1, 0, false},
		{"before the first layer", scopes, 0, 0, false},
		{"in a body", scopes, 2, 0, true},
		{"last scope", scopes, 4, 2, true},
		{"after the last scope", scopes, 5, 0, false},
		{"no plan", &Profile{Layers: layers}, 0, 0, false},
	} {
		if l, ok := tt.p.LayerAt(tt.step); ok != tt.ok || ok && l != tt.layer {
			t.Errorf("%s: step %d is layer %d, %v", tt.name, tt.step, l, ok)
		}
	}
}
