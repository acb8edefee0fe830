package device_test

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/device"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// A program names the layers of the profile, carries the model's hash, and follows the
// seed of the inputs and nothing else.
func TestNewProgram(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open(material.Path(t, "models", "mcu", "mlperf_kws_ref_model.tflite"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	profile, err := opmeter.Count(m, opmeter.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	make := func(seed uint64) *device.Program {
		p, err := device.NewProgram(m, device.ProgramOptions{Inputs: opmeter.Inputs{Seed: seed}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := make(0)
	if len(p.Layers) != len(profile.Layers) || len(p.Outputs) != 1 || p.InputBytes != 490 || p.ArenaBytes == 0 {
		t.Fatalf("%d layers of %d, outputs %v, %d bytes of inputs", len(p.Layers), len(profile.Layers), p.Outputs, p.InputBytes)
	}
	source := string(p.Files["model.c"])
	for i, l := range p.Layers {
		if !strings.Contains(source, "OP_BEGIN("+strconv.Itoa(l)+", \""+profile.Layers[l].Op+"\")") || l != i {
			t.Errorf("layer %d, %s is absent", l, profile.Layers[l].Op)
		}
	}
	if !strings.Contains(source, "\""+profile.Model.SHA256+"\"") || profile.Model.SHA256 == "" {
		t.Error("the hash of the model is absent")
	}
	again, other := make(0), make(1)
	for name, data := range p.Files {
		if !bytes.Equal(data, again.Files[name]) {
			t.Errorf("%s differs from one time to the next", name)
		}
		if same := bytes.Equal(data, other.Files[name]); same == (name == "model_data.c") {
			t.Errorf("%s with other inputs: equal %v", name, same)
		}
	}
}

// What has no C is listed; wrong options are refused by name.
func TestNoProgram(t *testing.T) {
	t.Parallel()
	m, err := opmeter.Open(material.Path(t, "models", "mcu", "tflm_hello_world_float.tflite"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, err = device.NewProgram(m, device.ProgramOptions{})
	e, ok := errors.AsType[*device.UnsupportedError](err)
	if !ok || len(e.Layers) != 3 || e.Layers[2].Layer != 2 || e.Layers[2].Op != "FULLY_CONNECTED" || !strings.Contains(err.Error(), "float32") {
		t.Errorf("a float model: %v", err)
	}
	_, err = device.NewProgram(m, device.ProgramOptions{MaxMemory: -1})
	if e, ok := errors.AsType[*opmeter.OptionError](err); !ok || e.Option != "MaxMemory" {
		t.Errorf("a negative limit: %v", err)
	}
}
