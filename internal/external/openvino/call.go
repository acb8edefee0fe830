//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import (
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// invoke calls a C function that returns a status or nothing. Addresses of Go variables
// among the arguments stay where they are until it is back.
//
//go:uintptrescapes
func invoke(fn uintptr, args ...uintptr) int32 {
	r, _, _ := purego.SyscallN(fn, args...)
	return int32(r)
}

// at makes a pointer of an address that C gave. Memory at it belongs to C.
func at(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// maxText bounds a text that C gives.
const maxText = 1 << 20

// text copies a text of C, "" where there is none.
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

// pins holds Go memory in its place for the time of a call.
type pins struct{ runtime.Pinner }

// text gives the address of a text for C. Bytes of value 0 would end it: they are left out.
func (p *pins) text(s string) uintptr {
	b := append([]byte(strings.ReplaceAll(s, "\x00", "")), 0)
	p.Pin(&b[0])
	return uintptr(unsafe.Pointer(&b[0]))
}

// slot gives room for an address that C writes.
func (p *pins) slot() *uintptr {
	s := new(uintptr)
	p.Pin(s)
	return s
}

// words gives the address of numbers for C, one that nothing lies at for none.
func (p *pins) words(w []int64) uintptr {
	if len(w) == 0 {
		w = make([]int64, 1)
	}
	p.Pin(&w[0])
	return uintptr(unsafe.Pointer(&w[0]))
}

// shape gives the arguments that stand for an ov_shape_t by value: {int64 rank, int64 *dims}.
// It travels in two registers, on Windows as the address of a copy.
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
