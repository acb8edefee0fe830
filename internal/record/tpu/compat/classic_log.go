package compat

import (
	"strconv"
	"strings"
)

// values returns the key=value words of a line.
func values(line string) map[string]string {
	m := map[string]string{}
	for w := range strings.FieldsSeq(line) {
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
	for line := range strings.SplitSeq(text, "\n") {
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
			if num(m, "mtype") == 1 {
				addr, _ := strconv.ParseUint(m["addr"], 10, 64)
				size, _ := strconv.ParseUint(m["size"], 10, 64)
				_, text, _ := strings.Cut(line, "desc=")
				c.parts = append(c.parts, allocation{addr, size, text})
			}
		case strings.HasPrefix(line, "layer_id="):
			sizes[num(m, "layer_id")] = [3]int{num(m, "feature_size"), num(m, "weight_size"), num(m, "total_size")}
		case strings.HasPrefix(line, "global_layer:"), strings.HasPrefix(line, "local_layer:"):
			now = &layer{id: num(m, "layer_id"), kind: m["layer_type"], global: line[0] == 'g', sizes: sizes[num(m, "layer_id")]}
			c.layers = append(c.layers, now)
		case strings.HasPrefix(line, "tensor_id="):
			if now != nil {
				c.tensor(now, m)
			}
		case strings.Contains(line, "cmd_id bd_id=") && !strings.HasPrefix(line, "insert"):
			c.commandLine(now, line, m)
		}
	}
}

// tensor adds the tensor of a line to a layer.
func (c *classic) tensor(l *layer, m map[string]string) {
	id := num(m, "tensor_id")
	t := c.tensors[id]
	if t == nil {
		t = &tensor{id: id, dtype: num(m, "dtype"), isConst: m["is_const"] == "1", nslice: num(m, "nslice"), hslice: num(m, "hslice")}
		for d := range strings.SplitSeq(strings.Trim(m["shape"], "[]"), "x") {
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

// commandLine adds the command of a line to its engine and its layer.
func (c *classic) commandLine(l *layer, line string, m map[string]string) {
	n := &node{layer: l, own: num(m, "bd_id"), dep: num(m, "gdma_id"), fn: num(m, "bd_func")}
	if n.dma = strings.HasPrefix(line, "gdma") && m["bd_func"] == ""; n.dma {
		n.own, n.dep, n.fn = n.dep, n.own, num(m, "gdma_func")
		c.gdma = append(c.gdma, n)
	} else {
		c.bd = append(c.bd, n)
	}
	switch {
	case l == nil:
	case n.dma:
		l.gdma = append(l.gdma, n)
	default:
		l.bd = append(l.bd, n)
	}
}

// readEstimate sets the estimated cycles of commands. The converter assigns items without a
// direction to the tensor engine. Its pointer stops for good at an item without a command.
func (c *classic) readEstimate(text string) {
	var items [2][][3]int // numbers of both engines and cycles, of the tensor engine and of copies
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.Contains(line, "ENGINE_BD") && strings.Contains(line, "ENGINE_GDMA"):
			inside = true
		case strings.HasPrefix(strings.TrimSpace(line), "---"):
			inside = false
		case inside:
			for item := range strings.FieldsSeq(line) {
				m := map[string]string{}
				for p := range strings.SplitSeq(item, "|") {
					if k, v, ok := strings.Cut(p, ":"); ok {
						m[k] = v
					}
				}
				engine := 0
				if _, ok := m["dr"]; ok {
					engine = 1
				}
				items[engine] = append(items[engine], [3]int{num(m, "b"), num(m, "g"), num(m, "t")})
			}
		default:
			if _, rest, ok := strings.Cut(line, "flops:"); ok {
				v, _, _ := strings.Cut(rest, ",")
				f, _ := strconv.ParseFloat(strings.TrimSpace(v), 64)
				c.flops += f
			}
		}
	}
	for engine, nodes := range [...][]*node{c.bd, c.gdma} {
		list := items[engine]
		for _, n := range nodes {
			if len(list) > 0 && list[0][engine] == n.own && list[0][1-engine] == n.dep {
				n.estimate = list[0][2]
				list = list[1:]
			}
		}
	}
}
