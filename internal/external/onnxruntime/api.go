package onnxruntime

import (
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/opmeter/opmeter/internal/external"
)

// functions are the addresses of the functions used from the table OrtApi, by their slots in
// onnxruntime_c_api.h. The table only grows.
type functions struct {
	GetErrorCode                     uintptr `slot:"1"`
	GetErrorMessage                  uintptr `slot:"2"`
	CreateEnv                        uintptr `slot:"3"`
	DisableTelemetryEvents           uintptr `slot:"6"`
	CreateSession                    uintptr `slot:"7"`
	Run                              uintptr `slot:"9"`
	CreateSessionOptions             uintptr `slot:"10"`
	SetOptimizedModelFilePath        uintptr `slot:"11"`
	SetSessionExecutionMode          uintptr `slot:"13"`
	EnableProfiling                  uintptr `slot:"14"`
	EnableMemPattern                 uintptr `slot:"16"`
	DisableMemPattern                uintptr `slot:"17"`
	EnableCpuMemArena                uintptr `slot:"18"`
	DisableCpuMemArena               uintptr `slot:"19"`
	SetSessionLogSeverityLevel       uintptr `slot:"22"`
	SetSessionGraphOptimizationLevel uintptr `slot:"23"`
	SetIntraOpNumThreads             uintptr `slot:"24"`
	SetInterOpNumThreads             uintptr `slot:"25"`
	SessionGetInputCount             uintptr `slot:"30"`
	SessionGetOutputCount            uintptr `slot:"31"`
	SessionGetInputTypeInfo          uintptr `slot:"33"`
	SessionGetOutputTypeInfo         uintptr `slot:"34"`
	SessionGetInputName              uintptr `slot:"36"`
	SessionGetOutputName             uintptr `slot:"37"`
	CreateTensorAsOrtValue           uintptr `slot:"48"`
	GetTensorMutableData             uintptr `slot:"51"`
	FillStringTensor                 uintptr `slot:"52"`
	GetStringTensorDataLength        uintptr `slot:"53"`
	GetStringTensorContent           uintptr `slot:"54"`
	CastTypeInfoToTensorInfo         uintptr `slot:"55"`
	GetOnnxTypeFromTypeInfo          uintptr `slot:"56"`
	GetTensorElementType             uintptr `slot:"60"`
	GetDimensionsCount               uintptr `slot:"61"`
	GetDimensions                    uintptr `slot:"62"`
	GetTensorTypeAndShape            uintptr `slot:"65"`
	GetValueType                     uintptr `slot:"67"`
	CreateCpuMemoryInfo              uintptr `slot:"69"`
	AllocatorFree                    uintptr `slot:"76"`
	GetAllocatorWithDefaultOptions   uintptr `slot:"78"`
	ReleaseStatus                    uintptr `slot:"93"`
	ReleaseMemoryInfo                uintptr `slot:"94"`
	ReleaseSession                   uintptr `slot:"95"`
	ReleaseValue                     uintptr `slot:"96"`
	ReleaseTypeInfo                  uintptr `slot:"98"`
	ReleaseTensorTypeAndShapeInfo    uintptr `slot:"99"`
	ReleaseSessionOptions            uintptr `slot:"100"`
	SessionEndProfiling              uintptr `slot:"110"`
	GetAvailableProviders            uintptr `slot:"125"`
	ReleaseAvailableProviders        uintptr `slot:"126"`
	AddSessionConfigEntry            uintptr `slot:"130"`
	CreateAllocator                  uintptr `slot:"131"`
	ReleaseAllocator                 uintptr `slot:"132"`
	SessionGetProfilingStartTimeNs   uintptr `slot:"146"`
	AppendTensorRT                   uintptr `slot:"170" name:"SessionOptionsAppendExecutionProvider_TensorRT_V2"`
	CreateTensorRTProviderOptions    uintptr `slot:"171"`
	UpdateTensorRTProviderOptions    uintptr `slot:"172"`
	ReleaseTensorRTProviderOptions   uintptr `slot:"174"`
	HasValue                         uintptr `slot:"192"`
	AppendCUDA                       uintptr `slot:"204" name:"SessionOptionsAppendExecutionProvider_CUDA_V2"`
	CreateCUDAProviderOptions        uintptr `slot:"205"`
	UpdateCUDAProviderOptions        uintptr `slot:"206"`
	ReleaseCUDAProviderOptions       uintptr `slot:"208"`
	Append                           uintptr `slot:"216" name:"SessionOptionsAppendExecutionProvider"`
	AppendCANN                       uintptr `slot:"220" name:"SessionOptionsAppendExecutionProvider_CANN"`
	CreateCANNProviderOptions        uintptr `slot:"221"`
	UpdateCANNProviderOptions        uintptr `slot:"222"`
	ReleaseCANNProviderOptions       uintptr `slot:"224"`
	AppendDnnl                       uintptr `slot:"239" name:"SessionOptionsAppendExecutionProvider_Dnnl"`
	CreateDnnlProviderOptions        uintptr `slot:"240"`
	UpdateDnnlProviderOptions        uintptr `slot:"241"`
	ReleaseDnnlProviderOptions       uintptr `slot:"243"`
	GetBuildInfoString               uintptr `slot:"254"`

	// Of version 23; 0 in older ones.
	GetKeyValue          uintptr `slot:"297" since:"23"`
	ReleaseKeyValuePairs uintptr `slot:"300" since:"23"`
	AllocatorGetStats    uintptr `slot:"319" since:"23"`
}

// Versions of the table.
const (
	needed    = 16 // has all that is needed
	withStats = 23 // has arena statistics
)

// fill reads the addresses from a table of a version.
func (f *functions) fill(table uintptr, version int) error {
	v := reflect.ValueOf(f).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		since, _ := strconv.Atoi(tag.Get("since"))
		if since > version {
			continue
		}
		slot, err := strconv.Atoi(tag.Get("slot"))
		if err != nil {
			return fmt.Errorf("%s: %w", v.Type().Field(i).Name, err)
		}
		addr := *(*uintptr)(at(table + uintptr(slot)*unsafe.Sizeof(table)))
		if addr == 0 && since == 0 {
			return fmt.Errorf("its function %s is absent", v.Type().Field(i).Name)
		}
		v.Field(i).SetUint(uint64(addr))
	}
	return nil
}

// at converts an address from C to a pointer.
func at(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// text returns a zero-terminated copy of a string; anything after a zero byte is ignored by C.
func text(s string) []byte {
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return append([]byte(s), 0)
}

// maxText bounds texts read from the library.
const maxText = 1 << 16

// goText copies a C string.
func goText(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	n := uintptr(0)
	for n < maxText && *(*byte)(at(addr + n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(at(addr)), n))
}

// mem is Go memory that C uses: it is pinned until free.
type mem struct{ pin runtime.Pinner }

func (m *mem) free() { m.pin.Unpin() }

// bytes returns the address of bytes, at least one.
func (m *mem) bytes(b []byte) uintptr {
	m.pin.Pin(&b[0])
	return uintptr(unsafe.Pointer(&b[0]))
}

func (m *mem) text(s string) uintptr { return m.bytes(text(s)) }

// words returns n words and their address.
func (m *mem) words(n int) ([]uintptr, uintptr) {
	w := make([]uintptr, max(n, 1))
	m.pin.Pin(&w[0])
	return w[:n], uintptr(unsafe.Pointer(&w[0]))
}

// texts returns the address of a C array of strings.
func (m *mem) texts(list []string) uintptr {
	w, addr := m.words(len(list))
	for i, s := range list {
		w[i] = m.text(s)
	}
	return addr
}

// fault is an error that the library reported.
type fault struct {
	code int
	text string
}

func (e *fault) Error() string { return e.text }

// Relevant codes of OrtErrorCode.
const (
	invalidArgument = 2
	notImplemented  = 9
)

// status converts the result of a function: nil, or a fault.
func (l *library) status(s uintptr) error {
	if s == 0 {
		return nil
	}
	e := &fault{code: int(int32(invoke(l.f.GetErrorCode, s))), text: goText(invoke(l.f.GetErrorMessage, s))}
	invoke(l.f.ReleaseStatus, s)
	return e
}

// call calls a function that returns a status.
//
//go:uintptrescapes
func (l *library) call(fn uintptr, args ...uintptr) error { return l.status(invoke(fn, args...)) }

// noMemory reports whether a fault is a failed allocation: the library has no code for it, only a
// text.
func noMemory(err error) bool {
	s := err.Error()
	return strings.Contains(s, "bad_alloc") || strings.Contains(s, "Failed to allocate memory") || strings.Contains(s, "bad allocation")
}

// failed converts a fault to an error with the given code, or with NoMemory for a failed
// allocation.
func failed(code external.Code, doing string, err error) *external.Error {
	if noMemory(err) {
		return external.Errorf(external.NoMemory, "ONNX Runtime: %s: %s: take a smaller batch or fewer instances", doing, err)
	}
	return external.Errorf(code, "ONNX Runtime: %s: %s", doing, strings.TrimSpace(err.Error()))
}
