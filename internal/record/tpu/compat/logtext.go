package compat

import (
	"strconv"
	"strings"
)

// values are the key=value words of a line.
func values(line string) map[string]string {
	m := map[string]string{}
	for _, w := range strings.Fields(line) {
		if k, v, ok := strings.Cut(strings.Trim(w, "()"), "="); ok {
			m[k] = v
		}
	}
	return m
}

func num(m map[string]string, key string) int {
	n, _ := strconv.Atoi(m[key])
	return n
}

// readLog reads the compiler's log in the order of its lines.
func (c *classic) readLog(text string) {
	var now *layer
	other := false // inside another subnet's part
	sizes := map[int][3]int{}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "[bmprofile]"))
		m := values(line)
		switch {
		case strings.HasPrefix(line, "start to run"):
			other, now = num(m, "subnet_id") != c.in.Subnet, nil
		case strings.HasPrefix(line, "end to run"):
			other = false
		case other:
		case strings.HasPrefix(line, "net_name="):
			c.net = strings.TrimPrefix(line, "net_name=")
		case strings.HasPrefix(line, "mtype="):
			c.allocation(line, m)
		case strings.HasPrefix(line, "layer_id="):
			sizes[num(m, "layer_id")] = [3]int{num(m, "feature_size"), num(m, "weight_size"), num(m, "total_size")}
		case strings.HasPrefix(line, "global_layer:"), strings.HasPrefix(line, "local_layer:"):
			now = &layer{id: num(m, "layer_id"), kind: m["layer_type"], global: line[0] == 'g'}
			now.sizes = sizes[now.id]
			c.layers = append(c.layers, now)
		case strings.HasPrefix(line, "tensor_id="):
			c.tensor(now, m)
		case strings.Contains(line, "cmd_id bd_id=") && !strings.HasPrefix(line, "insert"):
			c.commandLine(now, line, m)
		}
	}
}

func (c *classic) allocation(line string, m map[string]string) {
	if num(m, "mtype") != 1 {
		return
	}
	addr, _ := strconv.ParseUint(m["addr"], 10, 64)
	size, _ := strconv.ParseUint(m["size"], 10, 64)
	_, text, _ := strings.Cut(line, "desc=")
	c.parts = append(c.parts, allocation{addr, size, text})
}

func (c *classic) tensor(l *layer, m map[string]string) {
	if l == nil {
		return
	}
	id := num(m, "tensor_id")
	t := c.tensors[id]
	if t == nil {
		t = &tensor{id: id, dtype: num(m, "dtype"), isConst: m["is_const"] == "1", nslice: num(m, "nslice"), hslice: num(m, "hslice")}
		for _, d := range strings.Split(strings.Trim(m["shape"], "[]"), "x") {
			if n, err := strconv.Atoi(d); err == nil && len(t.shape) < 64 {
				t.shape = append(t.shape, n)
			}
		}
		c.tensors[id] = t
	}
	if m["is_in"] == "1" {
		l.ins = append(l.ins, t)
	} else {
		l.outs = append(l.outs, t)
	}
}

func (c *classic) commandLine(l *layer, line string, m map[string]string) {
	n := &node{layer: l}
	bd, gdma := num(m, "bd_id"), num(m, "gdma_id")
	if strings.HasPrefix(line, "gdma") && m["bd_func"] == "" {
		n.dma, n.own, n.dep, n.fn = true, gdma, bd, num(m, "gdma_func")
		c.gdma = append(c.gdma, n)
		if l != nil {
			l.gdma = append(l.gdma, n)
		}
		return
	}
	n.own, n.dep, n.fn = bd, gdma, num(m, "bd_func")
	c.bd = append(c.bd, n)
	if l != nil {
		l.bd = append(l.bd, n)
	}
}

// estimated is one item of the compiler's estimate.
type estimated struct{ bd, gdma, cycles int }

// readEstimate gives each command its estimated cycles. An item without a direction is
// taken for one of the tensor engine, and a pointer that meets an item of no command
// stays there for good.
func (c *classic) readEstimate(text string) {
	var tiu, dma []estimated
	inside := false
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.Contains(line, "ENGINE_BD") && strings.Contains(line, "ENGINE_GDMA"):
			inside = true
		case strings.HasPrefix(strings.TrimSpace(line), "---"):
			inside = false
		case inside:
			for _, item := range strings.Fields(line) {
				m := map[string]string{}
				for _, p := range strings.Split(item, "|") {
					if k, v, ok := strings.Cut(p, ":"); ok {
						m[k] = v
					}
				}
				e := estimated{num(m, "b"), num(m, "g"), num(m, "t")}
				if _, ok := m["dr"]; ok {
					dma = append(dma, e)
				} else {
					tiu = append(tiu, e)
				}
			}
		default:
			if _, rest, ok := strings.Cut(line, "flops:"); ok {
				v, _, _ := strings.Cut(rest, ",")
				f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
				c.flops += f
			}
		}
	}
	for _, side := range [...]struct {
		nodes []*node
		items []estimated
		dma   bool
	}{{c.bd, tiu, false}, {c.gdma, dma, true}} {
		at := 0
		for _, n := range side.nodes {
			if at == len(side.items) {
				break
			}
			e := side.items[at]
			bd, gdma := n.own, n.dep
			if side.dma {
				bd, gdma = n.dep, n.own
			}
			if e.bd == bd && e.gdma == gdma {
				n.estimate = e.cycles
				at++
			}
		}
	}
}
