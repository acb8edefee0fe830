package estimate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

func (b *builder) find(id string, s profile.Severity, text string, layers ...int64) {
	b.out = append(b.out, profile.Finding{ID: id, Severity: s, Text: text, Layers: layers})
}

// layers formats "1 layer has" and "2 layers have".
func layers(n int, one, more string) string {
	if n == 1 {
		return "1 layer " + one
	}
	return fmt.Sprintf("%d layers %s", n, more)
}

// incomplete returns what the estimate lacks.
func (b *builder) incomplete() []profile.Missing {
	var out []profile.Missing
	if len(b.idle) > 0 {
		out = append(out, profile.Missing{Cause: profile.ByUse, Layers: b.idle, Got: new(int64(len(b.p.Layers) - len(b.idle))), Want: new(int64(len(b.p.Layers)))})
	}
	if len(b.missing) > 0 {
		out = append(out, profile.Missing{Cause: profile.ByNoFigures, Layers: b.missing, Got: new(int64(len(b.p.Layers) - len(b.missing))), Want: new(int64(len(b.p.Layers)))})
	}
	if len(b.once) > 0 {
		out = append(out, profile.Missing{Cause: profile.ByData, Layers: b.once})
	}
	return out
}

// findings sends the most important findings first.
func (b *builder) findings() error {
	b.shapes()
	b.supportFindings()
	if len(b.missing) > 0 {
		var names []string
		for _, i := range b.missing {
			if op := b.slots[i].Node.Key(); !slices.Contains(names, op) {
				names = append(names, op)
			}
		}
		text := fmt.Sprintf("%d of %s no estimate (%s): totals are incomplete and too small.", len(b.missing), layers(len(b.p.Layers), "has", "have"), strings.Join(names, ", "))
		if len(b.missing) == len(b.p.Layers) {
			text = fmt.Sprintf("No layer has an estimate (%s): nothing can be said of time.", strings.Join(names, ", "))
		}
		b.find("target.incomplete", profile.Problem, text, b.missing...)
	}
	b.out = append(b.out, b.assumed.Findings(b.p, "target", profile.Problem)...)
	b.format()
	b.types()
	b.accelerator()
	b.fit("target.ram", "RAM", "The arena of %s", b.p.Totals.RAMBytes, b.t.RAM)
	if _, ok := b.t.Flash(); ok {
		b.flash("flash", b.t.Flash)
	} else {
		b.flash("external flash", b.t.ExternalFlash)
	}
	if c := b.rt.Calibration; c != nil && c.From != "" {
		b.find("target.transferred", profile.Warning, fmt.Sprintf("This target was not measured: figures are extrapolated from %s.", c.From))
	}
	for i := range b.slots {
		if b.slots[i].Node.Op == "CALL_ONCE" {
			b.find("target.remark", profile.Info, fmt.Sprintf("layer %d (CALL_ONCE) runs its graph in the first inference only: figures are those of later ones", i), int64(i))
		}
	}
	said := map[string]bool{} // graphs of one model often have the same remarks
	for _, c := range b.costs {
		if c == nil {
			continue
		}
		for _, r := range c.Remarks {
			if !said[r] {
				said[r] = true
				b.find("target.remark", profile.Info, r)
			}
		}
	}
	return nil
}

// shapes reports the shapes assumed for inputs with dynamic dimensions.
func (b *builder) shapes() {
	var more []string // options that differ from the target's defaults
	if b.rt != &b.t.Runtimes[0] {
		more = append(more, "--runtime", b.rt.Name)
	}
	if b.opt.Build != "" {
		more = append(more, "--runtime-build", b.opt.Build)
	}
	if b.clock != float64(b.t.Clock.Default) {
		more = append(more, "--clock", strconv.FormatFloat(b.clock/1e6, 'f', -1, 64)+"MHz")
	}
	if f := describe.Open(b.p, b.hint, more...); f != nil {
		b.out = append(b.out, *f)
	}
}

// types reports layers with weights in element types whose kernels were not measured: they use
// the figures of int8.
func (b *builder) types() {
	by := map[string][]int64{}
	for i := range b.p.Layers {
		l := &b.p.Layers[i]
		if l.MACs == nil || *l.MACs == 0 || len(l.Inputs) == 0 || l.Latency == nil {
			continue
		}
		by[l.Inputs[0].DType] = append(by[l.Inputs[0].DType], int64(i))
	}
	for _, t := range []tensor.Type{tensor.Uint8, tensor.Int16} {
		if t == tensor.Int16 && b.rt.Cortexm != nil && b.rt.Cortexm.Int16 != nil {
			continue
		}
		if l := by[t.String()]; len(l) > 0 {
			b.find("target.types", profile.Warning, fmt.Sprintf("%s in %s, which was not measured: int8 figures are used.", layers(len(l), "computes", "compute"), t), l...)
		}
	}
}

// format explains the figures of an ONNX file.
func (b *builder) format() {
	if !b.m.ONNX() {
		return
	}
	var text []string
	if b.kernels != "" {
		text = append(text, "TensorFlow Lite Micro takes .tflite files, not ONNX: figures are of the same operators in a .tflite file with channels last; transposes that a conversion may add are not counted.")
	}
	if integer, _ := plan.Quantised(b.m.Main()); len(integer) > 0 {
		text = append(text, fmt.Sprintf("%d operators between DequantizeLinear and QuantizeLinear count as int8, as converters make them.", len(integer)))
	}
	if len(text) > 0 {
		b.find("target.format", profile.Info, strings.Join(text, " "))
	}
}

// supportFindings reports which operators the runtime does not support, and the oldest release that
// supports the rest.
func (b *builder) supportFindings() {
	if len(b.idle) > 0 {
		first := b.p.Layers[b.idle[0]].Cause
		b.find("target.refused", profile.Problem, fmt.Sprintf("The runtime does not load this model: %s refused, the first, layer %d, %s. Figures are those of the other layers.",
			layers(len(b.idle), "is", "are"), b.idle[0], first.Text), b.idle...)
	}
	const usual = 2021 // the figures apply to releases of this year
	if b.needs > usual {
		b.find("target.release", profile.Info, fmt.Sprintf("TensorFlow Lite Micro takes all operators of this model from releases of %d on.", b.needs))
	}
}

// flash compares the model and the program code with the flash of the chip. The code size depends
// on the operators and the build.
func (b *builder) flash(what string, size func() (chip.Bytes, bool)) {
	model, code := b.p.Totals.FlashBytes, b.rt.Code
	if code == nil || model == nil {
		b.fit("target.flash", what, "The model of %s (program code not counted)", model, size)
		return
	}
	have, ok := size()
	if !ok {
		return
	}
	most := sized(int64(have))
	spread := fmt.Sprintf("%s to %s of program code", sized(int64(code[0])), sized(int64(code[1])))
	least, need := *model+int64(code[0]), *model+int64(code[1])
	switch {
	case least > int64(have):
		b.find("target.flash", profile.Problem, fmt.Sprintf("The model of %s with %s, as measured images have, does not fit: %s has %s of %s, at least %s too little.", sized(*model), spread, b.t.Name, most, what, sized(least-int64(have))))
	case need > int64(have):
		b.find("target.flash", profile.Warning, fmt.Sprintf("The model of %s with %s, as measured images have, is near the limit: %s has %s of %s.", sized(*model), spread, b.t.Name, most, what))
	default:
		b.find("target.flash", profile.Info, fmt.Sprintf("The model of %s with %s, as measured images have, fits: %s has %s of %s.", sized(*model), spread, b.t.Name, most, what))
	}
}

// fit compares a requirement with the largest memory of the chip.
func (b *builder) fit(id, what, need string, bytes *int64, size func() (chip.Bytes, bool)) {
	if bytes == nil {
		return
	}
	most, ok := size()
	if !ok {
		return
	}
	text := fmt.Sprintf(need, sized(*bytes))
	if *bytes > int64(most) {
		b.find(id, profile.Problem, fmt.Sprintf("%s does not fit: %s has %s of %s, %s too little.", text, b.t.Name, sized(int64(most)), what, sized(*bytes-int64(most))))
		return
	}
	b.find(id, profile.Info, fmt.Sprintf("%s fits: %s has %s of %s.", text, b.t.Name, sized(int64(most)), what))
}

// sized formats bytes with three significant digits, as the tables do.
func sized(n int64) string {
	v, unit := float64(n), " B"
	for _, u := range []string{" KiB", " MiB", " GiB"} {
		if v < 1023.5 {
			break
		}
		v, unit = v/1024, u
	}
	decimals := 0
	switch {
	case unit == " B" || v >= 99.95:
	case v >= 9.995:
		decimals = 1
	default:
		decimals = 2
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + unit
}

// accelerator reports why layers are not accelerated, by cause.
func (b *builder) accelerator() {
	if b.t.Accelerator == nil {
		return
	}
	group := map[profile.CauseCode][]int64{}
	accelerated := false
	for i := range b.p.Layers {
		l := &b.p.Layers[i]
		if yes, known := l.Accelerated(); yes {
			accelerated = true
		} else if known {
			group[l.Placement.Cause] = append(group[l.Placement.Cause], int64(i))
		}
	}
	name := strings.ToUpper(b.t.Accelerator.Name)
	if l := group[profile.ByType]; len(l) > 0 {
		text := fmt.Sprintf("%s an operator of %s but not its type, which is int8: left to the processor.", layers(len(l), "has", "have"), name)
		if !accelerated {
			text = fmt.Sprintf("Nothing is accelerated: %s takes int8, and this model computes in other types. Quantise it to int8.", name)
		}
		b.find("target.type", profile.Warning, text, l...)
	}
	if l := group[profile.ByLimit]; len(l) > 0 {
		b.find("target.limit", profile.Warning, fmt.Sprintf("%s a limit of %s, so that the processor does the work, the first: %s", layers(len(l), "exceeds", "exceed"), name, b.p.Layers[l[0]].Placement.Text), l...)
	}
	var simulated, estimated float64
	for i := range b.p.Layers {
		v, _ := b.p.Layers[i].SimulatorCycles.Best()
		w, _ := b.p.Layers[i].AcceleratorCycles.Best()
		simulated, estimated = simulated+v, estimated+w
	}
	if simulated > 0 && simulated != estimated {
		b.find("target.simulator", profile.Info, fmt.Sprintf("The vendor's simulator counts %.3g M accelerator cycles, boards take about %.3g M. --format mltk prints the figures of the simulator.", simulated/1e6, estimated/1e6))
	}
}
