package tflm

import (
	"slices"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tflm"
)

// inference is one inference as far as it could be assembled.
type inference struct {
	at     []int // of each event the operator
	events []tflm.Event
	whole  bool  // all operators are there
	round  int64 // total ticks as printed by a benchmark, -1 for none
}

// assembler splits the events of a device into inferences. The text has no marks for that. There
// is only the order of the operators, and in some firmware other text between inferences. The
// order is the model's if the device runs the model named by the user; otherwise it is learnt
// from the events.
//
// An incomplete inference is kept only if its events cannot belong to another one: between two
// marks, those events that fit one place only. Rows of a table are numbered and need no guess.
type assembler struct {
	model []string // operators of the model named by the user, nil for none
	ops   []string // operators of an inference, nil while unknown

	held   []tflm.Event // while learning
	breaks []int        // begins of groups in held

	cur     inference
	last    int  // operator of the last event, -1 for none
	sure    bool // cur began behind a mark
	bad     bool // cur cannot be right
	begun   bool // the stream was heard from its beginning
	turned  bool // ops may begin in the middle of an inference
	through bool // marks stand within inferences and mean nothing
	round   int64

	emit  func(inference)
	learn func(ops []string) // called once, before the first inference
	lost  int64              // events outside of the announced inferences
	alien map[string]int64   // of tags that are not operators of the model
}

// Limits on what is held while the order is unknown, and on operators.
const (
	maxHeld = 200_000
	maxOps  = 50_000
	maxTags = 100
)

func newAssembler(model []string, begun bool, emit func(inference), learn func([]string)) *assembler {
	return &assembler{model: model, begun: begun, sure: begun, last: -1, round: -1, emit: emit, learn: learn, alien: map[string]int64{}, cur: inference{round: -1}}
}

// event handles the next event.
func (a *assembler) event(e tflm.Event) {
	if a.ops != nil {
		a.place(e)
		return
	}
	if len(a.held) >= maxHeld {
		a.lost++
		return
	}
	a.held = append(a.held, e)
	n := len(a.model)
	if n == 0 {
		a.settle()
		return
	}
	// Do the events since one of the last marks form an inference of the model?
	starts := append([]int{0}, a.breaks...)
	for k := range min(len(starts), 8) {
		from := starts[len(starts)-1-k]
		if len(a.held)-from == n && same(a.held[from:], a.model) {
			a.through = k > 0 && slices.ContainsFunc(a.breaks, func(b int) bool { return b > from && b < len(a.held) })
			a.know(a.model)
			return
		}
	}
	if len(a.held) >= 3*n && a.ofModel() {
		a.know(a.model) // until now lines were lost in each
	}
}

// ofModel reports whether the held events can be the model's operators, apart from lost lines.
func (a *assembler) ofModel() bool {
	have := map[string]bool{}
	for _, op := range a.model {
		have[op] = true
	}
	n := 0
	for _, e := range a.held {
		if have[e.Tag] {
			n++
		}
	}
	return len(a.model) > 0 && 2*n >= len(a.model) && 5*n >= 4*len(a.held)
}

func same(es []tflm.Event, ops []string) bool {
	return slices.EqualFunc(es, ops, func(e tflm.Event, op string) bool { return e.Tag == op })
}

func tags(es []tflm.Event) []string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = e.Tag
	}
	return out
}

// mark says that an inference may end here.
func (a *assembler) mark() {
	if a.ops != nil {
		if !a.through {
			a.finish(true)
			a.sure = true
		}
		return
	}
	n := len(a.held)
	begin := 0
	if k := len(a.breaks); k > 0 {
		begin = a.breaks[k-1]
	}
	if n == begin {
		return
	}
	// Two equal consecutive groups are two inferences.
	if k := len(a.breaks); k > 0 && a.model == nil {
		before := 0
		if k > 1 {
			before = a.breaks[k-2]
		}
		if g := a.held[begin:]; numbered(g) && same(a.held[before:begin], tags(g)) {
			a.breaks = append(a.breaks, n)
			a.know(tags(g))
			return
		}
	}
	a.breaks = append(a.breaks, n)
}

// numbered reports whether no row of a table is missing. Lines of a log have no numbers.
func numbered(es []tflm.Event) bool {
	for i, e := range es {
		if e.Row >= 0 && e.Row != int64(i) {
			return false
		}
	}
	return true
}

// gap says that bytes were lost: the current inference is incomplete.
func (a *assembler) gap() {
	if a.ops == nil {
		a.lost += int64(len(a.held)) // the position of the loss is unknown
		a.held, a.breaks = nil, nil
	} else {
		a.finish(false)
	}
	a.sure = false
}

// again says that a new start of the program follows; drop discards an incomplete inference.
func (a *assembler) again(drop bool) {
	switch {
	case a.ops == nil:
		a.mark()
	case drop:
		a.cur, a.last, a.bad = inference{round: -1}, -1, false
	default:
		a.finish(true)
	}
	a.sure, a.round = true, -1
}

// end handles the held events when the stream ends.
func (a *assembler) end() {
	if a.ops == nil {
		a.mark()
		a.know(a.guess())
		return
	}
	a.finish(true)
}

// guess returns the order of operators by everything held: nil if unknown.
func (a *assembler) guess() []string {
	var groups [][]string
	begin := 0
	for _, b := range a.breaks {
		if g := a.held[begin:b]; len(g) > 0 && numbered(g) {
			groups = append(groups, tags(g))
		}
		begin = b
	}
	if len(groups) == 0 {
		return nil
	}
	count := map[int]int{}
	best := 0
	for i, g := range groups {
		for k := range groups[:i+1] {
			if slices.Equal(groups[k], g) {
				count[k]++
				if count[k] > count[best] || count[k] == count[best] && len(groups[k]) > len(groups[best]) {
					best = k
				}
				break
			}
		}
		if i > 1000 {
			break
		}
	}
	if count[best] >= 2 {
		return groups[best]
	}
	all := tags(a.held)
	if u := cycle(all, 4); u != nil && a.model == nil {
		a.through = len(groups) > 1
		return a.begin(u)
	}
	if p := record.Period(all); p < len(all) && !slices.Equal(all[:p], a.model) {
		a.through = len(groups) > 1
		return all[:p]
	}
	if a.ofModel() {
		return a.model
	}
	if u := unit(all); u != nil {
		a.through = len(groups) > 1
		return u
	}
	return groups[best]
}

// unit returns the longest sequence of operators that occurs twice in a row in a stream with lost
// lines, and covers a good part of it; nil if absent. Begin and end of the stream show
// where an inference begins in it.
func unit(all []string) []string {
	n := len(all)
	if n > 20_000 {
		all, n = all[:20_000], 20_000
	}
	for p := n / 2; p >= 3 && 6*p >= n/8; p-- {
		run := 0
		for i := p; i < n; i++ {
			if all[i] != all[i-p] {
				run = 0
				continue
			}
			if run++; run < p {
				continue
			}
			u := all[i-p+1 : i+1]
			if record.Period(u) < p || alike(u) {
				break
			}
			twice := append(slices.Clone(u), u...)
			for _, end := range [][]string{all[:p], all[n-p:]} {
				for r := range p {
					if slices.Equal(twice[r:r+p], end) {
						return end
					}
				}
			}
			return u
		}
	}
	return nil
}

// alike reports whether all operators are of one kind: their order then shows no beginning.
func alike(ops []string) bool {
	return !slices.ContainsFunc(ops, func(op string) bool { return op != ops[0] })
}

// know starts assembling inferences, with what was held.
func (a *assembler) know(ops []string) {
	held, breaks := a.held, a.breaks
	a.held, a.breaks = nil, nil
	if len(ops) == 0 || len(ops) > maxOps {
		a.lost += int64(len(held))
		return
	}
	a.ops = slices.Clone(ops)
	a.learn(a.ops)
	for i, e := range held {
		if len(breaks) > 0 && breaks[0] == i {
			breaks = breaks[1:]
			a.mark()
		}
		a.place(e)
	}
	if len(breaks) > 0 {
		a.mark()
	}
}

// place finds the operator of an event.
func (a *assembler) place(e tflm.Event) {
	if !slices.Contains(a.ops, e.Tag) {
		if len(a.alien) < maxTags || a.alien[e.Tag] > 0 {
			a.alien[e.Tag]++
		}
		return
	}
	n := len(a.ops)
	at := -1
	if e.Row >= 0 {
		at = int(e.Row % int64(n))
		switch {
		case a.ops[at] != e.Tag:
			a.lost++
			return
		case at <= a.last && at != 0:
			a.bad = true // a number is damaged, this one or an earlier one
			a.lost++
			return
		case at <= a.last:
			a.finish(true)
		}
	} else {
		for k := a.last + 1; k < n && at < 0; k++ {
			if a.ops[k] == e.Tag {
				at = k
			}
		}
		if at < 0 {
			// Lost were the rest of this inference, lines within it, or its mark and the begin of
			// the next.
			a.finish(false)
			at = slices.Index(a.ops, e.Tag)
			a.sure = a.sure && at == 0
		}
	}
	if len(a.cur.events) == 0 && a.round >= 0 {
		a.cur.round, a.round = a.round, -1
	}
	a.cur.at, a.cur.events, a.last = append(a.cur.at, at), append(a.cur.events, e), at
	if at == n-1 && len(a.cur.events) == n {
		a.finish(true)
	}
}

// finish reports the current inference. marked says that it is known to end here.
func (a *assembler) finish(marked bool) {
	x := a.cur
	bad := a.bad
	sure := a.sure && marked
	a.cur, a.last, a.bad = inference{round: -1}, -1, false
	if len(x.events) == 0 {
		return
	}
	x.whole = len(x.events) == len(a.ops) && !bad
	if x.whole {
		a.sure = true
		a.emit(x)
		return
	}
	a.sure = marked
	n := len(x.events)
	switch {
	case bad, a.through && x.events[0].Row < 0:
		x.at, x.events = nil, nil
	case x.events[0].Row >= 0: // rows have numbers
	case !sure:
		x.at, x.events = nil, nil
	default:
		x = a.certain(x)
	}
	a.lost += int64(n - len(x.events))
	a.emit(x)
}

// certain keeps the events that can belong to one operator only, whatever lines were lost.
func (a *assembler) certain(x inference) inference {
	ts := tags(x.events)
	left, right := leftmost(ts, a.ops), rightmost(ts, a.ops)
	y := inference{round: -1}
	for i, e := range x.events {
		if i < len(left) && i < len(right) && left[i] == right[i] {
			y.at, y.events = append(y.at, left[i]), append(y.events, e)
		}
	}
	return y
}

// leftmost embeds a sequence in another as early as possible; the result is shorter if not all of
// it is contained.
func leftmost(part, all []string) []int {
	var out []int
	k := 0
	for _, t := range part {
		for k < len(all) && all[k] != t {
			k++
		}
		if k == len(all) {
			return out
		}
		out = append(out, k)
		k++
	}
	return out
}

// rightmost embeds it as late as possible, nil if not all of it is contained.
func rightmost(part, all []string) []int {
	out := make([]int, len(part))
	k := len(all) - 1
	for i := len(part) - 1; i >= 0; i-- {
		for k >= 0 && all[k] != part[i] {
			k--
		}
		if k < 0 {
			return nil
		}
		out[i] = k
		k--
	}
	return out
}
