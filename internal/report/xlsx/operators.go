package xlsx

import (
	"cmp"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// work sums operations and times over the layers of an operator that have both:
// operations without a time are not a part of a rate. whole says that these are all.
func (t *table) work(op int) (ops, seconds float64, whole bool) {
	o, s := t.get("ops").nums, t.get("latency_s").nums
	whole = true
	for i, k := range t.op {
		switch {
		case k != op:
		case o[i] != nil && s[i] != nil:
			ops, seconds = ops+*o[i], seconds+*s[i]
		case o[i] != nil || s[i] != nil:
			whole = false
		}
	}
	return ops, seconds, whole
}

// rate is the cell of operations per second of an operator, whose sums stand in two other
// cells.
func (t *table) rate(op int, ops, time string) cell {
	o, s, whole := t.work(op)
	if !(o > 0 && s > 0) {
		return cell{}
	}
	c := number(new(o/s), "#,##0")
	if whole {
		c.formula = ops + "/" + time
	}
	return c
}

// operators writes the sheet "By operator".
func (b *book) operators(t *table) {
	s := b.sheet()
	type group struct {
		no     int // as in the column op_no
		layers float64
		sums   map[string]*float64
	}
	gs := make([]group, len(t.ops))
	for i := range gs {
		gs[i] = group{no: i + 1, sums: map[string]*float64{}}
	}
	var keys []string
	for _, c := range t.cols {
		if c.quantity == nil || !c.quantity.Adds || c.key == "share" {
			continue
		}
		if _, ok := c.sum(); !ok {
			continue
		}
		key := c.key
		keys = append(keys, key)
		for i, v := range c.nums {
			if v == nil {
				continue
			}
			g := &gs[t.op[i]]
			if g.sums[key] == nil {
				g.sums[key] = new(float64)
			}
			*g.sums[key] += *v
		}
	}
	for _, k := range t.op {
		gs[k].layers++
	}
	sorting.Stable(gs, func(x, y group) int {
		a, b := x.sums["latency_s"], y.sums["latency_s"]
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return 1
		case b == nil:
			return -1
		}
		return cmp.Compare(*b, *a)
	})
	timed := t.time > 0
	rate := slices.Contains(keys, "ops") && timed
	heads := []string{"op_no", "op", "layers"}
	if timed {
		heads = append(heads, "latency_s", "share", "cumulative")
	}
	for _, key := range keys {
		if key != "latency_s" {
			heads = append(heads, key)
		}
	}
	if rate {
		heads = append(heads, "ops_per_s")
	}
	place := map[string]int{}
	ws := make([]float64, len(heads))
	cells := make([]cell, len(heads))
	for i, h := range heads {
		place[h] = i
		ws[i] = max(14, float64(len(h)+4))
		cells[i] = label(h, style{head: true, right: h != "op", indent: h == "op"})
	}
	for _, name := range t.ops {
		ws[1] = min(max(ws[1], float64(len([]rune(name))+4)), 40)
	}
	ws[0] = 9
	s.widths(ws...)
	s.Freeze(1, 2)
	s.add(22, cells...)
	first, last := 2, len(gs)+1
	running := 0.0
	for _, g := range gs {
		row := s.row + 1
		line := make([]cell, len(heads))
		no := int64(g.no)
		line[0] = cell{v: no, style: style{format: "0"}}
		line[1] = label(t.ops[g.no-1], style{indent: true})
		line[2] = formula("COUNTIFS("+t.ref("op_no")+","+at(0, row)+")", g.layers, "#,##0")
		for _, key := range keys {
			// Where no layer has the figure its sum is not zero but unknown.
			if v := g.sums[key]; v != nil && (key != "latency_s" || timed) {
				line[place[key]] = formula("SUMIFS("+t.ref(key)+","+t.ref("op_no")+","+at(0, row)+")", *v, t.get(key).format)
			}
		}
		if timed {
			if v := g.sums["latency_s"]; v != nil {
				share := *v / t.time
				running += share
				line[place["share"]] = formula(at(place["latency_s"], row)+"/"+timeName, share, "0.0%")
			}
			line[place["cumulative"]] = formula("SUM("+at(place["cumulative"], row-1)+","+at(place["share"], row)+")", running, "0.0%")
		}
		if rate {
			line[place["ops_per_s"]] = t.rate(g.no-1, at(place["ops"], row), at(place["latency_s"], row))
		}
		s.add(0, line...)
	}
	if len(gs) > 0 {
		line := make([]cell, len(heads))
		line[1] = label("all", style{indent: true})
		line[2] = formula("SUM("+at(2, first)+":"+at(2, last)+")", float64(t.n), "#,##0")
		for _, key := range keys {
			if key == "latency_s" && !timed {
				continue
			}
			v, _ := t.get(key).sum()
			line[place[key]] = formula("SUM("+at(place[key], first)+":"+at(place[key], last)+")", v, t.get(key).format)
		}
		for i := range line {
			line[i].style.bold = true
		}
		s.add(0, line...)
		if timed {
			s.bars(at(place["latency_s"], first) + ":" + at(place["latency_s"], last))
		}
		s.Filter("A1:" + at(len(heads)-1, last))
	}
}
