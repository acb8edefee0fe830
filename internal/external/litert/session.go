//go:build (darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64))

package litert

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/opmeter/opmeter/internal/external"
)

// Tags of LiteRtEnvOption and types of LiteRtAny.
const (
	tagRuntimeFolder = 22
	tagRegister      = 24
	tagSeverity      = 25

	anyInt  = 2
	anyText = 8

	logErrors = 3 // LITERT_ERROR
)

// envOption is a LiteRtEnvOption: a tag and a LiteRtAny.
type envOption struct {
	tag, _  int32
	kind, _ int32
	value   uintptr
}

// pins holds memory of this process that the library may read for as long as the object that
// received it exists.
type pins struct{ runtime.Pinner }

func (p *pins) text(s string) uintptr {
	b := cstring(s)
	p.Pin(&b[0])
	return uintptr(unsafe.Pointer(&b[0]))
}

// environment creates an environment with a set of accelerators, whose libraries are searched
// beside the library.
func (l *library) environment(bits int) (handle, error) {
	var pin pins
	defer pin.Unpin() // the library copies texts
	list := []envOption{
		{tag: tagSeverity, kind: anyInt, value: logErrors},
		{tag: tagRegister, kind: anyInt, value: uintptr(bits)},
		{tag: tagRuntimeFolder, kind: anyText, value: pin.text(filepath.Dir(l.path))},
	}
	var env handle
	if st := call(l.api.createEnvironment, uintptr(len(list)), uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&env))); st != 0 {
		return nil, external.Errorf(external.NotLibrary, "%s makes no environment: %v. The library may be of a release whose interface changed; 2.1 to 2.3 are known to work.", l.path, st)
	}
	return env, nil
}

type accelerator struct {
	name     string
	hardware int
}

// accelerators lists the accelerators that registered with an environment.
func (a *api) accelerators(env handle) (out []accelerator) {
	var n uintptr
	if call(a.numAccelerators, uintptr(env), uintptr(unsafe.Pointer(&n))) != 0 {
		return nil
	}
	for i := range min(n, 100) {
		var h handle
		var name *byte
		var bits int32
		if call(a.accelerator, uintptr(env), i, uintptr(unsafe.Pointer(&h))) != 0 || call(a.hardware, uintptr(h), uintptr(unsafe.Pointer(&bits))) != 0 {
			continue
		}
		if call(a.acceleratorName, uintptr(h), uintptr(unsafe.Pointer(&name))) == 0 {
			out = append(out, accelerator{text(name), int(bits)})
		}
	}
	return out
}

// shared is the state shared by the sessions of one task. The last session frees it.
type shared struct {
	lib  *library
	task *external.Task
	set  settings
	// known reads the structure on first use, so that the load time does not include it; nil if
	// opmeter's reader cannot read the model.
	known func() *known

	env, model handle
	graph      handle // the main one
	signature  int    // whose graph is the main one

	mu   sync.Mutex
	uses int
}

// Load prepares a model to run.
func (l *library) Load(t *external.Task) (external.Session, error) {
	if t.Format != "tflite" {
		return nil, external.Errorf(external.NoFormat, "LiteRT reads models of TensorFlow Lite, and this is one of the format %s.", t.Format)
	}
	set, err := parse(t.Options, l.has)
	if err != nil {
		return nil, err
	}
	sh := &shared{lib: l, task: t, set: set, known: sync.OnceValue(func() *known { return study(t.Model) })}
	if err := sh.open(); err != nil {
		sh.close()
		return nil, err
	}
	return sh.session()
}

// open reads the model.
func (sh *shared) open() error {
	a := sh.lib.api
	var err error
	if sh.env, err = sh.lib.environment(sh.set.bits); err != nil {
		return err
	}
	var pin pins
	defer pin.Unpin()
	if st := call(a.createModel, uintptr(sh.env), pin.text(sh.task.Model), uintptr(unsafe.Pointer(&sh.model))); st != 0 {
		code := external.Rejected
		if st == noMemory {
			code = external.NoMemory
		}
		return external.Errorf(code, "LiteRT does not read %s: %v.%s", filepath.Base(sh.task.Model), st, sh.known().why()).WithPrinted()
	}
	var index, n uintptr
	if st := call(a.mainSubgraph, uintptr(sh.model), uintptr(unsafe.Pointer(&index))); st != 0 {
		return external.Errorf(external.Rejected, "LiteRT finds no graph in %s: %v.", filepath.Base(sh.task.Model), st)
	}
	if st := call(a.modelSubgraph, uintptr(sh.model), index, uintptr(unsafe.Pointer(&sh.graph))); st != 0 {
		return external.Errorf(external.Rejected, "LiteRT finds no main graph in %s: %v.", filepath.Base(sh.task.Model), st)
	}
	if st := call(a.numSignatures, uintptr(sh.model), uintptr(unsafe.Pointer(&n))); st != 0 {
		return external.Errorf(external.Rejected, "LiteRT tells no signatures of %s: %v.", filepath.Base(sh.task.Model), st)
	}
	// A compiled model runs signatures; a model without any has one for its main graph.
	for i := range n {
		var s, g handle
		if call(a.signature, uintptr(sh.model), i, uintptr(unsafe.Pointer(&s))) == 0 && call(a.signatureSubgraph, uintptr(s), uintptr(unsafe.Pointer(&g))) == 0 && g == sh.graph {
			sh.signature = int(i)
			return nil
		}
	}
	return external.Errorf(external.Rejected, "None of the %d signatures of %s is of its main graph, and LiteRT runs nothing but signatures.", n, filepath.Base(sh.task.Model))
}

func (sh *shared) close() {
	a := sh.lib.api
	a.free(a.destroyModel, sh.model)
	a.free(a.destroyEnvironment, sh.env)
	sh.model, sh.env = nil, nil
}

// release is called by each session once.
func (sh *shared) release() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.uses--; sh.uses == 0 {
		sh.close()
	}
}

// session is a compiled model with its buffers.
type session struct {
	*shared
	pin               pins
	options, compiled handle
	in, out           []*slot
	// ins and outs are the buffers in the order of the call. Carried tensors swap their buffers.
	ins, outs []uintptr
	carry     [][2]int // output, input
	ran       bool
	args      [6]uintptr
}

func (sh *shared) session() (external.Session, error) {
	sh.mu.Lock()
	sh.uses++
	sh.mu.Unlock()
	s := &session{shared: sh}
	err := s.compile()
	if err == nil {
		err = s.ports()
	}
	if err == nil {
		err = s.carried()
	}
	if err == nil && sh.task.Profiled {
		var p *profiled
		if p, err = s.profile(); err == nil {
			return p, nil
		}
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// compile passes the options and compiles the model.
func (s *session) compile() error {
	a := s.lib.api
	if st := call(a.createOptions, uintptr(unsafe.Pointer(&s.options))); st != 0 {
		return external.Errorf(external.Failed, "LiteRT makes no options: %v.", st)
	}
	if st := call(a.setAccelerators, uintptr(s.options), uintptr(s.set.bits)); st != 0 {
		return external.Errorf(external.NoProvider, "LiteRT does not take the accelerators %s: %v.", strings.Join(s.set.accelerator, ","), st)
	}
	for _, o := range [][2]string{{cpuOptions, s.set.cpu(s.task.Threads)}, {runtimeOptions, s.set.runtime(s.task.Profiled)}} {
		var h handle
		if st := call(a.createOpaque, s.pin.text(o[0]), s.pin.text(o[1]), a.noop, uintptr(unsafe.Pointer(&h))); st != 0 {
			return external.Errorf(external.Failed, "LiteRT makes no options %q: %v.", o[0], st)
		}
		if st := call(a.addOpaque, uintptr(s.options), uintptr(h)); st != 0 {
			return external.Errorf(external.Failed, "LiteRT does not take options %q: %v.", o[0], st)
		}
	}
	if st := call(a.createCompiled, uintptr(s.env), uintptr(s.model), uintptr(s.options), uintptr(unsafe.Pointer(&s.compiled))); st != 0 {
		code, hint := external.Rejected, ""
		switch {
		case st == noMemory:
			code = external.NoMemory
		case st == cannotCompile && s.set.bits&onCPU == 0:
			hint = " An accelerator may not take all of its operators: add cpu beside it (accelerator=" + strings.Join(s.set.accelerator, ",") + ",cpu)."
		default:
			hint = s.known().why()
		}
		return external.Errorf(code, "LiteRT does not compile %s: %v.%s", filepath.Base(s.task.Model), st, hint).WithPrinted()
	}
	return nil
}

// ports creates the buffers and fills the inputs.
func (s *session) ports() error {
	a := s.lib.api
	var ni, no uintptr
	if st := call(a.numInputs, uintptr(s.graph), uintptr(unsafe.Pointer(&ni))); st != 0 {
		return external.Errorf(external.Rejected, "LiteRT does not tell the inputs of %s: %v.", filepath.Base(s.task.Model), st)
	}
	if st := call(a.numOutputs, uintptr(s.graph), uintptr(unsafe.Pointer(&no))); st != 0 {
		return external.Errorf(external.Rejected, "LiteRT does not tell the outputs of %s: %v.", filepath.Base(s.task.Model), st)
	}
	const most = 1 << 16
	if int(ni) != len(s.task.Inputs) || ni > most || no > most {
		return external.Errorf(external.Rejected, "LiteRT sees %d inputs in %s, and %d are given.", ni, filepath.Base(s.task.Model), len(s.task.Inputs))
	}
	for i := range s.task.Inputs {
		p, err := a.port(s.graph, a.input, i)
		if err != nil {
			return err
		}
		s.in = append(s.in, p)
		if err := s.fit(i); err != nil {
			return err
		}
	}
	layouts := make([]layout, max(1, no))
	if st := call(a.outputLayouts, uintptr(s.compiled), uintptr(s.signature), no, uintptr(unsafe.Pointer(&layouts[0])), 1); st != 0 {
		return external.Errorf(external.Rejected, "LiteRT cannot prepare the operators of %s for inputs of %s: %v.%s", filepath.Base(s.task.Model), s.shapes(), st, s.known().why()).WithPrinted()
	}
	for i := range int(no) {
		p, err := a.port(s.graph, a.output, i)
		if err != nil {
			return err
		}
		p.kind.layout = layouts[i]
		s.out = append(s.out, p)
	}
	return s.buffers()
}

// fit resizes an input to the given shape.
func (s *session) fit(i int) error {
	a, p, given := s.lib.api, s.in[i], &s.task.Inputs[i]
	if want := elements[p.kind.element].name; given.DType != want {
		return external.Errorf(external.Rejected, "Input %q takes elements of type %s, and %s are given.", p.name, want, given.DType)
	}
	var now layout
	if st := call(a.inputLayout, uintptr(s.compiled), uintptr(s.signature), uintptr(i), uintptr(unsafe.Pointer(&now))); st != 0 {
		return external.Errorf(external.Rejected, "LiteRT does not tell the shape of input %q: %v.", p.name, st)
	}
	if !p.kind.layout.reshape(given.Shape) {
		return external.Errorf(external.Rejected, "Input %q is to have shape %v; LiteRT takes at most %d dimensions.", p.name, given.Shape, maxRank)
	}
	if slices.Equal(now.shape(), given.Shape) {
		return nil
	}
	dims := p.kind.layout.dims
	if st := call(a.resize, uintptr(s.compiled), uintptr(s.signature), uintptr(i), uintptr(unsafe.Pointer(&dims[0])), uintptr(len(given.Shape))); st != 0 {
		return external.Errorf(external.Rejected, "LiteRT does not resize input %q from %v to %v: %v.", p.name, now.shape(), given.Shape, st)
	}
	return nil
}

func (s *session) shapes() string {
	parts := make([]string, len(s.in))
	for i, p := range s.in {
		parts[i] = fmt.Sprint(p.kind.layout.shape())
	}
	return strings.Join(parts, ", ")
}

func (s *session) buffers() error {
	a := s.lib.api
	for i, p := range s.in {
		if err := a.allocate(s.env, s.compiled, p, a.inputNeeds, s.signature, i); err != nil {
			return err
		}
		data := s.task.Inputs[i].Data
		if len(data) != bytesOf(p.kind.element, s.task.Inputs[i].Shape) || len(data) > p.bytes {
			return external.Errorf(external.Rejected, "Input %q of shape %v takes %d bytes in LiteRT, and %d are given.", p.name, s.task.Inputs[i].Shape, p.bytes, len(data))
		}
		if err := a.memory(p, toWrite, func(b []byte) { clear(b[copy(b, data):]) }); err != nil {
			return err
		}
		s.ins = append(s.ins, uintptr(p.buffer))
	}
	for i, p := range s.out {
		if err := a.allocate(s.env, s.compiled, p, a.outputNeeds, s.signature, i); err != nil {
			return err
		}
		s.outs = append(s.outs, uintptr(p.buffer))
	}
	list := func(l *[]uintptr) uintptr {
		*l = append(*l, 0) // never empty
		s.pin.Pin(&(*l)[0])
		return uintptr(unsafe.Pointer(&(*l)[0]))
	}
	s.args = [6]uintptr{uintptr(s.compiled), uintptr(s.signature), uintptr(len(s.in)), list(&s.ins), uintptr(len(s.out)), list(&s.outs)}
	return nil
}

// carried checks the outputs that become inputs.
func (s *session) carried() error {
	taken := map[int]bool{}
	for o, i := range s.task.Carry {
		if o < 0 || o >= len(s.out) || i < 0 || i >= len(s.in) || taken[i] {
			return external.Errorf(external.Rejected, "Output %d cannot become input %d: the model has %d outputs and %d inputs.", o, i, len(s.out), len(s.in))
		}
		a, b := s.out[o], s.in[i]
		if a.kind.element != b.kind.element || a.bytes != b.bytes || !slices.Equal(a.kind.layout.shape(), b.kind.layout.shape()) {
			return external.Errorf(external.Rejected, "Output %q of shape %v cannot become input %q of shape %v.", a.name, a.kind.layout.shape(), b.name, b.kind.layout.shape())
		}
		taken[i] = true
		s.carry = append(s.carry, [2]int{o, i})
	}
	return nil
}

// Run computes one inference. Carried outputs swap their buffers with the inputs, as applications
// do.
func (s *session) Run() error {
	if s.ran {
		for _, c := range s.carry {
			s.outs[c[0]], s.ins[c[1]] = s.ins[c[1]], s.outs[c[0]]
		}
	}
	s.ran = true
	r, _, _ := purego.SyscallN(s.lib.api.run, s.args[:]...)
	if st := status(int32(uint32(r))); st != 0 { //nolint:gosec // a C enumeration in the low half
		code := external.Failed
		if st == noMemory {
			code = external.NoMemory
		}
		return external.Errorf(code, "An inference of %s by LiteRT failed: %v.%s", filepath.Base(s.task.Model), st, s.known().why()).WithPrinted()
	}
	return nil
}

// Outputs copies the outputs of the last run.
func (s *session) Outputs() ([]external.Tensor, error) {
	if !s.ran {
		return nil, external.Errorf(external.Failed, "There are no outputs before the first run.")
	}
	layouts := make([]layout, max(1, len(s.out)))
	if st := call(s.lib.api.outputLayouts, uintptr(s.compiled), uintptr(s.signature), uintptr(len(s.out)), uintptr(unsafe.Pointer(&layouts[0])), 0); st != 0 {
		return nil, external.Errorf(external.Failed, "LiteRT does not tell the shapes of outputs: %v.", st)
	}
	out := make([]external.Tensor, len(s.out))
	for i, p := range s.out {
		at := *p
		at.buffer = *(*handle)(unsafe.Pointer(&s.outs[i]))
		shape := layouts[i].shape()
		n := bytesOf(p.kind.element, shape)
		if n < 0 || n > p.bytes {
			return nil, external.Errorf(external.Failed, "Output %q has shape %v, which is more than its buffer of %d bytes holds.", p.name, shape, p.bytes)
		}
		out[i] = external.Tensor{Name: p.name, DType: elements[p.kind.element].name, Shape: shape}
		if err := s.lib.api.memory(&at, toRead, func(b []byte) { out[i].Data = slices.Clone(b[:n]) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Clone creates another session that shares the model's file and its weights in the file. Each
// session has its own weights packed by delegates.
func (s *session) Clone() (external.Session, error) {
	if s.set.bits != onCPU {
		return s.lib.Load(s.task) // other accelerators rewrite the model
	}
	return s.shared.session()
}

// Facts returns the settings in effect.
func (s *session) Facts() external.Facts {
	f := external.Facts{Settings: s.set.facts(s.task.Threads)}
	var all uint8
	if s.set.kernel == "xnnpack" || s.set.bits != onCPU {
		if call(s.lib.api.fullyAccelerated, uintptr(s.compiled), uintptr(unsafe.Pointer(&all))) == 0 {
			f.Settings["delegated"] = map[bool]string{true: "all", false: "in part"}[all != 0]
		}
	}
	if s.set.flags != nil {
		f.Notes = append(f.Notes, "The flags of XNNPACK replace the library's default ones.")
	}
	if k := s.known(); k != nil && k.composites {
		f.Notes = append(f.Notes, "Composite operators are run as the graphs behind them.")
	}
	return f
}

// Close frees the session.
func (s *session) Close() error {
	if s.shared == nil {
		return nil
	}
	a := s.lib.api
	for _, p := range append(slices.Clone(s.in), s.out...) {
		a.free(a.destroyBuffer, p.buffer)
	}
	a.free(a.destroyCompiled, s.compiled)
	a.free(a.destroyOptions, s.options)
	s.pin.Unpin()
	s.release()
	*s = session{}
	return nil
}
