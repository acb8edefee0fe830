package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestRefusedFirst shows what the MLTK profiler shows of a layer that a kernel of the
// accelerator refused before another one took it: accelerated, and not supported.
func TestRefusedFirst(t *testing.T) {
	t.Parallel()
	p := accelerated()
	p.Layers[0].Placement.Cause, p.Layers[0].Placement.Text = profile.ByLimit, "weights_shape[1] (1470) > 1024"
	var b bytes.Buffer
	if err := Write(&b, p, "mltk", Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Unsupported Layer Count: 2\n", "| 300.0k", "| False      | weights_shape[1] (1470) > 1024"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := Write(&b, p, "table", Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "1470") {
		t.Errorf("the table speaks of a refusal that did not matter:\n%s", b.String())
	}
}
