package compat

import (
	"fmt"
	"strconv"
	"strings"
)

// summaryCSV, detailCSV and memCSV return the files of the converter's format csv.
func (c *classic) summaryCSV() []byte {
	out := quotedRow(nil, "index", "subnet_id", "subnet_type", "duration(us)")
	return quotedRow(out, "Iter[0]", c.in.Subnet, c.subnetType, 1) // the duration is constant
}

func (c *classic) detailCSV() []byte {
	out := quotedRow(nil, anys(columns["detail.csv"])...)
	for _, r := range c.chart() {
		out = quotedRow(out, strconv.Itoa(r.lane)+"-"+classicLanes[r.lane], literal(r.begin), literal(r.end), literal(r.length), r.name, r.layer,
			r.layerType, c.in.Subnet, c.subnetType, "Iter[0]", strings.ReplaceAll(strings.TrimPrefix(r.info, "<br>"), "<br>", ","))
	}
	return out
}

func (c *classic) memCSV() []byte {
	out := quotedRow(nil, anys(columns["mem.csv"])...)
	for i, kind := range []string{"global", "local"} {
		for _, r := range c.accesses(i == 1) {
			access := "R"
			if r.write {
				access = "W"
			}
			out = quotedRow(out, kind, r.addr, r.addr+r.size, r.size, access, r.begin, r.end, r.end-r.begin, c.partition(&r), r.info)
		}
	}
	return out
}

// jsText escapes a text for the quotes of a script. The converter writes texts unchanged. This
// function escapes the characters that would end the text early.
func jsText(s string) string { return jsEscapes.Replace(s) }

var jsEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// page returns profile_data.js of the classic page.
func (c *classic) page() []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	caption := "Profile: " + c.net + " on " + c.in.Chip.Name
	if len(c.in.Cores) == 0 || len(c.in.Cores[0].TIU)+len(c.in.Cores[0].GDMA) == 0 {
		caption += "(simulated)"
	}
	quoted := func(list ...string) string { return `["` + strings.Join(list, `","`) + `",]` }
	line(`let page_caption="%s"`, jsText(caption))
	line(`let summary_caption= "Subnet Summary"`)
	line(`let summary_header = ["index", "subnet_id", "subnet_type", "duration"]`)
	line("let summary_data = [\n  [\"Iter[0]\",%d,\"%s\",\"1us\",],\n]", c.in.Subnet, c.subnetType)
	line("let categories = %s", quoted(classicLanes[:]...))
	line("let time_header = %s", quoted("category", "begin_usec", "end_usec", "func_type", "height", "layer_id", "layer_type", "subnet_id", "subnet_type", "iteration", "info"))
	line("let filter_cols=[5,6,7,8,9,]")
	line("let lmem_partition= [")
	for i := range c.in.Chip.Banks {
		line(`  [%d,%d,"BANK[%d]",],`, i*c.in.Chip.BankBytes, c.in.Chip.BankBytes, i)
	}
	line("]\nlet gmem_partition= [")
	for _, p := range c.parts {
		line(`  [%d,%d,"%s",],`, p.addr, p.size, jsText(p.text))
	}
	line("]\nlet time_data= [")
	for _, r := range c.chart() {
		line(`  [%d,%s,%s,"%s",%s,%d,"%s",%d,"%s","Iter[0]","%s",],`, r.lane, r.begin, r.end, jsText(r.name), r.height, r.layer,
			jsText(r.layerType), c.in.Subnet, c.subnetType, jsText(r.info))
	}
	line("]")
	for i, name := range []string{"gmem", "lmem"} {
		line("let %s_op_record= [", name)
		for _, r := range c.accesses(i == 1) {
			write := 0
			if r.write {
				write = 1
			}
			line(`  [%s,%s,%d,%d,%d,"%s",],`, repr(r.begin), repr(r.end), write, r.addr, r.size, r.info)
		}
		line("]")
	}
	return []byte(b.String())
}
