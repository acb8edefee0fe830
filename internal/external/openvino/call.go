//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import (
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// invoke calls a C function that returns a status or nothing. Go variables whose addresses are
// among the arguments are not moved until it returns.
//
//go:uintptrescapes
func invoke(fn uintptr, args ...uintptr) int32 {
	r, _, _ := purego.SyscallN(fn, args...)
	return int32(r)
}

// at converts an address from C to a pointer. The memory belongs to C.
func at(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// maxText bounds a text from C.
const maxText = 1 << 20

// text copies a C string, "" for nil.
func text(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	p := (*byte)(at(addr))
	n := 0
	for n < maxText && *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return strings.ToValidUTF8(string(unsafe.Slice(p, n)), "\ufffd")
}

// pins pins Go memory during a call.
type pins struct{ runtime.Pinner }

// text returns the address of a C string. Zero bytes, which would end it, are removed.
func (p *pins) text(s string) uintptr {
	b := append([]byte(strings.ReplaceAll(s, "\x00", "")), 0)
	p.Pin(&b[0])
	return uintptr(unsafe.Pointer(&b[0]))
}

// slot returns memory for an address that C writes.
func (p *pins) slot() *uintptr {
	s := new(uintptr)
	p.Pin(s)
	return s
}

// words returns the address of numbers for C; for none it is still a valid address.
func (p *pins) words(w []int64) uintptr {
	if len(w) == 0 {
		w = make([]int64, 1)
	}
	p.Pin(&w[0])
	return uintptr(unsafe.Pointer(&w[0]))
}

// shape returns the arguments of an ov_shape_t passed by value: {int64 rank, int64 *dims}. It is
// passed in two registers, on Windows as the address of a copy.
func (p *pins) shape(dims []int64) []uintptr {
	d := p.words(dims)
	if runtime.GOOS != "windows" {
		return []uintptr{uintptr(len(dims)), d}
	}
	return []uintptr{p.words([]int64{int64(len(dims)), int64(d)})}
}

// sys calls a C function that returns an address.
//
//go:uintptrescapes
func sys(fn uintptr, args ...uintptr) (r1, r2, err uintptr) { return purego.SyscallN(fn, args...) }
