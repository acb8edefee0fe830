//go:build (darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64))

package litert

import (
	"math"
	"unsafe"

	"github.com/opmeter/opmeter/internal/external"
)

// maxRank is LITERT_TENSOR_MAX_RANK.
const maxRank = 8

// layout is a LiteRtLayout: rank in the low seven bits of the first word, has_strides in
// the eighth.
type layout struct {
	rank    uint32
	dims    [maxRank]int32
	strides [maxRank]uint32
}

// ranked is a LiteRtRankedTensorType.
type ranked struct {
	element int32
	layout  layout
}

func (l *layout) shape() []int {
	out := make([]int, min(l.rank&0x7f, maxRank))
	for i := range out {
		out[i] = int(l.dims[i])
	}
	return out
}

// reshape sets the dimensions; it returns false for shapes that do not fit.
func (l *layout) reshape(shape []int) bool {
	if len(shape) > maxRank {
		return false
	}
	for i, d := range shape {
		if d < 0 || d > math.MaxInt32 {
			return false
		}
		l.dims[i] = int32(d)
	}
	l.rank = uint32(len(shape)) //nolint:gosec // bounded above
	return true
}

// elements are names and bits of LiteRtElementType.
var elements = map[int32]struct {
	name string
	bits int
}{
	1: {"float32", 32}, 2: {"int32", 32}, 3: {"uint8", 8}, 4: {"int64", 64}, 5: {"string", 0}, 6: {"bool", 8}, 7: {"int16", 16}, 8: {"complex64", 64}, 9: {"int8", 8},
	10: {"float16", 16}, 11: {"float64", 64}, 12: {"complex128", 128}, 13: {"uint64", 64}, 14: {"resource", 0}, 15: {"variant", 0}, 16: {"uint32", 32}, 17: {"uint16", 16},
	18: {"int4", 4}, 19: {"bfloat16", 16}, 20: {"int2", 2},
}

// maxBytes bounds a tensor.
const maxBytes = 1 << 40

// bytesOf returns the packed size in bytes of elements of a type; -1 if it is not fixed or too
// large.
func bytesOf(element int32, shape []int) int {
	bits := elements[element].bits
	if bits == 0 {
		return -1
	}
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > maxBytes/d {
			return -1
		}
		n *= d
	}
	if n > maxBytes/16 {
		return -1
	}
	return (n*bits + 7) / 8
}

// slot is an input or output of the model and its buffer.
type slot struct {
	name   string
	kind   ranked
	buffer handle
	bytes  int // of the buffer
}

// port reads the description of an input or output from the model.
func (a *api) port(graph handle, get uintptr, i int) (*slot, error) {
	var t handle
	if st := call(get, uintptr(graph), uintptr(i), uintptr(unsafe.Pointer(&t))); st != 0 {
		return nil, external.Errorf(external.Rejected, "LiteRT does not tell of tensor %d of the model: %v.", i, st)
	}
	p := &slot{}
	var name *byte
	if call(a.tensorName, uintptr(t), uintptr(unsafe.Pointer(&name))) == 0 {
		p.name = text(name)
	}
	if st := call(a.tensorOf, uintptr(t), uintptr(unsafe.Pointer(&p.kind))); st != 0 {
		return nil, external.Errorf(external.Rejected, "LiteRT does not tell the type of tensor %q: %v. It runs models whose inputs and outputs have a rank.", p.name, st)
	}
	e := elements[p.kind.element]
	switch {
	case e.name == "":
		return nil, external.Errorf(external.Rejected, "Tensor %q has element type %d, which is not known here.", p.name, p.kind.element)
	case e.bits == 0:
		return nil, external.Errorf(external.Rejected, "Tensor %q has elements of type %s, and LiteRT's buffers hold none. Measure this model with opmeter's own engine.", p.name, e.name)
	}
	return p, nil
}

// allocate creates the buffer that the compiled model requires.
func (a *api) allocate(env, compiled handle, p *slot, needs uintptr, signature, i int) error {
	var want handle
	if st := call(needs, uintptr(compiled), uintptr(signature), uintptr(i), uintptr(unsafe.Pointer(&want))); st != 0 {
		return external.Errorf(external.Rejected, "LiteRT does not tell what buffer tensor %q needs: %v.", p.name, st)
	}
	if st := call(a.createBuffer, uintptr(env), uintptr(unsafe.Pointer(&p.kind)), uintptr(want), uintptr(unsafe.Pointer(&p.buffer))); st != 0 {
		code := external.Rejected
		if st == noMemory {
			code = external.NoMemory
		}
		return external.Errorf(code, "LiteRT makes no buffer for tensor %q of shape %v: %v.", p.name, p.kind.layout.shape(), st)
	}
	var n uintptr
	if st := call(a.bufferSize, uintptr(p.buffer), uintptr(unsafe.Pointer(&n))); st != 0 || n > maxBytes {
		return external.Errorf(external.Failed, "LiteRT does not tell the size of the buffer of tensor %q: %v.", p.name, st)
	}
	p.bytes = int(n)
	return nil
}

// Modes of LiteRtTensorBufferLockMode.
const (
	toRead  = 0
	toWrite = 1
)

// memory calls f with a buffer's bytes.
func (a *api) memory(p *slot, mode int, f func(b []byte)) error {
	if p.bytes == 0 {
		f(nil)
		return nil
	}
	var at *byte
	if st := call(a.lock, uintptr(p.buffer), uintptr(unsafe.Pointer(&at)), uintptr(mode)); st != 0 || at == nil {
		return external.Errorf(external.Failed, "LiteRT gives no access to the buffer of tensor %q: %v.", p.name, st)
	}
	f(unsafe.Slice(at, p.bytes))
	if st := call(a.unlock, uintptr(p.buffer)); st != 0 {
		return external.Errorf(external.Failed, "LiteRT does not take back the buffer of tensor %q: %v.", p.name, st)
	}
	return nil
}

// text copies a C string of bounded length.
func text(p *byte) string {
	const most = 1 << 16
	if p == nil {
		return ""
	}
	n := 0
	for n < most && *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// cstring returns a zero-terminated copy of a text.
func cstring(s string) []byte { return append([]byte(s), 0) }
