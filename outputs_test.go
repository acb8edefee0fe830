package opmeter_test

import (
	"errors"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/profile/divergence"
)

// TestCompareOutputs compares an example with itself, in both settings of names and inputs.
func TestCompareOutputs(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open("examples/ds_cnn.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := opmeter.CompareOutputs(t.Context(), m, m, opmeter.OutputsOptions{Inputs: opmeter.Inputs{Zeros: true}, Names: [2]string{"before", "after"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict.Code != divergence.Equal || r.Verdict.Compared < 10 || r.Inputs != "zeros" || r.Schema != divergence.SchemaV1 {
		t.Errorf("%+v of %s inputs", r.Verdict, r.Inputs)
	}
	for k, name := range []string{"before", "after"} {
		if s := r.Sides[k]; s.Name != name || s.Engine != "opmeter" || s.Model != "ds_cnn" || s.SHA256 == "" {
			t.Errorf("side %d: %+v", k, s)
		}
	}
	for name, o := range map[string]opmeter.OutputsOptions{
		"LimitBytes": {LimitBytes: -1}, "Engine": {Engines: [2]*engine.Engine{nil, {Name: "tflm", Command: "x"}}}, "Threads": {Threads: -1},
	} {
		_, err := opmeter.CompareOutputs(t.Context(), m, m, o)
		if e, ok := errors.AsType[*opmeter.OptionError](err); !ok || e.Option != name {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
