package cli

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/compress"
	"github.com/opmeter/opmeter/device"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/record"
	"github.com/opmeter/opmeter/target"
)

func TestTold(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	_, by := machine.MemoryLimit()
	for _, tt := range []struct {
		err    error
		status int
		want   string
	}{
		{&opmeter.OptionError{Option: "Threads", Text: "use 1"}, statusUse, "--threads: use 1"},
		{&opmeter.OptionError{Option: "target", Text: "no target"}, statusUse, "--on: no target; opmeter targets lists them"},
		{&opmeter.OptionError{Option: "target", Text: "did you mean x?"}, statusUse, "--on: did you mean x? opmeter targets lists them"},
		{&opmeter.OptionError{Option: "Unheard", Text: "x"}, statusUse, "Unheard: x"},
		{&opmeter.ModelError{File: "m", Offset: 3, Err: boom}, statusInput, "m at byte 3: boom"},
		{&opmeter.ModelError{File: "m", Offset: -1, Err: opmeter.ErrMemory}, statusInput, "m: not enough memory: use smaller inputs (--shape, --batch) or a higher limit (--max-memory; without it, the limit follows from " + by + ")"},
		{&opmeter.NodeError{File: "m", Node: 1, Op: "Conv", Err: opmeter.ErrMemory}, statusSource, "m: node 1 (Conv): not enough memory: use smaller inputs (--shape, --batch) or a higher limit (--max-memory; without it, the limit follows from " + by + ")"},
		{&target.Error{File: "t", Line: 2, Key: "k", Text: "bad"}, statusInput, "t:2: k: bad"},
		{&opmeter.TooLargeError{File: "m", MaxMACs: 5e9}, statusInput, "m: one inference takes more than 5 G multiply-accumulates: profile this model alone"},
		{&opmeter.NodeError{File: "m", Node: 1, Op: "Conv", Err: boom}, statusSource, "m: node 1 (Conv): boom"},
		{fmt.Errorf("wrapped: %w", &opmeter.NodeError{File: "m", Op: "Conv", Err: boom}), statusSource, "wrapped: m: node 0 (Conv): boom"},
		{&record.Error{File: "r.json", Place: "byte 3", Err: boom}, statusInput, "r.json: byte 3: boom"},
		{boom, statusSource, "boom"},
		{withStatus(statusGate, boom), statusGate, "boom"},
	} {
		got := told(tt.err)
		e, ok := errors.AsType[*statusError](got)
		if !ok || e.status != tt.status || got.Error() != tt.want {
			t.Errorf("%v: %v, want status %d and %q", tt.err, got, tt.status, tt.want)
		}
	}
	if told(nil) != nil {
		t.Error("no error became one")
	}
}

// TestFlagsOfOptions finds every option of the library that the table names in its
// types, so that a renamed field does not lose its flag.
func TestFlagsOfOptions(t *testing.T) {
	t.Parallel()
	// arguments of functions
	fields := map[string]bool{"target": true, "signature": true, "Exclude": true, "Kind": true}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[opmeter.Options](), reflect.TypeFor[opmeter.OutputsOptions](), reflect.TypeFor[opmeter.EstimateOptions](), reflect.TypeFor[record.Options](), reflect.TypeFor[device.Options](),
		reflect.TypeFor[compress.Options](), reflect.TypeFor[compress.SpeedOptions](), reflect.TypeFor[compress.BenchOptions](), reflect.TypeFor[compress.DataOptions](),
		reflect.TypeFor[compress.LossOptions](), reflect.TypeFor[compress.PlanOptions](), reflect.TypeFor[compress.ApplyOptions](),
	} {
		for f := range typ.NumField() {
			fields[typ.Field(f).Name] = true
		}
	}
	for name, in := range map[string]reflect.Type{"Phases.": reflect.TypeFor[opmeter.Phases](), "Lists.": reflect.TypeFor[opmeter.Lists](), "Inputs.": reflect.TypeFor[opmeter.Inputs](), "Engine.": reflect.TypeFor[engine.Engine]()} {
		for f := range in.NumField() {
			fields[name+in.Field(f).Name] = true
		}
	}
	for name := range flags {
		if !fields[name] {
			t.Errorf("the library has no option %q", name)
		}
	}
}
