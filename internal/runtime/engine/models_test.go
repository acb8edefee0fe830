package engine_test

import (
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// allocate lists the models that allocate in a run, with the maximum number of allocations: scans
// return copies of their last iteration's results, and maps are created anew, because the
// sequences that collect them keep them.
var allocate = map[string]uint64{
	"sklearn_randomforest.onnx":    7,
	"tract_qlstm_3-2-3_T3_S1.onnx": 53,
}

// TestModelsDoNotAllocate counts the allocations of models in the steady state.
func TestModelsDoNotAllocate(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, which comes with -short, drops returned scratch buffers")
	}
	var files []string
	for _, dir := range []string{"real", "mcu"} {
		found, err := filepath.Glob(filepath.Join(material.Path(t, "models", dir), "*"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	// Keep pooled scratch buffers, on one processor, so that the next request finds them.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const runs = 10
	tried, free := 0, 0
	for _, f := range files {
		n, ok := allocations(t, f, runs)
		if !ok {
			continue
		}
		tried++
		most := allocate[filepath.Base(f)]
		switch {
		case n == 0:
			free++
		case n > most:
			t.Errorf("%s: %d allocations a run", filepath.Base(f), n)
		default:
			t.Logf("%s: %d allocations a run", filepath.Base(f), n)
		}
	}
	t.Logf("%d of %d models allocate nothing", free, tried)
}

// allocations counts the allocations of a run; ok is false for models that do not run without
// special inputs, and for large models.
func allocations(t *testing.T, file string, runs int) (n uint64, ok bool) {
	t.Helper()
	m, err := modelfile.Open(file)
	if err != nil {
		return 0, false
	}
	if m.Close != nil {
		defer func() { _ = m.Close() }()
	}
	in, _, err := inputs.Inputs(m, inputs.Options{Seed: 1})
	if err != nil {
		return 0, false
	}
	s, err := engine.New(m, in, engine.Options{Registry: operators.Registry(), Threads: 1, MaxBytes: 64 << 20})
	if err != nil {
		return 0, false
	}
	defer runtime.GC()
	defer s.Close()
	// Pooled scratch buffers grow to the largest size that any loop requests within a few runs.
	for range 12 {
		if s.Run(t.Context()) != nil {
			return 0, false
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / uint64(runs), true
}
