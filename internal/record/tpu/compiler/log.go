// Package compiler reads the texts of the compiler of Sophgo's chips and of its runtime: the log
// of commands and layers (global.profile, *.net_N.profile), the estimate of cycles (net_stat.sim,
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

// Log is a compiler log with the lines of the runtime around it.
type Log struct {
	Arch     int    // number of the chip, 0 if unknown
	ArchName string // name of the chip, in files that have it instead of the number
	NetName  string
	FreqMHz  float64 // stated clock, 0 if unknown
	Cores    []int   // cores that ran
	Named    bool    // layer types are names and layer ids are lines of final.mlir
	Started  bool    // the file contains a compiler log
	// Layers are the lines that begin a layer, in order. A layer has one line for every slice.
	Layers []LayerLine
	// Tensors are the tensors of each layer's first line.
	Tensors  []TensorLine
	Commands Commands
	Memory   []Allocation
	// Lines counts lines, Unknown those without known content, Dropped those beyond the bounds.
	Lines, Unknown, Dropped int64

	types texts
}

// Scope is the memory that a layer works from.
type Scope uint8

// Scopes.
const (
	Global Scope = iota // from global memory
	Local               // a slice in local memory, within a layer group
	Move                // a copy of old compilers
)

// LayerLine is a line that begins a layer.
type LayerLine struct {
	ID     int64 // number of the operation: its line in final.mlir
	Subnet int32
	Scope  Scope
	Type   string // kind of operation, a name or a number
	Name   string // usually empty
	// The layer's tensors in Log.Tensors. Only its first line has some.
	FirstTensor, EndTensor int
}

// TensorLine is a tensor of a layer.
type TensorLine struct {
	ID    int64 // line of the operation that produces it, below 0 for an input of the net
	In    bool
	Shape []int64 // at most 64 dimensions
	DType int     // number of the element type, -1 if unknown
	Const bool
	// Global and Local are addresses in global and local memory, Bytes is the size if stated.
	Global, Local, Bytes uint64
}

// Commands are the columns of command lines.
type Commands struct {
	DMA    []bool // a command of the copy engine
	Core   []uint8
	Subnet []int32
	// Own is the command's own id on chips that have such ids, Dep the id of the other engine's
	// command that it waits for.
	Own, Dep []uint32
	// Func is the number of its function, Dir that of its direction (-1 for none).
	Func, Dir []int8
	Line      []int32 // position in Log.Layers, -1 before the first one
}

// Len returns the number of commands.
func (c *Commands) Len() int { return len(c.DMA) }

// Allocation is a part of the host's or the chip's memory.
type Allocation struct {
	Kind           int // 0 CPU, 1 global, 2 local, 3 ARM
	Address, Bytes uint64
	// Alloc and Free are microseconds of the host's clock. Free is 0 for until the end.
	Alloc, Free uint64
	Name        string
}

// Bounds of the content of texts.
const (
	maxCommands   = 1 << 24
	maxLayers     = 1 << 22
	maxTensors    = 1 << 20
	maxMemory     = 1 << 16
	maxLine       = 1 << 20
	maxDimensions = 64
	maxTypes      = 1 << 16
)

// texts stores one copy of each text.
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

// lines calls f with each line without its end. A line beyond the bound is cut. f may change the
// line.
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

// IsLog reports whether the beginning of a text is that of a log.
func IsLog(head []byte) bool {
	if bytes.Contains(head, []byte("[bmprofile]")) || bytes.Contains(head, []byte("...Start Profile Log...")) {
		return true
	}
	return bytes.Contains(head, []byte("arch=")) && bytes.Contains(head, []byte("tpu_freq="))
}

// ReadLog reads a log. The error is the reader's. The lines before are kept.
func ReadLog(r io.Reader) (*Log, error) {
	p := logParser{log: &Log{}, subnet: 0, seen: map[[2]int64]bool{}}
	err := lines(r, p.line)
	return p.log, err
}

type logParser struct {
	log    *Log
	subnet int32
	seen   map[[2]int64]bool // layers whose tensors are kept
	keep   bool              // keep the tensors of the current layer
}

// kinds are the parsers of lines by the beginning of the line, the most frequent first.
var kinds = []struct {
	prefix string
	take   func(p *logParser, line []byte)
}{
	{"tensor_id=", (*logParser).tensor},
	{"gdma cmd_id", (*logParser).command},
	{"bd cmd_id", (*logParser).command},
	{"local_layer", func(p *logParser, b []byte) { p.layer(b, Local) }},
	{"global_layer", func(p *logParser, b []byte) { p.layer(b, Global) }},
	{"gdma_layer", func(p *logParser, b []byte) { p.layer(b, Move) }},
	{"mtype=", (*logParser).memory},
	{"start to run", (*logParser).start},
	{"...Start Profile Log", (*logParser).start},
	{"start parallel", nil},
	{"end parallel", nil},
	{"insert ", nil},
	{"end to run", nil},
	// The plan of local memory of old compilers contains nothing that commands do not contain.
	{"subnet_id", nil},
	{"start local memory", nil},
	{"layer_id=", nil},
}

func (p *logParser) line(b []byte) {
	p.log.Lines++
	b = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(b), []byte("[bmprofile]")))
	for i := range kinds {
		k := &kinds[i]
		if len(b) >= len(k.prefix) && string(b[:len(k.prefix)]) == k.prefix {
			if k.take != nil {
				k.take(p, b)
			}
			return
		}
	}
	if len(b) > 0 {
		p.head(b)
	}
}

func (p *logParser) start(b []byte) {
	if v, ok := fieldOf(b, "subnet_id"); ok {
		if n, ok := integer(v); ok {
			p.subnet = int32(n)
		}
	}
	p.log.Started = true
}

// head parses a line with a property of the log.
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

// fieldOf returns the value of key=.
func fieldOf(b []byte, key string) (v []byte, ok bool) {
	for {
		i := bytes.Index(b, []byte(key))
		if i < 0 {
			return nil, false
		}
		end := i + len(key)
		if end < len(b) && b[end] == '=' && (i == 0 || b[i-1] == ' ' || b[i-1] == '(') {
			v, _, _ = bytes.Cut(b[end+1:], []byte(" "))
			return v, true
		}
		b = b[end:]
	}
}

func integer(b []byte) (n int64, ok bool) {
	begin := 0
	if len(b) > 0 && b[0] == '-' {
		begin = 1
	}
	count := digits(b[begin:])
	if count == 0 || count > 18 { // more digits may overflow
		return 0, false
	}
	for _, c := range b[begin : begin+count] {
		n = n*10 + int64(c-'0')
	}
	if begin == 1 {
		n = -n
	}
	return n, true
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}

// values parses the integers of the listed keys in a line of key-value pairs. v has the values in
// the order of the keys and keeps its content for missing keys. have has a bit for each key found.
func values(b []byte, between, equal byte, keys []string, v []int64) (have uint) {
	for len(b) > 0 {
		word := b
		if end := bytes.IndexByte(b, between); end >= 0 {
			word, b = b[:end], b[end+1:]
		} else {
			b = nil
		}
		at := bytes.IndexByte(word, equal)
		if at <= 0 {
			continue
		}
		for i, key := range keys {
			if string(word[:at]) == key {
				if n, ok := integer(word[at+1:]); ok {
					v[i] = n
					have |= 1 << i
				}
				break
			}
		}
	}
	return have
}

var commandKeys = []string{"bd_id", "gdma_id", "bd_func", "gdma_func", "gdma_dir", "core"}

func (p *logParser) command(b []byte) {
	l := p.log
	c := &l.Commands
	if c.Len() >= maxCommands {
		l.Dropped++
		return
	}
	v := [...]int64{0, 0, 0, 0, -1, 0}
	have := values(b, ' ', '=', commandKeys, v[:])
	own, dep, fn, dma := v[0], v[1], v[2], have>>3&1 == 1
	if dma {
		own, dep, fn = v[1], v[0], v[3]
	} else if have>>2&1 == 0 {
		l.Unknown++
		return
	}
	c.DMA, c.Subnet, c.Line = append(c.DMA, dma), append(c.Subnet, p.subnet), append(c.Line, int32(len(l.Layers)-1))
	c.Own, c.Dep = append(c.Own, clip32(own)), append(c.Dep, clip32(dep))
	c.Func, c.Dir = append(c.Func, int8(min(max(fn, -1), 127))), append(c.Dir, int8(min(max(v[4], -1), 127)))
	c.Core = append(c.Core, uint8(min(max(v[5], 0), 255)))
}

func clip32(v int64) uint32 { return uint32(min(max(v, 0), 1<<32-1)) }

func (p *logParser) layer(b []byte, s Scope) {
	l := p.log
	if len(l.Layers) >= maxLayers {
		l.Dropped++
		return
	}
	v := [...]int64{-1}
	values(b, ' ', '=', []string{"layer_id"}, v[:])
	line := LayerLine{ID: v[0], Subnet: p.subnet, Scope: s, FirstTensor: len(l.Tensors), EndTensor: len(l.Tensors)}
	if v, ok := fieldOf(b, "layer_type"); ok {
		line.Type = l.types.of(v)
	} else if v, ok := fieldOf(b, "gdma_type"); ok {
		line.Type = moves(v)
	}
	if _, name, ok := bytes.Cut(b, []byte("layer_name=")); ok {
		line.Name = l.types.of(bytes.TrimSpace(name))
	}
	key := [2]int64{int64(p.subnet), line.ID}
	if p.keep = !p.seen[key] && len(p.seen) < maxLayers; p.keep {
		p.seen[key] = true
	}
	l.Layers = append(l.Layers, line)
}

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
	v := [...]int64{0, 0, -1, 0, 0, 0, 0}
	values(b, ' ', '=', tensorKeys, v[:])
	t := TensorLine{ID: v[0], In: v[1] == 1, DType: int(v[2]), Const: v[3] == 1, Global: uint64(max(v[4], 0)), Local: uint64(max(v[5], 0)), Bytes: uint64(max(v[6], 0))}
	if v, ok := fieldOf(b, "shape"); ok {
		t.Shape = shape(v)
	}
	l.Tensors = append(l.Tensors, t)
	l.Layers[len(l.Layers)-1].EndTensor = len(l.Tensors)
}

var tensorKeys = []string{"tensor_id", "is_in", "dtype", "is_const", "gaddr", "loffset", "gsize"}

// shape parses [1x3x128x128].
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
	var v [5]int64
	values(b, ' ', '=', []string{"mtype", "addr", "size", "alloc", "free"}, v[:])
	for i := range v {
		v[i] = max(v[i], 0)
	}
	a := Allocation{Kind: int(min(v[0], 255)), Address: uint64(v[1]), Bytes: uint64(v[2]), Alloc: uint64(v[3]), Free: uint64(v[4])}
	if v, ok := fieldOf(b, "desc"); ok {
		a.Name = l.types.of(v)
	}
	l.Memory = append(l.Memory, a)
}
