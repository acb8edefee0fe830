package align

import (
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// swallowed joins a layer without a partner with the one of the other profile that computes it
// along with its own operator, such as a residual Add in a convolution. One side of the model may
// be known by its layers' names and shapes alone.
func (j *joiner) swallowed() {
	alone := j.alone()
	left := map[[2]string]bool{} // graph and class of layers without a partner, by side
	var open []int
	for i := range j.group {
		if l := j.layer(i); alone(i) && !l.State.Elsewhere() && !l.Constant {
			left[[2]string{string(rune('0' + j.side(i))), classOf(l.Op)}] = true
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return
	}
	at := newTensors(j)
	for _, i := range open {
		l := j.layer(i)
		class := classOf(l.Op)
		if len(l.Outputs) == 0 || roles[class] != satellite && !arithmetic[class] || left[[2]string{string(rune('0' + 1 - j.side(i))), class}] {
			continue
		}
		if into := at.absorber(i); into >= 0 {
			j.join(i, into, found{how: profile.ByOrder, guessed: true})
			at.add(into, i)
		}
	}
}

// tensors finds the layers that make and read tensors.
type tensors struct {
	j      *joiner
	makers map[tensor]int
	reads  map[tensor][]int
	// last is by root the last layer of each side, -1 for none.
	last map[int][2]int
}

type tensor struct {
	side        int
	graph, name string
}

func newTensors(j *joiner) *tensors {
	t := &tensors{j: j, makers: map[tensor]int{}, reads: map[tensor][]int{}, last: map[int][2]int{}}
	for i := range j.group {
		l := j.layer(i)
		for k := range l.Outputs {
			if name := l.Outputs[k].Name; name != "" {
				t.makers[tensor{j.side(i), l.Graph, name}] = i
			}
		}
		for k := range l.Inputs {
			if in := &l.Inputs[k]; in.Name != "" && !in.Constant && !in.Absent {
				key := tensor{j.side(i), l.Graph, in.Name}
				t.reads[key] = append(t.reads[key], i)
			}
		}
		r := j.root(i)
		last, ok := t.last[r]
		if !ok {
			last = [2]int{-1, -1}
		}
		if !l.State.Elsewhere() {
			last[j.side(i)] = i
		}
		t.last[r] = last
	}
	return t
}

// both reports whether layers of both profiles are in the group of a layer, and returns the last
// ones.
func (t *tensors) both(i int) (last [2]int, ok bool) {
	last, ok = t.last[t.j.root(i)]
	return last, ok && last[0] >= 0 && last[1] >= 0
}

// add notes that a layer is in the group of another one.
func (t *tensors) add(into, i int) {
	last := t.last[t.j.root(into)]
	for _, k := range []int{into, i} {
		last[t.j.side(k)] = max(last[t.j.side(k)], k)
	}
	t.last[t.j.root(into)] = last
}

// absorber returns the layer of the other profile that computes a layer, too, -1 if there is no
// evidence of one. A consumer of the layer has a partner, too; of what makes its operands the one
// that the other profile runs last has them all.
func (t *tensors) absorber(i int) int {
	j, l := t.j, t.j.layer(i)
	side := j.side(i)
	out := &l.Outputs[0]
	if rs := t.reads[tensor{side, l.Graph, out.Name}]; len(rs) > 0 && !slices.ContainsFunc(rs, func(c int) bool { _, ok := t.both(c); return ok }) {
		return -1
	}
	if m, ok := t.makers[tensor{1 - side, l.Graph, out.Name}]; ok && j.nodes {
		if _, paired := t.both(m); paired {
			return m
		}
		return -1
	}
	best, own := -1, -1
	operands := 0
	for k := range l.Inputs {
		in := &l.Inputs[k]
		if in.Constant || in.Absent || in.Name == "" {
			continue
		}
		operands++
		m, ok := t.makers[tensor{side, l.Graph, in.Name}]
		if !ok || m == i {
			continue
		}
		if last, paired := t.both(m); paired && last[1-side] > best {
			best, own = last[1-side], m
		}
	}
	if best < 0 || !t.evidence(l, own, best, operands) {
		return -1
	}
	return best
}

// exchanged reports whether the operands of a layer come from the partners of another order of its
// partner's operands, such as the difference of b and a instead of a and b.
func (t *tensors) exchanged(p *Pair) bool {
	if len(p.A) != 1 || len(p.B) != 1 {
		return false
	}
	from := func(i int) (roots []int) {
		l := t.j.layer(i)
		for k := range l.Inputs {
			if in := &l.Inputs[k]; !in.Constant && !in.Absent {
				root := -1
				if m, ok := t.makers[tensor{t.j.side(i), l.Graph, in.Name}]; ok && m != i {
					root = t.j.root(m)
				}
				roots = append(roots, root)
			}
		}
		return roots
	}
	i := int(p.A[0])
	if commutative[classOf(t.j.layer(i).Op)] {
		return false
	}
	as, bs := from(i), from(len(t.j.a.Layers)+int(p.B[0]))
	if len(as) != len(bs) || len(as) > maxNear {
		return false
	}
	for k, r := range as {
		if r >= 0 && r != bs[k] && slices.Contains(bs, r) {
			return true
		}
	}
	return false
}

// evidence reports whether a layer with some operands may be part of another profile's layer, whose
// partner makes one of the operands.
func (t *tensors) evidence(l *profile.Layer, own, into int, operands int) bool {
	p, q := t.j.layer(own), t.j.layer(into)
	switch class := classOf(q.Op); {
	case roles[class] == layout || roles[class] == conversion:
		return false
	case operands > 1 && !heavy[class]:
		return false
	case t.j.nodes || operands < 2 && t.j.recorded:
		return true
	}
	// The other operand is one more input, or the layer has the name of the result.
	if plainName(q.Name) == plainName(l.Outputs[0].Name) && q.Name != "" {
		return true
	}
	return len(q.Inputs) > len(p.Inputs) && slices.ContainsFunc(q.Inputs[len(p.Inputs):], func(in profile.Tensor) bool {
		return in.Shape != nil && slices.Equal(in.Shape, l.Outputs[0].Shape)
	})
}
