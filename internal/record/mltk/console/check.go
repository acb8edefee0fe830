package console

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// A figure that differs is damaged only if at least enough figures, and this share of them, agree.
const (
	enough = 5
	most   = 0.8
)

// check marks figures that contradict the shape of the text or other figures. It is called
// once, at the end of the text.
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
	// A time in another unit than the others is wrong.
	l.uniform(all, isTime, func(f *Figure) int { return timePowers[f.Unit] })
	// So is a figure with more or fewer decimals. Numbers without trailing zeros, as other programs
	// print them, are not checked.
	decimals := func(f *Figure) int { return f.decimals }
	padded := func(f *Figure) bool { return f.decimals > 0 && f.text[len(f.text)-1-len(f.prefix)] == '0' }
	for _, of := range []func(f *Figure) bool{
		func(f *Figure) bool { return f.Unit == "ms" },
		func(f *Figure) bool { return f.Unit != "ms" && f.prefix != "" && f.Unit[0] != '=' },
	} {
		if slices.ContainsFunc(all, func(f *Figure) bool { return !f.bad && of(f) && padded(f) }) {
			l.uniform(all, of, decimals)
		}
	}
	l.columns()
	l.rates(parts)
	return l.sums()
}

func isTime(f *Figure) bool { _, ok := timePowers[f.Unit]; return ok }

// uniform marks figures of a kind whose value differs from that of most.
func (l *Log) uniform(all []*Figure, of func(f *Figure) bool, value func(f *Figure) int) {
	group := slices.DeleteFunc(slices.Clone(all), func(f *Figure) bool { return f.bad || !of(f) })
	want, agree := common(group, value)
	for _, f := range group {
		if agree && value(f) != want {
			l.spoil(f)
		}
	}
}

// sorted lists the operators in order.
func (l *Log) sorted() []*Op {
	return slices.SortedFunc(maps.Values(l.Ops), func(a, b *Op) int { return int(a.Index - b.Index) })
}

// spoil marks a figure as damaged.
func (l *Log) spoil(f *Figure) {
	if !f.bad {
		f.bad = true
		l.Damaged++
	}
}

// common returns the value that most figures have, and whether enough of them agree.
func common(fs []*Figure, value func(f *Figure) int) (int, bool) {
	count := map[int]int{}
	best := 0
	for i, f := range fs {
		v := value(f)
		count[v]++
		if i == 0 || count[v] > count[best] {
			best = v
		}
	}
	return best, len(fs) >= enough && float64(count[best]) >= most*float64(len(fs))
}

// columns marks figures of operators whose digits do not end in the column of the
// others. Figures without padding are not checked.
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
		want, agree := common(group, func(f *Figure) int { return f.column })
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
			// The firmware uses the next prefix above a thousand only.
			wider = wider || f.prefix != "" && f.column-want == 1 && f.text == "1000."+strings.Repeat("0", max(f.decimals, 0))+f.prefix
			if f.column != want && !wider {
				l.spoil(f)
			}
		}
	}
}

// within reports whether two intervals overlap, with a margin for floating-point rounding.
func within(lowA, highA, lowB, highB float64) bool {
	const margin = 1 + 1e-9
	return lowA <= highB*margin && lowB <= highA*margin
}

// rates compares printed rates with work and time, and marks a time that contradicts all rates.
// If most times do not agree, the rates have another meaning and nothing is marked.
func (l *Log) rates(parts []*Op) {
	var seen, wrong []*Figure
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
			seen = append(seen, t)
		}
		if asked && !right {
			wrong = append(wrong, t)
		}
	}
	if len(seen) >= 2 && float64(len(seen)-len(wrong)) >= most*float64(len(seen)) {
		for _, t := range wrong {
			l.spoil(t)
		}
	}
}

// sums compares the figures of the whole model with the sums of its operators, if none is missing.
// It returns the units of figures that do not add up.
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
					n = -len(ops) // a damaged figure explains a difference
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

// sumNote follows figures of the whole model that are the sum of the operators.
const sumNote = "sum of all child profilers"
