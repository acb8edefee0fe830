package console

import (
	"math"
	"slices"
	"strings"
)

// Agreement that the figures of a text must have before one that differs is taken for
// damaged: at least enough of them, and this share.
const (
	enough = 5
	most   = 0.8
)

// check marks figures that contradict the shape of the text or other figures. It is asked
// once, when the text has ended.
func (l *Log) check() (contradictions []string) {
	var all []*Figure
	parts := append(l.sorted(), &l.Whole)
	for _, o := range parts {
		all = append(all, o.Figures...)
	}
	for _, f := range all {
		if f.bad {
			l.Damaged++
		}
	}
	l.times(all)
	l.decimals(all)
	l.columns()
	l.rates(parts)
	return l.sums()
}

// sorted lists the operators in order.
func (l *Log) sorted() []*Op {
	out := make([]*Op, 0, len(l.Ops))
	for _, o := range l.Ops {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *Op) int { return int(a.Index - b.Index) })
	return out
}

// spoil takes a figure out.
func (l *Log) spoil(f *Figure) {
	if !f.bad {
		f.bad = true
		l.Damaged++
	}
}

// common is the value that most have, and whether enough of them agree.
func common(values []int) (int, bool) {
	count := map[int]int{}
	best := 0
	for i, v := range values {
		count[v]++
		if i == 0 || count[v] > count[best] {
			best = v
		}
	}
	return best, len(values) >= enough && float64(count[best]) >= most*float64(len(values))
}

// times takes out times in another unit than the others.
func (l *Log) times(all []*Figure) {
	var group []*Figure
	var power []int
	for _, f := range all {
		if p, ok := timePowers[f.Unit]; ok && !f.bad {
			group, power = append(group, f), append(power, p)
		}
	}
	want, agree := common(power)
	for i, f := range group {
		if agree && power[i] != want {
			l.spoil(f)
		}
	}
}

// decimals takes out figures that lost or won decimals. The check is off where numbers are
// printed without trailing zeros, as another program may do.
func (l *Log) decimals(all []*Figure) {
	for _, times := range []bool{true, false} {
		var group []*Figure
		var count []int
		fixed := false
		for _, f := range all {
			isTime := f.Unit == "ms"
			if f.bad || isTime != times || !isTime && f.prefix == "" || f.Unit[0] == '=' {
				continue
			}
			group, count = append(group, f), append(count, f.decimals)
			fixed = fixed || f.decimals > 0 && f.text[len(f.text)-1-len(f.prefix)] == '0'
		}
		want, agree := common(count)
		if !agree || !fixed {
			continue
		}
		for _, f := range group {
			if f.decimals != want {
				l.spoil(f)
			}
		}
	}
}

// columns takes out figures of operators whose digits do not end in the column of the
// others. The check is off where figures are not padded.
func (l *Log) columns() {
	byUnit := map[string][]*Figure{}
	for _, o := range l.sorted() {
		for _, f := range o.Figures {
			if !f.bad && f.Unit[0] != '=' {
				byUnit[f.Unit] = append(byUnit[f.Unit], f)
			}
		}
	}
	for unit, group := range byUnit {
		var at []int
		for _, f := range group {
			at = append(at, f.column)
		}
		want, agree := common(at)
		lengths := map[int]bool{}
		for _, f := range group {
			if f.column == want {
				lengths[f.column-f.digits] = true
			}
		}
		if !agree || len(lengths) < 2 && unit != "ms" {
			continue
		}
		for _, f := range group {
			wider := unit == "ms" && f.digits > 7 && f.column-want == f.digits-7 // a second or more
			// The firmware takes the next prefix above a thousand only.
			wider = wider || f.prefix != "" && f.column-want == 1 && f.text == "1000."+strings.Repeat("0", max(f.decimals, 0))+f.prefix
			if f.column != want && !wider {
				l.spoil(f)
			}
		}
	}
}

// within reports whether two intervals meet, with room for rounding in floating point.
func within(lowA, highA, lowB, highB float64) bool {
	const room = 1e-9
	return lowA <= highB*(1+room) && lowB <= highA*(1+room)
}

// rates compares printed rates with work and time. A time that all rates contradict is taken
// out. The check is off where most times do not agree, as when rates mean something else.
func (l *Log) rates(parts []*Op) {
	type verdict struct {
		time  *Figure
		right bool
	}
	var seen []verdict
	good := 0
	for _, o := range parts {
		t := o.get("ms", "")
		if t == nil || t.Value <= 0 {
			continue
		}
		asked, right := false, false
		for work, rate := range map[string]string{"OPs": "OP/s", "MACs": "MAC/s"} {
			w, r := o.get(work, ""), o.get(rate, "")
			if w == nil || r == nil || w.High/t.Value > math.MaxUint32 {
				continue
			}
			asked = true
			// Integer rates per second are truncated, too.
			right = right || within(w.Value/t.Value-1, w.High/t.Value, r.Value, r.High)
		}
		if asked {
			seen = append(seen, verdict{t, right})
			if right {
				good++
			}
		}
	}
	if len(seen) < 2 || float64(good) < most*float64(len(seen)) {
		return
	}
	for _, v := range seen {
		if !v.right {
			l.spoil(v.time)
		}
	}
}

// sums compares what is printed of the whole with its operators, where none is missing, and says
// which figures do not add up.
func (l *Log) sums() (out []string) {
	ops := l.sorted()
	if int64(len(ops)) != l.last+1 || len(ops) == 0 {
		return nil
	}
	for unit, note := range map[string]string{"CPU cycles": sumNote, "Accelerator cycles": sumNote, "OPs": "", "MACs": ""} {
		w := l.Whole.get(unit, note)
		if w == nil {
			continue
		}
		low, high, n := 0.0, 0.0, 0
		for _, o := range ops {
			for _, f := range o.Figures {
				if f.Unit != unit || f.Note != "" {
					continue
				}
				if f.bad {
					n = -len(ops) // one that is known to be damaged explains a difference
				}
				low, high = low+f.Value, high+f.High
				n++
			}
		}
		if n > 0 && !within(low, high, w.Value, w.High) {
			out = append(out, unit)
		}
	}
	slices.Sort(out)
	low, n := 0.0, 0
	for _, o := range ops {
		if t := o.get("ms", ""); t != nil {
			low += t.Value
			n++
		}
	}
	// The timer counts steps of 30.5 microseconds: each start and end may be off by one.
	const tick = 1.0 / 32768
	if w := l.Whole.get("ms", ""); w != nil && n > 0 && low > w.High+float64(n+1)*tick {
		out = append(out, "time")
	}
	return out
}

// sumNote stands behind figures of the whole that are the sum of the operators.
const sumNote = "sum of all child profilers"
