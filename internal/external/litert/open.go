//go:build (darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64))

package litert

import (
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/opmeter/opmeter/internal/external"
)

// api holds the functions of the library.
type api struct {
	createEnvironment, destroyEnvironment                      uintptr
	numAccelerators, accelerator, acceleratorName, hardware    uintptr
	createModel, destroyModel, mainSubgraph, modelSubgraph     uintptr
	numSignatures, signature, signatureSubgraph                uintptr
	numInputs, input, numOutputs, output, tensorName, tensorOf uintptr
	createOptions, destroyOptions, setAccelerators             uintptr
	createOpaque, addOpaque                                    uintptr
	createCompiled, destroyCompiled, run                       uintptr
	inputNeeds, outputNeeds, inputLayout, outputLayouts        uintptr
	resize, fullyAccelerated, errorMessages                    uintptr
	createBuffer, destroyBuffer, lock, unlock, bufferSize      uintptr
	profiler, startProfiler, stopProfiler, resetProfiler       uintptr
	numEvents, events                                          uintptr

	// noop is a no-op function of one pointer argument. It is the deleter of options, which point
	// to pinned memory of this process that the library must not free.
	noop uintptr
}

func (a *api) table() []symbol {
	return []symbol{
		{"LiteRtCreateEnvironment", &a.createEnvironment},
		{"LiteRtDestroyEnvironment", &a.destroyEnvironment},
		{"LiteRtGetNumAccelerators", &a.numAccelerators},
		{"LiteRtGetAccelerator", &a.accelerator},
		{"LiteRtGetAcceleratorName", &a.acceleratorName},
		{"LiteRtGetAcceleratorHardwareSupport", &a.hardware},
		{"LiteRtCreateModelFromFile", &a.createModel},
		{"LiteRtDestroyModel", &a.destroyModel},
		{"LiteRtGetMainModelSubgraphIndex", &a.mainSubgraph},
		{"LiteRtGetModelSubgraph", &a.modelSubgraph},
		{"LiteRtGetNumModelSignatures", &a.numSignatures},
		{"LiteRtGetModelSignature", &a.signature},
		{"LiteRtGetSignatureSubgraph", &a.signatureSubgraph},
		{"LiteRtGetNumSubgraphInputs", &a.numInputs},
		{"LiteRtGetSubgraphInput", &a.input},
		{"LiteRtGetNumSubgraphOutputs", &a.numOutputs},
		{"LiteRtGetSubgraphOutput", &a.output},
		{"LiteRtGetTensorName", &a.tensorName},
		{"LiteRtGetRankedTensorType", &a.tensorOf},
		{"LiteRtCreateOptions", &a.createOptions},
		{"LiteRtDestroyOptions", &a.destroyOptions},
		{"LiteRtSetOptionsHardwareAccelerators", &a.setAccelerators},
		{"LiteRtCreateOpaqueOptions", &a.createOpaque},
		{"LiteRtAddOpaqueOptions", &a.addOpaque},
		{"LiteRtCreateCompiledModel", &a.createCompiled},
		{"LiteRtDestroyCompiledModel", &a.destroyCompiled},
		{"LiteRtRunCompiledModel", &a.run},
		{"LiteRtGetCompiledModelInputBufferRequirements", &a.inputNeeds},
		{"LiteRtGetCompiledModelOutputBufferRequirements", &a.outputNeeds},
		{"LiteRtGetCompiledModelInputTensorLayout", &a.inputLayout},
		{"LiteRtGetCompiledModelOutputTensorLayouts", &a.outputLayouts},
		{"LiteRtCompiledModelResizeInputTensorNonStrict", &a.resize},
		{"LiteRtCompiledModelIsFullyAccelerated", &a.fullyAccelerated},
		{"LiteRtCompiledModelGetErrorMessages", &a.errorMessages},
		{"LiteRtCreateManagedTensorBufferFromRequirements", &a.createBuffer},
		{"LiteRtDestroyTensorBuffer", &a.destroyBuffer},
		{"LiteRtLockTensorBuffer", &a.lock},
		{"LiteRtUnlockTensorBuffer", &a.unlock},
		{"LiteRtGetTensorBufferSize", &a.bufferSize},
		{"LiteRtCompiledModelGetProfiler", &a.profiler},
		{"LiteRtStartProfiler", &a.startProfiler},
		{"LiteRtStopProfiler", &a.stopProfiler},
		{"LiteRtResetProfiler", &a.resetProfiler},
		{"LiteRtGetNumProfilerEvents", &a.numEvents},
		{"LiteRtGetProfilerEvents", &a.events},
	}
}

type symbol struct {
	name string
	at   *uintptr
}

// noopCallback is created once: callbacks cannot be freed.
var noopCallback = purego.NewCallback(func(uintptr) uintptr { return 0 })

// load opens the library and finds its functions. The library stays open for the life of the
// process: it starts threads and keeps memory that cannot be released.
func load(path string) (*api, error) {
	handle, err := open(path)
	if err != nil {
		return nil, external.Errorf(external.NotLibrary, "%s cannot be opened as a library of LiteRT: %v. Name libLiteRt.so of the PyPI package ai-edge-litert 2.1 or later.", path, err)
	}
	a := &api{noop: noopCallback}
	known := 0
	missing := ""
	for _, s := range a.table() {
		if *s.at, err = find(handle, s.name); err != nil || *s.at == 0 {
			if missing == "" {
				missing = s.name
			}
			continue
		}
		known++
	}
	switch {
	case known == 0:
		return nil, external.Errorf(external.NotLibrary, "%s is a library, but not LiteRT: it has none of its functions. Name libLiteRt.so of the PyPI package ai-edge-litert 2.1 or later.", path)
	case missing != "":
		return nil, external.Errorf(external.TooOld, "%s is a LiteRT without %s. 2.1 or later is needed: install the PyPI package ai-edge-litert 2.3.0.", path, missing)
	}
	return a, nil
}

// call calls a function that returns a status. Pointers in args are not moved until it returns.
//
//go:uintptrescapes
func call(fn uintptr, args ...uintptr) status {
	r, _, _ := purego.SyscallN(fn, args...)
	return status(int32(uint32(r))) //nolint:gosec // the result is a C enumeration in the low half
}

// free destroys the object of a handle, unless the handle is nil.
func (a *api) free(fn uintptr, h handle) {
	if h != nil {
		purego.SyscallN(fn, uintptr(h))
	}
}

// handle is a pointer to an object of the library.
type handle = unsafe.Pointer
