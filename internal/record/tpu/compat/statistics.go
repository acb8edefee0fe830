package compat

import (
	"sort"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// stat are the figures of a layer, or of a group of them, as the converter adds them up.
type stat struct {
	layer      *layer
	dtypes     map[int]bool // codes of the log
	in, out    [4]int
	kh, kw     uint64
	sh, sw     uint64
	pad        [4]uint64
	other      string
	inputs     int
	outputs    int
	weights    int
	s2l, l2s   uint64
	s2s        uint64
	gdma       int64
	gdmaTime   float64
	gdmaTheory float64
	load       float64
	store      float64
	alg, arch  uint64
	model      int
	tiu        int64
	tiuTime    float64
	tiuTheory  float64
	total      float64
	totalText  string
	peak       float64
	kinds      []string
}

const gib = 1 << 30

// The bandwidths in GiB/s at 1 GHz that the converter takes for loads, stores and copies.
const (
	loadPeak  = 58
	storePeak = 44
	movePeak  = 28
)

// peakTops is the peak of a kind of layer for element types.
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

// layerGroup is the group that the summary puts a kind of layer in.
func layerGroup(kind string) string {
	k := strings.ToLower(kind)
	for _, g := range layerGroups {
		for _, name := range g.kinds {
			if name == k {
				return g.name
			}
		}
	}
	return "Others"
}

var layerGroups = [...]struct {
	name  string
	kinds []string
}{
	{"Active", []string{"active", "leakyrelu", "prelu"}},
	{"Attention", []string{"attention", "fattention"}},
	{"Conv", []string{"conv", "conv2d", "conv3d", "deconv", "deconv3d"}},
	{"Eltwise", []string{
		"add", "mul", "sub", "div", "max", "min", "addconst", "mulconst", "subconst", "divconst", "maxconst", "minconst", "broadcast_binary",
		"eltwise", "eltwise_binary", "binaryshift", "binaryconstshift", "clip", "compare", "compareconst",
	}},
	{"FC", []string{"fc"}},
	{"MulShift", []string{"mulshift"}},
	{"LayerNorm", []string{"groupnorm", "group_norm", "layernorm", "layer_norm", "instancenorm", "pixelnorm"}},
	{"Lut", []string{"lut"}},
	{"MatMul", []string{"matmul", "batch_matmul", "a16matmul"}},
	{"Pool", []string{"pool", "pool2d"}},
	{"Reduce", []string{"reduce"}},
	{"Softmax", []string{"softmax"}},
	{"Cast", []string{"cast"}},
	{"Others", nil},
}

// statistics are the layers' figures, those of the same number added up, in the order of
// the log, then sorted by the text of their share of the tensor engine's time.
func (c *classic) statistics() []*stat {
	var list []*stat
	at := map[int]*stat{}
	for _, l := range c.layers {
		if !l.ran() {
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
	order := sortDescending(keys)
	sorted := make([]*stat, len(list))
	for i, k := range order {
		sorted[i] = list[k]
	}
	return sorted
}

func newStat(l *layer) *stat {
	s := &stat{layer: l, dtypes: map[int]bool{}}
	shape := func(t *tensor) [4]int {
		d := [4]int{1, 1, 1, 1}
		copy(d[:], t.shape)
		return d
	}
	texts := func(list []*tensor) string {
		parts := make([]string, len(list))
		for i, t := range list {
			parts[i] = t.String()
		}
		return strings.Join(parts, ",")
	}
	if len(l.ins) > 0 {
		s.in = shape(l.ins[0])
		s.dtypes[l.ins[0].dtype] = true
	}
	if len(l.outs) > 0 {
		s.out = shape(l.outs[0])
	}
	s.other = "ins=[" + texts(l.ins) + "],outs=[" + texts(l.outs) + "]"
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
		if n.c.Op.Has(command.StrideY) && n.c.Op.Has(command.Opd1H) {
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

// finish computes what follows from the sums.
func (c *classic) finish(s *stat) {
	ghz := c.mhz / 1000
	s.gdmaTime, s.tiuTime = float64(s.gdma)*c.period(true), float64(s.tiu)*c.period(false)
	s.gdmaTheory = (float64(s.s2l)/loadPeak + float64(s.l2s)/storePeak + float64(s.s2s)/movePeak) / gib * 1e6 / ghz
	s.peak = c.peakTops(s.layer.kind, s.dtypes)
	s.tiuTheory = float64(s.alg) / (s.peak * 1024 * 1e3)
	if s.layer.global {
		s.totalText = repr(s.total)
	}
	s.kinds = []string{s.layer.kind}
}

func share3(v, of float64) string {
	if of == 0 {
		return "0.000%"
	}
	return percent(v/of, 3)
}

// rate3 is a share, or two dashes where there is nothing to share.
func rate3(v, of float64) string {
	if of == 0 {
		return "--"
	}
	return percent(v/of, 3)
}

// typeSet names element types as Python prints a set of them.
func typeSet(dtypes map[int]bool, quote string) string {
	codes := make([]int, 0, len(dtypes))
	for d := range dtypes {
		codes = append(codes, d)
	}
	sort.Ints(codes)
	parts := make([]string, len(codes))
	for i, d := range codes {
		parts[i] = quote + (&tensor{dtype: d}).typeName() + quote
	}
	if quote == "" {
		return strings.Join(parts, ",")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

var layerHead = []string{
	"LayerID", "Type", "TPU/CPU", "DataType", "Function", "in", "ic", "ih", "iw", "on", "oc", "oh", "ow", "kh", "kw", "KStrideH", "KStrideW",
	"Padding", "Other info", "inputBytes", "outputBytes", "weightBytes", "s2lBytes", "l2sBytes", "s2sBytes", "gdmaCycles", "gdmaTime(us)",
	"gdmaTimeRatio", "gdmaPTheoTime(us)", "ddrRate", "LoadAvgBandwidth(GiB/s)", "StoreAvgBandwidth(GiB/s)", "AlgOps", "uArchOps",
	"uArchCModelCycles", "uArchCModelCycleRatio", "tiuCycles", "tiuTime(us)", "tiuTimeRatio", "tiuPTheoTime(us)", "uArchRate", "totalTime(us)",
	"PeakTops", "ActualTops", "Parallelism", "Concurrency",
}

// layersCSV is layer.csv.
func (c *classic) layersCSV(list []*stat) []byte {
	var out []byte
	out = appendLine(out, layerHead)
	gdma, tiu, model := 0.0, 0.0, 0.0
	for _, s := range list {
		gdma += s.gdmaTime
		tiu += s.tiuTime
		model += float64(s.model)
	}
	for _, s := range list {
		l := s.layer
		scope := "local"
		if l.global {
			scope = "global"
		}
		line := []string{itoa(l.id), scope, "TPU", typeSet(s.dtypes, "'"), l.kind}
		for _, v := range s.in {
			line = append(line, itoa(v))
		}
		for _, v := range s.out {
			line = append(line, itoa(v))
		}
		pads := make([]string, 4)
		for i, v := range s.pad {
			pads[i] = utoa(v)
		}
		line = append(line, utoa(s.kh), utoa(s.kw), utoa(s.sh), utoa(s.sw), "["+strings.Join(pads, ", ")+"]", s.other,
			itoa(s.inputs), itoa(s.outputs), itoa(s.weights), utoa(s.s2l), utoa(s.l2s), utoa(s.s2s), itoa(s.gdma), repr(s.gdmaTime),
			share3(s.gdmaTime, gdma), repr(s.gdmaTheory), rate3(s.gdmaTheory, s.gdmaTime), repr(bandwidth(s.s2l, s.load)), repr(bandwidth(s.l2s, s.store)),
			utoa(s.alg), utoa(s.arch), itoa(s.model), share3(float64(s.model), model), itoa(s.tiu), repr(s.tiuTime), share3(s.tiuTime, tiu),
			repr(s.tiuTheory), rate3(float64(s.alg), float64(s.arch)), s.totalText, repr(s.peak))
		out = appendLine(out, append(line, s.parallel()...))
	}
	return out
}

func bandwidth(bytes uint64, us float64) float64 {
	if us == 0 {
		return 0
	}
	return float64(bytes) / gib / (us * 1e-6)
}

// parallel are the columns of a layer that has a time of its own.
func (s *stat) parallel() []string {
	if !s.layer.global {
		return []string{"", "", ""}
	}
	concurrency := "100%"
	if least := min(s.tiuTime, s.gdmaTime); least > 0 {
		concurrency = percent((s.tiuTime+s.gdmaTime-s.total)/least, 3)
	}
	return []string{repr(float64(s.alg) / s.total / 1e6), percent((s.tiuTime+s.gdmaTime)/s.total, 3), concurrency}
}
