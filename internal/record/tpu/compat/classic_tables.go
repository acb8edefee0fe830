package compat

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// stat contains the sums of a layer or of a group of layers.
type stat struct {
	layer                    *layer
	dtypes                   map[int]bool // numbers of the log
	in, out                  [4]int
	kh, kw, sh, sw           uint64
	pad                      [4]uint64
	other                    string
	inputs, outputs, weights int
	s2l, l2s, s2s            uint64
	gdma, tiu                int64
	gdmaTime, gdmaTheory     float64
	tiuTime, tiuTheory       float64
	load, store              float64
	alg, arch                uint64
	model                    int
	total                    float64
	totalText                string
	peak                     float64
	kinds                    []string
}

const gib = 1 << 30

// The converter's bandwidths of loads, stores and copies in GiB/s at 1 GHz.
const (
	loadPeak  = 58
	storePeak = 44
	movePeak  = 28
)

// peakTops returns the peak of a kind of layer for element types.
func (c *classic) peakTops(kind string, dtypes map[int]bool) float64 {
	table := [3]float64{4, 2, 1}
	switch strings.ToLower(kind) {
	case "conv", "conv2d", "matmul", "batch_matmul", "deconv", "attention", "a16matmul":
		table = [3]float64{32, 16, 2}
	case "pool", "pool2d", "fc":
		table = [3]float64{8, 4, 2}
	case "lut":
		table = [3]float64{64.0 / 1024, 64.0 / 1024, 64.0 / 1024}
	}
	class := 2
	for d := range dtypes {
		switch {
		case d == 2 || d == 3:
			class = 0
		case d == 1 || d == 4 || d == 5 || d == 8:
			class = min(class, 1)
		}
	}
	return table[class] * c.mhz / 1000
}

// layerGroup returns the group of a kind of layer in the summary.
func layerGroup(kind string) string {
	for _, g := range columns["layer groups"] {
		name, kinds, _ := strings.Cut(g, "=")
		if slices.Contains(strings.Fields(kinds), strings.ToLower(kind)) {
			return name
		}
	}
	return "Others"
}

// statistics returns the figures of layers, those of the same number added up, in the order of
// the log, sorted by the text of their share of the tensor engine's time.
func (c *classic) statistics() []*stat {
	var list []*stat
	at := map[int]*stat{}
	for _, l := range c.layers {
		if !l.ran {
			continue
		}
		s := at[l.id]
		if s == nil {
			s = newStat(l)
			at[l.id] = s
			list = append(list, s)
		}
		c.addLayer(s, l)
	}
	tiu := 0.0
	for _, s := range list {
		c.finish(s)
		tiu += s.tiuTime
	}
	keys := make([]string, len(list))
	for i, s := range list {
		keys[i] = share3(s.tiuTime, tiu)
	}
	sorted := make([]*stat, len(list))
	for i, k := range sortDescending(keys) {
		sorted[i] = list[k]
	}
	return sorted
}

func newStat(l *layer) *stat {
	s := &stat{layer: l, dtypes: map[int]bool{}, kinds: []string{l.kind}}
	texts := func(list []*tensor) string {
		parts := make([]string, len(list))
		for i, t := range list {
			parts[i] = t.String()
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	if len(l.ins) > 0 {
		s.in = dims4(l.ins[0].shape)
		s.dtypes[l.ins[0].dtype] = true
	}
	if len(l.outs) > 0 {
		s.out = dims4(l.outs[0].shape)
	}
	s.other = "ins=" + texts(l.ins) + ",outs=" + texts(l.outs)
	return s
}

func (c *classic) addLayer(s *stat, l *layer) {
	period := c.period(true)
	for _, t := range l.ins {
		if t.isConst {
			s.weights += t.bytes()
		} else {
			s.inputs += t.bytes()
		}
	}
	for _, t := range l.outs {
		if !t.isConst {
			s.outputs += t.bytes()
		}
	}
	for _, n := range l.gdma {
		if n.rec == nil {
			continue
		}
		cycles := n.end - n.start
		s.gdma += cycles
		written := uint64(n.rec[4]) + uint64(n.rec[7])
		read := uint64(n.rec[5]) + uint64(n.rec[8])
		switch {
		case written > 0 && read > 0:
			s.s2s += written
		case written > 0:
			s.l2s += written
			s.store += float64(cycles) * period
		case read > 0:
			s.s2l += read
			s.load += float64(cycles) * period
		}
	}
	for _, n := range l.bd {
		s.model += n.estimate
		if n.rec == nil {
			continue
		}
		s.tiu += n.end - n.start
		if n.c == nil {
			continue
		}
		if w, ok := n.c.Work(c.in.Chip); ok {
			s.alg += w.Alg
			s.arch += w.Arch
		}
		if isConv(n.c) {
			s.kh, s.kw = max(s.kh, n.c.Get(command.Opd1H)), max(s.kw, n.c.Get(command.Opd1W))
			s.sh, s.sw = max(s.sh, n.c.Get(command.StrideY)), max(s.sw, n.c.Get(command.StrideX))
			for i, r := range [...]command.Role{command.UpPad, command.DownPad, command.LeftPad, command.RightPad} {
				s.pad[i] = max(s.pad[i], n.c.Get(r))
			}
		}
	}
	if l.global {
		s.total += l.end - l.begin
	}
}

func (c *classic) finish(s *stat) {
	ghz := c.mhz / 1000
	s.gdmaTime, s.tiuTime = float64(s.gdma)*c.period(true), float64(s.tiu)*c.period(false)
	s.gdmaTheory = (float64(s.s2l)/loadPeak + float64(s.l2s)/storePeak + float64(s.s2s)/movePeak) / gib * 1e6 / ghz
	s.peak = c.peakTops(s.layer.kind, s.dtypes)
	s.tiuTheory = float64(s.alg) / (s.peak * 1024 * 1e3)
	if s.layer.global {
		s.totalText = repr(s.total)
	}
}

// rate3 formats a share, "--" if the whole is 0.
func rate3(v, of float64) string {
	if of == 0 {
		return "--"
	}
	return percent(v/of, 3)
}

// typeSet lists the names of element types in the order of their numbers.
func typeSet(dtypes map[int]bool) []string {
	var names []string
	for _, d := range slices.Sorted(maps.Keys(dtypes)) {
		names = append(names, typeName(d))
	}
	return names
}

func pySet(names []string) string {
	list := pyList(anys(names)...)
	return "{" + list[1:len(list)-1] + "}"
}

func (c *classic) layersCSV(list []*stat) []byte {
	out := appendLine(nil, columns["layer.csv"])
	gdma, tiu, model := 0.0, 0.0, 0.0
	for _, s := range list {
		gdma += s.gdmaTime
		tiu += s.tiuTime
		model += float64(s.model)
	}
	for _, s := range list {
		l := s.layer
		scope, tops, parallel, concurrency := "local", any(""), "", ""
		if l.global {
			scope, tops, parallel, concurrency = "global", float64(s.alg)/s.total/1e6, percent((s.tiuTime+s.gdmaTime)/s.total, 3), "100%"
			if min(s.tiuTime, s.gdmaTime) > 0 {
				concurrency = percent(overlap(s.tiuTime, s.gdmaTime, s.total), 3)
			}
		}
		out = appendRow(out, l.id, scope, "TPU", pySet(typeSet(s.dtypes)), l.kind, s.in[0], s.in[1], s.in[2], s.in[3], s.out[0], s.out[1], s.out[2], s.out[3],
			s.kh, s.kw, s.sh, s.sw, pyList(s.pad[0], s.pad[1], s.pad[2], s.pad[3]), s.other, s.inputs, s.outputs, s.weights, s.s2l, s.l2s, s.s2s,
			s.gdma, s.gdmaTime, share3(s.gdmaTime, gdma), s.gdmaTheory, rate3(s.gdmaTheory, s.gdmaTime), bandwidth(s.s2l, s.load), bandwidth(s.l2s, s.store),
			s.alg, s.arch, s.model, share3(float64(s.model), model), s.tiu, s.tiuTime, share3(s.tiuTime, tiu),
			s.tiuTheory, rate3(float64(s.alg), float64(s.arch)), s.totalText, s.peak, tops, parallel, concurrency)
	}
	return out
}

// bandwidth returns a rate in GiB/s, 0 without a time.
func bandwidth(bytes uint64, us float64) float64 {
	if us == 0 {
		return 0
	}
	return float64(bytes) / gib / (us * 1e-6)
}

type groupStat struct {
	name string
	stat
}

// groupStats adds up the layers by kind, in the order of the table of groups. A group begins
// with the figures of its first layer. The set of types is shared, so that the first layer gets
// the types of all layers of the group.
func (c *classic) groupStats(list []*stat) []*groupStat {
	at := map[string]*groupStat{}
	for _, s := range list {
		name := layerGroup(s.layer.kind)
		g := at[name]
		if g == nil {
			at[name] = &groupStat{name, *s}
			continue
		}
		maps.Copy(g.dtypes, s.dtypes)
		g.kinds = appendNew(g.kinds, s.layer.kind)
		g.add(s)
	}
	var out []*groupStat
	for _, group := range columns["layer groups"] {
		name, _, _ := strings.Cut(group, "=")
		if s := at[name]; s != nil {
			s.peak = c.peakTops(s.layer.kind, s.dtypes)
			out = append(out, s)
		}
	}
	return out
}

func (s *stat) add(o *stat) {
	s.weights, s.s2l, s.l2s, s.s2s = s.weights+o.weights, s.s2l+o.s2l, s.l2s+o.l2s, s.s2s+o.s2s
	s.gdma, s.gdmaTime, s.gdmaTheory = s.gdma+o.gdma, s.gdmaTime+o.gdmaTime, s.gdmaTheory+o.gdmaTheory
	s.tiu, s.tiuTime, s.tiuTheory = s.tiu+o.tiu, s.tiuTime+o.tiuTime, s.tiuTheory+o.tiuTheory
	s.alg, s.arch = s.alg+o.alg, s.arch+o.arch
}

// overall returns the sum of all groups with the time, the peak and the concurrency of the model.
func (c *classic) overall(list []*stat, groups []*groupStat) (all stat) {
	for _, s := range list {
		all.add(s)
	}
	all.gdmaTheory, all.tiuTheory = 0, 0
	for _, g := range groups { // these two are sums over groups
		all.gdmaTheory += g.gdmaTheory
		all.tiuTheory += g.tiuTheory
	}
	ops := map[string]uint64{}
	kinds := map[string]map[int]bool{}
	best := ""
	for _, s := range list {
		key := strings.Join(typeSet(s.dtypes), ",")
		ops[key] += s.alg
		kinds[key] = s.dtypes
	}
	for key, n := range ops {
		if kinds[best] == nil || n > ops[best] || n == ops[best] && key < best {
			best = key
		}
	}
	first, last := math.Inf(1), 0.0
	for _, l := range c.layers {
		if l.ran {
			first, last = min(first, l.begin), max(last, l.end)
		}
	}
	if len(list) > 0 {
		all.total = last - first
	}
	all.peak = c.peakTops("conv", kinds[best])
	return all
}

// concurrency formats the overlap of both engines, 0 if one of them did nothing.
func (s *stat) concurrency() string { return percent(overlap(s.tiuTime, s.gdmaTime, s.total), 3) }

func (c *classic) groupsCSV(groups []*groupStat, all stat) []byte {
	name := strings.ToLower(strings.TrimPrefix(c.in.Chip.Name, "BM"))
	out := appendLine(nil, slices.Concat(columns["summary.csv"], []string{name + " FPS or Token/s"}))
	row := func(s *stat, name, types, kinds string, shares [4]string, more ...any) {
		out = appendRow(out, append([]any{
			name, s.weights, s.s2l, s.l2s, s.s2s, s.gdma, s.gdmaTime, shares[0], s.gdmaTheory, rate3(s.gdmaTheory, s.gdmaTime), s.alg, shares[1],
			s.arch, shares[2], s.tiu, s.tiuTime, shares[3], s.tiuTheory, rate3(float64(s.alg), float64(s.arch)), s.peak, types, kinds,
		}, more...)...)
	}
	for _, g := range groups {
		row(&g.stat, g.name, strings.Join(typeSet(g.dtypes), ","), strings.Join(g.kinds, ","), [4]string{
			share3(g.gdmaTime, all.gdmaTime), share3(float64(g.alg), float64(all.alg)), share3(float64(g.arch), float64(all.arch)),
			share3(g.tiuTime, all.tiuTime),
		}, g.totalText, "0", "0", "0.0")
	}
	fps := 0.0
	if all.tiuTime > 0 {
		fps = 1e6 / (float64(all.tiu) / c.mhz)
	}
	row(&all, "Overall", "", "", [4]string{"100%", "100%", "100%", "100%"},
		all.total, share3(all.tiuTime+all.gdmaTime, all.total), all.concurrency(), fps)
	return out
}

// macCSV returns mac_util.csv: the share of the peak that the model's operations reach, and the
// share if parts of the model were as fast as their peak.
func (c *classic) macCSV(groups []*groupStat, all stat) []byte {
	out := appendRow(nil, "Case", "ReducedTime(us)", "CurrentTotalTime(us)", "Concurrency(%)", "macUtil(%)", "Remark")
	theory := c.flops / (all.peak * 1024 * 1e3)
	util := func(us float64, decimals int) float64 {
		if us == 0 {
			return 0
		}
		return round(theory/us*100, decimals)
	}
	out = appendRow(out, "origin", 0.0, all.total, all.concurrency(), util(all.total, 3), remarkOrigin)
	out = appendRow(out, "100% Concurrency", all.total-all.tiuTime, all.tiuTime, 100.0, util(all.tiuTime, 3), remarkParallel)
	for _, by := range []string{"ModelPeakTops", "LayerPeakTops"} {
		now := all.tiuTime
		for _, g := range groups {
			peak := all.peak
			if by == "LayerPeakTops" {
				peak = g.peak
			}
			best := float64(g.alg) / (peak * 1e6)
			saved := g.tiuTime - best
			now -= saved
			out = appendRow(out, caseOf(g.name, g.tiuTime, best), saved, now, 100.0, util(now, 2), remarkGroup(g.name, by))
		}
	}
	return out
}
