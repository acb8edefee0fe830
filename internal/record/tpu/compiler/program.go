package compiler

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Program is the used content of final.mlir. Lines are counted from 1.
type Program struct {
	Name, Chip, Mode string // the module and its attributes, empty if absent
	FLOPs, Cores     int64  // attributes, 0 if absent
	Inputs, Outputs  []string
	// Weights and Activations are address and size of the parts of global memory, 0 if unknown.
	Weights, Activations [2]int64
	Ops                  map[int64]Operation // by line
	Groups               []Group             // layer groups in order
	Dropped              int64               // lines beyond the bound
}

// Operation is a line of the program.
type Operation struct {
	Name     string // without the dialect, such as "Conv2D"
	Location string // name of the original operation or tensor, "" for none
	// Shape and Type are those of the first result, nil and "" without a result.
	Shape []int64
	Type  string
}

// Group is a layer group: the operations on the lines strictly between.
type Group struct{ Begin, End int64 }

// IsProgram reports whether the beginning of a text is that of such a program.
func IsProgram(head []byte) bool {
	return bytes.Contains(head, []byte("module @")) && bytes.Contains(head, []byte("module.chip"))
}

// ReadProgram reads a program. The error is the reader's. The lines before are kept.
func ReadProgram(r io.Reader) (*Program, error) {
	p := programParser{p: &Program{Ops: map[int64]Operation{}}, names: map[string]string{}, fused: map[string][]string{}, loc: map[int64]string{}, group: -1}
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
	switch {
	case bytes.HasPrefix(b, []byte("#loc")):
		p.location(b)
		return
	case bytes.HasPrefix(b, []byte("module @")):
		p.module(string(b))
		return
	case p.group >= 0 && bytes.Contains(b, []byte("Yield")):
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

// opName returns the operation of a line without its dialect: %8 = "tpu.Conv2D"(...), or without
// the result.
func opName(b []byte) (string, bool) {
	before, rest, _ := bytes.Cut(b, []byte{'"'})
	name, _, ok := bytes.Cut(rest, []byte{'"'})
	if !ok || len(name) == 0 || len(name) > 200 || len(before) > 0 && !(before[0] == '%' && bytes.Contains(before, []byte(" = "))) {
		return "", false
	}
	s := strings.ToValidUTF8(string(name), "\uFFFD")
	if _, op, _ := strings.Cut(s, "."); op != "" {
		s = op
	}
	return s, true
}

// result returns the type of the first result: the text after the last arrow.
func result(b []byte) ([]int64, string) {
	at := bytes.LastIndex(b, []byte("-> "))
	if at < 0 {
		return nil, ""
	}
	b = bytes.TrimPrefix(b[at+3:], []byte("("))
	b, ok := bytes.CutPrefix(b, []byte("tensor<"))
	end := bytes.IndexAny(b, ",>")
	if !ok || end < 0 {
		return nil, ""
	}
	l := Locations{}
	return l.memory(string(b[:end]))
}

// quoted returns the text between the first quotes.
func quoted(s string) string {
	_, s, _ = strings.Cut(s, "\"")
	var b strings.Builder
	for k := 0; k < len(s); k++ {
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

// location parses #locN = loc("name") or loc(fused[#loc1, #loc2]).
func (p *programParser) location(b []byte) {
	key, v, _ := strings.Cut(string(b), " = ")
	body, ok := strings.CutPrefix(strings.TrimSpace(v), "loc(")
	if !ok || len(p.names)+len(p.fused) >= maxLayers {
		return
	}
	body = strings.TrimSuffix(body, ")")
	if strings.HasPrefix(body, "\"") {
		p.names[key] = quoted(body)
		return
	}
	if open := strings.LastIndexByte(body, '['); strings.HasPrefix(body, "fused") && open >= 0 {
		p.fused[key] = parts(body[open+1:])
	}
}

// parts lists the parts of a fused location.
func parts(list string) []string {
	out := strings.SplitN(strings.TrimRight(list, "] "), ",", maxPlaces+1)
	out = out[:min(len(out), maxPlaces)]
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// resolve sets the locations of operations and the ends of open groups.
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

const maxFused = 8 // depth of nested locations

// named returns the name of a location, for fused locations that of the last part, the result.
func (p *programParser) named(ref string, depth int) string {
	if s, ok := p.names[ref]; ok {
		return s
	}
	if strings.HasPrefix(ref, "\"") {
		return quoted(ref)
	}
	list := p.fused[ref]
	if text, ok := strings.CutPrefix(ref, "fused["); ok {
		list = parts(text)
	}
	for _, part := range slices.Backward(list) {
		if depth >= maxFused {
			break
		}
		if s := p.named(part, depth+1); s != "" {
			return s
		}
	}
	return ""
}

// moduleAttribute matches an attribute of a module: a text, a list of texts or a number.
var moduleAttribute = lazyregexp.New(`module\.(\w+) = ("(?:[^"\\]|\\.)*"|\[(?:"(?:[^"\\]|\\.)*"(?:, )?)*\]|\d+)`)

var quotedText = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)

// module reads the attributes of the outer module and the addresses of all modules.
func (p *programParser) module(s string) {
	values := map[string]string{}
	for _, m := range moduleAttribute.FindAllStringSubmatch(s, -1) {
		if _, twice := values[m[1]]; !twice {
			values[m[1]] = m[2]
		}
	}
	to := p.p
	for key, n := range map[string]*int64{
		"coeff_addr": &to.Weights[0], "coeff_size": &to.Weights[1], "neuron_addr": &to.Activations[0], "neuron_size": &to.Activations[1],
	} {
		if v, err := strconv.ParseInt(values[key], 10, 64); err == nil && *n == 0 {
			*n = v
		}
	}
	if to.Name != "" {
		return
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(s, "module @"), " ")
	name, _, _ = strings.Cut(name, "{")
	to.Name = strings.ToValidUTF8(strings.Trim(name, "\""), "\uFFFD")
	to.Chip, to.Mode = quoted(values["chip"]), quoted(values["mode"])
	to.FLOPs, _ = strconv.ParseInt(values["FLOPs"], 10, 64)
	to.Cores, _ = strconv.ParseInt(values["cores"], 10, 64)
	texts := func(list string) (out []string) {
		for _, text := range quotedText.FindAllString(list, maxPlaces) {
			out = append(out, quoted(text))
		}
		return out
	}
	to.Inputs, to.Outputs = texts(values["inputs"]), texts(values["outputs"])
}
