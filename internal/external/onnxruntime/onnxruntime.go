// Package onnxruntime runs models with ONNX Runtime's library through its C interface, from
// release 1.16 on. It loads models as other callers of the library do, lets its profiler record
// what was executed, and joins that with the model's operators by means of the optimised model
// that the library writes.
//
// The interface is onnxruntime_c_api.h (ONNX Runtime 1.16 to 1.32). Only opmeter-engine imports
// this package.
package onnxruntime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/opmeter/opmeter/internal/external"
)

// Engine is the engine's name on the command line.
const Engine = "onnxruntime"

// library is ONNX Runtime's library, opened in this process.
type library struct {
	f         functions
	version   string
	minor     int // of version 1
	build     string
	env       uintptr
	allocator uintptr // the default one, nobody's to release
	providers []string
}

// Open opens ONNX Runtime's library. Errors are an [external.Error]: NotFound, NotLibrary,
// TooOld.
func Open(file string) (external.Library, error) {
	if st, err := os.Stat(file); err != nil && errors.Is(err, fs.ErrNotExist) || err == nil && st.IsDir() {
		return nil, external.Errorf(external.NotFound, "%s: no such file; ONNX Runtime's library is libonnxruntime.so, libonnxruntime.dylib or onnxruntime.dll, in the package's folder capi", file)
	}
	quiet()
	addr, opened, err := symbol(file, "OrtGetApiBase")
	switch {
	case err != nil && opened:
		return nil, external.Errorf(external.NotLibrary, "%s: this library is not ONNX Runtime's: it has no OrtGetApiBase; name libonnxruntime.so, libonnxruntime.dylib or onnxruntime.dll of its package", file)
	case err != nil:
		return nil, external.Errorf(external.NotLibrary, "%s: cannot be opened as a library of this system: %v; take a package of ONNX Runtime for it", file, err)
	}
	l := &library{}
	base := invoke(addr)
	if base == 0 {
		return nil, external.Errorf(external.NotLibrary, "%s: OrtGetApiBase gives nothing", file)
	}
	// OrtApiBase: GetApi, then GetVersionString.
	get, say := *(*uintptr)(at(base)), *(*uintptr)(at(base + unsafe.Sizeof(base)))
	if get == 0 || say == 0 {
		return nil, external.Errorf(external.NotLibrary, "%s: its OrtApiBase is empty", file)
	}
	l.version = goText(invoke(say))
	major, minor, ok := numbers(l.version)
	switch {
	case !ok || major > 1:
		return nil, external.Errorf(external.NotLibrary, "%s: says that it is version %q of ONNX Runtime; 1.%d and later 1.x are known", file, l.version, needed)
	case major < 1 || minor < needed:
		return nil, external.Errorf(external.TooOld, "%s: ONNX Runtime %s is too old: 1.%d or later is needed", file, l.version, needed)
	}
	l.minor = minor
	if err := l.start(get); err != nil {
		return nil, external.Errorf(external.NotLibrary, "%s: ONNX Runtime %s: %v", file, l.version, err)
	}
	return l, nil
}

// quiet disables the library's telemetry. From 1.29 on, published libraries report each loaded
// model over the network, including its file name and checksums of its weights. They also keep an
// identifier of the computer and unsent reports in the user's files. This variable prevents both
// if it is set before the library is loaded; [functions.DisableTelemetryEvents] comes too late
// for the first message and for the files (Privacy.md of release 1.32).
func quiet() { _ = os.Setenv("ORT_DISABLE_TELEMETRY", "1") }

// numbers returns the first two numbers of a version.
func numbers(version string) (major, minor int, ok bool) {
	a, rest, _ := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(a)
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(b)
	return major, minor, err == nil
}

// start reads the function table and creates the environment of the sessions. Asked for a table
// version that it lacks, the library prints a line: so the lowest version is asked for.
func (l *library) start(get uintptr) error {
	version := needed
	if l.minor >= withStats {
		version = withStats
	}
	table := invoke(get, uintptr(version))
	if table == 0 {
		return fmt.Errorf("it does not give version %d of its interface", version)
	}
	if err := l.f.fill(table, version); err != nil {
		return err
	}
	// Errors are returned by the functions: print only fatal ones.
	const fatal = 4
	var m mem
	defer m.free()
	if err := l.call(l.f.CreateEnv, fatal, m.text("opmeter"), uintptr(unsafe.Pointer(&l.env))); err != nil {
		return err
	}
	if err := l.call(l.f.DisableTelemetryEvents, l.env); err != nil {
		return err
	}
	if err := l.call(l.f.GetAllocatorWithDefaultOptions, uintptr(unsafe.Pointer(&l.allocator))); err != nil {
		return err
	}
	l.build = goText(invoke(l.f.GetBuildInfoString))
	return l.available()
}

// processor is the provider that every library has.
const processor = "CPUExecutionProvider"

// available lists the providers. The CPU's is first: it is the default.
func (l *library) available() error {
	list, n := new(uintptr), new(int32)
	if err := l.call(l.f.GetAvailableProviders, uintptr(unsafe.Pointer(list)), uintptr(unsafe.Pointer(n))); err != nil {
		return err
	}
	if *list != 0 && *n > 0 && *n < 1000 {
		for _, p := range unsafe.Slice((*uintptr)(at(*list)), int(*n)) {
			l.providers = append(l.providers, goText(p))
		}
	}
	if err := l.call(l.f.ReleaseAvailableProviders, *list, uintptr(*n)); err != nil {
		return err
	}
	if i := slices.Index(l.providers, processor); i > 0 {
		l.providers = slices.Insert(slices.Delete(l.providers, i, i+1), 0, processor)
	}
	return nil
}

// About describes the library.
func (l *library) About() external.About {
	return external.About{
		Engine: Engine, Title: "ONNX Runtime", Version: l.version, Build: l.build,
		Formats: []string{"onnx"}, Providers: l.providers, Options: options(l.minor),
		Gives: []string{"latency_s", "total_s", "calls", "bytes_read", "bytes_written", "weights_bytes", "timeline", "samples", "shapes", "memory", "phases"},
	}
}
