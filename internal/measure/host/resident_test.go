package host_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/host"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/model/onnx"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/llm"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/decoder"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// residentFile names the model that a child process of TestResident runs.
const residentFile = "OPMETER_TEST_RESIDENT"

// residentDepth is the number of positions in its cache.
const residentDepth = 900

// residentSizes are the predicted and the measured memory of a decode, in bytes.
type residentSizes struct{ Weights, Caches, Plan, Static, Resident int64 }

// TestResidentChild is the process that TestResident measures.
func TestResidentChild(t *testing.T) {
	file := os.Getenv(residentFile)
	if file == "" {
		return // runs as a child of TestResident only
	}
	before, _ := machine.ResidentBytes()
	m, err := modelfile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := llm.Detect(m, llm.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := l.Feed(inputs.Options{}, llm.Phase{Batch: 1, Tokens: 1, Depth: residentDepth, Buffers: true})
	if err != nil {
		t.Fatal(err)
	}
	in, _, err := inputs.Inputs(m, o)
	if err != nil {
		t.Fatal(err)
	}
	var carries []host.Carry
	for _, p := range l.Pairs(false) {
		carries = append(carries, host.Carry{Output: p[1], Input: p[0]})
	}
	pairs, err := host.Carries(m.Main(), carries)
	if err != nil {
		t.Fatal(err)
	}
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), InPlace: pairs})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	static, err := host.PlanBytes(m, o, carries)
	if err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	after, _ := machine.ResidentBytes()
	arena, _ := s.Memory()
	if err := json.NewEncoder(os.Stdout).Encode(residentSizes{
		Weights: int64(s.WeightBytes(llm.Lookups)), Caches: int64(engine.InputBytes(in)), Plan: int64(arena + s.Working()), Static: static, Resident: *after - *before,
	}); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(in)
	os.Exit(0) // the test would print its result
}

// raceDetector reports whether the tests were built with it.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestResident: weights, caches and plan of a decode are what a process that runs it takes, within
// 3 % beside the program itself.
func TestResident(t *testing.T) {
	t.Parallel()
	if own, _ := machine.ResidentBytes(); own == nil {
		material.Skip(t, "the system does not tell the resident memory of a process")
	}
	if raceDetector() {
		t.Skip("the race detector takes memory for each word that is written")
	}
	for _, shared := range []bool{false, true} {
		data, err := onnx.Encode(decoder.New(decoder.Config{Layers: 4, Width: 640, Heads: 10, KVHeads: 10, HeadSize: 64, MLP: 2560, Vocabulary: 1000, Context: 1024, Shared: shared}))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "decoder.onnx")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(os.Args[0], "-test.run=^TestResidentChild$")
		c.Env = append(os.Environ(), residentFile+"="+file)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var got residentSizes
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		const program = 6 << 20 // its heap, with the description of the model
		predicted := got.Weights + got.Caches + got.Plan
		if d := float64(got.Resident - predicted); d < -0.03*float64(predicted) || d > 0.03*float64(predicted)+program {
			t.Errorf("shared %v: %+v, together %d", shared, got, predicted)
		}
		if got.Static != got.Plan {
			t.Errorf("shared %v: a plan of shapes takes %d bytes, want %d", shared, got.Static, got.Plan)
		}
	}
}
