// Package compiler reads what the compiler of Sophgo's chips leaves beside a model and
// what its runtime copies into a profile directory, all of it text: the log of commands
// and layers (global.profile, *.net_N.profile), the estimate of cycles (net_stat.sim,
// compiler_profile_N.txt), the places of tensors (tensor_location.json) and the program
// (final.mlir).
package compiler

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Log is a compiler log with what the runtime wrote around it.
type Log struct {
	// Arch is the number of the chip, 0 where the file does not say; ArchName its name
	// where the file has that.
	Arch     int
	ArchName string
	NetName  string
	// FreqMHz is the clock that the file states, 0 for none.
	FreqMHz float64
	// Cores are those that ran.
	Cores []int
	// Named says that layer types are names and layer ids lines of final.mlir.
	Named bool
	// Started says that a compiler log is there.
	Started bool
	// Layers are the lines that begin a layer, in order; the same layer stands there
	// once for every slice.
	Layers []LayerLine
	// Tensors are those of each layer's first line.
	Tensors []TensorLine
	// Commands are the command lines in order.
	Commands Commands
	// Memory lists allocations.
	Memory []Allocation
	// Lines is the number of lines, Unknown those that have nothing that is known,
	// Dropped what was beyond the bounds.
	Lines, Unknown, Dropped int64

	types texts
}

// Scope says which memory a layer works from.
type Scope uint8

// Scopes.
const (
	Global Scope = iota // from global memory
	Local               // a slice in local memory, within a layer group
	Move                // a copy of old compilers
)

// LayerLine is a line that begins a layer.
type LayerLine struct {
	// ID is the number of the operation, its line in final.mlir.
	ID     int64
	Subnet int32
	Scope  Scope
	// Type is the kind of operation, a name or a number.
	Type string
	// Name is seldom there.
	Name string
	// Tensors are the layer's in Log.Tensors, none but for its first line.
	FirstTensor, EndTensor int
}

// TensorLine is a tensor of a layer.
type TensorLine struct {
	// ID is the line of the operation that makes it, below 0 for an input of the net.
	ID int64
	In bool
	// Shape has at most 64 dimensions.
	Shape []int64
	// DType is the code of the element type, -1 where it is not stated.
	DType int
	Const bool
	// Global and Local are its address in global and local memory, Bytes its size
	// where the log tells.
	Global, Local, Bytes uint64
}

// Commands are the columns of command lines.
type Commands struct {
	// DMA says which engine, false for the tensor engine.
	DMA []bool
	// Core and Subnet number what the command is of.
	Core   []uint8
	Subnet []int32
	// Own is the command's own id where the chip has such, Dep that of the other engine
	// that it waits for.
	Own, Dep []uint32
	// Func is the code of its function, Dir that of its direction (-1 for none).
	Func, Dir []int8
	// Line is the position in Log.Layers, -1 before the first one.
	Line []int32
}

// Len is the number of commands.
func (c *Commands) Len() int { return len(c.DMA) }

// Allocation is a part of the host's or the chip's memory.
type Allocation struct {
	// Kind is 0 CPU, 1 global, 2 local, 3 ARM.
	Kind           int
	Address, Bytes uint64
	// Alloc and Free are the host's clock, microseconds; Free 0 for until the end.
	Alloc, Free uint64
	Name        string
}

// Bounds of what is kept of a log.
const (
	maxCommands   = 1 << 24
	maxLayers     = 1 << 22
	maxTensors    = 1 << 20
	maxMemory     = 1 << 16
	maxLine       = 1 << 20
	maxDimensions = 64
	maxTypes      = 1 << 16
)

// texts keeps one copy of each text.
type texts struct{ at map[string]string }

func (t *texts) of(b []byte) string {
	if s, ok := t.at[string(b)]; ok {
		return s
	}
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if t.at == nil {
		t.at = map[string]string{}
	}
	if len(t.at) < maxTypes {
		t.at[string(b)] = s
	}
	return s
}

// lines calls f with each line without its end; a line beyond the bound is cut. f
// may change the line.
func lines(r io.Reader, f func(line []byte)) error {
	br := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := br.ReadSlice('\n')
		if n := len(line); n > 0 {
			f(bytes.TrimRight(line, "\r\n"))
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = br.ReadSlice('\n')
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// IsLog reports whether a text that begins so is such a log.
func IsLog(head []byte) bool {
	if bytes.Contains(head, []byte("[bmprofile]")) || bytes.Contains(head, []byte("...Start Profile Log...")) {
		return true
	}
	return bytes.Contains(head, []byte("arch=")) && bytes.Contains(head, []byte("tpu_freq="))
}

// ReadLog reads a log. The error is the reader's; what came before is kept.
func ReadLog(r io.Reader) (*Log, error) {
	p := logParser{log: &Log{}, subnet: 0, seen: map[[2]int64]bool{}}
	err := lines(r, p.line)
	return p.log, err
}

type logParser struct {
	log    *Log
	subnet int32
	seen   map[[2]int64]bool // layers whose tensors are kept
	keep   bool              // tensors of the present layer
}

var prefix = []byte("[bmprofile]")

// line takes a line. The keys of the commonest lines are looked for first.
func (p *logParser) line(b []byte) {
	l := p.log
	l.Lines++
	b = bytes.TrimSpace(b)
	b = bytes.TrimSpace(bytes.TrimPrefix(b, prefix))
	switch {
	case len(b) == 0, bytes.HasPrefix(b, []byte("start parallel")), bytes.HasPrefix(b, []byte("end parallel")), bytes.HasPrefix(b, []byte("insert ")):
	case bytes.HasPrefix(b, []byte("tensor_id=")):
		p.tensor(b)
	case bytes.HasPrefix(b, []byte("gdma cmd_id")), bytes.HasPrefix(b, []byte("bd cmd_id")):
		p.command(b)
	case bytes.HasPrefix(b, []byte("local_layer")):
		p.layer(b, Local)
	case bytes.HasPrefix(b, []byte("global_layer")):
		p.layer(b, Global)
	case bytes.HasPrefix(b, []byte("gdma_layer")):
		p.layer(b, Move)
	case bytes.HasPrefix(b, []byte("mtype=")):
		p.memory(b)
	case bytes.HasPrefix(b, []byte("start to run")):
		if v, ok := number(b, "subnet_id"); ok {
			p.subnet = int32(v)
		}
		l.Started = true
	case bytes.HasPrefix(b, []byte("...Start Profile Log")):
		l.Started = true
	case bytes.HasPrefix(b, []byte("end to run")), bytes.HasPrefix(b, []byte("subnet_id")), bytes.HasPrefix(b, []byte("start local memory")), bytes.HasPrefix(b, []byte("layer_id=")):
		// The plan of local memory of old compilers says nothing that commands do not.
	default:
		p.head(b)
	}
}

// head takes a line with a property of the whole.
func (p *logParser) head(b []byte) {
	l := p.log
	i := bytes.IndexByte(b, '=')
	if i < 0 {
		l.Unknown++
		return
	}
	key := string(b[:i])
	if at := strings.LastIndexByte(key, ' '); at >= 0 {
		key = key[at+1:]
	}
	value := strings.ToValidUTF8(strings.TrimSpace(string(b[i+1:])), "\uFFFD")
	switch key {
	case "arch":
		if n, err := strconv.Atoi(value); err == nil {
			l.Arch = n
		} else {
			l.ArchName = value
		}
	case "net_name":
		l.NetName = value
	case "tpu_freq":
		if v, err := strconv.ParseFloat(value, 64); err == nil && v > 0 && v < 1e6 {
			l.FreqMHz = v
		}
	case "is_mlir":
		l.Named = value == "1"
	case "core_list":
		l.Cores = nil
		for part := range strings.SplitSeq(value, ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(part)); err == nil && n >= 0 && n < 256 && len(l.Cores) < 256 {
				l.Cores = append(l.Cores, n)
			}
		}
	default:
		l.Unknown++
	}
}

// fieldOf finds the value of key= and what follows it.
func fieldOf(b []byte, key string) (v, rest []byte, ok bool) {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(key))
		if i < 0 {
			return nil, b, false
		}
		i += at
		end := i + len(key)
		if end < len(b) && b[end] == '=' && (i == 0 || b[i-1] == ' ' || b[i-1] == '(') {
			v = b[end+1:]
			if sp := bytes.IndexByte(v, ' '); sp >= 0 {
				return v[:sp], v[sp:], true
			}
			return v, nil, true
		}
		at = end
	}
}

func number(b []byte, key string) (int64, bool) {
	v, _, ok := fieldOf(b, key)
	if !ok {
		return 0, false
	}
	return integer(v)
}

// integer reads an integer at the beginning of b.
func integer(b []byte) (n int64, ok bool) {
	neg := false
	i := 0
	if len(b) > 0 && b[0] == '-' {
		neg, i = true, 1
	}
	begin := i
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		if i-begin > 18 {
			return 0, false
		}
		n = n*10 + int64(b[i]-'0')
	}
	if i == begin {
		return 0, false
	}
	if neg {
		n = -n
	}
	return n, true
}

// pairs walks the key=value words of a line in one pass.
func pairs(b []byte, f func(key, value []byte)) {
	for len(b) > 0 {
		word := b
		if sp := bytes.IndexByte(b, ' '); sp >= 0 {
			word, b = b[:sp], b[sp+1:]
		} else {
			b = nil
		}
		if eq := bytes.IndexByte(word, '='); eq > 0 {
			f(word[:eq], word[eq+1:])
		}
	}
}

func (p *logParser) command(b []byte) {
	l := p.log
	c := &l.Commands
	if c.Len() >= maxCommands {
		l.Dropped++
		return
	}
	var bd, gdma, core int64
	fn, dir := int64(-1), int64(-1)
	dma, known := false, false
	pairs(b, func(key, value []byte) {
		v, ok := integer(value)
		if !ok {
			return
		}
		switch string(key) {
		case "bd_id":
			bd = v
		case "gdma_id":
			gdma = v
		case "bd_func":
			fn, known = v, true
		case "gdma_func":
			fn, dma, known = v, true, true
		case "gdma_dir":
			dir = v
		case "core":
			core = v
		}
	})
	if !known {
		l.Unknown++
		return
	}
	own, dep := bd, gdma
	if dma {
		own, dep = gdma, bd
	}
	c.DMA = append(c.DMA, dma)
	c.Core = append(c.Core, uint8(min(max(core, 0), 255)))
	c.Subnet = append(c.Subnet, p.subnet)
	c.Own = append(c.Own, clip32(own))
	c.Dep = append(c.Dep, clip32(dep))
	c.Func = append(c.Func, int8(min(max(fn, -1), 127)))
	c.Dir = append(c.Dir, int8(min(max(dir, -1), 127)))
	c.Line = append(c.Line, int32(len(l.Layers)-1))
}

func clip32(v int64) uint32 { return uint32(min(max(v, 0), 1<<32-1)) }

func (p *logParser) layer(b []byte, s Scope) {
	l := p.log
	if len(l.Layers) >= maxLayers {
		l.Dropped++
		return
	}
	line := LayerLine{ID: -1, Subnet: p.subnet, Scope: s, FirstTensor: len(l.Tensors), EndTensor: len(l.Tensors)}
	if v, ok := number(b, "layer_id"); ok {
		line.ID = v
	}
	if v, _, ok := fieldOf(b, "layer_type"); ok {
		line.Type = l.types.of(v)
	} else if v, _, ok := fieldOf(b, "gdma_type"); ok {
		line.Type = moves(v)
	}
	if i := bytes.Index(b, []byte("layer_name=")); i >= 0 {
		line.Name = l.types.of(bytes.TrimSpace(b[i+len("layer_name="):]))
	}
	key := [2]int64{int64(p.subnet), line.ID}
	p.keep = !p.seen[key] && len(p.seen) < maxLayers
	if p.keep {
		p.seen[key] = true
	}
	l.Layers = append(l.Layers, line)
}

// moves names the copies of old compilers.
func moves(v []byte) string {
	n, _ := integer(v)
	if n >= 0 && n < 4 {
		return [...]string{"Load", "Store", "Move", "Load to L2"}[n]
	}
	return "Move"
}

func (p *logParser) tensor(b []byte) {
	l := p.log
	if !p.keep || len(l.Layers) == 0 {
		return
	}
	if len(l.Tensors) >= maxTensors {
		l.Dropped++
		return
	}
	t := TensorLine{DType: -1}
	pairs(b, func(key, value []byte) {
		if string(key) == "shape" {
			t.Shape = shape(value)
			return
		}
		v, ok := integer(value)
		if !ok {
			return
		}
		switch string(key) {
		case "tensor_id":
			t.ID = v
		case "is_in":
			t.In = v == 1
		case "dtype":
			t.DType = int(v)
		case "is_const":
			t.Const = v == 1
		case "gaddr":
			t.Global = uint64(max(v, 0))
		case "loffset":
			t.Local = uint64(max(v, 0))
		case "gsize":
			t.Bytes = uint64(max(v, 0))
		}
	})
	l.Tensors = append(l.Tensors, t)
	l.Layers[len(l.Layers)-1].EndTensor = len(l.Tensors)
}

// shape reads [1x3x128x128].
func shape(v []byte) []int64 {
	v = bytes.Trim(v, "[]<>")
	out := []int64{}
	for part := range bytes.SplitSeq(v, []byte("x")) {
		n, ok := integer(part)
		if !ok || len(out) >= maxDimensions {
			break
		}
		out = append(out, max(n, -1))
	}
	return out
}

func (p *logParser) memory(b []byte) {
	l := p.log
	if len(l.Memory) >= maxMemory {
		l.Dropped++
		return
	}
	var a Allocation
	pairs(b, func(key, value []byte) {
		if string(key) == "desc" {
			a.Name = l.types.of(value)
			return
		}
		n, err := strconv.ParseUint(string(value), 10, 64)
		if err != nil {
			return
		}
		switch string(key) {
		case "mtype":
			a.Kind = int(min(n, 255))
		case "addr":
			a.Address = n
		case "size":
			a.Bytes = n
		case "alloc":
			a.Alloc = n
		case "free":
			a.Free = n
		}
	})
	l.Memory = append(l.Memory, a)
}
