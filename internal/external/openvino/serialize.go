//go:build linux && (amd64 || arm64)

package openvino

import (
	"fmt"
	"os"
	"path/filepath"
	"unsafe"
)

// writer calls ov::serialize of the C++ library.
//
// An ov_model_t begins with a std::shared_ptr<ov::Model> (src/bindings/c/src/common.h), so its
// address serves as the reference argument of the function. Paths are std::filesystem::path or
// std::string of the GNU C++ library, whose layouts are part of its stable ABI. The mangled
// symbol name tells which of them it takes; a function with any other name is not called.
type writer struct {
	fn   uintptr
	kind int
	// split is std::filesystem::path::_M_split_cmpts, which a path's constructor calls.
	split uintptr
}

// Kinds of paths.
const (
	asPath   = iota // std::filesystem::path: releases from 2026
	asString        // std::string since GCC 5
	asOld           // std::string before GCC 5: wheels for manylinux2014
)

const (
	model   = "_ZN2ov9serializeERKSt10shared_ptrIKNS_5ModelEE"
	version = "NS_4pass9Serialize7VersionE"
)

var serializers = []string{
	asPath:   model + "RKNSt10filesystem7__cxx114pathESA_" + version,
	asString: model + "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESD_" + version,
	asOld:    model + "RKSsS7_" + version,
}

// findWriter finds the function in the library or in the libraries opened with it.
func findWriter(handle uintptr, path string) *writer {
	handles := []uintptr{handle}
	if name := beside(path); name != "" {
		if _, err := os.Stat(name); err == nil {
			if h, err := openLibrary(name); err == nil {
				handles = append(handles, h)
			}
		}
	}
	for _, h := range handles {
		for kind, name := range serializers {
			fn := symbol(h, name)
			if fn == 0 {
				continue
			}
			w := &writer{fn: fn, kind: kind}
			if kind == asPath {
				if w.split = symbol(h, "_ZNSt10filesystem7__cxx114path14_M_split_cmptsEv"); w.split == 0 {
					continue
				}
			}
			return w
		}
	}
	return nil
}

// write writes the graph of an ov_model_t into a folder and opens it for reading. Constants are
// discarded.
//
// The function throws if it cannot write, which nothing here could catch: so write tests that
// first.
func (w *writer) write(m uintptr, folder, name string) (*os.File, error) {
	xml, bin := filepath.Join(folder, name+".xml"), filepath.Join(folder, name+".bin")
	f, err := os.OpenFile(xml, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Symlink(os.DevNull, bin); err != nil {
		return nil, fmt.Errorf("%w%w", err, f.Close())
	}
	defer os.Remove(bin)
	defer os.Remove(xml)
	var p pins
	defer p.Unpin()
	invoke(w.fn, m, w.path(&p, xml), w.path(&p, bin), 0)
	return f, nil
}

// path lays out a path and returns its address.
func (w *writer) path(p *pins, s string) uintptr {
	n := int64(len(s))
	switch w.kind {
	case asOld:
		// The string points to the text in {length, capacity, references, text}. One more
		// reference is counted for each copy, so that the library never frees it.
		b := make([]int64, 3+(len(s)+8)/8)
		b[0], b[1], b[2] = n, n, 1
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&b[3])), len(s)), s)
		return p.words([]int64{int64(p.words(b)) + 24})
	case asString:
		return p.words([]int64{int64(p.text(s)), n, n, 0})
	}
	// A string and the list of its parts: a pointer whose low bits are the kind of path. 3 is a
	// bare file name, as the constructor leaves it before it splits. The text is not longer than
	// its own capacity, so the library frees no Go memory. The parts leak: a few hundred bytes
	// for each graph.
	at := p.words([]int64{int64(p.text(s)), n, n, 0, 3})
	invoke(w.split, at)
	return at
}
