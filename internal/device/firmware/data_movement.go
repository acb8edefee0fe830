package firmware

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/runtime/tfliteop/recipe"
)

// origin is the source of one output's elements. For each element it holds the index of an input
// element plus one, counted through all non-constant inputs. 0 marks an element that does not
// depend on them; its value is in rest.
type origin struct {
	from []int32
	rest []byte // elements of the output that are not moved, 0 in other places
}

// moving lists operators that only move elements. Other operators are not probed: the few test
// elements would prove nothing.
var moving = map[string]bool{
	"RESHAPE": true, "SQUEEZE": true, "EXPAND_DIMS": true, "TRANSPOSE": true, "GATHER": true, "GATHER_ND": true, "SPLIT": true, "SPLIT_V": true,
	"SLICE": true, "STRIDED_SLICE": true, "PACK": true, "UNPACK": true, "PAD": true, "PADV2": true, "MIRROR_PAD": true, "CONCATENATION": true,
	"TILE": true, "BROADCAST_TO": true, "REVERSE_V2": true, "REVERSE_SEQUENCE": true, "SPACE_TO_DEPTH": true, "DEPTH_TO_SPACE": true,
	"SPACE_TO_BATCH_ND": true, "BATCH_TO_SPACE_ND": true, "RESIZE_NEAREST_NEIGHBOR": true, "MATRIX_DIAG": true, "MATRIX_SET_DIAG": true,
	"FILL": true, "SELECT": true, "SELECT_V2": true, "DYNAMIC_UPDATE_SLICE": true, "EMBEDDING_LOOKUP": true, "IDENTITY": true,
}

// moved generates copies for an operator that only moves elements. It returns false for other
// operators.
func (g *generator) moved(st *step) (bool, error) {
	c := &st.task.Call
	if !moving[c.Node.Op] || len(c.Out) == 0 {
		return false, nil
	}
	return g.route(st, nil)
}

// concat generates a CONCATENATION that requantises its inputs to the output's quantisation.
func (g *generator) concat(st *step, r recipe.Join) error {
	names := make([]string, len(r.Tables))
	for k, t := range r.Tables {
		if t != nil {
			names[k] = integers(g, "t", st.layer, 1, t[:], "output for every element").name
		}
		if t != nil && st.task.Call.Const(k) {
			return unsupported("a constant that has another quantisation than the output")
		}
	}
	ok, err := g.route(st, names)
	if err == nil && !ok {
		err = unsupported("no kernel for %s", types(&st.task.Call))
	}
	return err
}

// route generates the copies. maps names a lookup table for each input, "" for none; the operator
// is then probed without scales, so that it applies none.
func (g *generator) route(st *step, maps []string) (bool, error) {
	c := &st.task.Call
	p, err := newProbe(st.task, nil)
	if err != nil {
		return false, err
	}
	defer p.close()
	if maps != nil {
		if err := p.unscaled(st.task.Def); err != nil {
			return false, err
		}
	}
	open := p.open()
	if len(open) == 0 {
		return false, nil
	}
	w := width(p.call.In[open[0]].Type)
	for _, k := range open {
		if t := p.call.In[k].Type; width(t) != w || t.Bits() < 8 {
			return false, nil
		}
	}
	for _, x := range c.Out {
		if x != nil && (width(x.Type) != w || x.Type.Bits() < 8) {
			return false, nil
		}
	}
	ways := p.trace(open, w)
	if ways == nil || !p.check(open, ways, w) {
		return false, nil
	}
	for k, way := range ways {
		if way == nil || len(way.from) == 0 {
			continue
		}
		if err := g.copies(st, k, open, p, way, w, maps); err != nil {
			return true, err
		}
	}
	return true, nil
}

// trace runs the operator on numbered elements, some bits of the numbers at a time, and on their
// complement: a moved element is complemented too, a constant is not. It returns nil for
// operators that do more than move elements.
func (p *probe) trace(open []int, w int) []*origin {
	total := 0
	for _, k := range open {
		total += p.call.In[k].Len()
	}
	ways := make([]*origin, len(p.call.Out))
	for k, x := range p.call.Out {
		if x != nil {
			ways[k] = &origin{from: make([]int32, x.Len()), rest: make([]byte, x.Len()*w)}
		}
	}
	bits := min(8*w, 32)
	for shift := 0; shift == 0 || total>>shift > 0; shift += bits {
		var seen [2][][]byte
		for turn, flip := range []uint32{0, ^uint32(0)} {
			at := uint32(0)
			for _, k := range open {
				number(p.call.In[k].Data, w, at, uint(shift), flip)
				at += uint32(p.call.In[k].Len())
			}
			if p.do() != nil { // it looks at what the elements are
				return nil
			}
			for _, x := range p.call.Out {
				if x == nil {
					seen[turn] = append(seen[turn], nil)
					continue
				}
				seen[turn] = append(seen[turn], bytes.Clone(x.Data))
			}
		}
		for k, way := range ways {
			if way != nil && !way.addBits(seen[0][k], seen[1][k], w, shift) {
				return nil
			}
		}
	}
	for _, way := range ways {
		if way == nil {
			continue
		}
		for i, v := range way.from {
			if int(v) > total || v < 0 {
				return nil
			}
			if v > 0 {
				clear(way.rest[i*w:][:w])
			}
		}
	}
	return ways
}

// number writes bits of the elements' numbers, starting with the number at; flip complements
// them.
func number(x []byte, w int, at uint32, shift uint, flip uint32) {
	for i := 0; i+w <= len(x); i += w {
		v := at>>shift ^ flip
		switch w {
		case 1:
			x[i] = byte(v)
		case 2:
			binary.LittleEndian.PutUint16(x[i:], uint16(v))
		case 4:
			binary.LittleEndian.PutUint32(x[i:], v)
		default:
			binary.LittleEndian.PutUint64(x[i:], uint64(v)|uint64(flip)<<32)
		}
		at++
	}
}

// addBits adds the bits of one pair of runs. It returns false if an element is neither moved nor
// constant.
func (o *origin) addBits(plain, flipped []byte, w, shift int) bool {
	for i := range o.from {
		a, b := plain[i*w:][:w], flipped[i*w:][:w]
		moved, same := true, true
		for j := range a {
			moved = moved && a[j] == ^b[j]
			same = same && a[j] == b[j]
		}
		if shift > 0 && moved != (o.from[i] > 0) || !moved && !same {
			return false
		}
		if !moved {
			copy(o.rest[i*w:][:w], a)
			continue
		}
		var v uint32
		for j := min(w, 4) - 1; j >= 0; j-- {
			v = v<<8 | uint32(a[j])
		}
		if shift == 0 {
			o.from[i] = 1
		}
		o.from[i] += int32(v << uint(shift))
	}
	return true
}

// check tests the mapping on random elements.
func (p *probe) check(open []int, ways []*origin, w int) bool {
	var all []byte
	for _, k := range open {
		x := p.call.In[k]
		fillRandom(x.Data, x.Type)
		all = append(all, x.Data[:x.Len()*w]...)
	}
	if p.do() != nil {
		return false
	}
	for k, way := range ways {
		if way == nil {
			continue
		}
		for i, v := range way.from {
			want := way.rest[i*w:][:w]
			if v > 0 {
				want = all[int(v-1)*w:][:w]
			}
			if !bytes.Equal(p.call.Out[k].Data[i*w:][:w], want) {
				return false
			}
		}
	}
	return true
}

// copies generates the calls for one output.
func (g *generator) copies(st *step, out int, open []int, p *probe, way *origin, w int, maps []string) error {
	dst := g.out(st, out, "uint8_t")
	n := len(way.from)
	if slices.Contains(way.from, 0) {
		g.background(st, dst, way, w)
	}
	base := int32(0)
	for _, k := range open {
		size := int32(p.call.In[k].Len())
		var to, from []int32
		for i, v := range way.from {
			if v > base && v <= base+size {
				to, from = append(to, int32(i)), append(from, v-1-base)
			}
		}
		base += size
		if len(to) == 0 {
			continue
		}
		src := g.in(st, k, "uint8_t")
		mapped := ""
		if maps != nil && maps[k] != "" {
			mapped = ", .map = " + maps[k]
		}
		if inOrder(to, from) && len(to) == n && mapped == "" {
			g.copyTensor(st, out, k, src, dst, n*w)
			continue
		}
		moves, err := nests(to, from, w)
		if err != nil {
			return err
		}
		list := make([]string, len(moves))
		for i, m := range moves {
			list[i] = "{" + m.text(g, st) + mapped + "}"
		}
		name := g.constantList(st, "k_move", list)
		g.emit(st, "move", "k_copy", name, text("%d", len(moves)), src, dst)
	}
	return nil
}

// inOrder reports whether all elements keep their positions.
func inOrder(to, from []int32) bool {
	for i := range to {
		if to[i] != int32(i) || from[i] != int32(i) {
			return false
		}
	}
	return true
}

// copyTensor copies a tensor unchanged, or omits the copy if the planner lets the output reuse the
// input's memory.
func (g *generator) copyTensor(st *step, out, in int, src, dst func() string, n int) {
	from, to := g.values[st.task.Node.Inputs[in]], g.values[st.task.Node.Outputs[out]]
	if out == 0 {
		to.inPlace = from
	}
	st.calls = append(st.calls, func() string {
		if from != nil && from.offset == to.offset {
			return "/* the elements stay where they are */"
		}
		return fmt.Sprintf("memcpy(%s, %s, %d);", dst(), src(), n)
	})
}

// background writes the elements that do not depend on the inputs: one value everywhere, or a
// constant image of the output.
func (g *generator) background(st *step, dst func() string, way *origin, w int) {
	var value []byte
	same := true
	for i, v := range way.from {
		if v > 0 {
			continue
		}
		x := way.rest[i*w:][:w]
		if value == nil {
			value = x
		}
		same = same && bytes.Equal(value, x)
	}
	if same && w <= 4 {
		v := uint32(0)
		for j := w - 1; j >= 0; j-- {
			v = v<<8 | uint32(value[j])
		}
		g.emit(st, "move", "k_fill", dst, text("%d", len(way.from)), text("0x%xu", v), text("%d", w))
		return
	}
	d := g.datum("k", st.layer, w, way.rest, "constant elements of the output")
	st.calls = append(st.calls, func() string { return fmt.Sprintf("memcpy(%s, %s, %d);", dst(), d.name, len(way.rest)) })
}

// loopNest is a k_move: a loop nest.
type loopNest struct {
	to, from, run      int
	size, toSt, fromSt []int // innermost first
	// table lists the offsets of an outermost loop, whose destinations are tableTo apart.
	table   []int32
	tableTo int
}

// text returns the C initialiser.
func (m *loopNest) text(g *generator, st *step) string {
	size, to, from := slices.Clone(m.size), slices.Clone(m.toSt), slices.Clone(m.fromSt)
	for len(size) < dims-1 {
		size, to, from = append(size, 1), append(to, 0), append(from, 0)
	}
	table := ""
	if m.table != nil {
		size, to, from = append(size, len(m.table)), append(to, m.tableTo), append(from, 0)
		table = ", .table = (const int32_t *)" + integers(g, "at", st.layer, 4, m.table, "places").name
	} else if len(size) < dims {
		size, to, from = append(size, 1), append(to, 0), append(from, 0)
	}
	for _, v := range [][]int{size, to, from} {
		slices.Reverse(v)
	}
	list := func(v []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]") }
	return fmt.Sprintf(".to = %d, .from = %d, .run = %d, .size = {%s}, .to_step = {%s}, .from_step = {%s}%s", m.to, m.from, m.run, list(size), list(to), list(from), table)
}

// mostMoves bounds the k_move calls of one operator.
const mostMoves = 256

// nests finds loop nests for the moves: runs of adjacent elements first, then constant strides of
// runs, strides of strides and so on.
func nests(to, from []int32, w int) ([]*loopNest, error) {
	run := runLength(to, from)
	var t, f []int32
	for i := 0; i < len(to); i += run {
		t, f = append(t, to[i]*int32(w)), append(f, from[i]*int32(w))
	}
	for _, most := range []int{0, mostPlaces} {
		if m := nestOf(t, f, run*w, most); m != nil {
			return []*loopNest{m}, nil
		}
	}
	// Irregular order: one nest for each arithmetic progression.
	var out []*loopNest
	for i := 0; i < len(t); {
		n := progression(t[i:], f[i:])
		m := &loopNest{to: int(t[i]), from: int(f[i]), run: run * w}
		if n > 1 {
			m.size, m.toSt, m.fromSt = []int{n}, []int{int(t[i+1] - t[i])}, []int{int(f[i+1] - f[i])}
		}
		out = append(out, m)
		i += n
		if len(out) > mostMoves {
			return nil, unsupported("it moves elements in no regular order")
		}
	}
	return out, nil
}

// runLength returns the largest length that divides all runs of adjacent elements.
func runLength(to, from []int32) int {
	all, n := 0, 1
	for i := 1; i <= len(to); i++ {
		if i < len(to) && to[i] == to[i-1]+1 && from[i] == from[i-1]+1 {
			n++
			continue
		}
		all, n = gcd(all, n), 1
	}
	return all
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// progression returns the number of leading elements that form an arithmetic progression in both
// lists.
func progression(t, f []int32) int {
	if len(t) < 2 {
		return len(t)
	}
	n := 2
	for n < len(t) && t[n]-t[n-1] == t[1]-t[0] && f[n]-f[n-1] == f[1]-f[0] {
		n++
	}
	return n
}

// mostPlaces bounds a table of offsets if a short one is not enough.
const mostPlaces = 8192

// nestOf returns one nest for all runs, nil if that is not possible. If most is positive, a
// single table may hold up to that many irregular offsets.
func nestOf(t, f []int32, run, most int) *loopNest {
	m := &loopNest{to: int(t[0]), from: int(f[0]), run: run}
	for len(t) > 1 {
		n := evenBlocks(t, f)
		if n > 1 {
			m.add(n, int(t[1]-t[0]), int(f[1]-f[0]))
			t, f = every(t, n), every(f, n)
			continue
		}
		if m.table != nil || !m.tabulate(t, f, most > 0) || most > 0 && len(m.table) > most {
			return nil
		}
		n = len(m.table)
		t, f = every(t, n), every(f, n)
	}
	if len(m.size) > dims-1 && m.table != nil || len(m.size) > dims {
		return nil
	}
	return m
}

func (m *loopNest) add(n, to, from int) {
	m.size, m.toSt, m.fromSt = append(m.size, n), append(m.toSt, to), append(m.fromSt, from)
}

func every(v []int32, n int) []int32 {
	out := make([]int32, 0, len(v)/n)
	for i := 0; i < len(v); i += n {
		out = append(out, v[i])
	}
	return out
}

// evenBlocks returns the largest n such that every block of n elements advances by the strides of
// the first two, 1 if absent.
func evenBlocks(t, f []int32) int {
	n := len(t)
	for i := 1; i < len(t); i++ {
		if t[i]-t[i-1] != t[1]-t[0] || f[i]-f[i-1] != f[1]-f[0] {
			n = gcd(n, i)
		}
	}
	return n
}

// tabulate finds the shortest list of offsets that repeats with a constant stride, with
// destinations advancing evenly in it. If all is set, the list covers everything.
func (m *loopNest) tabulate(t, f []int32, all bool) bool {
	most := 1
	for most < len(t) && t[most]-t[most-1] == t[1]-t[0] {
		most++
	}
	for n := 2; n <= most; n++ {
		if len(t)%n != 0 || all && n < len(t) || !repeats(t, n) || !repeats(f, n) {
			continue
		}
		m.table = make([]int32, n)
		for i := range m.table {
			m.table[i] = f[i] - f[0]
		}
		m.tableTo = int(t[1] - t[0])
		return true
	}
	return false
}

// repeats reports whether each block of n elements is the first block shifted by a constant.
func repeats(v []int32, n int) bool {
	for i := n; i < len(v); i++ {
		if v[i]-v[i-n] != v[i/n*n]-v[i/n*n-n] {
			return false
		}
	}
	return true
}
