package simd

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// The emulator executes kernels of instruction sets that the processor lacks. It executes the
// disassembly of binutils, so a second tool checks encodings that Go's assembler does not know.
// Tests on processors with these instruction sets check the results. Memory is limited to the
// bytes that a kernel may read and write.

// emulator executes a small subset of amd64 instructions.
type emulator struct {
	t       *testing.T
	gp      map[string]uint64
	zero    bool // the last result was 0
	vectors [32][64]byte
	tiles   [8]emulatedTile
	held    bool           // tiles are configured
	base    unsafe.Pointer // the routine
	memory  []span
}

// span is a range of memory that starts at an address.
type span struct {
	at    uint64
	bytes []byte
}

// emulatedTile is a tile register.
type emulatedTile struct {
	rows, size int
	data       [16][64]byte
}

// instruction is a line of the disassembly, in Intel syntax.
type instruction struct {
	name string
	args []string
	next uint64
}

// routine is a disassembled function.
type routine struct {
	base  unsafe.Pointer
	entry uint64
	code  map[uint64]instruction
}

// disassemble reads an assembly function. Go calls a wrapper, which calls the function.
func disassemble(t *testing.T, f any) *routine {
	t.Helper()
	tool, err := exec.LookPath("objdump")
	if err != nil {
		if os.Getenv("OPMETER_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip("no objdump")
	}
	wrapper := reflect.ValueOf(f).UnsafePointer()
	name := runtime.FuncForPC(uintptr(wrapper)).Name()
	for i := range 200 {
		if *(*byte)(unsafe.Add(wrapper, i)) != 0xE8 {
			continue
		}
		entry := unsafe.Add(wrapper, i+5+int(*(*int32)(unsafe.Add(wrapper, i+1))))
		at := func(n int) bool {
			g := runtime.FuncForPC(uintptr(entry) + uintptr(n))
			return g != nil && g.Name() == name && g.Entry() == uintptr(entry)
		}
		if !at(0) {
			continue
		}
		size := 1
		for at(size) {
			size++
		}
		r := lines(t, tool, uint64(uintptr(entry)), unsafe.Slice((*byte)(entry), size))
		r.base = entry
		return r
	}
	t.Fatalf("%s calls no function of its name", name)
	return nil
}

// lines runs the disassembler for a function.
func lines(t *testing.T, tool string, entry uint64, code []byte) *routine {
	t.Helper()
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn", fmt.Sprintf("--adjust-vma=%#x", entry), file).Output()
	if err != nil {
		t.Fatal(err)
	}
	r := &routine{entry: entry, code: map[uint64]instruction{}}
	last := uint64(0)
	for line := range strings.Lines(string(out)) {
		address, text, ok := strings.Cut(strings.TrimSpace(line), ":\t")
		at, err := strconv.ParseUint(address, 16, 64)
		if !ok || err != nil {
			continue
		}
		text, _, _ = strings.Cut(text, "#") // what an address is
		name, args, _ := strings.Cut(strings.TrimPrefix(text, "{vex} "), " ")
		r.code[at] = instruction{name: name, args: strings.FieldsFunc(args, func(c rune) bool { return c == ',' || c == ' ' })}
		if before, ok := r.code[last]; ok {
			before.next = at
			r.code[last] = before
		}
		last = at
	}
	return r
}

// number parses a number of the disassembly.
func (m *emulator) number(s string) uint64 {
	v, err := strconv.ParseInt(strings.TrimPrefix(s, "+"), 0, 64)
	if err != nil {
		m.t.Fatal(err)
	}
	return uint64(v)
}

// place returns the address of [base+index*scale+disp], and the index times its scale.
func (m *emulator) place(s string) (at, step uint64) {
	inner, ok := strings.CutPrefix(strings.TrimSuffix(s, "]"), "[")
	if !ok {
		m.t.Fatalf("no address: %q", s)
	}
	for term := range strings.SplitSeq(strings.ReplaceAll(inner, "-", "+-"), "+") {
		name, scale, scaled := strings.Cut(term, "*")
		v, isReg := m.gp[name]
		switch {
		case scaled:
			step = v * m.number(scale)
		case isReg:
			at += v
		default:
			at += m.number(term)
		}
	}
	return at, step
}

// bytes returns n bytes at an address.
func (m *emulator) bytes(at uint64, n int) []byte {
	for _, s := range m.memory {
		if at >= s.at && at+uint64(n) <= s.at+uint64(len(s.bytes)) {
			return s.bytes[at-s.at:][:n]
		}
	}
	m.t.Fatalf("the kernel must not access %d bytes at %#x", n, at)
	return nil
}

// source returns the value of a register, a number or 64 bits of memory.
func (m *emulator) source(args []string) uint64 {
	if last := args[len(args)-1]; strings.HasPrefix(last, "[") {
		at, step := m.place(last)
		return binary.LittleEndian.Uint64(m.bytes(at+step, 8))
	} else if v, ok := m.gp[last]; ok {
		return v
	} else {
		return m.number(last)
	}
}

// register returns the number of a register, and its size in bytes if it is a vector register.
func (m *emulator) register(s string) (i, size int) {
	if len(s) < 4 {
		m.t.Fatalf("no register: %q", s)
	}
	return int(m.number(s[3:])), map[byte]int{'x': 16, 'y': 32, 'z': 64}[s[0]]
}

// operand returns the bytes of a register or of memory.
func (m *emulator) operand(args []string, size int) []byte {
	last := args[len(args)-1]
	if strings.HasPrefix(last, "[") {
		at, step := m.place(last)
		if strings.HasPrefix(last, "[rip") { // a table of the program
			return unsafe.Slice((*byte)(unsafe.Add(m.base, int(at-uint64(uintptr(m.base))))), size)
		}
		return m.bytes(at+step, size)
	}
	i, _ := m.register(last)
	return m.vectors[i][:size]
}

// call executes a function with one argument. The function may access the given memory.
func (m *emulator) call(r *routine, arg unsafe.Pointer, memory ...span) {
	stack := make([]byte, 16)
	binary.LittleEndian.PutUint64(stack[8:], uint64(uintptr(arg)))
	m.base = r.base
	m.memory = append(memory, over(unsafe.Pointer(&stack[0]), len(stack)))
	m.gp = map[string]uint64{"rsp": m.memory[len(memory)].at}
	for _, name := range []string{"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", "r13"} {
		m.gp[name] = 1 << 63 // an invalid address
	}
	for at := r.entry; ; {
		x, ok := r.code[at]
		if !ok {
			m.t.Fatalf("no instruction at %#x", at)
		}
		at = x.next
		m.gp["rip"] = at
		switch x.name {
		case "ret":
			if m.held {
				m.t.Fatal("tiles are configured after the call")
			}
			return
		case "jmp":
			at = m.number(x.args[0])
		case "prefetcht1":
		case "je", "jne":
			if m.zero == (x.name == "je") {
				at = m.number(x.args[0])
			}
		case "int3", "(bad)":
			m.t.Fatalf("%s before %#x", x.name, at)
		default:
			if !m.scalar(x) && !m.vector(x) {
				m.tile(x)
			}
		}
	}
}

// scalar executes an instruction of general registers.
func (m *emulator) scalar(x instruction) bool {
	var v uint64
	if (x.name == "add" || x.name == "dec" || x.name == "mov") && x.args[0] == "QWORD" {
		// A memory operand.
		at, step := m.place(x.args[2])
		b := m.bytes(at+step, 8)
		switch x.name {
		case "add":
			v = binary.LittleEndian.Uint64(b) + m.source(x.args[3:])
		case "dec":
			v = binary.LittleEndian.Uint64(b) - 1
		case "mov":
			v = m.source(x.args[3:])
		}
		binary.LittleEndian.PutUint64(b, v)
		m.zero = v == 0
		return true
	}
	switch x.name {
	case "mov":
		m.gp[x.args[0]] = m.source(x.args[1:])
		return true
	case "movsxd":
		at, step := m.place(x.args[len(x.args)-1])
		m.gp[x.args[0]] = uint64(int64(int32(binary.LittleEndian.Uint32(m.bytes(at+step, 4)))))
		return true
	case "lea":
		at, step := m.place(x.args[1])
		m.gp[x.args[0]] = at + step
		return true
	case "test":
		m.zero = m.gp[x.args[0]]&m.source(x.args[1:]) == 0
		return true
	case "add":
		v = m.gp[x.args[0]] + m.source(x.args[1:])
	case "sub":
		v = m.gp[x.args[0]] - m.source(x.args[1:])
	case "xor":
		v = m.gp[x.args[0]] ^ m.source(x.args[1:])
	case "shl":
		v = m.gp[x.args[0]] << m.source(x.args[1:])
	case "dec":
		v = m.gp[x.args[0]] - 1
	default:
		return false
	}
	m.gp[x.args[0]], m.zero = v, v == 0
	return true
}

// vector executes a vector instruction.
func (m *emulator) vector(x instruction) bool {
	if x.name == "vzeroupper" {
		return true
	}
	if (x.name == "vmovups" || x.name == "vmovdqu") && strings.HasSuffix(x.args[0], "WORD") {
		i, size := m.register(x.args[len(x.args)-1])
		copy(m.operand(x.args[:3], size), m.vectors[i][:size])
		return true
	}
	if !strings.HasPrefix(x.name, "v") {
		return false
	}
	i, size := m.register(x.args[0])
	dst := m.vectors[i][:size]
	switch x.name {
	case "vmovups", "vmovdqu":
		copy(dst, m.operand(x.args, size))
	case "vpbroadcastd":
		src := m.operand(x.args, 4)
		for k := range size / 4 {
			copy(dst[4*k:], src)
		}
	case "vbroadcasti128":
		src := m.operand(x.args, 16)
		copy(dst, src)
		copy(dst[16:], src)
	case "vpaddd", "vphaddd", "vpermd", "vpunpcklqdq", "vpunpckhqdq", "vperm2i128":
		m.words(x, dst)
	case "vpmovsxbw":
		for k, v := range m.operand(x.args, size/2) {
			binary.LittleEndian.PutUint16(dst[2*k:], uint16(int8(v)))
		}
	case "vxorps":
		if x.args[0] != x.args[1] || x.args[1] != x.args[2] {
			return false
		}
		clear(dst)
	case "vpdpbusd", "vpdpwssd":
		j, _ := m.register(x.args[1])
		p, q := m.vectors[j][:size], m.operand(x.args, size)
		for k := 0; k < size; k += 4 {
			s := int32(binary.LittleEndian.Uint32(dst[k:]))
			if x.name == "vpdpbusd" {
				s += products(p[k:], q[k:], false, true)
			} else {
				for h := k; h < k+4; h += 2 {
					s += int32(int16(binary.LittleEndian.Uint16(p[h:]))) * int32(int16(binary.LittleEndian.Uint16(q[h:])))
				}
			}
			binary.LittleEndian.PutUint32(dst[k:], uint32(s))
		}
	default:
		return false
	}
	return true
}

// words executes an instruction of 256-bit registers of 32-bit words with two sources.
func (m *emulator) words(x instruction, dst []byte) {
	args, choice := x.args, uint64(0)
	if x.name == "vperm2i128" {
		args, choice = args[:len(args)-1], m.number(args[len(args)-1])
	}
	i, _ := m.register(args[1])
	var p, q, out [8]uint32
	second := m.operand(args, len(dst))
	for k := range p {
		p[k], q[k] = binary.LittleEndian.Uint32(m.vectors[i][4*k:]), binary.LittleEndian.Uint32(second[4*k:])
	}
	for k := range out {
		lane, half := k&^3, k%4/2 // of 128 and 64 bits
		switch x.name {
		case "vpaddd":
			out[k] = p[k] + q[k]
		case "vphaddd":
			from := [2][8]uint32{p, q}[half]
			out[k] = from[lane+k%2*2] + from[lane+k%2*2+1]
		case "vpermd":
			out[k] = q[p[k]%8]
		case "vpunpcklqdq":
			out[k] = [2][8]uint32{p, q}[half][lane+k%2]
		case "vpunpckhqdq":
			out[k] = [2][8]uint32{p, q}[half][lane+2+k%2]
		case "vperm2i128":
			c := choice >> (k / 4 * 4)
			out[k] = [2][8]uint32{p, q}[c>>1&1][c&1*4+uint64(k%4)]
		}
	}
	for k, v := range out {
		binary.LittleEndian.PutUint32(dst[4*k:], v)
	}
}

// products returns the dot product of four 8-bit values, each operand signed or unsigned.
func products(p, q []byte, signedP, signedQ bool) (sum int32) {
	for i := range 4 {
		x, y := int32(p[i]), int32(q[i])
		if signedP {
			x = int32(int8(p[i]))
		}
		if signedQ {
			y = int32(int8(q[i]))
		}
		sum += x * y
	}
	return sum
}

// tile executes an AMX instruction.
func (m *emulator) tile(x instruction) {
	if x.name != "ldtilecfg" && !m.held {
		m.t.Fatalf("%s %v without tiles", x.name, x.args)
	}
	switch x.name {
	case "ldtilecfg":
		m.configure(x.args[0])
	case "tilerelease":
		m.held = false
	case "tilezero":
		i, _ := m.register(x.args[0])
		m.tiles[i].data = [16][64]byte{}
	case "tileloadd", "tilestored":
		place, name := x.args[1], x.args[0]
		if x.name == "tilestored" {
			place, name = name, place
		}
		i, _ := m.register(name)
		tile := &m.tiles[i]
		if tile.rows == 0 {
			m.t.Fatalf("%s %v: the tile has no size", x.name, x.args)
		}
		at, step := m.place(place)
		if x.name == "tileloadd" {
			tile.data = [16][64]byte{}
		}
		for r := range tile.rows {
			b := m.bytes(at+uint64(r)*step, tile.size)
			if x.name == "tileloadd" {
				copy(tile.data[r][:], b)
			} else {
				copy(b, tile.data[r][:])
			}
		}
	case "tdpbusd", "tdpbsud", "tdpbf16ps":
		var t [3]*emulatedTile
		for k := range t {
			i, _ := m.register(x.args[k])
			t[k] = &m.tiles[i]
		}
		sum, a, b := t[0], t[1], t[2]
		if sum.rows != a.rows || sum.size != b.size || a.size != 4*b.rows || a.rows == 0 || b.rows == 0 {
			m.t.Fatalf("%s of tiles of %d by %d, %d by %d and %d by %d", x.name, sum.rows, sum.size, a.rows, a.size, b.rows, b.size)
		}
		for r := range sum.rows {
			for n := 0; n < sum.size; n += 4 {
				if x.name == "tdpbf16ps" {
					var row [32]uint16
					for k := range row {
						row[k] = binary.LittleEndian.Uint16(a.data[r][2*k:])
					}
					v := math.Float32frombits(binary.LittleEndian.Uint32(sum.data[r][n:])) + brainDots(row[:a.size/2], func(k int) (uint16, uint16) {
						return binary.LittleEndian.Uint16(b.data[k][n:]), binary.LittleEndian.Uint16(b.data[k][n+2:])
					})
					binary.LittleEndian.PutUint32(sum.data[r][n:], math.Float32bits(v))
					continue
				}
				s := int32(binary.LittleEndian.Uint32(sum.data[r][n:]))
				for k := range b.rows {
					s += products(a.data[r][4*k:], b.data[k][n:], x.name == "tdpbsud", x.name == "tdpbusd")
				}
				binary.LittleEndian.PutUint32(sum.data[r][n:], uint32(s))
			}
		}
	default:
		m.t.Fatalf("%s %v is not known", x.name, x.args)
	}
}

// configure sets the tile sizes.
func (m *emulator) configure(place string) {
	at, _ := m.place(place)
	c := m.bytes(at, 64)
	reserved := append(slices.Clone(c[1:16]), c[32:48]...)
	if c[0] != 1 || slices.Max(append(reserved, c[56:]...)) != 0 {
		m.t.Fatalf("tile sizes: % x", c)
	}
	m.tiles, m.held = [8]emulatedTile{}, true
	for i := range m.tiles {
		size, rows := int(binary.LittleEndian.Uint16(c[16+2*i:])), int(c[48+i])
		if size > 64 || rows > 16 || (size == 0) != (rows == 0) {
			m.t.Fatalf("tile %d of %d rows of %d bytes", i, rows, size)
		}
		m.tiles[i].size, m.tiles[i].rows = size, rows
	}
}

// over returns memory of n bytes at an address.
func over(p unsafe.Pointer, n int) span {
	return span{uint64(uintptr(p)), unsafe.Slice((*byte)(p), n)}
}
