package tpu

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/profile/timeline"
)

// maxAccesses bounds the accesses of all memories. Where there are more, those of
// every n-th command are kept, so that they cover the whole time.
const maxAccesses = 200_000

// touch is an access to a memory.
type touch struct {
	begin, end  float64
	addr, bytes int64
	write       int32
	layer       int32
}

// pool is a memory.
type pool struct {
	name, group string
	space       command.Space
	list        []touch
}

// memories draws what commands read and wrote.
func (d *drawing) memories() {
	n := 0
	for _, s := range d.r.Steps {
		for _, c := range s.Cores {
			for _, e := range c.Engines {
				n += e.Len()
			}
		}
	}
	stride := max(1, n*3/maxAccesses)
	var order []*pool
	at := map[[2]string]*pool{}
	get := func(name, group string, sp command.Space) *pool {
		k := [2]string{name, group}
		if at[k] == nil {
			at[k] = &pool{name: name, group: group, space: sp}
			order = append(order, at[k])
		}
		return at[k]
	}
	total := 0
	var list []command.Access
	for _, s := range d.r.Steps {
		for _, c := range s.Cores {
			group := coreName(c.Number)
			for _, e := range c.Engines {
				m := d.members[e]
				for i := 0; i < e.Len(); i += stride {
					cmd := commandOf(e, i)
					if cmd == nil || e.Class[i] == capture.Sync || total >= maxAccesses {
						continue
					}
					if e.Class[i] == capture.Runtime {
						from, to := cmd.Spaces(d.r.Chip)
						if a, b := e.Ports(i); a != from || b != to {
							continue // its addresses are not what they seem
						}
					}
					list = cmd.Accesses(d.r.Chip, list[:0])
					for _, a := range list {
						if a.Addr > 1<<60 || a.Size > 1<<60 || !(s.Base+e.Finish[i] < mostTime) {
							continue
						}
						t := touch{s.Base + e.Begin[i], s.Base + e.Finish[i], int64(a.Addr), int64(a.Size), 0, m.layer[i]}
						if a.Write {
							t.write = 1
						}
						var p *pool
						switch a.Space {
						case command.Local:
							p = get("local memory (a lane)", group, a.Space)
						case command.DDR:
							p = get("global memory", "", a.Space)
						case command.L2:
							p = get("L2 memory", "", a.Space)
						case command.Static:
							p = get("static memory", group, a.Space)
						default:
							continue
						}
						p.list = append(p.list, t)
						total++
					}
				}
			}
		}
	}
	if stride > 1 {
		d.dropped += int64(n - n/stride)
	}
	for _, p := range order {
		d.t.Memories = append(d.t.Memories, d.memory(p))
	}
}

func (d *drawing) memory(p *pool) timeline.Memory {
	slices.SortStableFunc(p.list, func(a, b touch) int { return cmp.Compare(a.begin, b.begin) })
	m := timeline.Memory{Name: p.name, Group: p.group}
	layers := false
	for i := range p.list {
		t := &p.list[i]
		m.Starts, m.Ends = append(m.Starts, max(0, t.begin)), append(m.Ends, max(t.begin, t.end, 0))
		m.Addresses, m.Sizes = append(m.Addresses, t.addr), append(m.Sizes, t.bytes)
		m.Writes, m.Layers = append(m.Writes, t.write), append(m.Layers, t.layer)
		layers = layers || t.layer >= 0
	}
	if !layers {
		m.Layers = nil
	}
	switch p.space {
	case command.Local:
		for i := range d.r.Chip.Banks {
			m.Partitions = append(m.Partitions, timeline.Partition{Name: fmt.Sprintf("bank %d", i), Address: int64(i * d.r.Chip.BankBytes), Bytes: int64(d.r.Chip.BankBytes)})
		}
	case command.DDR:
		m.Partitions = d.allocations(p.list, true)
	default:
		m.Partitions = d.allocations(p.list, false)
	}
	return m
}

// allocations are the parts of global memory: what the program and the log say, and
// parts for accesses outside them. Of other memories nothing says how they are used.
func (d *drawing) allocations(list []touch, global bool) []timeline.Partition {
	var known []timeline.Partition
	if p := d.r.Program; p != nil && global {
		for _, x := range []struct {
			name string
			at   [2]int64
		}{{"weights", p.Weights}, {"activations", p.Activations}} {
			if x.at[1] > 0 {
				known = append(known, timeline.Partition{Name: x.name, Address: x.at[0], Bytes: x.at[1]})
			}
		}
	}
	for _, a := range d.r.Log.Memory {
		const device = 1
		if global && a.Kind == device && a.Bytes > 0 && a.Address < 1<<60 && a.Bytes < 1<<60 {
			known = append(known, timeline.Partition{Name: a.Name, Address: int64(a.Address), Bytes: int64(a.Bytes)})
		}
	}
	const most = 1000 // parts that are looked at for each access
	known = known[:min(len(known), most)]
	// Only those that were used.
	order := slices.Clone(list)
	slices.SortFunc(order, func(a, b touch) int { return cmp.Compare(a.addr, b.addr) })
	slices.SortStableFunc(known, func(a, b timeline.Partition) int { return cmp.Compare(a.Address, b.Address) })
	used := make([]bool, len(known))
	var out []timeline.Partition
	const near = 1 << 20
	for _, t := range order {
		in := false
		for i := range known {
			if k := &known[i]; t.addr >= k.Address && t.addr < k.Address+k.Bytes {
				used[i], in = true, true
				break
			}
		}
		if in {
			continue
		}
		if n := len(out); n > 0 && t.addr <= out[n-1].Address+out[n-1].Bytes+near {
			out[n-1].Bytes = max(out[n-1].Bytes, t.addr+t.bytes-out[n-1].Address)
			continue
		}
		if len(out) < 1000 {
			out = append(out, timeline.Partition{Name: fmt.Sprintf("from %#x", t.addr), Address: t.addr, Bytes: t.bytes})
		}
	}
	for i := range known {
		if used[i] {
			out = append(out, known[i])
		}
	}
	slices.SortStableFunc(out, func(a, b timeline.Partition) int { return cmp.Compare(a.Address, b.Address) })
	return out
}

// maxPoints bounds the points of a counter: beyond, the time is cut into equal parts.
const maxPoints = 20_000

// bandwidth draws how many bytes a second went to or from DDR and L2, all engines
// together.
func (d *drawing) bandwidth() {
	for _, x := range []struct {
		name  string
		space command.Space
	}{{"DDR bandwidth", command.DDR}, {"L2 bandwidth", command.L2}} {
		var edges []edge
		for _, s := range d.r.Steps {
			for _, c := range s.Cores {
				for _, e := range c.Engines {
					if e.Kind == command.TIU {
						continue
					}
					for i := range e.Len() {
						if e.Class[i] == capture.Sync {
							continue
						}
						from, to := direction(e, i, d.r.Chip)
						if from != x.space && to != x.space {
							continue
						}
						n := float64(payload(e, i, from, to))
						if from == x.space && to == x.space {
							n *= 2 // read and written
						}
						b, f := s.Base+e.Begin[i], s.Base+e.Finish[i]
						if f > b && n > 0 {
							edges = append(edges, edge{b, n / (f - b), 1}, edge{f, -n / (f - b), -1})
						}
					}
				}
			}
		}
		if c := counter(x.name, edges); len(c.Times) > 0 {
			d.t.Counters = append(d.t.Counters, c)
		}
	}
}

// edge is where a copy begins or ends.
type edge struct {
	at, rate float64
	count    int
}

// counter adds up rates over time.
func counter(name string, edges []edge) timeline.Counter {
	edges = slices.DeleteFunc(edges, func(e edge) bool { return !(e.at > -mostTime && e.at < mostTime) })
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	c := timeline.Counter{Name: name, Unit: "B/s"}
	if len(edges) > maxPoints {
		return binned(c, edges)
	}
	rate, running := 0.0, 0
	for i, e := range edges {
		rate += e.rate
		running += e.count
		if running == 0 {
			rate = 0 // without the roundings of the sum
		}
		if i+1 < len(edges) && edges[i+1].at == e.at {
			continue
		}
		c.Times, c.Values = append(c.Times, max(0, e.at)), append(c.Values, max(0, rate))
	}
	return c
}

// binned is the mean rate in equal parts of the time.
func binned(c timeline.Counter, edges []edge) timeline.Counter {
	begin, end := edges[0].at, edges[len(edges)-1].at
	width := (end - begin) / maxPoints
	if !(width > 0) {
		return c
	}
	sum := make([]float64, maxPoints)
	rate, running, last := 0.0, 0, begin
	for _, e := range edges {
		for last < e.at {
			k := min(int((last-begin)/width), maxPoints-1)
			to := min(e.at, begin+float64(k+1)*width)
			if !(to > last) {
				to = e.at // a rounding at the end of a part
			}
			sum[k] += rate * (to - last)
			last = to
		}
		rate += e.rate
		if running += e.count; running == 0 {
			rate = 0
		}
	}
	for k, v := range sum {
		c.Times, c.Values = append(c.Times, max(0, begin+float64(k)*width)), append(c.Values, max(0, v/width))
	}
	c.Times, c.Values = append(c.Times, max(0, end)), append(c.Values, 0)
	return c
}
