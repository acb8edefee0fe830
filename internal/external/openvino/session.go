//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/opmeter/opmeter/internal/external"
)

// shared is the state shared by the sessions of one task: the core, the model as read, and one
// compiled model with a stream for each session.
type shared struct {
	l      *library
	task   *external.Task
	config *config
	inputs []int // of the task, by the library's positions
	names  []string

	mu       sync.Mutex
	core     uintptr
	model    uintptr
	compiled uintptr
	members  []*session
}

// session is one infer request.
type session struct {
	*shared
	infer   uintptr // the function, beside its argument
	request uintptr
	args    [1]uintptr
	carry   [][2]int // outputs and the inputs that they become
	ran     bool
	closed  bool
	rec     *recorder
}

// Load reads a model, sets the input shapes and compiles it.
func (l *library) Load(t *external.Task) (external.Session, error) {
	if t.Format != "onnx" && t.Format != "tflite" {
		return nil, external.Errorf(external.NoFormat, "OpenVINO does not read %s models; expected onnx or tflite", t.Format)
	}
	c, err := l.parse(t.Options)
	if err != nil {
		return nil, err
	}
	core, err := l.newCore()
	if err != nil {
		return nil, err
	}
	h := &shared{l: l, task: t, config: c, core: core}
	if err := h.load(); err != nil {
		h.free()
		return nil, err
	}
	s := &session{shared: h, infer: l.c.infer}
	h.members = []*session{s}
	if err := h.build(); err != nil {
		h.free()
		return nil, err
	}
	if !t.Profiled {
		return s, nil
	}
	if err := s.record(); err != nil {
		_ = s.Close()
		return nil, err
	}
	return &profiled{s}, nil
}

// what begins an error message; the caller adds the model.
func (h *shared) what() string { return "OpenVINO " + h.l.version }

// load reads the model and sets its shapes.
func (h *shared) load() error {
	l := h.l
	if err := l.configure(h.core, h.task, h.config, 1); err != nil {
		return err
	}
	var p pins
	defer p.Unpin()
	var m uintptr
	if s := invoke(l.c.read, h.core, p.text(h.task.Model), 0, uintptr(unsafe.Pointer(&m))); s != 0 || m == 0 {
		return l.failed(external.Rejected, s, h.what()+" does not take the model")
	}
	h.model = m
	if err := h.match(); err != nil {
		return err
	}
	return h.shape()
}

// port is an input or output of a model as read.
type port struct {
	name   string
	typ    dtype
	number int32
	dims   []int64 // -1 for open ones, nil where the rank is open
	ranked bool
}

// port reads a port by its index.
func (h *shared) port(get uintptr, i int) (p port, err error) {
	var at uintptr
	if s := invoke(get, h.model, uintptr(i), uintptr(unsafe.Pointer(&at))); s != 0 || at == 0 {
		return p, h.l.failed(external.Rejected, s, h.what()+" does not tell of its inputs and outputs")
	}
	defer invoke(h.l.c.portFree, at)
	return h.l.describe(at), nil
}

// describe reads name, type and shape of a port. The name may be empty.
func (l *library) describe(at uintptr) (p port) {
	var name uintptr
	if invoke(l.c.portName, at, uintptr(unsafe.Pointer(&name))) == 0 && name != 0 {
		p.name = text(name)
		invoke(l.c.free, name)
	}
	if invoke(l.c.portType, at, uintptr(unsafe.Pointer(&p.number))) == 0 {
		p.typ = l.typeOf(p.number)
	}
	p.dims, p.ranked = l.partial(at)
	return p
}

// partialShape is ov_partial_shape_t: the rank as an ov_dimension_t {int64 min, max}, and the
// dimensions.
type partialShape struct {
	rank [2]int64
	dims uintptr
}

const maxRank = 64

func (l *library) partial(from uintptr) (dims []int64, ranked bool) {
	s := new(partialShape)
	if invoke(l.c.portShape, from, uintptr(unsafe.Pointer(s))) != 0 {
		return nil, false
	}
	defer invoke(l.c.partialFree, uintptr(unsafe.Pointer(s)))
	n := s.rank[0]
	if n != s.rank[1] || n < 0 || n > maxRank {
		return nil, false
	}
	dims = make([]int64, n)
	if n == 0 || s.dims == 0 {
		return dims, n == 0
	}
	for i, d := range unsafe.Slice((*[2]int64)(at(s.dims)), n) {
		if dims[i] = d[0]; d[0] != d[1] {
			dims[i] = -1
		}
	}
	return dims, true
}

func (h *shared) count(fn uintptr) int {
	var n uintptr
	if invoke(fn, h.model, uintptr(unsafe.Pointer(&n))) != 0 || n > maxList {
		return 0
	}
	return int(n)
}

// match finds the task's input for each of the library's inputs, by name and otherwise by index,
// and checks the types.
func (h *shared) match() error {
	n := h.count(h.l.c.modelInputs)
	ports := make([]port, n)
	h.inputs = make([]int, n)
	used := make([]bool, len(h.task.Inputs))
	for i := range ports {
		var err error
		if ports[i], err = h.port(h.l.c.modelInput, i); err != nil {
			return err
		}
		h.inputs[i] = slices.IndexFunc(h.task.Inputs, func(t external.Tensor) bool { return t.Name == ports[i].name && t.Name != "" })
		if k := h.inputs[i]; k >= 0 && used[k] {
			h.inputs[i] = -1
		} else if k >= 0 {
			used[k] = true
		}
	}
	// A tensor with several names reports any of them.
	for k := range h.task.Inputs {
		if used[k] {
			continue
		}
		if name := h.alias(h.task.Inputs[k].Name); name != "" {
			if i := slices.IndexFunc(ports, func(p port) bool { return p.name == name }); i >= 0 && h.inputs[i] < 0 {
				h.inputs[i], used[k] = k, true
			}
		}
	}
	for i := range ports {
		if h.inputs[i] < 0 && n == len(h.task.Inputs) && !used[i] {
			h.inputs[i], used[i] = i, true
		}
		if h.inputs[i] < 0 {
			return external.Errorf(external.Rejected, "%s wants an input %q that the model's description lacks", h.what(), ports[i].name)
		}
		in := &h.task.Inputs[h.inputs[i]]
		if in.DType == "string" {
			return external.Errorf(external.Rejected, "%s: input %q holds strings; the devices of OpenVINO compute none", h.what(), in.Name)
		}
		if ports[i].typ.name != in.DType {
			return external.Errorf(external.Rejected, "%s takes input %q as %s, not as %s", h.what(), in.Name, orUnknown(ports[i].typ.name), in.DType)
		}
	}
	for i := range h.count(h.l.c.modelOutputs) {
		p, err := h.port(h.l.c.modelOutput, i)
		if err != nil {
			return err
		}
		h.names = append(h.names, p.name)
	}
	return nil
}

func orUnknown(s string) string {
	if s == "" {
		return "an element type that opmeter does not have"
	}
	return s
}

// alias returns the name that the library reports for an input of this name.
func (h *shared) alias(name string) string {
	if name == "" {
		return ""
	}
	var p pins
	defer p.Unpin()
	var at uintptr
	if invoke(h.l.c.modelInputNamed, h.model, p.text(name), uintptr(unsafe.Pointer(&at))) != 0 || at == 0 {
		return ""
	}
	defer invoke(h.l.c.portFree, at)
	return h.l.describe(at).name
}

// shape sets the shapes of the task's inputs where they differ from the model's.
func (h *shared) shape() error {
	var p pins
	defer p.Unpin()
	n := len(h.inputs)
	differs := false
	positions := make([]int64, n)
	var all []int64 // ov_partial_shape_t, one after the other
	for i, k := range h.inputs {
		in := &h.task.Inputs[k]
		had, err := h.port(h.l.c.modelInput, i)
		if err != nil {
			return err
		}
		if len(in.Shape) > maxRank {
			return external.Errorf(external.Rejected, "%s: input %q has more than %d dimensions", h.what(), in.Name, maxRank)
		}
		dims := make([]int64, 0, 2*len(in.Shape))
		same := had.ranked && len(had.dims) == len(in.Shape)
		for d, size := range in.Shape {
			dims = append(dims, int64(size), int64(size))
			same = same && had.dims[d] == int64(size)
		}
		differs = differs || !same
		positions[i] = int64(i)
		rank := int64(len(in.Shape))
		all = append(all, rank, rank, int64(p.words(dims)))
	}
	if !differs {
		return nil
	}
	if s := invoke(h.l.c.reshape, h.model, p.words(positions), p.words(all), uintptr(n)); s != 0 {
		return h.l.failed(external.Rejected, s, h.what()+" does not take the inputs' shapes")
	}
	return nil
}

// build compiles the model with a stream for each session, and creates each session's request.
func (h *shared) build() error {
	l := h.l
	var p pins
	defer p.Unpin()
	var compiled uintptr
	if s := invoke(l.c.compile, h.core, h.model, p.text(h.config.device), 0, uintptr(unsafe.Pointer(&compiled))); s != 0 || compiled == 0 {
		return l.failed(external.Rejected, s, h.what()+" does not compile the model for device "+h.config.device)
	}
	for _, m := range h.members {
		if m.request != 0 {
			invoke(l.c.requestFree, m.request)
			m.request = 0
		}
	}
	if h.compiled != 0 {
		invoke(l.c.compiledFree, h.compiled)
	}
	h.compiled = compiled
	for _, m := range h.members {
		if err := m.begin(); err != nil {
			return err
		}
	}
	return nil
}

// begin creates the session's request and fills its inputs.
func (s *session) begin() error {
	if st := invoke(s.l.c.newRequest, s.compiled, uintptr(unsafe.Pointer(&s.request))); st != 0 || s.request == 0 {
		return s.l.failed(external.Rejected, st, s.what()+" makes no infer request")
	}
	s.args[0] = s.request
	for i, k := range s.inputs {
		if err := s.fill(i, &s.task.Inputs[k]); err != nil {
			return err
		}
	}
	s.carry = s.carry[:0]
	for out, in := range s.task.Carry {
		i := slices.Index(s.inputs, in)
		if out < 0 || out >= len(s.names) || i < 0 {
			return external.Errorf(external.Rejected, "%s: output %d cannot become input %d: there are %d outputs, %d inputs", s.what(), out, in, len(s.names), len(s.inputs))
		}
		s.carry = append(s.carry, [2]int{out, i})
	}
	return nil
}

// fill copies an input to the request's tensor.
func (s *session) fill(i int, in *external.Tensor) error {
	var t uintptr
	if st := invoke(s.l.c.requestInput, s.request, uintptr(i), uintptr(unsafe.Pointer(&t))); st != 0 || t == 0 {
		return s.l.failed(external.Rejected, st, fmt.Sprintf("%s has no tensor for input %q", s.what(), in.Name))
	}
	defer invoke(s.l.c.tensorFree, t)
	data, err := s.l.bytes(t)
	if err != nil {
		return err
	}
	if len(data) != len(in.Data) {
		return external.Errorf(external.Rejected, "%s wants %d bytes for input %q, the task has %d", s.what(), len(data), in.Name, len(in.Data))
	}
	copy(data, in.Data)
	return nil
}

// bytes returns the memory of a tensor. The library owns it; it lives as long as the tensor.
func (l *library) bytes(t uintptr) ([]byte, error) {
	var size, data uintptr
	if s := invoke(l.c.tensorBytes, t, uintptr(unsafe.Pointer(&size))); s != 0 {
		return nil, l.failed(external.Failed, s, "OpenVINO does not tell a tensor's size")
	}
	if size == 0 {
		return nil, nil
	}
	if s := invoke(l.c.tensorData, t, uintptr(unsafe.Pointer(&data))); s != 0 || data == 0 {
		return nil, l.failed(external.Failed, s, "OpenVINO does not show a tensor")
	}
	return unsafe.Slice((*byte)(at(data)), size), nil
}

// Run computes one inference.
func (s *session) Run() error {
	if s.ran && len(s.carry) > 0 {
		if err := s.carryOver(); err != nil {
			return err
		}
	}
	if st := invoke(s.infer, s.args[:]...); st != 0 {
		return s.l.failed(external.Failed, st, s.what()+" failed in an inference")
	}
	s.ran = true
	return nil
}

// carryOver copies outputs of the last run to the inputs that they become. Applications that use
// OpenVINO copy or swap tensors here, too.
func (s *session) carryOver() error {
	for _, c := range s.carry {
		var from, to uintptr
		if st := invoke(s.l.c.requestOutput, s.request, uintptr(c[0]), uintptr(unsafe.Pointer(&from))); st != 0 {
			return s.l.failed(external.Failed, st, s.what()+" does not show an output")
		}
		if st := invoke(s.l.c.requestInput, s.request, uintptr(c[1]), uintptr(unsafe.Pointer(&to))); st != 0 {
			invoke(s.l.c.tensorFree, from)
			return s.l.failed(external.Failed, st, s.what()+" does not show an input")
		}
		src, err := s.l.bytes(from)
		dst, also := s.l.bytes(to)
		n := len(dst)
		if err == nil && also == nil && len(src) == n {
			copy(dst, src)
		}
		invoke(s.l.c.tensorFree, from)
		invoke(s.l.c.tensorFree, to)
		if err != nil {
			return err
		}
		if also != nil {
			return also
		}
		if len(src) != n {
			return external.Errorf(external.Failed, "%s: output %q has %d bytes and cannot become an input of %d", s.what(), s.names[c[0]], len(src), n)
		}
	}
	return nil
}

// maxElements bounds the elements of an output that is copied.
const maxElements = 1 << 40

// Outputs copies the outputs of the last run.
func (s *session) Outputs() ([]external.Tensor, error) {
	out := make([]external.Tensor, 0, len(s.names))
	for i, name := range s.names {
		var t uintptr
		if st := invoke(s.l.c.requestOutput, s.request, uintptr(i), uintptr(unsafe.Pointer(&t))); st != 0 || t == 0 {
			return nil, s.l.failed(external.Failed, st, fmt.Sprintf("%s does not show output %q", s.what(), name))
		}
		r, err := s.l.tensor(t)
		invoke(s.l.c.tensorFree, t)
		if err != nil {
			return nil, err
		}
		r.Name = name
		out = append(out, *r)
	}
	return out, nil
}

// tensor copies a tensor: ov_shape_t {int64 rank, int64 *dims}.
func (l *library) tensor(t uintptr) (*external.Tensor, error) {
	var number int32
	if s := invoke(l.c.tensorType, t, uintptr(unsafe.Pointer(&number))); s != 0 {
		return nil, l.failed(external.Failed, s, "OpenVINO does not tell a tensor's type")
	}
	typ := l.typeOf(number)
	if typ.name == "" || typ.name == "string" {
		return nil, external.Errorf(external.Rejected, "OpenVINO gives an output of an element type that opmeter does not take from it (%d, %s)", number, orUnknown(typ.name))
	}
	// The interface has no shape for a scalar.
	shape, count := new([2]int64), uintptr(0)
	if s := invoke(l.c.tensorShape, t, uintptr(unsafe.Pointer(shape))); s != 0 && (invoke(l.c.tensorCount, t, uintptr(unsafe.Pointer(&count))) != 0 || count != 1) {
		return nil, l.failed(external.Failed, s, "OpenVINO does not tell a tensor's shape")
	}
	defer invoke(l.c.shapeFree, uintptr(unsafe.Pointer(shape)))
	r := &external.Tensor{DType: typ.name, Shape: []int{}}
	elements := int64(1)
	if shape[0] < 0 || shape[0] > maxRank || shape[0] > 0 && shape[1] == 0 {
		return nil, external.Errorf(external.Failed, "OpenVINO gives a tensor of %d dimensions", shape[0])
	}
	if shape[0] > 0 {
		for _, d := range unsafe.Slice((*int64)(at(uintptr(shape[1]))), shape[0]) {
			if d < 0 || d > 0 && elements > maxElements/d {
				return nil, external.Errorf(external.Failed, "OpenVINO gives a tensor with a dimension of %d", d)
			}
			elements *= d
			r.Shape = append(r.Shape, int(d))
		}
	}
	data, err := l.bytes(t)
	if err != nil {
		return nil, err
	}
	if want := (elements*int64(typ.bits) + 7) / 8; int64(len(data)) < want {
		return nil, external.Errorf(external.Failed, "OpenVINO gives %d bytes for a tensor of %d", len(data), want)
	}
	r.Data = append([]byte{}, data...)
	return r, nil
}

// Clone creates another request of the same model. The model is compiled again with a stream and
// its threads for each session, as a server with concurrent requests does: requests of one stream
// would wait for one another. Existing sessions get new requests: none of them may be running.
func (s *session) Clone() (external.Session, error) {
	h := s.shared
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.task.Profiled {
		return nil, external.Errorf(external.Failed, "OpenVINO counts the time of nodes over all requests of a model: a profiled session cannot be cloned")
	}
	n := &session{shared: h, infer: s.infer}
	h.members = append(h.members, n)
	err := h.l.configure(h.core, h.task, h.config, len(h.members))
	if err == nil {
		err = h.build()
	}
	if err != nil {
		h.members = h.members[:len(h.members)-1]
		if n.request != 0 {
			invoke(h.l.c.requestFree, n.request)
		}
		return nil, err
	}
	for _, m := range h.members {
		m.ran = false
	}
	return n, nil
}

// Close ends the session; the last one frees the model.
func (s *session) Close() error {
	h := s.shared
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.request != 0 {
		invoke(h.l.c.requestFree, s.request)
		s.request = 0
	}
	h.members = slices.DeleteFunc(h.members, func(m *session) bool { return m == s })
	if len(h.members) == 0 {
		h.free()
	}
	return nil
}

func (h *shared) free() {
	for _, m := range h.members {
		if m.request != 0 {
			invoke(h.l.c.requestFree, m.request)
			m.request = 0
		}
	}
	for _, f := range []struct{ free, what *uintptr }{{&h.l.c.compiledFree, &h.compiled}, {&h.l.c.modelFree, &h.model}, {&h.l.c.coreFree, &h.core}} {
		if *f.what != 0 {
			invoke(*f.free, *f.what)
			*f.what = 0
		}
	}
}

// maxValue bounds the length of a setting that is kept.
const maxValue = 300

// Facts returns the settings in effect: all readable properties of the compiled model.
func (s *session) Facts() external.Facts {
	f := external.Facts{Settings: map[string]string{optionDevice: s.config.device}}
	for key := range strings.FieldsSeq(s.tells("SUPPORTED_PROPERTIES")) {
		switch key {
		case "SUPPORTED_PROPERTIES", "NETWORK_NAME", "RUNTIME_REQUIREMENTS":
			continue
		}
		if v := strings.TrimSpace(s.tells(key)); v != "" && len(v) <= maxValue && len(f.Settings) < 100 {
			f.Settings[key] = v
		}
	}
	for _, o := range s.config.user {
		if _, ok := f.Settings[o.Key]; !ok {
			f.Settings[o.Key] = o.Value
		}
	}
	if p := f.Settings["INFERENCE_PRECISION_HINT"]; p == "bf16" || p == "f16" {
		f.Half = true
		f.Notes = append(f.Notes, fmt.Sprintf("OpenVINO computes in %s here where the model has float32, as it does by itself on such processors: outputs differ by more than rounding of float32. INFERENCE_PRECISION_HINT=f32 computes in float32.", p))
	}
	if s.rec != nil {
		f.Notes = append(f.Notes, s.rec.notes...)
	}
	return f
}

// tells reads a property of the compiled model.
func (s *session) tells(key string) string {
	var p pins
	defer p.Unpin()
	var v uintptr
	if invoke(s.l.c.compiledGet, s.compiled, p.text(key), uintptr(unsafe.Pointer(&v))) != 0 {
		return ""
	}
	defer invoke(s.l.c.free, v)
	return text(v)
}
