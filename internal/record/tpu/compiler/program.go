package compiler

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// Program is what is needed of final.mlir. Lines are counted from 1.
type Program struct {
	// Name of the module; Chip, Mode and FLOPs are its attributes, Cores how many it is
	// made for; empty and 0 where it does not say.
	Name, Chip, Mode string
	FLOPs            int64
	Cores            int64
	Inputs, Outputs  []string
	// Weights and Activations are address and size of their parts of global memory, 0
	// where the program does not say.
	Weights, Activations [2]int64
	// Ops are the operations by line.
	Ops map[int64]Operation
	// Groups are the layer groups in order.
	Groups []Group
	// Dropped counts lines beyond the bound.
	Dropped int64
}

// Operation is a line of the program.
type Operation struct {
	// Name is the operation without its dialect, such as "Conv2D".
	Name string
	// Location is the name of the original operation or tensor, "" for none.
	Location string
	// Shape and Type are those of the first result, nil and "" where it has none.
	Shape []int64
	Type  string
}

// Group is a layer group: the operations on the lines strictly between.
type Group struct {
	Begin, End int64
	Location   string
}

// IsProgram reports whether a text that begins so is such a program.
func IsProgram(head []byte) bool {
	return bytes.Contains(head, []byte("module @")) && bytes.Contains(head, []byte("module.chip"))
}

// ReadProgram reads a program. The error is the reader's; what came before is kept.
func ReadProgram(r io.Reader) (*Program, error) {
	p := programParser{p: &Program{Ops: map[int64]Operation{}}, names: map[string]string{}, fused: map[string][]string{}, group: -1}
	err := lines(r, p.line)
	p.resolve()
	return p.p, err
}

type programParser struct {
	p     *Program
	n     int64
	names map[string]string   // of #locN
	fused map[string][]string // parts of #locN
	group int                 // open group in p.Groups, -1 for none
	loc   map[int64]string    // "#locN" of each operation
}

func (p *programParser) line(b []byte) {
	p.n++
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return
	}
	if bytes.HasPrefix(b, []byte("#loc")) {
		p.location(b)
		return
	}
	if bytes.HasPrefix(b, []byte("module @")) {
		p.module(string(b))
		return
	}
	if p.group >= 0 && bytes.Contains(b, []byte("Yield")) {
		p.p.Groups[p.group].End = p.n
		p.group = -1
		return
	}
	name, ok := opName(b)
	if !ok {
		return
	}
	if len(p.p.Ops) >= maxLayers {
		p.p.Dropped++
		return
	}
	op := Operation{Name: name}
	op.Shape, op.Type = result(b)
	if p.loc == nil {
		p.loc = map[int64]string{}
	}
	if at := bytes.LastIndex(b, []byte("loc(")); at >= 0 {
		v := string(bytes.TrimSuffix(b[at+4:], []byte(")")))
		if strings.HasPrefix(v, "\"") {
			op.Location = quoted(v)
		} else {
			p.loc[p.n] = v
		}
	}
	p.p.Ops[p.n] = op
	if strings.Contains(name, "Group") && !strings.Contains(name, "Parallel") && bytes.HasSuffix(b, []byte("({")) && p.group < 0 && len(p.p.Groups) < maxLayers {
		p.group = len(p.p.Groups)
		p.p.Groups = append(p.p.Groups, Group{Begin: p.n, End: -1})
	}
}

// opName is the operation of a line: %8 = "tpu.Conv2D"(...), or without quotes.
func opName(b []byte) (string, bool) {
	i := bytes.IndexByte(b, '"')
	if i < 0 || i > 0 && !(b[0] == '%' && bytes.Contains(b[:i], []byte(" = "))) {
		return "", false
	}
	end := bytes.IndexByte(b[i+1:], '"')
	if end <= 0 || end > 200 {
		return "", false
	}
	s := strings.ToValidUTF8(string(b[i+1:i+1+end]), "\uFFFD")
	if dot := strings.IndexByte(s, '.'); dot >= 0 && dot+1 < len(s) {
		s = s[dot+1:]
	}
	return s, true
}

// result is the type of the first result: behind the last arrow.
func result(b []byte) ([]int64, string) {
	at := bytes.LastIndex(b, []byte("-> "))
	if at < 0 {
		return nil, ""
	}
	b = b[at:]
	at = bytes.Index(b, []byte("tensor<"))
	if at < 0 || at > 4 {
		return nil, ""
	}
	b = b[at+len("tensor<"):]
	end := bytes.IndexAny(b, ",>")
	if end < 0 {
		return nil, ""
	}
	l := Locations{}
	shape, kind := l.memory(string(b[:end]))
	return shape, kind
}

// quoted is the text between the first quotes.
func quoted(s string) string {
	i := strings.IndexByte(s, '"')
	if i < 0 {
		return ""
	}
	var b strings.Builder
	for k := i + 1; k < len(s); k++ {
		switch {
		case s[k] == '"':
			return strings.ToValidUTF8(b.String(), "\uFFFD")
		case s[k] == '\\' && k+1 < len(s):
			k++
		}
		b.WriteByte(s[k])
	}
	return ""
}

// location takes #locN = loc("name") or loc(fused[#loc1, #loc2]).
func (p *programParser) location(b []byte) {
	key, v, ok := strings.Cut(string(b), " = ")
	if !ok || len(p.names)+len(p.fused) >= maxLayers {
		return
	}
	body, ok := strings.CutPrefix(strings.TrimSpace(v), "loc(")
	if !ok {
		return
	}
	body = strings.TrimSuffix(body, ")")
	if strings.HasPrefix(body, "\"") {
		p.names[key] = quoted(body)
		return
	}
	open := strings.LastIndexByte(body, '[')
	if !strings.HasPrefix(body, "fused") || open < 0 {
		return
	}
	var parts []string
	for part := range strings.SplitSeq(strings.TrimRight(body[open+1:], "] "), ",") {
		if len(parts) >= maxPlaces {
			break
		}
		parts = append(parts, strings.TrimSpace(part))
	}
	p.fused[key] = parts
}

// resolve gives operations and groups their locations.
func (p *programParser) resolve() {
	for line, ref := range p.loc {
		op := p.p.Ops[line]
		if op.Location = p.named(ref, 0); op.Location != "" {
			p.p.Ops[line] = op
		}
	}
	for i := range p.p.Groups {
		if g := &p.p.Groups[i]; g.End < 0 {
			g.End = p.n + 1
		}
	}
}

const maxFused = 8 // locations within one another

// named is the name of a location; of fused ones the last part's, which is that of the
// result.
func (p *programParser) named(ref string, depth int) string {
	if s, ok := p.names[ref]; ok {
		return s
	}
	if strings.HasPrefix(ref, "\"") {
		return quoted(ref)
	}
	parts := p.fused[ref]
	if strings.HasPrefix(ref, "fused[") {
		parts = strings.Split(strings.TrimRight(strings.TrimPrefix(ref, "fused["), "] "), ",")
	}
	if depth >= maxFused {
		return ""
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if s := p.named(strings.TrimSpace(parts[i]), depth+1); s != "" {
			return s
		}
	}
	return ""
}

// module reads the attributes of the outer module.
func (p *programParser) module(s string) {
	for i, key := range []string{"module.coeff_addr", "module.coeff_size", "module.neuron_addr", "module.neuron_size"} {
		to := &p.p.Weights
		if i >= 2 {
			to = &p.p.Activations
		}
		if v, ok := whole(s, key); ok && to[i%2] == 0 {
			to[i%2] = v
		}
	}
	if p.p.Name != "" {
		return
	}
	name := strings.TrimPrefix(s, "module @")
	if i := strings.IndexAny(name, " {"); i >= 0 {
		name = name[:i]
	}
	p.p.Name = strings.ToValidUTF8(strings.Trim(name, "\""), "\uFFFD")
	p.p.Chip, p.p.Mode = attribute(s, "module.chip"), attribute(s, "module.mode")
	p.p.FLOPs, _ = whole(s, "module.FLOPs")
	p.p.Cores, _ = whole(s, "module.cores")
	p.p.Inputs, p.p.Outputs = list(s, "module.inputs"), list(s, "module.outputs")
}

// attribute is the text of key = "text".
func attribute(s, key string) string {
	_, v, ok := strings.Cut(s, key+" = \"")
	if !ok {
		return ""
	}
	return quoted("\"" + v)
}

func whole(s, key string) (int64, bool) {
	_, v, ok := strings.Cut(s, key+" = ")
	if !ok {
		return 0, false
	}
	v = v[:digits([]byte(v))]
	n, err := strconv.ParseInt(v, 10, 64)
	return n, err == nil
}

// list is the texts of key = ["a", "b"].
func list(s, key string) []string {
	_, v, ok := strings.Cut(s, key+" = [")
	if !ok {
		return nil
	}
	var out []string
	for strings.HasPrefix(v, "\"") && len(out) < maxPlaces {
		name := quoted(v)
		out = append(out, name)
		end := strings.Index(v[1:], "\"")
		if end < 0 {
			break
		}
		v = strings.TrimPrefix(v[end+2:], ", ")
	}
	return out
}
