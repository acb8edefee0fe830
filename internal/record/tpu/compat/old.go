package compat

import (
	"strconv"
	"strings"
)

// summaryCSV, detailCSV and memCSV are the converter's format csv.
func (c *classic) summaryCSV() []byte {
	var out cells
	for _, h := range []string{"index", "subnet_id", "subnet_type", "duration(us)"} {
		out.text(h)
	}
	out.end()
	out.text("Iter[0]")
	out.num(itoa(c.in.Subnet))
	out.text(c.subnetType)
	out.num("1") // a constant
	out.end()
	return []byte(out.b.String())
}

func (c *classic) detailCSV() []byte {
	var out cells
	for _, h := range []string{
		"category", "begin_usec", "end_usec", "duration(us)", "func_type", "layer_id", "layer_type", "subnet_id", "subnet_type", "iteration", "info",
	} {
		out.text(h)
	}
	out.end()
	for _, r := range c.chart() {
		out.text(strconv.Itoa(r.lane) + "-" + classicLanes[r.lane])
		out.num(r.begin)
		out.num(r.end)
		out.num(r.length)
		out.text(r.name)
		out.num(itoa(r.layer))
		out.text(r.layerType)
		out.num(itoa(c.in.Subnet))
		out.text(c.subnetType)
		out.text("Iter[0]")
		out.text(strings.ReplaceAll(strings.TrimPrefix(r.info, "<br>"), "<br>", ","))
		out.end()
	}
	return []byte(out.b.String())
}

func (c *classic) memCSV() []byte {
	var out cells
	for _, h := range []string{
		"mem_type", "start_addr", "end_addr", "byte_size", "rw_type", "start_usec", "end_usec", "duration", "partition", "info",
	} {
		out.text(h)
	}
	out.end()
	for _, local := range []bool{false, true} {
		for _, r := range c.accesses(local) {
			kind, rw := "global", "R"
			if local {
				kind = "local"
			}
			if r.write {
				rw = "W"
			}
			begin, end, length := spanText(r.begin, r.end)
			out.text(kind)
			out.num(utoa(r.addr))
			out.num(utoa(r.addr + r.size))
			out.num(utoa(r.size))
			out.text(rw)
			out.num(begin)
			out.num(end)
			out.num(length)
			out.text(c.partition(&r))
			out.text(r.info)
			out.end()
		}
	}
	return []byte(out.b.String())
}

// jsText is a text between the quotes of a script. The converter writes texts as they
// are; where that would end the text early they are escaped.
func jsText(s string) string { return jsEscapes.Replace(s) }

var jsEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// page is profile_data.js of the classic page.
func (c *classic) page() []byte {
	var b strings.Builder
	caption := "Profile: " + c.net + " on " + c.in.Chip.Name
	if len(c.in.Cores) == 0 || len(c.in.Cores[0].TIU)+len(c.in.Cores[0].GDMA) == 0 {
		caption += "(simulated)"
	}
	b.WriteString("let page_caption=\"" + jsText(caption) + "\"\n")
	b.WriteString("let summary_caption= \"Subnet Summary\"\n")
	b.WriteString("let summary_header = [\"index\", \"subnet_id\", \"subnet_type\", \"duration\"]\n")
	b.WriteString("let summary_data = [\n  [\"Iter[0]\"," + itoa(c.in.Subnet) + ",\"" + c.subnetType + "\",\"1us\",],\n]\n")
	names := func(list []string) string {
		s := "["
		for _, n := range list {
			s += `"` + n + `",`
		}
		return s + "]"
	}
	b.WriteString("let categories = " + names(classicLanes[:]) + "\n")
	b.WriteString("let time_header = " + names([]string{
		"category", "begin_usec", "end_usec", "func_type", "height", "layer_id", "layer_type", "subnet_id", "subnet_type", "iteration", "info",
	}) + "\n")
	b.WriteString("let filter_cols=[5,6,7,8,9,]\n")
	b.WriteString("let lmem_partition= [\n")
	for i := range c.in.Chip.Banks {
		b.WriteString("  [" + strconv.Itoa(i*c.in.Chip.BankBytes) + "," + strconv.Itoa(c.in.Chip.BankBytes) + ",\"BANK[" + strconv.Itoa(i) + "]\",],\n")
	}
	b.WriteString("]\nlet gmem_partition= [\n")
	for _, p := range c.parts {
		b.WriteString("  [" + utoa(p.addr) + "," + utoa(p.size) + ",\"" + jsText(p.text) + "\",],\n")
	}
	b.WriteString("]\nlet time_data= [\n")
	for _, r := range c.chart() {
		b.WriteString("  [" + strconv.Itoa(r.lane) + "," + r.begin + "," + r.end + ",\"" + jsText(r.name) + "\"," + r.height + "," + itoa(r.layer) + ",\"" +
			jsText(r.layerType) + "\"," + itoa(c.in.Subnet) + ",\"" + c.subnetType + "\",\"Iter[0]\",\"" + jsText(r.info) + "\",],\n")
	}
	b.WriteString("]\n")
	for _, local := range []bool{false, true} {
		name := "gmem"
		if local {
			name = "lmem"
		}
		b.WriteString("let " + name + "_op_record= [\n")
		for _, r := range c.accesses(local) {
			rw := "0"
			if r.write {
				rw = "1"
			}
			b.WriteString("  [" + repr(r.begin) + "," + repr(r.end) + "," + rw + "," + utoa(r.addr) + "," + utoa(r.size) + ",\"" + r.info + "\",],\n")
		}
		b.WriteString("]\n")
	}
	return []byte(b.String())
}
