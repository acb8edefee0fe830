package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// runs fills in the figures of each run as a whole.
func (b *builder) runs(named []Named) {
	t := b.t
	t.Runs = make([]Run, len(b.ps))
	for k, p := range b.ps {
		r := &t.Runs[k]
		*r = Run{
			Name: named[k].Name, Engine: cmp.Or(p.Settings.Engine, p.Target.Engine), Version: p.Settings.EngineVersion, Target: p.Target.ID, Kind: p.Target.Kind,
			Model: p.Model.Name, DType: dtype(p, b.types[k]), Declared: tensors(p), Source: source(p), Date: p.Created, Machine: machine(p),
			Threads: p.Settings.Threads, Total: b.total(k), Ratio: Ratio{Verdict: Open}, WhyNot: b.whyNot[k],
		}
		if r.Declared == r.DType {
			r.Declared = ""
		}
		if n := len(b.repeats[k]); n > 1 {
			r.Repeats = int64(n)
		}
		if p.Trust != nil {
			r.Trust, r.Fit, r.Tolerance = p.Trust.Verdict, p.Trust.Fit, p.Trust.Tolerance
		}
		if ph := p.Phases; ph != nil {
			r.FirstRunS = ph.FirstRunS
			r.LoadS = added(ph.LoadS, ph.PlanS)
		}
		if m := p.Memory; m != nil {
			r.PeakBytes, r.ArenaBytes = m.ProcessPeakBytes, m.ArenaBytes
		}
		r.Difference = worst(p.Differences)
		if d := r.Difference; d != nil {
			r.Outputs, r.With = d.State, d.With
		}
	}
	label(t.Runs)
	for k := range t.Runs[1:] {
		r := &t.Runs[k+1]
		r.Ratio = b.ratio(t.Topic, k+1, r.Total, t.Runs[0].Total, b.same[k+1])
	}
	for k := range t.Runs {
		r := &t.Runs[k]
		r.Inserted, r.InsertedLayers = b.sum(k, b.inserted[k]).Value, int64(len(b.inserted[k]))
	}
	for i := range t.Groups {
		for k := range t.Runs {
			t.Runs[k].Operators = added(t.Runs[k].Operators, t.Groups[i].Figures[k].Value)
		}
	}
	for k := range t.Runs {
		r := &t.Runs[k]
		if layers := added(r.Operators, r.Inserted); layers != nil && r.Total.Value != nil {
			r.Rest = outside(r.Total, *layers, t.Groups, k)
			if divided(b.ps[k], *r.Total.Value) {
				r.Rest = new(max(0, *r.Total.Value-*layers))
				if *r.Rest <= rounding**r.Total.Value {
					r.Rest = new(0.0) // a sum in another order
				}
			}
		}
	}
}

// total is the figure of the model of run k.
func (b *builder) total(k int) Figure {
	fs := make([]Figure, len(b.repeats[k]))
	for i, p := range b.repeats[k] {
		fs[i] = whole(p, b.q.Key, of(p.Totals.Figure(b.q.Key)))
	}
	return mean(fs)
}

// worked are the counts that layers without a count are missing from.
var worked = []string{"macs", "ops"}

// whole marks a count of work that some layers are missing from.
func whole(p *profile.Profile, key string, f Figure) Figure {
	n := p.Totals.UncountedLayers
	f.Partial = f.Partial || f.Value != nil && n != nil && *n > 0 && slices.Contains(worked, key)
	return f
}

// source says how the figures of a profile came about.
func source(p *profile.Profile) Source {
	switch _, m := p.Cost(); {
	case m == nil && p.Target.Kind == profile.TargetHost:
		return Counted
	case p.Target.Kind == profile.TargetImport:
		return Imported
	case p.Target.Kind == profile.TargetSimulator || m != nil && m.Kind == profile.Estimated:
		return Estimated
	}
	return Measured
}

// machine names the processor or chip of a profile.
func machine(p *profile.Profile) string {
	if p.Target.Kind == profile.TargetHost && p.Host != nil && p.Host.CPUModel != "" {
		return p.Host.CPUModel
	}
	if p.Target.Kind == profile.TargetImport && p.Target.ID == "imported" {
		return p.Target.Description // the ID says nothing
	}
	return cmp.Or(p.Target.Description, p.Target.ID)
}

// divided reports whether the layers' times are parts of the total: the rest is then known, however
// wide the intervals are.
func divided(p *profile.Profile, total float64) bool {
	r := p.Reconcile
	return r != nil && r.WallS != nil && r.OperatorsS != nil && math.Abs(*r.WallS-total) <= rounding*total && *r.OperatorsS <= total
}

// outside returns what the total of run k takes beside its layers. It is absent where the
// difference lies within the intervals of both, and where the layers take longer than the whole:
// they were timed in other runs, so that the difference is not a time.
func outside(total Figure, layers float64, groups []Group, k int) *float64 {
	rest := *total.Value - layers
	if math.Abs(rest) <= rounding**total.Value {
		return new(0.0)
	}
	noise := 0.0
	add := func(f Figure) {
		if f.Low != nil && f.High != nil {
			noise = math.Hypot(noise, (*f.High-*f.Low)/2)
		}
	}
	add(total)
	for i := range groups {
		add(groups[i].Figures[k])
	}
	if rest <= noise {
		return nil
	}
	return &rest
}

// dtype is the element type in which most of the time is computed, or that most of the work, else
// most of the weights, is declared in where nothing ran; "" where no layer tells.
func dtype(p *profile.Profile, typeOf func(*profile.Layer) string) string {
	if source(p) == Counted {
		typeOf = dequantised(p).declared
	}
	return mostly(p, typeOf)
}

// tensors is the element type that the model declares for most of the work.
func tensors(p *profile.Profile) string { return mostly(p, operands(nil).declared) }

// mostly is the element type of most of the time, or else of most of the work or of the weights.
func mostly(p *profile.Profile, typeOf func(l *profile.Layer) string) string {
	by := map[string]float64{}
	for _, key := range []string{"latency_s", "macs", "weights_bytes"} {
		for i := range p.Layers {
			l := &p.Layers[i]
			t := typeOf(l)
			if v, ok := l.Figure(key).Best(); ok && v > 0 && t != "" {
				by[t] += v
			}
		}
		if len(by) > 0 {
			break
		}
	}
	best := ""
	for _, t := range slices.Sorted(maps.Keys(by)) {
		if best == "" || by[t] > by[best] {
			best = t
		}
	}
	return best
}

// executed returns the element type in which a layer computes, "" if unknown.
func executed(p *profile.Profile) func(l *profile.Layer) string {
	ts := dequantised(p)
	return func(l *profile.Layer) string { return cmp.Or(l.Computes, ts.declared(l)) }
}

// operands are the element types of tensors before a layer dequantised them that takes no time of
// its own, by graph and name: what reads them computes in this type.
type operands map[[2]string]string

func dequantised(p *profile.Profile) operands {
	out := operands{}
	for i := range p.Layers {
		l := &p.Layers[i]
		v, ok := l.Latency.Best()
		if !l.State.Elsewhere() && !(ok && v == 0) || len(l.Inputs) == 0 || len(l.Outputs) == 0 {
			continue
		}
		if strings.HasPrefix(strings.ToLower(l.Op), "dequantize") {
			out[[2]string{l.Graph, l.Outputs[0].Name}] = l.Inputs[0].DType
		}
	}
	return out
}

// declared is the element type of the first operand of a layer that is not a constant, "" if
// unknown.
func (ts operands) declared(l *profile.Layer) string {
	for k := range l.Inputs {
		if in := &l.Inputs[k]; !in.Absent && !in.Constant && in.DType != "" {
			return cmp.Or(ts[[2]string{l.Graph, in.Name}], in.DType)
		}
	}
	return ""
}

// rounding is the part of a total that sums in another order may differ by: a few thousand
// additions.
const rounding = 1e-12

// added is the sum of what is known, nil where nothing is.
func added(a, b *float64) *float64 {
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil:
		return new(*b)
	case b == nil:
		return new(*a)
	}
	return new(*a + *b)
}

// worst is the difference of the output that differs most, nil where nobody compared.
func worst(ds []profile.Difference) (most *profile.Difference) {
	order := []profile.DifferenceState{profile.Equal, profile.Rounding, profile.NotComparable, profile.Differs}
	for i := range ds {
		d := &ds[i]
		if most == nil || slices.Index(order, d.State) > slices.Index(order, most.State) || d.State == most.State && larger(d, most) {
			most = d
		}
	}
	return most
}

// larger reports whether a difference of the same state is the larger one, as far as both tell.
func larger(a, b *profile.Difference) bool {
	switch {
	case a.Steps != nil && b.Steps != nil:
		return *a.Steps > *b.Steps
	case a.SNR != nil && b.SNR != nil:
		return *a.SNR < *b.SNR
	}
	return false
}

// label gives names to runs without one: the engine, the engine with its version, the target,
// whatever tells all apart. Where all have names, it numbers those that are equal.
func label(runs []Run) {
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.Name == "" }) {
		for i := range runs {
			first := runs[i].Name
			for n := 2; slices.ContainsFunc(runs[:i], func(r Run) bool { return r.Name == runs[i].Name }); n++ {
				runs[i].Name = fmt.Sprintf("%s (%d)", first, n)
			}
		}
		return
	}
	for _, name := range []func(r *Run) string{
		func(r *Run) string { return r.Engine },
		func(r *Run) string { return r.Engine + " " + r.Version },
		func(r *Run) string { return r.Target },
	} {
		seen := map[string]bool{}
		for i := range runs {
			seen[name(&runs[i])] = true
		}
		if len(seen) == len(runs) && !seen[""] {
			for i := range runs {
				runs[i].Name = name(&runs[i])
			}
			return
		}
	}
	for i := range runs {
		runs[i].Name = string(rune('A' + i)) // at most 32: beyond Z come the signs behind it
		if i >= 26 {
			runs[i].Name = "A" + string(rune('A'+i-26))
		}
	}
}

// notes gathers what does not compare well.
func (b *builder) notes() {
	first := b.ps[0]
	for k, p := range b.ps {
		b.add(TooLarge, k, slices.ContainsFunc(p.Findings, Unfit))
		b.add(NotGood, k, p.Trust != nil && p.Trust.Verdict != profile.Good)
		b.add(OtherResults, k, b.t.Runs[k].Outputs == profile.Differs || b.t.Runs[k].Outputs == profile.NotComparable)
		_, m := p.Cost()
		b.add(NoTimes, k, (b.counts || b.cost && b.t.Runs[k].Source == Counted) && m == nil)
		b.add(NoLayers, k, b.t.Runs[k].Operators == nil)
		b.add(WideBands, k, slices.ContainsFunc(b.t.Groups, func(g Group) bool { return g.Ratios[k].Overlaps() }))
		if k == 0 {
			continue
		}
		x, y := &first.Model, &p.Model
		files := x.SHA256 != "" && y.SHA256 != "" && x.SHA256 != y.SHA256
		same := x.StructureSHA256 != "" && x.StructureSHA256 == y.StructureSHA256
		none := x.SHA256 == "" && y.SHA256 == ""
		b.add(OtherModel, k, files || none && x.Name != y.Name)
		// An imported record may know no file: the names are all that tells.
		b.add(OtherName, k, !none && !files && !same && x.Name != y.Name && (x.SHA256 == "" || y.SHA256 == ""))
		b.add(OtherNodes, k, files && !same && !slices.Contains(b.found[Unrelated], k))
	}
	for _, code := range noteOrder {
		if runs := b.found[code]; runs != nil {
			b.t.Notes = append(b.t.Notes, Note{Code: code, Runs: runs})
		}
	}
}

// Unfit reports whether a finding says that the target does not run the model: a memory is too
// small, or the runtime refuses it.
func Unfit(f profile.Finding) bool {
	return f.Severity == profile.Problem && slices.Contains([]string{"target.refused", "target.ram", "target.flash"}, f.ID)
}

// noteOrder is the order of notes: those about what does not compare come first.
var noteOrder = []NoteCode{
	TooLarge, Unrelated, OtherKind, OtherMachine, Machines, OtherShapes, OtherBatch, ColdRun, UnknownThreads, NotWhole, OtherInputs,
	OtherModel, OtherName, OtherNodes, OtherResults, OtherThreads, NotGood, WideBands, NoTimes, NoLayers,
}

func apart(a, b *int64) bool { return a != nil && b != nil && *a != *b }

// sameShapes reports whether two models have inputs of the same shapes by place; what one does
// not tell is not a difference.
func sameShapes(a, b []profile.Tensor) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := a[i].Shape, b[i].Shape
		if x != nil && y != nil && !slices.Equal(x, y) && !relaid(x, y) && !relaid(y, x) {
			return false
		}
	}
	return true
}

// relaid reports whether the shape x is y with channels first instead of last, with other axes of
// length 1, or flat: one input in another layout.
func relaid(x, y []int64) bool {
	n := len(x)
	if n < 2 || len(y) < 2 || x[0] != y[0] || slices.Min(x) < 0 || slices.Min(y) < 0 {
		return false
	}
	if n > 2 && len(y) == n && x[1] == y[n-1] && slices.Equal(x[2:], y[1:n-1]) {
		return true
	}
	long := func(ds []int64) []int64 {
		return slices.DeleteFunc(slices.Clone(ds[1:]), func(d int64) bool { return d == 1 })
	}
	a, b := long(x), long(y)
	return slices.Equal(a, b) || len(a) == 1 && a[0] == product(b)
}

func product(ds []int64) int64 {
	n := int64(1)
	for _, d := range ds {
		n *= d
	}
	return n
}

// otherInputs reports whether inputs of one name are known to have held other data.
func otherInputs(a, b *profile.Profile) bool {
	for _, name := range slices.Sorted(maps.Keys(a.Settings.Inputs)) {
		x, y := a.Settings.Inputs[name], b.Settings.Inputs[name]
		if x.SHA256 != "" && y.SHA256 != "" && x.SHA256 != y.SHA256 {
			return true
		}
	}
	return false
}
