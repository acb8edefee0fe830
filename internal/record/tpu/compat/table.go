package compat

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// heading returns the columns of a table: those of all commands, the registers of tensor
// commands, and more.
func heading(registers []string, more ...[]string) []string {
	line := slices.Clone(columns["output"])
	for _, r := range registers {
		line = append(line, "des_"+r)
	}
	return append(line, slices.Concat(more...)...)
}

// table returns PerfAI_output.csv, the commands of all engines in one table.
func (p *perfAI) table() []byte {
	registers := p.registers(len(p.cores) - 1) // the converter uses those of the last core for all
	line := heading(registers, columns["figures of copies"], columns["fields of copies"])
	out := appendLine(nil, line)
	for _, x := range p.all() {
		line = p.tableRow(line[:0], x, registers)
		out = appendLine(out, line)
	}
	return out
}

// registers returns the register columns of a core: those that one of its tensor commands has,
// all for CV184X.
func (p *perfAI) registers(k int) []string {
	if p.in.Chip == command.CV184X || k < 0 {
		return columns["registers"]
	}
	used := map[string]bool{}
	ops := map[*command.Op]bool{}
	for _, x := range p.cores[k].tiu {
		if x.c != nil && !ops[x.c.Op] {
			ops[x.c.Op] = true
			for _, f := range x.c.Op.Fields {
				used[f.Name] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(columns["registers"]), func(r string) bool { return !used[r] })
}

// appendLine appends a line of CSV.
func appendLine(out []byte, cells []string) []byte {
	for i, c := range cells {
		if i > 0 {
			out = append(out, ',')
		}
		if strings.ContainsAny(c, ",\"\n") {
			c = `"` + strings.ReplaceAll(c, `"`, `""`) + `"`
		}
		out = append(out, c...)
	}
	return append(out, '\n')
}

// appendRow appends a line of CSV with values of any type.
func appendRow(out []byte, values ...any) []byte {
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = show(v)
	}
	return appendLine(out, cells)
}

// owner returns the number and operation of the command's layer.
func (x *instr) owner() (id, name string) {
	if x.layer == nil {
		return "-", "-"
	}
	return itoa(x.layer.Ordinal), x.layer.Op
}

func (p *perfAI) tableRow(line []string, x *instr, registers []string) []string {
	empty := func(n int) {
		for range n {
			line = append(line, "")
		}
	}
	id, name := x.owner()
	line = append(line, itoa(x.engine), itoa(x.core), itoa(x.global), itoa(x.id), id, name, x.kind, x.name)
	if x.engine == engineTIU {
		d := p.tiuDict(x)
		line = append(line, utoa(x.work.Cycles), itoa(x.cycles), itoa(x.start), itoa(x.end), itoa(x.average), utoa(x.work.Alg), utoa(x.work.Arch),
			x.rate(), x.share(p, x.work.Conflict), x.share(p, x.work.Startup), types(x), "0")
		for _, r := range registers {
			line = append(line, d.get("des_"+r))
		}
		line = append(line, itoa(x.msg), itoa(x.count))
		empty(len(columns["figures of copies"]) + len(columns["fields of copies"]) - 2)
		return line
	}
	d := p.dmaDict(x)
	line = append(line, "", itoa(x.cycles), itoa(x.start), itoa(x.end), "", "", "", "", "", "", x.dataType(), "")
	empty(len(registers))
	ddr, l2 := x.copy.rates()
	burst := "0"
	if x.copy.ddrCount > 0 {
		burst = "0.0"
	}
	line = append(line, " ", " ", utoa(x.copy.size), utoa(x.copy.stall), repr(ddr), repr(l2), x.direction(), burst, burst, burst)
	for _, key := range columns["fields of copies"] {
		line = append(line, d.get(key))
	}
	return line
}

// system reports whether a command is a system command.
func (x *instr) system() bool { return x.c != nil && x.c.Op.System() }

// direction returns the direction of a copy in tables, "-" for system commands.
func (x *instr) direction() string {
	if x.system() {
		return "-"
	}
	return x.copy.direction
}

// dataType returns the element type of a copy in tables, "None" for system commands.
func (x *instr) dataType() string {
	if x.system() {
		return "None"
	}
	return x.copy.dtype
}

// types names the types of a tensor command's first operand and result.
func types(x *instr) string {
	if x.c == nil {
		return "INT8 -> INT8"
	}
	from, to := "None", "None"
	if v, ok := x.c.Lookup(command.Res0Prec); ok {
		to = command.DType(v).String()
		from = to
	}
	if v, ok := x.c.Lookup(command.Opd0Prec); ok {
		from = command.DType(v).String()
	}
	return from + " -> " + to
}
