package engine

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/runtime/memplan"
	"github.com/opmeter/opmeter/internal/runtime/plan"
)

// alignment of planned values: a cache line, and the widest vector register.
const alignment = 64

// maxGrowth limits how much larger the arena may become to save copies: by one part in maxGrowth.
const maxGrowth = 8

// placeValues gives memory to every value whose shape is known: one arena per frame, in which
// values with disjoint lifetimes overlap.
func (f *frame) placeValues() error {
	keep := f.s.opts.KeepAll
	last := f.lastUses()
	var bufs []memplan.Buffer
	var ids []int
	var copies []memplan.Copy
	index := make([]int, len(f.g.Values)) // one plus the buffer of a value
	for i := range f.steps {
		st := &f.steps[i]
		if st.State != plan.Runs || st.Dynamic {
			continue
		}
		for k, t := range st.Call.Out {
			id := st.Call.Node.Outputs[k]
			if t == nil || f.g.Values[id].Variable || f.vals[id] != t || f.inputOf(id) != nil {
				continue
			}
			text := t.Type == tensor.String || t.Type.IsContainer() || t.Type == tensor.Resource
			if text || keep || f.s.carries(f, id) {
				if err := f.p.Reserve(t.Bytes()); err != nil {
					return err
				}
				t.Alloc()
				if !text && f.s.carries(f, id) {
					f.ownMemory[id] = true
				}
				continue
			}
			if f.writesResult(id) {
				if !f.s.opts.Static {
					if err := f.p.Reserve(2 * t.Bytes()); err != nil {
						return err
					}
				}
				continue
			}
			b := memplan.Buffer{Bytes: t.Bytes(), First: i, Last: max(i, last[id])}
			if k == 0 && st.Def.InPlace && len(st.Call.Node.Inputs) > 0 {
				if from := st.Call.Node.Inputs[0]; from >= 0 && index[from] > 0 && f.vals[from].Bytes() == b.Bytes && last[from] == i {
					b.InPlace = index[from]
				}
			}
			bufs = append(bufs, b)
			ids = append(ids, id)
			index[id] = len(bufs)
		}
		for _, p := range st.Call.CopyRanges() {
			if to, from := st.Call.Node.Outputs[p.Out], st.Call.Node.Inputs[p.In]; to >= 0 && from >= 0 && index[to] > 0 && index[from] > 0 {
				copies = append(copies, memplan.Copy{To: index[to] - 1, At: p.OutOffset, From: index[from] - 1, Read: p.InOffset, Bytes: p.Bytes})
			}
		}
	}
	offsets, total := memplan.Greedy(bufs, alignment, copies...)
	if len(copies) > 0 && total > memplan.LiveBytes(bufs, alignment)/maxGrowth*(maxGrowth+1) {
		// A slice keeps the whole buffer that it is part of alive: if that costs much memory,
		// copies are better.
		if apart, least := memplan.Greedy(bufs, alignment); total > least/maxGrowth*(maxGrowth+1) {
			offsets, total = apart, least
		}
	}
	var arena []byte
	if !f.s.opts.Static {
		if err := f.p.Reserve(total); err != nil {
			return tooLarge(err)
		}
		arena = tensor.New(tensor.Uint8, total+alignment).Data
	}
	for j, id := range ids {
		o, n := offsets[j], bufs[j].Bytes
		if arena != nil {
			f.vals[id].Data = arena[o : o+n : o+n]
		}
		f.valueBytes += n
		f.placed = append(f.placed, Placed{Name: f.g.Values[id].Name, Value: id, Offset: o, Bytes: n, First: bufs[j].First, Last: bufs[j].Last})
	}
	f.arenaBytes = total
	if !keep {
		f.placeCarried()
	}
	return nil
}

// placeCarried lists carried outputs after the arena: they are live during the whole run.
func (f *frame) placeCarried() {
	for id, t := range f.vals {
		if f.ownMemory[id] {
			n := t.Bytes()
			f.placed = append(f.placed, Placed{Name: f.g.Values[id].Name, Value: id, Offset: f.arenaBytes, Bytes: n, First: 0, Last: max(0, len(f.steps)-1)})
			f.arenaBytes += (n + alignment - 1) / alignment * alignment
			f.valueBytes += n
		}
	}
}

func tooLarge(err error) error {
	return fmt.Errorf("the model %w", err)
}

// lastUses returns for every value the last step that reads it. Graph outputs are read after the
// last step, except watched ones. A step that runs nested graphs reads the values that they
// capture.
func (f *frame) lastUses() []int {
	last := make([]int, len(f.g.Values))
	for i := range f.steps {
		st := &f.steps[i]
		if st.State == plan.Fused {
			continue
		}
		for _, id := range st.Call.Node.Inputs {
			if id >= 0 {
				last[id] = i
			}
		}
		for _, id := range f.p.Captured(st.Call.Node) {
			last[id] = i
		}
	}
	for _, id := range f.g.Outputs {
		if id >= 0 && f.watched == nil {
			last[id] = len(f.steps)
		}
	}
	for i, sets := range f.watched {
		for _, k := range sets {
			for _, id := range f.s.opts.Watch[k] {
				last[id] = max(last[id], i+1) // the step itself must not overwrite them
			}
		}
	}
	return last
}

// findWatched finds the steps after which sets of watched values are complete: after the first
// step for sets that no step computes.
func (f *frame) findWatched() {
	if len(f.s.opts.Watch) == 0 || f.p.File != f.s.Model.Main() {
		return
	}
	made := map[int]int{}
	for i := range f.steps {
		if st := &f.steps[i]; st.State == plan.Runs {
			for _, id := range st.Call.Node.Outputs {
				made[id] = i
			}
		}
	}
	f.watched = make([][]int, len(f.steps)+1)
	for k, ids := range f.s.opts.Watch {
		at := -1
		for _, id := range ids {
			if i, ok := made[id]; ok {
				at = max(at, i)
			}
		}
		if at < 0 {
			at = len(f.steps) // inputs and constants stay
		}
		f.watched[at] = append(f.watched[at], k)
	}
}

// reportWatched calls Seen for the sets that are complete after a step.
func (f *frame) reportWatched(step int) error {
	if f.watched == nil {
		return nil
	}
	for _, k := range f.watched[step] {
		if err := f.s.opts.Seen(k); err != nil {
			return err
		}
	}
	return nil
}
