package host

import (
	"errors"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/op"
)

// TestStreamsWithinLimit: streams share the limit of the model. Where one has no memory for a
// layer, its time is not that of the model and the load has no figure.
func TestStreamsWithinLimit(t *testing.T) {
	t.Parallel()
	const bytes = 4 << 20
	m := newModel(1)
	x := m.value(0, "x", tensor.Float32, bytes/4)
	y := m.value(0, "y", tensor.Float32, bytes/4)
	m.node(0, "Relu", []int{x}, []int{y}, nil)
	m.m.Graphs[0].Inputs, m.m.Graphs[0].Outputs = []int{x}, []int{y}
	for _, c := range []struct {
		streams int
		limit   int // in tensors: the input, and the output of each stream
		fits    bool
	}{{1, 2, true}, {2, 2, false}, {2, 4, true}} {
		o := options()
		o.Streams, o.Feed.MaxBytes = c.streams, c.limit*bytes+4096
		p, err := profiled(t.Context(), m.m, o)
		var le *op.LimitError
		if c.fits != (err == nil) || !c.fits && (!errors.As(err, &le) || le.Limit != o.Feed.MaxBytes || !strings.Contains(err.Error(), "stream 2 of 2")) {
			t.Errorf("%d streams within %d tensors: %v", c.streams, c.limit, err)
		}
		if !c.fits && (p == nil || p.Totals.Figure("throughput_per_s") != nil) {
			t.Errorf("%d streams within %d tensors: profile %v with a throughput", c.streams, c.limit, p != nil)
		}
	}
}
