package join

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// Fill completes a record's profile from the described model: identity, and for each layer the
// nodes that it computes, its tensors, operation counts and weights. Measurements of the record
// are not changed.
func Fill(p, model *profile.Profile, ms []Match) {
	name := p.Model.Name
	format := p.Model.Format
	p.Model = model.Model
	if format != "" {
		p.Settings.Libraries = with(p.Settings.Libraries, "record", format)
	}
	if p.Model.Name == "" {
		p.Model.Name = name
	}
	rows := map[int]int{} // of the record, by layer of the model
	once := map[int]bool{}
	for i := range ms {
		for _, l := range ms[i].Layers {
			once[l] = true
			rows[l]++
		}
	}
	for i := range p.Layers {
		if l := &p.Layers[i]; l.Calls == nil && l.State != profile.NotReached {
			l.Calls = determined(model.Layers, ms[i].Layers, rows)
		}
		layer(&p.Layers[i], model.Layers, ms[i])
	}
	t, f := &p.Totals, &model.Totals
	t.Params, t.WeightsBytes, t.ComputedParams, t.FlashBytes = f.Params, f.WeightsBytes, f.ComputedParams, f.FlashBytes
	p.Findings = append(p.Findings, findings(p, model, ms, once)...)
}

func with(m map[string]string, k, v string) map[string]string {
	out := map[string]string{k: v}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// layer completes one layer.
func layer(l *profile.Layer, model []profile.Layer, m Match) {
	if len(m.Layers) == 0 && len(m.Serves) > 0 {
		l.Provenance = &profile.Provenance{Confidence: profile.ByTensor, Inserted: true}
		for _, at := range m.Serves {
			l.Provenance.SourceNodes = append(l.Provenance.SourceNodes, nodes(&model[at])...)
		}
		if l.Scope == "" {
			l.Scope = model[m.Serves[0]].Scope
		}
		return
	}
	if len(m.Layers) == 0 {
		l.Provenance = &profile.Provenance{Confidence: profile.Unknown}
		return
	}
	first := &model[m.Layers[0]]
	v := &profile.Provenance{Confidence: overallConfidence(m.How)}
	var work int64
	for _, at := range m.Layers {
		work += value(model[at].Ops)
	}
	for k, at := range m.Layers {
		for _, n := range nodes(&model[at]) {
			if m.How[k] != v.Confidence {
				n.Confidence = m.How[k]
			}
			if len(m.Layers) > 1 && work > 0 && model[at].Ops != nil {
				n.Share = new(float64(*model[at].Ops) / float64(work))
			}
			v.SourceNodes = append(v.SourceNodes, n)
		}
	}
	l.Provenance = v
	if l.Name == "" {
		l.Name = first.Name
	}
	if l.Scope == "" {
		l.Scope = first.Scope
	}
	if plain(l.Op) == plain(first.Op) {
		l.Domain, l.Version = first.Domain, first.Version
	}
	l.Options = append(slices.Clone(first.Options), l.Options...)
	in, out := boundaryTensors(model, m.Layers)
	s := observed{}
	// If a row has several nodes, the record lists the tensors of the first one, or of all.
	_ = s.pair(l.Inputs, in) || s.pair(l.Inputs, first.Inputs)
	_ = s.pair(l.Outputs, out) || s.pair(l.Outputs, first.Outputs)
	stored := l.WeightsBytes
	l.Inputs, l.Outputs = s.merge(l.Inputs, in), s.merge(l.Outputs, out)
	counts(l, model, m.Layers)
	traffic(l, model, m.Layers, stored, sameShapes(l.Inputs, in) && sameShapes(l.Outputs, out))
	if l.Calls != nil {
		l.ScaleCounts(*l.Calls)
	}
	if len(m.Layers) == 1 {
		l.LiveBytes = first.LiveBytes
	}
	multiplies := slices.DeleteFunc(slices.Clone(m.Layers), func(at int) bool { return model[at].Weights == nil && model[at].Sparsity == nil })
	if len(multiplies) == 1 {
		l.Weights, l.Sparsity = model[multiplies[0]].Weights, model[multiplies[0]].Sparsity
	}
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// overallConfidence returns the lowest confidence of the main nodes. Nodes that were matched only
// because nothing else can compute them do not lower it.
func overallConfidence(how []profile.Confidence) profile.Confidence {
	order := []profile.Confidence{profile.Exact, profile.ByTensor, profile.ByName, profile.ByOrder, profile.Unknown}
	w := profile.Confidence("")
	for _, h := range how {
		if h != profile.ByOrder && (w == "" || slices.Index(order, h) > slices.Index(order, w)) {
			w = h
		}
	}
	return cmp.Or(w, profile.ByOrder)
}

// boundaryTensors returns the external inputs and outputs of a set of layers.
func boundaryTensors(model []profile.Layer, set []int) (in, out []profile.Tensor) {
	made, read := map[string]bool{}, map[string]bool{}
	for _, at := range set {
		for _, t := range model[at].Outputs {
			made[t.Name] = true
		}
		for _, t := range model[at].Inputs {
			read[t.Name] = true
		}
	}
	if len(set) == 1 {
		return model[set[0]].Inputs, model[set[0]].Outputs
	}
	inside := func(name string) bool { // not read by other layers
		for i := range model {
			if slices.Contains(set, i) {
				continue
			}
			for _, t := range model[i].Inputs {
				if t.Name == name {
					return false
				}
			}
		}
		return true
	}
	seen := map[string]bool{}
	sorted := slices.Clone(set)
	slices.Sort(sorted)
	for _, at := range sorted {
		for _, t := range model[at].Inputs {
			if !made[t.Name] && !seen[t.Name] && !t.Absent {
				seen[t.Name] = true
				in = append(in, t)
			}
		}
		for _, t := range model[at].Outputs {
			if !read[t.Name] || !inside(t.Name) {
				out = append(out, t)
			}
		}
	}
	return in, out
}

// observed maps names of the model's tensors to what a record observed of them.
type observed map[string]*profile.Tensor

// pair pairs a record's list with the model's, if both list the same tensors.
func (s observed) pair(recorded, known []profile.Tensor) bool {
	there := slices.DeleteFunc(slices.Clone(known), func(t profile.Tensor) bool { return t.Absent })
	if len(recorded) != len(there) {
		return false
	}
	for i := range there {
		r := &recorded[i]
		if there[i].DType != "" && r.DType != "" && there[i].DType != r.DType || len(there[i].Shape) > 0 && len(r.Shape) != len(there[i].Shape) {
			return false // the engine passes a tensor of another layout or order
		}
	}
	for i := range there {
		s[there[i].Name] = &recorded[i]
	}
	return true
}

// merge gives the model's tensors the shapes and types of the record.
func (s observed) merge(recorded, known []profile.Tensor) []profile.Tensor {
	if len(known) == 0 {
		return recorded
	}
	out := slices.Clone(known)
	for i := range out {
		r := s[out[i].Name]
		if r == nil || out[i].Absent || out[i].Name == "" {
			continue
		}
		if out[i].DType == "" {
			out[i].DType = r.DType
		}
		if r.Shape != nil && !slices.Equal(out[i].Shape, r.Shape) {
			out[i].Shape, out[i].Bytes = r.Shape, nil
		}
	}
	return out
}

// determined returns how often the model says that a row without recorded calls runs, nil if it
// does not say that. A loop that the engine unrolled has a row for each call.
func determined(model []profile.Layer, set []int, rows map[int]int) (calls *float64) {
	for k, at := range set {
		c := model[at].Calls
		if c == nil || *c == 0 || rows[at] > 1 || k > 0 && *c != *calls {
			return nil
		}
		calls = c
	}
	return calls
}

// counts adds up the operation counts of a set of layers, for the calls that were recorded. A sum
// is unknown if one of them is.
func counts(l *profile.Layer, model []profile.Layer, set []int) {
	calls := make([]profile.Layer, len(set))
	for k, at := range set {
		calls[k] = model[at].OneCall()
	}
	for _, c := range []func(*profile.Layer) **int64{
		func(l *profile.Layer) **int64 { return &l.Ops },
		func(l *profile.Layer) **int64 { return &l.MACs },
		func(l *profile.Layer) **int64 { return &l.MACsExecuted },
		func(l *profile.Layer) **int64 { return &l.MLTKOps },
		func(l *profile.Layer) **int64 { return &l.MLTKMACs },
		func(l *profile.Layer) **int64 { return &l.Params },
		func(l *profile.Layer) **int64 { return &l.WeightsBytes },
	} {
		sum, all := int64(0), true
		for k := range calls {
			v := *c(&calls[k])
			if v == nil {
				all = false
				break
			}
			sum += *v
		}
		if all {
			*c(l) = &sum
		}
	}
	for _, at := range set {
		addShared(&l.SharedParams, model[at].SharedParams, l.Params)
		addShared(&l.SharedWeightsBytes, model[at].SharedWeightsBytes, l.WeightsBytes)
	}
}

// traffic sets the bytes that a layer reads and writes to those of its nodes, counted as for
// opmeter's own engine. If these are unknown, or the record has other shapes, the record's bytes
// are kept. An engine that prepacked constant weights omits them there: stored is what it counted
// of them.
func traffic(l *profile.Layer, model []profile.Layer, set []int, stored *int64, same bool) {
	read, written := bytesOf(model, set)
	if read != nil && (same || l.BytesRead == nil) {
		l.BytesRead = read
	} else if l.BytesRead != nil && l.WeightsBytes != nil && stored != nil {
		l.BytesRead = new(*l.BytesRead + max(0, *l.WeightsBytes-*stored))
	}
	if written != nil && (same || l.BytesWritten == nil) {
		l.BytesWritten = written
	}
}

// sameShapes reports whether a record has the shapes of the model, as far as the model knows
// them.
func sameShapes(merged, known []profile.Tensor) bool {
	return slices.EqualFunc(merged, known, func(a, b profile.Tensor) bool { return slices.Equal(a.Shape, b.Shape) })
}

// bytesOf returns what one call of a set of layers reads and writes together: tensors between them
// do not count, and a tensor that several of them read counts once. A sum is nil if a part is
// unknown.
func bytesOf(model []profile.Layer, set []int) (read, written *int64) {
	if len(set) == 1 {
		one := model[set[0]].OneCall()
		return one.BytesRead, one.BytesWritten
	}
	_, out := boundaryTensors(model, set)
	leaves, had := map[string]bool{}, map[string]bool{}
	for _, t := range out {
		leaves[t.Name] = true
	}
	for _, at := range set {
		for _, t := range model[at].Outputs {
			had[t.Name] = true
		}
	}
	var in, made byteSum
	for _, at := range set {
		l := model[at].OneCall()
		in.add(l.BytesRead, l.Inputs, func(t *profile.Tensor) bool {
			before := had[t.Name]
			had[t.Name] = true
			return before
		})
		made.add(l.BytesWritten, l.Outputs, func(t *profile.Tensor) bool { return !leaves[t.Name] })
	}
	return in.value(), made.value()
}

// byteSum is a sum of bytes of which a part may be unknown.
type byteSum struct {
	n       int64
	unknown bool
}

// add adds the bytes of a layer without those of the tensors that do not count. A lookup reads
// less than its tensors hold, so that the difference may be negative.
func (s *byteSum) add(n *int64, tensors []profile.Tensor, skip func(*profile.Tensor) bool) {
	left := value(n)
	for i := range tensors {
		t := &tensors[i]
		if t.Absent || t.Name == "" || !skip(t) {
			continue
		}
		s.unknown = s.unknown || t.Bytes == nil
		left -= value(t.Bytes)
	}
	s.unknown = s.unknown || n == nil
	s.n += max(0, left)
}

func (s *byteSum) value() *int64 {
	if s.unknown {
		return nil
	}
	return &s.n
}

// addShared adds n, a part of a count of the same layers, of which absence means 0.
func addShared(to **int64, n, of *int64) {
	if n == nil || of == nil {
		return
	}
	sum := *n
	if *to != nil {
		sum += **to
	}
	*to = new(min(sum, *of))
}

// findings report how much was matched, and what was not.
func findings(p, model *profile.Profile, ms []Match, found map[int]bool) (out []profile.Finding) {
	byHow := map[profile.Confidence]int{}
	var none []int64
	all, own := 0, 0
	for i := range ms {
		if p.Layers[i].State == profile.Fused {
			continue // part of another row, with which it is counted
		}
		all++
		if len(ms[i].Layers) == 0 && len(ms[i].Serves) > 0 {
			own++
			continue
		}
		if len(ms[i].Layers) == 0 {
			none = append(none, int64(i))
			continue
		}
		byHow[overallConfidence(ms[i].How)]++
	}
	var parts []string
	for _, h := range []profile.Confidence{profile.Exact, profile.ByTensor, profile.ByName, profile.ByOrder} {
		if n := byHow[h]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, h))
		}
	}
	text := fmt.Sprintf("Found in the model: %d of %d recorded operators", all-len(none)-own, all)
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	if own > 0 {
		text += fmt.Sprintf("; %d format conversions inserted by the engine", own)
	}
	severity := profile.Info
	if len(none)*2 > all {
		severity = profile.Problem
		text += ". The record may belong to another model"
	} else if len(none) > 0 {
		text += "; the others were inserted by the engine, or have generic names"
	}
	out = append(out, profile.Finding{ID: "import.join", Severity: severity, Text: text + ".", Layers: none})
	left := map[string]int{}
	n := 0
	for i := range model.Layers {
		if l := &model.Layers[i]; !found[i] && !l.Constant && !l.State.Elsewhere() {
			left[l.Op]++
			n++
		}
	}
	if n > 0 {
		var ops []string
		for op := range left {
			ops = append(ops, op)
		}
		sorting.Func(ops, func(a, b string) int {
			if d := left[b] - left[a]; d != 0 {
				return d
			}
			return strings.Compare(a, b)
		})
		more := ""
		if len(ops) > 5 {
			more = fmt.Sprintf(" and %d other kinds", len(ops)-5)
			ops = ops[:5]
		}
		for i, op := range ops {
			ops[i] = fmt.Sprintf("%d %s", left[op], op)
		}
		out = append(out, profile.Finding{
			ID: "import.unrecorded", Severity: profile.Info,
			Text: fmt.Sprintf("%d operators of the model have no record (%s%s): the engine removed them, or did not reach them.", n, strings.Join(ops, ", "), more),
		})
	}
	return out
}
