package firmware

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/opmeter/opmeter/firmware"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
)

// constantStruct adds a constant structure for the operator and returns its address.
func (g *generator) constantStruct(st *step, ctype, init string) func() string {
	name := fmt.Sprintf("op%d", st.layer)
	for n := 2; g.declared(name); n++ {
		name = fmt.Sprintf("op%d_%d", st.layer, n)
	}
	g.structs = append(g.structs, structure{st, name, fmt.Sprintf("static const %s %s = {\n    %s};\n", ctype, name, strings.ReplaceAll(init, "\n", "\n    "))})
	return text("&%s", name)
}

// constantList adds an array of constant structures and returns its name.
func (g *generator) constantList(st *step, ctype string, list []string) func() string {
	name := fmt.Sprintf("op%d", st.layer)
	for n := 2; g.declared(name); n++ {
		name = fmt.Sprintf("op%d_%d", st.layer, n)
	}
	g.structs = append(g.structs, structure{st, name, fmt.Sprintf("static const %s %s[%d] = {\n    %s};\n", ctype, name, len(list), strings.Join(list, ",\n    "))})
	return text("%s", name)
}

// structure is a constant structure of model.c.
type structure struct {
	st   *step
	name string
	text string
}

func (g *generator) declared(name string) bool {
	for i := len(g.structs) - 1; i >= 0; i-- {
		if g.structs[i].name == name {
			return true
		}
	}
	return false
}

// comment makes a text safe inside a C comment.
func comment(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return strings.ReplaceAll(strings.ReplaceAll(s, "*/", "* /"), "/*", "/ *")
}

// quoted returns a C string literal.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~' || c == '?':
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// program writes the files.
func (g *generator) program(o Options) (*Program, error) {
	p := &Program{Files: map[string][]byte{}, Name: g.m.ShortName(), ArenaBytes: int64(g.arena)}
	for _, d := range g.data {
		if d.input {
			p.InputBytes += int64(len(d.bytes))
		} else {
			p.WeightBytes += int64(len(d.bytes))
		}
	}
	for _, st := range g.steps {
		p.Ops = append(p.Ops, Op{Layer: st.layer, Op: st.task.Node.Key()})
	}
	p.Inputs, p.Outputs = g.ports(g.g.Inputs), g.ports(g.g.Outputs)
	p.Files["model.h"] = []byte(header)
	var b bytes.Buffer
	g.writeDataHeader(&b)
	p.Files["model_data.h"] = bytes.Clone(b.Bytes())
	b.Reset()
	g.writeData(&b)
	p.Files["model_data.c"] = bytes.Clone(b.Bytes())
	b.Reset()
	g.writeModel(&b, p, o)
	p.Files["model.c"] = bytes.Clone(b.Bytes())
	return p, g.kernels(p)
}

// kernels adds the kernel files that the program needs, and the files that they include.
func (g *generator) kernels(p *Program) error {
	names := []string{"kernels.h", "fixed.h"}
	for name := range g.needs {
		names = append(names, name+".c")
		names = append(names, included[name]...)
	}
	for _, n := range names {
		data, err := firmware.Kernels.ReadFile("kernels/" + n)
		if err != nil {
			return err
		}
		p.Files[n] = data
	}
	agent, err := firmware.Files.ReadFile("opmeter.h")
	p.Files["opmeter.h"] = agent
	return err
}

// included lists the files that kernels include besides fixed.h and kernels.h, by kernel file.
var included = map[string][]string{
	"conv_s8": {"conv_body.h"}, "conv_u8": {"conv_body.h"}, "conv_s16": {"conv_body.h"}, "pool": {"pool_body.h"}, "sum": {"sum_body.h"},
	"curve": {"curve.h"}, "lstm": {"curve.h", "lstm_body.h"}, "transpose_conv": {"transpose_body.h"},
}

func (g *generator) ports(ids []int) []Port {
	var out []Port
	for _, id := range ids {
		p := Port{}
		if id >= 0 {
			p.Name = g.g.Values[id].Name
			if t := g.s.Value(id); t != nil {
				p.Type, p.Shape, p.Bytes = t.Type, t.Shape, t.Bytes()
			}
		}
		out = append(out, p)
	}
	return out
}

func (g *generator) writeDataHeader(w io.Writer) {
	fmt.Fprint(w, "/* Constants of the model. Written by opmeter. */\n#ifndef MODEL_DATA_H\n#define MODEL_DATA_H\n\n#include <stdint.h>\n\n")
	for _, d := range g.data {
		fmt.Fprintf(w, "extern const %s %s[%d];\n", ctype(d.width), d.name, max(len(d.bytes)/d.width, 1))
	}
	fmt.Fprint(w, "\n#endif\n")
}

func (g *generator) writeData(w io.Writer) {
	fmt.Fprint(w, "/* Constants of the model, each as the bits of its elements. Written by opmeter. */\n#include \"model_data.h\"\n\n")
	for _, d := range g.data {
		d.write(w)
	}
}

// header is model.h, identical for all models.
const header = `/* A neural network as a program. Written by opmeter. */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const char model_name[];        /* name of the model's file without its ending */
extern const char model_sha256[];      /* hash of that file in hexadecimal digits */
extern const uint32_t model_arena_bytes;   /* memory for activations, state and scratch */
extern const uint32_t model_weights_bytes; /* constants of the operators */
extern const uint32_t model_ops;           /* operators that an inference runs */

/* Copies the embedded inputs to their places and gives state its first content. */
void model_set_inputs(void);

/* One inference. Compiled without MODEL_NO_AGENT, it calls opmeter_op_begin and
 * opmeter_op_end around each operator, with the index of the layer in the profile. */
void model_run(void);

/* Inputs and outputs in the model's order. An input's place is used for other things
 * during a run: it is written before each. Outputs hold until the next. */
uint32_t model_inputs(void);
void *model_input(uint32_t i, uint32_t *bytes);
uint32_t model_outputs(void);
const void *model_output(uint32_t i, uint32_t *bytes);
const char *model_output_name(uint32_t i);

#ifdef __cplusplus
}
#endif

#endif
`

func (g *generator) writeModel(w io.Writer, p *Program, o Options) {
	fmt.Fprintf(w, `/* The model %s as a program: %d operators, %d bytes of constants,
 * %d bytes of memory. Written by opmeter. */
#include "model.h"

#include <string.h>

#include "kernels.h"
#include "model_data.h"

#ifdef MODEL_NO_AGENT
#define OP_BEGIN(index, tag) ((void)0)
#define OP_END(index) ((void)0)
#else
#include "opmeter.h"
#define OP_BEGIN(index, tag) opmeter_op_begin(index, tag)
#define OP_END(index) opmeter_op_end(index)
#endif

#if defined(__GNUC__) || defined(__clang__)
#define ALIGNED __attribute__((aligned(%d)))
#else
#define ALIGNED
#endif

const char model_name[] = %s;
const char model_sha256[] = %s;
const uint32_t model_arena_bytes = %d;
const uint32_t model_weights_bytes = %d;
const uint32_t model_ops = %d;

static uint8_t arena[%d] ALIGNED;

`, comment(p.Name), len(p.Ops), p.WeightBytes, p.ArenaBytes, alignment, quoted(p.Name), quoted(o.SHA256), p.ArenaBytes, p.WeightBytes, len(p.Ops), max(p.ArenaBytes, 1))
	g.writePorts(w, p)
	for _, s := range g.structs {
		fmt.Fprintf(w, "%s\n", s.text)
	}
	fmt.Fprint(w, "void model_run(void) {\n")
	for _, st := range g.steps {
		g.writeStep(w, st)
	}
	fmt.Fprint(w, "}\n")
}

// writeStep writes an operator with a descriptive comment.
func (g *generator) writeStep(w io.Writer, st *step) {
	n, c := st.task.Node, &st.task.Call
	slot := g.layers[n.Index]
	shapes := func(ts []*tensor.Tensor, konst func(k int) bool) string {
		var s []string
		for k, t := range ts {
			if t != nil && !konst(k) {
				s = append(s, fmt.Sprintf("%v %s", t.Type, tensor.FormatShape(t.Shape)))
			}
		}
		return strings.Join(s, ", ")
	}
	line := fmt.Sprintf("%d %s: %s -> %s", st.layer, n.Key(), shapes(c.In, c.Const), shapes(c.Out, func(int) bool { return false }))
	if m := describe.Work(g.m, &slot).MACs; m != nil && *m > 0 {
		line += fmt.Sprintf(", %d MACs", *m)
	}
	if name := g.name(n.Outputs); name != "" {
		line += "\n   * " + comment(name)
	}
	fmt.Fprintf(w, "  /* %s */\n  OP_BEGIN(%d, %s);\n", line, st.layer, quoted(n.Key()))
	for _, call := range st.calls {
		fmt.Fprintf(w, "  %s\n", call())
	}
	fmt.Fprintf(w, "  OP_END(%d);\n\n", st.layer)
}

// name returns the name of the first output, as layers are named; converters join the names of
// fused tensors.
func (g *generator) name(outputs []int) string {
	for _, id := range outputs {
		if 0 <= id && id < len(g.g.Values) {
			s, _, _ := strings.Cut(g.g.Values[id].Name, ";")
			return s
		}
	}
	return ""
}

// writePorts writes the functions of model.h for inputs and outputs.
func (g *generator) writePorts(w io.Writer, p *Program) {
	fmt.Fprint(w, "void model_set_inputs(void) {\n")
	for k, id := range g.g.Inputs {
		d, v := g.inputs[k], g.values[id]
		if len(d.bytes) > 0 {
			fmt.Fprintf(w, "  memcpy(arena + %d, %s, %d); /* %s */\n", v.offset, d.name, len(d.bytes), comment(p.Inputs[k].Name))
		}
	}
	for _, v := range g.order {
		if v.initial != nil && v.bytes > 0 {
			fmt.Fprintf(w, "  memcpy(arena + %d, %s, %d); /* state */\n", v.offset, v.initial.name, v.bytes)
		}
	}
	fmt.Fprint(w, "}\n\n")
	type place struct{ name, address, bytes string }
	list := func(ids []int, ports []Port) (out []place) {
		for k, id := range ids {
			pl := place{quoted(ports[k].Name), "0", fmt.Sprint(ports[k].Bytes)}
			if v := g.values[id]; v != nil {
				pl.address = fmt.Sprintf("arena + %d", v.offset)
			} else if d := g.constants[id]; d != nil {
				pl.address = d.name
			}
			out = append(out, pl)
		}
		return out
	}
	ins, outs := list(g.g.Inputs, p.Inputs), list(g.g.Outputs, p.Outputs)
	fmt.Fprintf(w, "uint32_t model_inputs(void) { return %d; }\n\nvoid *model_input(uint32_t i, uint32_t *bytes) {\n  switch (i) {\n", len(ins))
	for i, x := range ins {
		fmt.Fprintf(w, "    case %d: *bytes = %s; return %s;\n", i, x.bytes, x.address)
	}
	fmt.Fprintf(w, "    default: *bytes = 0; return 0;\n  }\n}\n\nuint32_t model_outputs(void) { return %d; }\n\nconst void *model_output(uint32_t i, uint32_t *bytes) {\n  switch (i) {\n", len(outs))
	for i, x := range outs {
		fmt.Fprintf(w, "    case %d: *bytes = %s; return %s;\n", i, x.bytes, x.address)
	}
	fmt.Fprint(w, "    default: *bytes = 0; return 0;\n  }\n}\n\nconst char *model_output_name(uint32_t i) {\n  switch (i) {\n")
	for i, x := range outs {
		fmt.Fprintf(w, "    case %d: return %s;\n", i, x.name)
	}
	fmt.Fprint(w, "    default: return \"\";\n  }\n}\n\n")
}
