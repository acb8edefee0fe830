package profile

import "math"

// wholes are the layers that are computed, each with those that are fused into it:
// their work is done in its time, and what they hand to each other is in no memory.
type wholes struct {
	layers []Layer
	roots  []int           // the layer that does a layer's work, -1 where they go round in a circle
	parts  map[int][]int   // the layers fused into a layer, directly or by way of others
	maker  map[operand]int // the layer that makes a tensor
	reads  map[operand]int // how often layers, and the model's outputs, read it
	// passing are layers fused into one that reads what they make: whoever else does computes it
	// anew.
	passing map[int]bool
}

// operand is a tensor of a graph.
type operand struct{ graph, name string }

func newWholes(p *Profile) *wholes {
	w := &wholes{layers: p.Layers, roots: roots(p.Layers), parts: map[int][]int{}, maker: map[operand]int{}, reads: map[operand]int{}, passing: map[int]bool{}}
	for i := range p.Layers {
		l := &p.Layers[i]
		if root := w.roots[i]; root >= 0 && root != i {
			w.parts[root] = append(w.parts[root], i)
		}
		for _, t := range l.Outputs {
			w.maker[operand{l.Graph, t.Name}] = i
		}
	}
	for _, t := range p.Model.Outputs {
		w.reads[operand{"", t.Name}]++
	}
	for i := range p.Layers {
		l := &p.Layers[i]
		for _, t := range l.Inputs {
			o := operand{l.Graph, t.Name}
			w.reads[o]++
			if m, ok := w.maker[o]; ok && m != w.roots[m] && w.roots[m] == w.roots[i] {
				w.passing[m] = true
			}
		}
	}
	return w
}

// roots are the layers that do the work of each layer, -1 if absent.
func roots(layers []Layer) []int {
	const met, unknown = -1, -2
	to := make([]int, len(layers))
	for i := range to {
		to[i] = unknown
	}
	var way []int
	for i := range layers {
		way = way[:0]
		k := i
		for to[k] == unknown {
			to[k] = met // again on the same way: a circle
			way = append(way, k)
			into := layers[k].FusedInto
			if into == nil {
				to[k] = k
			} else if *into >= 0 && *into < int64(len(layers)) {
				k = int(*into)
			}
		}
		for _, n := range way {
			to[n] = to[k]
		}
	}
	return to
}

// complete gives layer i as the whole that it computes. Work that is not counted leaves the rest
// as it is; bytes of which a part is not known, and sums that no number holds, stay those of the
// layer alone.
func (w *wholes) complete(i int) Layer {
	l := w.layers[i]
	all := append([]int{i}, w.parts[i]...)
	within := map[operand]int{} // how often the whole reads a tensor itself
	for _, k := range all {
		for _, t := range w.layers[k].Inputs {
			within[operand{w.layers[k].Graph, t.Name}]++
		}
	}
	ops, read, written := total{}, total{}, total{}
	for _, k := range all {
		if part := &w.layers[k]; part.Ops != nil {
			ops.add(part.Ops)
		}
		read.add(w.read(k, i))
		written.add(w.written(k, within))
	}
	if l.Ops != nil {
		l.Ops = ops.or(l.Ops)
	}
	l.BytesRead, l.BytesWritten = read.or(l.BytesRead), written.or(l.BytesWritten)
	return l
}

// read is what layer k reads from memory as a part of the whole of root: nothing that the whole
// has made itself, and instead of what another one makes on the way, as codes become numbers,
// what that is made of.
func (w *wholes) read(k, root int) *int64 {
	l := &w.layers[k]
	if l.BytesRead == nil {
		return nil
	}
	read := *l.BytesRead
	for _, t := range l.Inputs {
		m, made := w.maker[operand{l.Graph, t.Name}]
		if !made || t.Bytes == nil {
			continue
		}
		of := w.roots[m]
		if of != root && !w.passing[m] {
			continue
		}
		read = max(0, read-int64(float64(*t.Bytes)*calls(l)))
		if from := w.layers[m].BytesRead; of != root && from != nil {
			read += *from
		}
	}
	return &read
}

// written is what layer k writes to memory as a part of a whole: not what only the whole reads.
func (w *wholes) written(k int, within map[operand]int) *int64 {
	l := &w.layers[k]
	if l.BytesWritten == nil {
		return nil
	}
	written := *l.BytesWritten
	for _, t := range l.Outputs {
		o := operand{l.Graph, t.Name}
		if t.Bytes != nil && within[o] > 0 && (within[o] == w.reads[o] || w.passing[k]) {
			written = max(0, written-int64(float64(*t.Bytes)*calls(l)))
		}
	}
	return &written
}

// total adds up counts.
type total struct {
	sum     int64
	unknown bool
}

func (t *total) add(v *int64) {
	if t.unknown = t.unknown || v == nil || *v < 0 || t.sum > math.MaxInt64-*v; !t.unknown {
		t.sum += *v
	}
}

// or is the sum, or what stands for it where it is not known.
func (t *total) or(own *int64) *int64 {
	if t.unknown {
		return own
	}
	return new(t.sum)
}
