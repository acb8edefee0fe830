//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"github.com/opmeter/opmeter/internal/external"
)

// calls holds the addresses of the C functions; the tags are their names. Functions with an
// "optional" tag are 0 in releases that lack them.
type calls struct {
	version         uintptr `c:"ov_get_openvino_version"`
	versionFree     uintptr `c:"ov_version_free"`
	coreCreate      uintptr `c:"ov_core_create"`
	coreFree        uintptr `c:"ov_core_free"`
	coreDevices     uintptr `c:"ov_core_get_available_devices"`
	devicesFree     uintptr `c:"ov_available_devices_free"`
	coreSet         uintptr `c:"ov_core_set_property"`
	coreSetMany     uintptr `c:"ov_core_set_properties" optional:""`
	coreGet         uintptr `c:"ov_core_get_property"`
	read            uintptr `c:"ov_core_read_model"`
	compile         uintptr `c:"ov_core_compile_model"`
	modelFree       uintptr `c:"ov_model_free"`
	modelInputs     uintptr `c:"ov_model_inputs_size"`
	modelOutputs    uintptr `c:"ov_model_outputs_size"`
	modelInput      uintptr `c:"ov_model_const_input_by_index"`
	modelInputNamed uintptr `c:"ov_model_const_input_by_name"`
	modelOutput     uintptr `c:"ov_model_const_output_by_index"`
	reshape         uintptr `c:"ov_model_reshape_by_port_indexes"`
	portName        uintptr `c:"ov_port_get_any_name"`
	portShape       uintptr `c:"ov_port_get_partial_shape"`
	portType        uintptr `c:"ov_port_get_element_type"`
	portFree        uintptr `c:"ov_output_const_port_free"`
	partialFree     uintptr `c:"ov_partial_shape_free"`
	shapeFree       uintptr `c:"ov_shape_free"`
	compiledFree    uintptr `c:"ov_compiled_model_free"`
	compiledGet     uintptr `c:"ov_compiled_model_get_property"`
	runtimeModel    uintptr `c:"ov_compiled_model_get_runtime_model"`
	newRequest      uintptr `c:"ov_compiled_model_create_infer_request"`
	requestFree     uintptr `c:"ov_infer_request_free"`
	requestInput    uintptr `c:"ov_infer_request_get_input_tensor_by_index"`
	requestOutput   uintptr `c:"ov_infer_request_get_output_tensor_by_index"`
	infer           uintptr `c:"ov_infer_request_infer"`
	counters        uintptr `c:"ov_infer_request_get_profiling_info"`
	countersFree    uintptr `c:"ov_profiling_info_list_free"`
	tensorCreate    uintptr `c:"ov_tensor_create"`
	tensorFree      uintptr `c:"ov_tensor_free"`
	tensorData      uintptr `c:"ov_tensor_data"`
	tensorBytes     uintptr `c:"ov_tensor_get_byte_size"`
	tensorCount     uintptr `c:"ov_tensor_get_size"`
	tensorShape     uintptr `c:"ov_tensor_get_shape"`
	tensorType      uintptr `c:"ov_tensor_get_element_type"`
	free            uintptr `c:"ov_free"`
	errorInfo       uintptr `c:"ov_get_error_info"`
	lastError       uintptr `c:"ov_get_last_err_msg" optional:""`
}

// find looks up all functions and returns the first missing one.
func (c *calls) find(handle uintptr) (missing string) {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		p := symbol(handle, f.Tag.Get("c"))
		if _, optional := f.Tag.Lookup("optional"); p == 0 && !optional {
			return f.Tag.Get("c")
		}
		*(*uintptr)(v.Field(i).Addr().UnsafePointer()) = p
	}
	return ""
}

// library is an open OpenVINO library.
type library struct {
	c       calls
	path    string
	version string // 2026.4.1
	build   string // the whole text
	devices []string
	types   []dtype // by the library's numbers
	write   *writer // ov::serialize, nil where it cannot be called
}

// oldest is the oldest supported release.
const oldest = 2023

// Open opens libopenvino_c (openvino_c.dll) at a path. Plugins and frontends are loaded from its
// folder. Errors are an [external.Error].
func Open(path string) (external.Library, error) {
	if st, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, external.Errorf(external.NotFound, "%s: there is no such file; expected libopenvino_c of the openvino package, such as site-packages/openvino/libs/libopenvino_c.so.*", path)
		}
		return nil, external.Errorf(external.NotLibrary, "%s: %v", path, err)
	} else if !st.Mode().IsRegular() {
		return nil, external.Errorf(external.NotLibrary, "%s: not a regular file; expected libopenvino_c of the openvino package", path)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, external.Errorf(external.NotLibrary, "%s: %v", path, err)
	}
	h, err := openLibrary(full)
	if err != nil {
		return nil, external.Errorf(external.NotLibrary, "%s: not a library that can be opened here: %v; expected libopenvino_c with libopenvino beside it or on the system's path", path, err)
	}
	l := &library{path: full}
	if symbol(h, "ov_core_create") == 0 && symbol(h, "ie_c_api_version") != 0 {
		return nil, external.Errorf(external.TooOld, "%s: an OpenVINO before 2022; %d or newer is needed", path, oldest)
	}
	if symbol(h, "ov_get_openvino_version") == 0 {
		return nil, external.Errorf(external.NotLibrary, "%s: a library, but not OpenVINO's C interface: it has no ov_get_openvino_version; expected libopenvino_c", path)
	}
	missing := l.c.find(h)
	if l.c.version != 0 {
		l.release()
	}
	if y, ok := year(l.version); missing != "" || ok && y < oldest {
		what := "it is older"
		if missing != "" {
			what = "it has no " + missing
		}
		return nil, external.Errorf(external.TooOld, "%s: OpenVINO %s: %s; %d or newer is needed", path, l.version, what, oldest)
	}
	if l.types = l.askTypes(); l.types == nil {
		return nil, external.Errorf(external.NotLibrary, "%s: OpenVINO %s numbers its element types in a way that is not known; report its version", path, l.version)
	}
	core, err := l.newCore()
	if err != nil {
		return nil, err
	}
	defer invoke(l.c.coreFree, core)
	l.devices = l.askDevices(core)
	l.write = findWriter(h, full)
	return l, nil
}

// year returns the first component of a version.
func year(version string) (int, bool) {
	s, _, _ := strings.Cut(version, ".")
	y, err := strconv.Atoi(s)
	return y, err == nil
}

// release reads the version: ov_version_t {const char *buildNumber, *description}. A build number
// has the form 2026.4.1-22982-e213a147257-releases/2026/4.
func (l *library) release() {
	var v [2]uintptr
	if invoke(l.c.version, uintptr(unsafe.Pointer(&v))) != 0 {
		return
	}
	l.build = text(v[0])
	l.version, _, _ = strings.Cut(l.build, "-")
	if l.c.versionFree != 0 {
		invoke(l.c.versionFree, uintptr(unsafe.Pointer(&v)))
	}
}

// newCore creates an ov_core_t.
func (l *library) newCore() (uintptr, error) {
	var core uintptr
	if s := invoke(l.c.coreCreate, uintptr(unsafe.Pointer(&core))); s != 0 || core == 0 {
		return 0, external.Errorf(l.code(s, external.NotLibrary), "%s: OpenVINO %s does not start: %s", l.path, l.version, l.said(s))
	}
	return core, nil
}

// maxList bounds lists from the library.
const maxList = 1 << 20

// askDevices lists devices: ov_available_devices_t {char **devices, size_t size}.
func (l *library) askDevices(core uintptr) (names []string) {
	var d [2]uintptr
	if invoke(l.c.coreDevices, core, uintptr(unsafe.Pointer(&d))) != 0 {
		return nil
	}
	if d[0] != 0 {
		for _, p := range unsafe.Slice((*uintptr)(at(d[0])), min(d[1], 1000)) {
			names = append(names, text(p))
		}
	}
	invoke(l.c.devicesFree, uintptr(unsafe.Pointer(&d)))
	return names
}

// noMemory reports whether a message is about a failed allocation in C++, or about memory for a
// thread.
func noMemory(said string) bool {
	for _, words := range []string{"bad_alloc", "Cannot allocate memory", "Resource temporarily unavailable"} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// said returns the library's message about the last error on this thread.
func (l *library) said(status int32) string {
	s := ""
	if l.c.lastError != 0 {
		r, _, _ := sys(l.c.lastError)
		s = strings.TrimSpace(text(r))
	}
	if s == "" {
		r, _, _ := sys(l.c.errorInfo, uintptr(uint32(status)))
		s = strings.TrimSpace(text(r))
	}
	return brief(s, status)
}

// isPlace reports whether a line contains only a location in OpenVINO's source.
func isPlace(line string) bool {
	return strings.HasSuffix(line, ":") && (strings.HasPrefix(line, "Exception from ") || strings.HasPrefix(line, "Check ") && strings.Contains(line, " failed at "))
}

// brief shortens a message to one line without source locations.
func brief(s string, status int32) string {
	var keep []string
	check := ""
	for _, line := range strings.Split(s, "\n") {
		switch line = strings.TrimSpace(line); {
		case line != "" && !isPlace(line):
			keep = append(keep, line)
		case strings.HasPrefix(line, "Check "):
			check = line
		}
	}
	if len(keep) == 0 && check != "" {
		keep = append(keep, check) // there is no other reason
	}
	if len(keep) == 0 {
		return fmt.Sprintf("status %d", status)
	}
	out := strings.Join(keep, "; ")
	if len(out) > 600 {
		out = strings.ToValidUTF8(out[:600], "") + "…"
	}
	return out
}

// code returns the error code of a failed call.
func (l *library) code(status int32, otherwise external.Code) external.Code {
	if noMemory(l.said(status)) {
		return external.NoMemory
	}
	return otherwise
}

// failed converts a failed call to an error.
func (l *library) failed(otherwise external.Code, status int32, what string) *external.Error {
	said := l.said(status)
	if noMemory(said) {
		return external.Errorf(external.NoMemory, "%s: there is not enough memory (%s): take a smaller batch or fewer streams, or allow more", what, said)
	}
	return external.Errorf(otherwise, "%s: %s", what, said)
}

// About describes the library.
func (l *library) About() external.About {
	return external.About{
		Engine: "openvino", Title: "OpenVINO", Version: l.version, Build: l.build,
		Formats:   []string{"onnx", "tflite"},
		Providers: append(append([]string{}, l.devices...), virtual...),
		Options:   options(),
		Gives:     []string{"latency_s", "share", "options"},
	}
}

// beside returns the name of OpenVINO's main library: libopenvino.so.2641 is beside
// libopenvino_c.so.2641.
func beside(path string) string {
	dir, name := filepath.Split(path)
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		dir, name = filepath.Split(resolved)
	}
	if runtime.GOOS == "windows" || !strings.HasPrefix(name, "libopenvino_c.") {
		return ""
	}
	return filepath.Join(dir, "libopenvino."+strings.TrimPrefix(name, "libopenvino_c."))
}
