package tpu

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/profile/timeline"
)

// maxAccesses bounds the accesses of all memories. If there are more, only those of every n-th
// command are kept, so that they cover the whole time.
const maxAccesses = 200_000

type touch struct {
	begin, end  float64
	addr, bytes int64
	write       int32
	layer       int32
}

type pool struct {
	name, group string
	space       command.Space
	list        []touch
}

var poolNames = map[command.Space]string{
	command.Local: "local memory (a lane)", command.DDR: "global memory", command.L2: "L2 memory", command.Static: "static memory",
}

// memories draws the accesses of commands to memories.
func (d *drawing) memories() {
	n := 0
	for e := range d.r.Units() {
		n += e.Len()
	}
	stride := max(1, n*3/maxAccesses)
	var order []*pool
	at := map[[2]string]*pool{}
	total := 0
	var list []command.Access
	for e := range d.r.Units() {
		m := d.members[e.Engine]
		for i := 0; i < e.Len(); i += stride {
			cmd := commandOf(e.Engine, i)
			if cmd == nil || e.Class[i] == capture.Sync || total >= maxAccesses {
				continue
			}
			if e.Class[i] == capture.Runtime {
				from, to := cmd.Spaces(d.r.Chip)
				if a, b := e.Ports(i); a != from || b != to {
					continue // its addresses are those of the memory controller
				}
			}
			list = cmd.Accesses(d.r.Chip, list[:0])
			begin, end := e.Step.Base+e.Begin[i], e.Step.Base+e.Finish[i]
			for _, a := range list {
				name := poolNames[a.Space]
				if name == "" || a.Addr > 1<<60 || a.Size > 1<<60 || !(end < mostTime) {
					continue
				}
				k := [2]string{name}
				if a.Space == command.Local || a.Space == command.Static {
					k[1] = coreName(e.Core.Number)
				}
				if at[k] == nil {
					at[k] = &pool{name: name, group: k[1], space: a.Space}
					order = append(order, at[k])
				}
				t := touch{begin, end, int64(a.Addr), int64(a.Size), 0, m.layer[i]}
				if a.Write {
					t.write = 1
				}
				at[k].list = append(at[k].list, t)
				total++
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
	sorting.Stable(p.list, func(a, b touch) int { return cmp.Compare(a.begin, b.begin) })
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
	if p.space != command.Local {
		m.Partitions = d.allocations(p.list, p.space == command.DDR)
		return m
	}
	for i := range d.r.Chip.Banks {
		m.Partitions = append(m.Partitions, timeline.Partition{Name: fmt.Sprintf("bank %d", i), Address: int64(i * d.r.Chip.BankBytes), Bytes: int64(d.r.Chip.BankBytes)})
	}
	return m
}

// allocations returns the parts of a memory: those of global memory that the program and the log
// state, and parts for accesses outside them. No file states the use of other memories.
func (d *drawing) allocations(list []touch, global bool) []timeline.Partition {
	var known []timeline.Partition
	add := func(name string, address, size uint64) {
		if global && size > 0 && address < 1<<60 && size < 1<<60 {
			known = append(known, timeline.Partition{Name: name, Address: int64(address), Bytes: int64(size)})
		}
	}
	if p := d.r.Program; p != nil {
		add("weights", uint64(p.Weights[0]), uint64(p.Weights[1]))
		add("activations", uint64(p.Activations[0]), uint64(p.Activations[1]))
	}
	for _, a := range d.r.Log.Memory {
		if a.Kind == globalMemory {
			add(a.Name, a.Address, a.Bytes)
		}
	}
	const most = 1000 // limits the search for each access
	known = known[:min(len(known), most)]
	// Only those that were used.
	order := slices.Clone(list)
	sorting.Func(order, func(a, b touch) int { return cmp.Compare(a.addr, b.addr) })
	byAddress := func(a, b timeline.Partition) int { return cmp.Compare(a.Address, b.Address) }
	sorting.Stable(known, byAddress)
	used := make([]bool, len(known))
	var out []timeline.Partition
	const near = 1 << 20
	for _, t := range order {
		if i := slices.IndexFunc(known, func(k timeline.Partition) bool { return t.addr >= k.Address && t.addr < k.Address+k.Bytes }); i >= 0 {
			used[i] = true
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
	sorting.Stable(out, byAddress)
	return out
}

// maxPoints bounds the points of a counter. Beyond, the counter shows means of equal intervals.
const maxPoints = 20_000

// bandwidth draws the bytes per second from and to DDR and L2, of all engines together.
func (d *drawing) bandwidth() {
	for _, space := range []command.Space{command.DDR, command.L2} {
		var edges []edge
		for e := range d.r.Units() {
			for i := range e.Len() {
				if e.Kind == command.TIU || e.Class[i] == capture.Sync {
					continue
				}
				from, to := direction(e.Engine, i, d.r.Chip)
				if from != space && to != space {
					continue
				}
				n := float64(payload(e.Engine, i, to))
				if from == space && to == space {
					n *= 2 // read and written
				}
				b, f := e.Step.Base+e.Begin[i], e.Step.Base+e.Finish[i]
				if f > b && n > 0 {
					edges = append(edges, edge{b, n / (f - b), 1}, edge{f, -n / (f - b), -1})
				}
			}
		}
		name := map[command.Space]string{command.DDR: "DDR bandwidth", command.L2: "L2 bandwidth"}[space]
		if c := counter(name, edges); len(c.Times) > 0 {
			d.t.Counters = append(d.t.Counters, c)
		}
	}
}

type edge struct {
	at, rate float64
	count    int
}

func counter(name string, edges []edge) timeline.Counter {
	edges = slices.DeleteFunc(edges, func(e edge) bool { return !(e.at > -mostTime && e.at < mostTime) })
	sorting.Stable(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	c := timeline.Counter{Name: name, Unit: "B/s"}
	if len(edges) > maxPoints {
		return binned(c, edges)
	}
	rate, running := 0.0, 0
	for i, e := range edges {
		rate += e.rate
		running += e.count
		if running == 0 {
			rate = 0 // removes rounding errors of the sum
		}
		if i+1 < len(edges) && edges[i+1].at == e.at {
			continue
		}
		c.Times, c.Values = append(c.Times, max(0, e.at)), append(c.Values, max(0, rate))
	}
	return c
}

// binned returns the mean rates of equal intervals.
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
				to = e.at // rounding at the end of an interval
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
