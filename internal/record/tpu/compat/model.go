package compat

import (
	"sort"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// Tensor is an operand or result of an object of tensor_location.json.
type Tensor struct {
	Shape []int
	// Type is the compiler's name: f16, si8.
	Type string
}

// ParseTensor reads a memory type such as <1x3x46x128xf32>; ok is false where it is none.
func ParseTensor(s string) (t Tensor, ok bool) {
	parts := strings.Split(strings.Trim(s, "<>"), "x")
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			t.Type = strings.Join(parts[i:], "x")
			break
		}
		if len(t.Shape) < 8 {
			t.Shape = append(t.Shape, n)
		}
	}
	return t, t.Type != ""
}

// dims are the four dimensions that the converter shows.
func (t *Tensor) dims() [4]int {
	d := [4]int{1, 1, 1, 1}
	copy(d[:], t.Shape)
	return d
}

// width is the size of an element in bits.
func (t *Tensor) width() int {
	i := strings.IndexAny(t.Type, "0123456789")
	if i < 0 {
		return 0
	}
	digits := t.Type[i:]
	end := 0
	for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
		end++
	}
	n, _ := strconv.Atoi(digits[:end])
	return n
}

func (t *Tensor) bytes() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n * t.width() / 8
}

// dataType is the type as the converter's enumeration prints it.
func (t *Tensor) dataType() string {
	names := map[string]string{"f32": "FP32", "f16": "FP16", "bf16": "BF16", "i8": "INT8", "si8": "INT8", "ui8": "UINT8", "i16": "INT16", "si16": "INT16", "ui16": "UINT16", "i32": "INT32", "si32": "INT32", "ui32": "UINT32"}
	if n := names[t.Type]; n != "" {
		return "DataType." + n
	}
	return "DataType." + strings.ToUpper(t.Type)
}

// modelLayer is a row of the layers' sheet: what the tensor engine did for an object.
type modelLayer struct {
	place     *Place
	alg, arch uint64
	algCycles uint64
	cycles    int64
	kh, kw    uint64
}

// modelLayers adds up each object's tensor commands. Of several records with the same
// number the last one counts.
func (p *perfAI) modelLayers() []*modelLayer {
	at := map[*Place]*modelLayer{}
	var list []*modelLayer
	for k := range p.cores {
		last := map[int]*instr{}
		for i := range p.cores[k].tiu {
			last[p.cores[k].tiu[i].id] = &p.cores[k].tiu[i]
		}
		for i := range p.cores[k].tiu {
			x := &p.cores[k].tiu[i]
			if x.layer == nil || last[x.id] != x {
				continue
			}
			l := at[x.layer]
			if l == nil {
				l = &modelLayer{place: x.layer}
				at[x.layer] = l
				list = append(list, l)
			}
			l.alg += x.work.Alg
			l.arch += x.work.Arch
			l.algCycles += x.work.Cycles
			l.cycles += x.cycles
			if x.c != nil && x.c.Op.Has(command.StrideY) && x.c.Op.Has(command.Opd1H) {
				l.kh, l.kw = max(l.kh, x.c.Get(command.Opd1H)), max(l.kw, x.c.Get(command.Opd1W))
			}
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].place.Ordinal < list[j].place.Ordinal })
	return list
}

// sizes are the bytes of a layer's operands, of its weights (the last of three) and of
// its results.
func (l *modelLayer) sizes() (in, weights, out int) {
	for i := range l.place.In {
		in += l.place.In[i].bytes()
	}
	if n := len(l.place.In); n > 2 {
		weights = l.place.In[n-1].bytes()
	}
	for i := range l.place.Out {
		out += l.place.Out[i].bytes()
	}
	return in, weights, out
}

var modelHead = strings.Fields(`layer_id layer_name data_type layer_type engine_type load_bandwidth store_bandwidth kh kw k_stride_h k_stride_w
	iN iC iH iW oN oC oH oW ifm ofm m k n weight_size feature_size alg_ops other_info uarch_rate uarch_ops alg_cycle alg_cycle_ratio
	g_m_secs_o g_n_secs_o g_k_secs_o g_m_slice g_n_slice g_k_slice g_cost a_m_secs_o a_n_secs_o a_k_secs_o a_m_slice a_n_slice a_k_slice a_cost
	ddr<->l1/l2~bytes(B) l1<->l2~bytes(B) sim_cycle sim_cycle_ratio`)

// stated are the peaks of the layers' sheet in TOPS: of 8, 16, bf16 and 32 bits.
func stated(c *command.Chip) [4]any {
	switch c {
	case command.CV184X:
		return [4]any{0.75, 0, 0.1875, 0}
	case command.BM1690:
		return [4]any{256, 128, 128, 16}
	}
	return [4]any{14.4, 7.2, 7.2, 0.45}
}

// module is what the converter takes from final.mlir.
type module struct {
	name, mode string
	flops      float64
}

func (p *perfAI) module() module {
	m := module{name: p.in.Net}
	for _, line := range p.in.MLIR {
		if !strings.HasPrefix(line, "module") {
			continue
		}
		if _, rest, ok := strings.Cut(line, "module @"); ok {
			m.name = strings.Trim(strings.Fields(rest + " ")[0], `"`)
		}
		if _, rest, ok := strings.Cut(line, "module.FLOPs = "); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
			m.flops, _ = strconv.ParseFloat(rest[:max(0, end)], 64)
		}
		if _, rest, ok := strings.Cut(line, `module.mode = "`); ok {
			mode, _, _ := strings.Cut(rest, `"`)
			m.mode = strings.ToLower(mode)
		}
		break
	}
	return m
}

// layerSheet has a row for each object with tensor commands.
func (p *perfAI) layerSheet(layers []*modelLayer) *table {
	t := &table{}
	c := p.in.Chip
	m := p.module()
	peaks := stated(c)
	t.set(1, 1, p.label("Condition"), "Network", "platform", "TPU INT8 TOPS", "TPU FP16 TOPS", "TPU BF16 TOPS", "TPU FP32 TOPS", "DDR BW(GB/s/Core)",
		"TPU Frequency(GHz)", "DMA Frequency(GHz)")
	t.set(2, 2, m.name, c.Report, peaks[0], peaks[1], peaks[2], peaks[3], p.ddrPeak(), float64(p.in.TIUMHz)/1000, float64(p.in.DMAMHz)/1000)
	t.set(4, 1, p.label("Detail Spec"), "NPU NUM (lane)", "IC Alignment (8bits)", "Conv OHOW Align", "Vector OHOW Align(8bits)", "Conv Ops/s", "Vect Ops/s",
		"Pool OPs/s")
	conv, vector, _ := p.rates()
	whole := int(conv / 1024)
	t.set(5, 2, c.Lanes, c.Cube8, c.CubeOut, c.EU8, whole, round(vector/1000, 2), float64(whole)/4)
	if p.in.Chip != command.BM1690 {
		t.set(8, 16, "Algorithm Parameter")
		t.set(8, 34, "uArch Performance")
		t.set(8, 46, "Simulator Performance")
	}
	for i, h := range modelHead {
		t.set(9, i+1, strings.ReplaceAll(h, "~", " "))
	}
	alg, sim := uint64(0), uint64(0)
	for _, l := range layers {
		alg += l.algCycles
		sim += uint64(l.cycles)
	}
	for i, l := range layers {
		in, weights, out := l.sizes()
		line := []any{l.place.Ordinal, l.place.Op, nil, "local", "TPU", 0, 0, l.kh, l.kw, 0, 0}
		var first, last Tensor
		if len(l.place.In) > 0 {
			first = l.place.In[0]
			line[2] = first.dataType()
		}
		if len(l.place.Out) > 0 {
			last = l.place.Out[0]
		}
		for _, t := range [...]*Tensor{&first, &last} {
			for _, d := range t.dims() {
				line = append(line, d)
			}
		}
		var other any
		if len(l.place.In) > 1 {
			var b strings.Builder
			for j := range l.place.In {
				d := l.place.In[j].dims()
				b.WriteString("tensor_" + strconv.Itoa(j) + ": [" + itoa(d[0]) + ", " + itoa(d[1]) + ", " + itoa(d[2]) + ", " + itoa(d[3]) + "]")
			}
			other = b.String()
		}
		line = append(line, in, out, 0, 0, 0, weights, in-weights, l.alg, other, share2(l.alg, l.arch), l.arch, l.algCycles, share2(l.algCycles, alg))
		for range 14 {
			line = append(line, "-")
		}
		line = append(line, 0, 0, l.cycles, share2(uint64(l.cycles), sim))
		t.set(10+i, 1, line...)
	}
	return t
}

// ddrPeak is the bandwidth of all cores in GB/s.
func (p *perfAI) ddrPeak() float64 {
	return round(p.in.Chip.DDRPeak/1e9*float64(p.fullCores()), 2)
}

// rates are the peaks of a core in billions of operations a second: convolution, vector,
// pooling.
func (p *perfAI) rates() (conv, vector, pool float64) {
	c := p.in.Chip
	ghz := float64(p.in.TIUMHz) / 1000
	conv = float64(c.Lanes*c.Cube8*4*2) * ghz
	return conv, float64(c.Lanes*c.EU8) * ghz, conv / 4
}
