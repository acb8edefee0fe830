package agent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/source/join"
	"github.com/opmeter/opmeter/profile"
)

// units maps units of the format to the recorder's.
var units = [...]string{unitCycles: device.Cycles, unitInstructions: device.Instructions, unitNanoseconds: device.Nanoseconds, unitTicks: device.Ticks}

// quantities maps units of the counter to quantities.
var quantities = [...]string{unitCycles: "cpu_cycles", unitInstructions: "instructions", unitNanoseconds: "latency_s", unitTicks: "ticks"}

// described are the known quantities that a firmware's own counters may report.
var described = []string{"accelerator_cycles", "accelerator_instructions", "accelerator_stalls", "cpu_cycles", "instructions"}

// describe sends the layers of the device: all operators of the waiting inferences, by index.
func (l *listener) describe() error {
	h := l.hello
	l.info = map[uint8]string{}
	for k, v := range l.s.Info {
		l.info[k] = v
	}
	l.first = h
	l.layers, l.calls = map[uint16]int{}, map[uint16]int{}
	nested := map[uint16]bool{}
	var indices []uint16
	for _, w := range l.queue {
		for _, o := range w.run.Ops {
			if _, ok := l.calls[o.Index]; !ok {
				indices = append(indices, o.Index)
				l.calls[o.Index] = 0
			}
			if !w.run.Partial && l.calls[o.Index] == 0 {
				l.calls[o.Index] = o.Calls
			}
			nested[o.Index] = nested[o.Index] || o.Within
		}
	}
	slices.Sort(indices)
	p := &profile.Profile{Findings: l.findings}
	p.Target = profile.Target{Kind: profile.TargetDevice, ID: l.info[infoBoard], Description: l.info[infoBoard]}
	p.Model.Name = l.info[infoName]
	l.findings = nil
	hints, tags := make([]join.Hint, len(indices)), make([]string, len(indices))
	for i, index := range indices {
		l.layers[index] = i
		x := profile.Layer{Op: cmp.Or(l.s.Tags[index], l.tags[index], fmt.Sprintf("operator %d", index))}
		if n := l.calls[index]; n > 1 {
			x.Calls = new(float64(n))
		}
		if !nested[index] {
			hints[i].Index = new(int64(index))
		}
		tags[i] = x.Op
		p.Layers = append(p.Layers, x)
	}
	byLayer(l.j.Model, indices, tags, hints)
	l.model(p)
	l.j.Clock(float64(h.Hz)*h.scale(), units[h.Unit])
	memory, ram := l.plan()
	p.Memory, p.Totals.RAMBytes = memory, ram
	if err := l.j.Describe(p, hints); err != nil {
		return err
	}
	for _, name := range l.names {
		l.plain(name)
	}
	return nil
}

// byLayer interprets indices as layer indices, as in programs that opmeter writes, if the tags
// match the layers better than the nodes of the main graph, which interpreters count.
func byLayer(model *profile.Profile, indices []uint16, tags []string, hints []join.Hint) {
	if model == nil {
		return
	}
	nodes := map[int64]*profile.Layer{}
	for i := range model.Layers {
		l := &model.Layers[i]
		if l.Provenance != nil {
			for _, n := range l.Provenance.SourceNodes {
				if n.Graph == 0 {
					nodes[n.Node] = l
				}
			}
		}
	}
	layers := 0
	for i, index := range indices {
		if int(index) < len(model.Layers) && model.Layers[index].Op == tags[i] {
			layers++
		}
		if l := nodes[int64(index)]; l != nil && l.Op == tags[i] {
			layers--
		}
	}
	if layers <= 0 {
		return
	}
	for i, index := range indices {
		hints[i] = join.Hint{}
		if int(index) >= len(model.Layers) {
			continue
		}
		l := &model.Layers[index]
		for _, o := range l.Outputs {
			hints[i].Outputs = append(hints[i].Outputs, o.Name)
		}
		if l.Provenance != nil {
			for _, n := range l.Provenance.SourceNodes {
				if n.Graph == 0 {
					hints[i].Index = new(n.Node)
					break
				}
			}
		}
	}
}

// model compares the hash of the model in the firmware with the hash of the file.
func (l *listener) model(p *profile.Profile) {
	sum := strings.ToLower(l.info[infoModel])
	if b, err := hex.DecodeString(sum); err != nil || len(b) != sha256.Size {
		return
	}
	p.Model.SHA256 = sum
	if m := l.j.Model; m != nil && m.Model.SHA256 != "" && m.Model.SHA256 != sum {
		p.Findings = append(p.Findings, profile.Finding{ID: "agent.model", Severity: profile.Warning, Text: fmt.Sprintf(
			"The firmware was made of another model file (SHA-256 %s…) than the one that is named (%s…): figures may belong to other operators.", sum[:12], m.Model.SHA256[:min(12, len(m.Model.SHA256))])})
	}
}

// figures converts counts to figures, without the agent's own time.
func (l *listener) figures(r *Run, h *Hello) device.Inference {
	x := device.Inference{Partial: r.Partial, Whole: map[string]float64{}}
	key := quantities[h.Unit]
	value := func(counts float64) float64 {
		v := math.Round(max(0, counts)) * h.scale()
		switch h.Unit {
		case unitNanoseconds:
			v *= 1e-9
		case unitInstructions:
			v = math.Round(v) // whole counts, read from a clock that ticks in between
		}
		return v
	}
	still := h.Flags&flagStill != 0
	at := map[uint16]int{}
	add := func(index uint16, calls int) (map[string]float64, bool) {
		layer, ok := l.layers[index]
		if !ok {
			l.found("agent.late", profile.Warning, "Operator %d ran for the first time after the layers had been listed: it has no line, and its time is only in that of the whole.", index)
			return nil, false
		}
		if want := l.calls[index]; r.Partial && want != calls && want != 0 {
			return nil, false // some of its calls were lost
		}
		k, ok := at[index]
		if !ok {
			k = len(x.Layers)
			at[index] = k
			x.Layers = append(x.Layers, device.LayerFigures{Layer: layer, Figures: map[string]float64{}})
		}
		return x.Layers[k].Figures, true
	}
	calls := map[uint16]int{}
	for _, o := range r.Ops {
		calls[o.Index] = o.Calls
		if m, ok := add(o.Index, o.Calls); ok && (!still || o.Counts > 0) {
			m[key] = value(float64(o.Counts) - float64(int64(o.Calls)-o.Inner)*float64(h.Cost) - float64(o.Agent)*h.perCall())
		}
	}
	if !r.Partial {
		l.absent(calls, func(index uint16) {
			if m, ok := add(index, 0); ok && !still {
				m[key] = 0 // it did not run, which takes no time
			}
		})
		if !still || r.Counts > 0 {
			x.Whole[key] = value(float64(r.Counts-r.Own) - float64(h.Cost) - float64(r.Calls)*h.perCall())
			if s, ok := seconds(h, float64(r.Own)+float64(r.Calls)*h.perCall()); ok {
				x.Whole["agent_s"] = s
			}
		}
	}
	for _, c := range r.Counters {
		q, ok := l.quantity(c.Name, key)
		if !ok {
			continue
		}
		if c.Index < 0 {
			x.Whole[q] = c.Value
		} else if m, ok := add(uint16(c.Index), calls[uint16(c.Index)]); ok {
			m[q] = c.Value
		}
	}
	return x
}

// absent calls a function for each operator that a complete inference did not run, in order.
func (l *listener) absent(ran map[uint16]int, is func(uint16)) {
	if len(ran) == len(l.layers) {
		return
	}
	var list []uint16
	for index := range l.layers {
		if ran[index] == 0 {
			list = append(list, index)
		}
	}
	slices.Sort(list)
	for _, index := range list {
		is(index)
	}
}

// seconds converts counts to seconds if the counter measures time.
func seconds(h *Hello, counts float64) (float64, bool) {
	switch {
	case h.Unit == unitInstructions:
		return 0, false
	case h.Unit == unitNanoseconds:
		return counts * h.scale() * 1e-9, true
	case h.Hz > 0:
		return counts / float64(h.Hz), true
	}
	return 0, false
}

// quantity returns the key of a custom counter and describes it to the recorder. counts is the
// key of the time counter, which cannot be reported twice.
func (l *listener) quantity(name, counts string) (string, bool) {
	k := key(name)
	if k == "" {
		return "", false
	}
	if slices.Contains(described, k) && k != counts {
		return k, true
	}
	if _, ok := profile.Lookup(k); ok {
		k = "device_" + k
	}
	return k, l.foreignQuantity(profile.Quantity{Key: k, Name: clip(name, 60), Group: "Device", Doc: "A figure that the firmware counts by itself."})
}

// foreignQuantity describes a quantity once.
func (l *listener) foreignQuantity(q profile.Quantity) bool {
	if l.keys[q.Key] {
		return true
	}
	if err := l.j.Note(&profile.Noted{Quantities: []profile.Quantity{q}}); err != nil {
		l.err = err
		return false
	}
	l.keys[q.Key] = true
	return true
}

// key converts a name to a key of lower-case letters, digits and underscores.
func key(name string) string {
	k := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, strings.ToLower(name))
	k = strings.Trim(k, "_")
	if k != "" && k[0] <= '9' {
		k = "n" + k
	}
	return k
}

// use records memory in use: the latest report of each kind counts.
func (l *listener) use(m *Memory) {
	old, ok := l.memory[m.Name]
	if !ok {
		if len(l.names) >= maxNames {
			return
		}
		l.names = append(l.names, m.Name)
	}
	l.memory[m.Name] = int64(m.Bytes)
	if !l.j.Described() || ok && old == int64(m.Bytes) {
		return
	}
	if memory, ram := l.plan(); memory != nil || ram != nil {
		if err := l.j.Note(&profile.Noted{Memory: memory, RAMBytes: ram}); err != nil {
			l.err = err
		}
	}
	l.plain(m.Name)
}

// plan returns the memory that the profile has fields for: "arena", "persistent", "scratch",
// "peak", and "ram" for the total.
func (l *listener) plan() (m *profile.Memory, ram *int64) {
	m = &profile.Memory{}
	sum := int64(0)
	for _, x := range []struct {
		name string
		to   **int64
	}{{"arena", &m.ArenaBytes}, {"persistent", &m.PersistentBytes}, {"scratch", &m.ScratchBytes}, {"peak", &m.PeakBytes}} {
		if v, ok := l.memory[x.name]; ok {
			*x.to = new(v)
			if x.name != "peak" {
				sum += v
			}
		}
	}
	if m.ArenaBytes != nil {
		ram = new(sum)
	}
	if v, ok := l.memory["ram"]; ok {
		ram = new(v)
	}
	if m.ArenaBytes == nil && m.PersistentBytes == nil && m.ScratchBytes == nil && m.PeakBytes == nil {
		m = nil
	}
	return m, ram
}

// plain reports memory that the profile has no field for, such as a stack.
func (l *listener) plain(name string) {
	switch name {
	case "arena", "persistent", "scratch", "peak", "ram":
		return
	}
	k := key(name)
	if k == "" {
		return
	}
	k = "memory_" + k + "_bytes"
	if l.foreignQuantity(profile.Quantity{Key: k, Unit: "B", Name: "Memory: " + clip(name, 60), Group: "Memory", Model: true, Whole: true, Better: -1, Doc: "Memory in use, as the firmware tells it."}) {
		if err := l.j.Count(-1, k, profile.Value(profile.Measured, float64(l.memory[name]), "")); err != nil {
			l.err = err
		}
	}
}

// Output is a block of data from the firmware.
type Output struct {
	Name   string
	Index  int
	Bytes  []byte
	SHA256 string // 64 hexadecimal digits
}

// Outputs collects blocks of data, such as output tensors. The zero value is ready to use; pass
// Add in [Options].
type Outputs struct {
	// List has the latest block of each name and index, in the order of first arrival.
	List []Output
}

// Add keeps a block; of more than 1024 different ones it keeps the first 1024.
func (o *Outputs) Add(name string, index int, data []byte) {
	const most = 1024
	sum := sha256.Sum256(data)
	x := Output{name, index, data, hex.EncodeToString(sum[:])}
	for i := range o.List {
		if o.List[i].Name == name && o.List[i].Index == index {
			o.List[i] = x
			return
		}
	}
	if len(o.List) < most {
		o.List = append(o.List, x)
	}
}
