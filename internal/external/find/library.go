package find

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"unicode/utf8"
)

// judge reads the beginning of a file and decides whether it is a library that this computer can
// open. what describes the problem, to follow the file's name.
func (e *Env) judge(path string) (p Problem, what string) {
	switch e.Files.Kind(path) {
	case kindNone:
		return Missing, "leads to nothing"
	case kindFolder:
		return NoLibrary, "is a folder"
	}
	f, err := e.Files.Open(path)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return Unreadable, "cannot be read: " + err.Error()
	}
	defer f.Close()
	h, err := header(f)
	if err != nil {
		return NoLibrary, err.Error()
	}
	return h.fits(e.OS, e.Arch)
}

// binaryFile is the information in the header of a binary file.
type binaryFile struct {
	system  string   // "elf" for those with that format, "darwin", "windows"
	arches  []string // Go's names of the processors that it has code for
	library bool
}

// fits reports whether a library can be opened on a system.
func (b *binaryFile) fits(system, arch string) (Problem, string) {
	want := "elf"
	if system == "darwin" || system == "windows" {
		want = system
	}
	titles := map[string]string{"elf": "Linux", "darwin": "macOS", "windows": "Windows"}
	switch {
	case b.system != want:
		return OtherSystem, fmt.Sprintf("is for %s, this is %s", titles[b.system], system)
	case !slices.Contains(b.arches, arch):
		return OtherMachine, fmt.Sprintf("is for %s, this is %s", join(b.arches), arch)
	case !b.library:
		return NoLibrary, "is a program or object file, not a shared library"
	}
	return "", ""
}

func join(s []string) string {
	var b bytes.Buffer
	for i, v := range s {
		if i > 0 {
			b.WriteString(" and ")
		}
		b.WriteString(v)
	}
	return b.String()
}

// header reads the header of a file. The layouts are defined by <elf.h>, <mach-o/loader.h>,
// <mach-o/fat.h> and the PE format.
func header(f io.ReaderAt) (*binaryFile, error) {
	b := make([]byte, 4096)
	n, err := f.ReadAt(b, 0)
	if b = b[:n]; n == 0 {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("cannot be read: %w", err)
		}
		return nil, errors.New("is empty")
	}
	var magic uint32
	if n >= 4 {
		magic = binary.BigEndian.Uint32(b)
	}
	switch {
	case bytes.HasPrefix(b, []byte("\x7fELF")) && n >= 64:
		return elf(b)
	case magic == 0xcffaedfe && n >= 32:
		arch := cpu(binary.LittleEndian.Uint32(b[4:]))
		kind := binary.LittleEndian.Uint32(b[12:])
		// MH_DYLIB, MH_BUNDLE
		return &binaryFile{"darwin", []string{arch}, kind == 6 || kind == 8}, nil
	case (magic == 0xcafebabe || magic == 0xcafebabf) && n >= 8:
		return fat(b, magic == 0xcafebabf)
	case bytes.HasPrefix(b, []byte("MZ")) && n >= 64:
		return pe(f, int64(binary.LittleEndian.Uint32(b[60:])))
	case looksLikeText(b):
		return nil, errors.New("is a text file, not a shared library")
	}
	return nil, errors.New("is not a shared library")
}

// elf reads the header of an ELF file.
func elf(b []byte) (*binaryFile, error) {
	var order binary.ByteOrder = binary.LittleEndian
	if b[5] == 2 {
		order = binary.BigEndian
	}
	machine := order.Uint16(b[18:])
	arch := map[uint16]string{3: "386", 40: "arm", 62: "amd64", 183: "arm64", 243: "riscv64", 258: "loong64"}[machine]
	switch {
	case machine == 21 && b[5] == 1:
		arch = "ppc64le"
	case machine == 22 && b[4] == 2:
		arch = "s390x"
	case arch == "" || b[4] == 1 && machine != 3 && machine != 40:
		arch = fmt.Sprintf("processor %d of %d bits", machine, 32*int(b[4]))
	}
	return &binaryFile{"elf", []string{arch}, order.Uint16(b[16:]) == 3}, nil // ET_DYN
}

// fat reads the list of processors of a universal (fat) Mach-O file.
func fat(b []byte, long bool) (*binaryFile, error) {
	n, size := int(binary.BigEndian.Uint32(b[4:])), 20
	if long {
		size = 32
	}
	// Java class files begin with the same bytes, but a larger number follows.
	if n < 1 || n > 30 || 8+n*size > len(b) {
		return nil, errors.New("is not a shared library")
	}
	out := &binaryFile{system: "darwin", library: true}
	for i := range n {
		out.arches = append(out.arches, cpu(binary.BigEndian.Uint32(b[8+i*size:])))
	}
	return out, nil
}

// cpu returns the GOARCH name of a Mach-O CPU type.
func cpu(t uint32) string {
	switch t {
	case 0x01000007:
		return "amd64"
	case 0x0100000c:
		return "arm64"
	case 7:
		return "386"
	}
	return fmt.Sprintf("processor %#x", t)
}

// pe reads the header of a PE file.
func pe(f io.ReaderAt, at int64) (*binaryFile, error) {
	b := make([]byte, 24)
	if n, _ := f.ReadAt(b, at); n < len(b) || !bytes.HasPrefix(b, []byte("PE\x00\x00")) {
		return nil, errors.New("is not a shared library")
	}
	machine := binary.LittleEndian.Uint16(b[4:])
	arch := map[uint16]string{0x14c: "386", 0x8664: "amd64", 0xaa64: "arm64"}[machine]
	if arch == "" {
		arch = fmt.Sprintf("processor %#x", machine)
	}
	// IMAGE_FILE_DLL
	return &binaryFile{"windows", []string{arch}, binary.LittleEndian.Uint16(b[22:])&0x2000 != 0}, nil
}

// looksLikeText reports whether the beginning of a file is text: a linker script, a Git LFS
// pointer, or an HTML page downloaded in its place.
func looksLikeText(b []byte) bool {
	b = b[:min(len(b), 512)]
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 && len(b) >= utf8.UTFMax || r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		b = b[n:]
	}
	return true
}
