//go:build (darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64))

package tflite

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/opmeter/opmeter/internal/external"
)

// types are names of TfLiteType; types without a fixed element size are absent.
var types = map[int]string{
	1: "float32", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16", 8: "complex64", 9: "int8", 10: "float16", 11: "float64", 12: "complex128", 13: "uint64",
	16: "uint32", 17: "uint16", 18: "int4", 19: "bfloat16", 20: "int2",
}

// Limits on values from the library.
const (
	maxPorts = 1 << 16
	maxRank  = 64
	maxBytes = 1 << 40
)

// model is shared by the sessions of one task. The last one frees it.
type model struct {
	lib     *library
	task    *external.Task
	xnnpack bool
	handle  unsafe.Pointer
	mu      sync.Mutex
	uses    int
}

// session is an interpreter.
type session struct {
	*model
	options, delegate, interpreter unsafe.Pointer
	in                             []unsafe.Pointer
	carry                          [][2]int // output, input
	ran                            bool
	args                           [1]uintptr
}

// Load prepares a model to run.
func (l *library) Load(t *external.Task) (external.Session, error) {
	if t.Format != "tflite" {
		return nil, external.Errorf(external.NoFormat, "TensorFlow Lite reads .tflite models, and this is one of the format %s.", t.Format)
	}
	on, err := l.parse(t.Options)
	if err != nil {
		return nil, err
	}
	name := append([]byte(t.Model), 0)
	m := &model{lib: l, task: t, xnnpack: on, handle: pointer(l.api.createModel, uintptr(unsafe.Pointer(&name[0])))}
	if m.handle == nil {
		return nil, external.Errorf(external.Rejected, "TensorFlow Lite does not read %s. It takes .tflite files that are whole and not packed.", filepath.Base(t.Model)).WithPrinted()
	}
	return m.session()
}

func (m *model) session() (external.Session, error) {
	m.mu.Lock()
	m.uses++
	m.mu.Unlock()
	s := &session{model: m}
	err := s.build()
	if err == nil {
		err = s.feed()
	}
	if err == nil {
		err = s.carried()
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *session) build() error {
	a := s.lib.api
	if s.options = pointer(a.createOptions); s.options == nil {
		return external.Errorf(external.NoMemory, "TensorFlow Lite makes no options.")
	}
	call(a.threads, uintptr(s.options), uintptr(s.task.Threads))
	if s.xnnpack {
		// TfLiteXNNPackDelegateOptions begins with the number of threads and the flags, here for
		// int8 and uint8. Fields that newer releases add are zero.
		o := [64]uint32{uint32(s.task.Threads), 3} //nolint:gosec // a number of threads
		if s.delegate = pointer(a.createXNNPACK, uintptr(unsafe.Pointer(&o[0]))); s.delegate == nil {
			return external.Errorf(external.NoProvider, "TensorFlow Lite makes no XNNPACK delegate.")
		}
		call(a.delegate, uintptr(s.options), uintptr(s.delegate))
	}
	if s.interpreter = pointer(a.create, uintptr(s.handle), uintptr(s.options)); s.interpreter == nil {
		return external.Errorf(external.Rejected, "TensorFlow Lite makes no interpreter for %s: it may have operators that this library lacks.", filepath.Base(s.task.Model)).WithPrinted()
	}
	s.args[0] = uintptr(s.interpreter)
	n := number(a.inputs, uintptr(s.interpreter))
	if n != len(s.task.Inputs) || n > maxPorts {
		return external.Errorf(external.Rejected, "TensorFlow Lite sees %d inputs in %s, and %d are given.", n, filepath.Base(s.task.Model), len(s.task.Inputs))
	}
	for i := range s.task.Inputs {
		if err := s.fit(i); err != nil {
			return err
		}
	}
	if st := number(a.allocate, uintptr(s.interpreter)); st != 0 {
		return external.Errorf(external.Rejected, "TensorFlow Lite cannot prepare the operators of %s for these inputs: status %d.", filepath.Base(s.task.Model), st).WithPrinted()
	}
	return nil
}

// fit checks an input's type and resizes it to the given shape.
func (s *session) fit(i int) error {
	a, given := s.lib.api, &s.task.Inputs[i]
	t := pointer(a.input, uintptr(s.interpreter), uintptr(i))
	if t == nil {
		return external.Errorf(external.Rejected, "TensorFlow Lite does not give input %d of %s.", i, filepath.Base(s.task.Model))
	}
	name, kind := text(pointer(a.name, uintptr(t))), number(a.kind, uintptr(t))
	switch want := types[kind]; {
	case want == "":
		return external.Errorf(external.Rejected, "Input %q has elements (type %d) that have no fixed size, such as texts. Measure this model with opmeter's own engine.", name, kind)
	case want != given.DType:
		return external.Errorf(external.Rejected, "Input %q takes elements of type %s, and %s are given.", name, want, given.DType)
	}
	now, err := s.shape(t)
	if err != nil || slices.Equal(now, given.Shape) {
		return err
	}
	dims := make([]int32, max(1, len(given.Shape)))
	for k, d := range given.Shape {
		if d < 0 || d > math.MaxInt32 {
			return external.Errorf(external.Rejected, "Input %q is to have shape %v.", name, given.Shape)
		}
		dims[k] = int32(d)
	}
	if st := number(a.resize, uintptr(s.interpreter), uintptr(i), uintptr(unsafe.Pointer(&dims[0])), uintptr(len(given.Shape))); st != 0 {
		return external.Errorf(external.Rejected, "TensorFlow Lite does not resize input %q from %v to %v: status %d.", name, now, given.Shape, st)
	}
	return nil
}

func (s *session) shape(t unsafe.Pointer) ([]int, error) {
	n := number(s.lib.api.rank, uintptr(t))
	if n < 0 || n > maxRank {
		return nil, external.Errorf(external.Rejected, "A tensor of %s has %d dimensions.", filepath.Base(s.task.Model), n)
	}
	out := make([]int, n)
	for i := range out {
		out[i] = number(s.lib.api.dim, uintptr(t), uintptr(i))
	}
	return out, nil
}

// memory returns the bytes of a tensor if the library has allocated them.
func (s *session) memory(t unsafe.Pointer) ([]byte, bool) {
	n := call(s.lib.api.size, uintptr(t))
	if n == 0 {
		return nil, true
	}
	p := pointer(s.lib.api.data, uintptr(t))
	if p == nil || n > maxBytes {
		return nil, false
	}
	return unsafe.Slice((*byte)(p), int(n)), true
}

// feed writes the inputs. The library keeps them in place.
func (s *session) feed() error {
	for i := range s.task.Inputs {
		given := &s.task.Inputs[i]
		t := pointer(s.lib.api.input, uintptr(s.interpreter), uintptr(i))
		b, ok := s.memory(t)
		if !ok || len(b) != len(given.Data) {
			return external.Errorf(external.Rejected, "Input %q of shape %v takes %d bytes in TensorFlow Lite, and %d are given.", given.Name, given.Shape, len(b), len(given.Data))
		}
		copy(b, given.Data)
		s.in = append(s.in, t)
	}
	return nil
}

func (s *session) carried() error {
	n := number(s.lib.api.outputs, uintptr(s.interpreter))
	for o, i := range s.task.Carry {
		if o < 0 || o >= n || i < 0 || i >= len(s.in) {
			return external.Errorf(external.Rejected, "Output %d cannot become input %d: the model has %d outputs and %d inputs.", o, i, n, len(s.in))
		}
		t := pointer(s.lib.api.output, uintptr(s.interpreter), uintptr(o))
		if t == nil || number(s.lib.api.kind, uintptr(t)) != number(s.lib.api.kind, uintptr(s.in[i])) {
			return external.Errorf(external.Rejected, "Output %d cannot become input %d: their elements differ.", o, i)
		}
		s.carry = append(s.carry, [2]int{o, i})
	}
	return nil
}

// Run computes one inference. Carried outputs are copied: the interpreter's tensors have fixed
// places, so that applications copy as well.
func (s *session) Run() error {
	a := s.lib.api
	if s.ran {
		for _, c := range s.carry {
			from, ok := s.memory(pointer(a.output, uintptr(s.interpreter), uintptr(c[0])))
			to, also := s.memory(s.in[c[1]])
			if !ok || !also || len(from) != len(to) {
				return external.Errorf(external.Failed, "Output %d of %s has %d bytes and input %d, which it becomes, %d.", c[0], filepath.Base(s.task.Model), len(from), c[1], len(to))
			}
			copy(to, from)
		}
	}
	s.ran = true
	r, _, _ := purego.SyscallN(a.invoke, s.args[:]...)
	if st := int32(uint32(r)); st != 0 { //nolint:gosec // a C enumeration in the low half
		return external.Errorf(external.Failed, "An inference of %s by TensorFlow Lite failed: status %d.", filepath.Base(s.task.Model), st).WithPrinted()
	}
	return nil
}

// Outputs copies the outputs of the last run.
func (s *session) Outputs() ([]external.Tensor, error) {
	a := s.lib.api
	if !s.ran {
		return nil, external.Errorf(external.Failed, "There are no outputs before the first run.")
	}
	n := number(a.outputs, uintptr(s.interpreter))
	if n < 0 || n > maxPorts {
		return nil, external.Errorf(external.Failed, "TensorFlow Lite tells of %d outputs.", n)
	}
	out := make([]external.Tensor, n)
	for i := range out {
		t := pointer(a.output, uintptr(s.interpreter), uintptr(i))
		if t == nil {
			return nil, external.Errorf(external.Failed, "TensorFlow Lite does not give output %d.", i)
		}
		name, kind := text(pointer(a.name, uintptr(t))), number(a.kind, uintptr(t))
		shape, err := s.shape(t)
		if err != nil {
			return nil, err
		}
		b, ok := s.memory(t)
		if !ok || types[kind] == "" {
			return nil, external.Errorf(external.Failed, "The elements of output %q cannot be had (type %d).", name, kind)
		}
		out[i] = external.Tensor{Name: name, DType: types[kind], Shape: shape, Data: slices.Clone(b)}
	}
	return out, nil
}

// Clone creates another interpreter of the same model.
func (s *session) Clone() (external.Session, error) { return s.model.session() }

// Facts returns the settings in effect.
func (s *session) Facts() external.Facts {
	return external.Facts{Settings: map[string]string{"threads": strconv.Itoa(s.task.Threads), "xnnpack": map[bool]string{true: "on", false: "default"}[s.xnnpack]}}
}

// Close frees the session.
func (s *session) Close() error {
	if s.model == nil {
		return nil
	}
	a := s.lib.api
	for _, x := range []struct {
		fn uintptr
		h  unsafe.Pointer
	}{{a.remove, s.interpreter}, {a.deleteOptions, s.options}, {a.deleteXNNPACK, s.delegate}} {
		if x.h != nil {
			call(x.fn, uintptr(x.h))
		}
	}
	m := s.model
	*s = session{}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.uses--; m.uses == 0 {
		call(m.lib.api.deleteModel, uintptr(m.handle))
	}
	return nil
}
