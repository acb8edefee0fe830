package report

import (
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// sharesLine says whose shares a profile of opmeter's own engine has, and how those of another
// engine differ that was measured beside it. It is empty for other profiles, whose title names the
// engine.
func sharesLine(p *profile.Profile) string {
	timed := slices.ContainsFunc(p.Layers, func(l profile.Layer) bool { return l.Latency != nil })
	if p.Target.Kind != profile.TargetHost || p.Target.Engine != "opmeter" || !timed {
		return ""
	}
	const own = "those of opmeter's own engine"
	o := p.Other
	switch {
	case o == nil && p.Model.Format == "gguf":
		return own + "; those of llama.cpp differ"
	case o == nil:
		return own + "; --engine " + shippedEngine(p) + " measures yours"
	case o.Cause != nil:
		return own + "; --engine " + o.Engine + " measures " + o.Title
	}
	s := own + "; " + o.Name() + " takes "
	mine, _ := p.Totals.Latency.Best()
	theirs, _ := o.Latency.Best()
	s += times(theirs / mine)
	if len(o.Operators) == 0 {
		return s + "; its operators are not known"
	}
	first := o.Operators[0]
	s += fmt.Sprintf(" and names %s first (%.0f %%", first.Op, 100*first.Share)
	same := p.Select(func(l *profile.Layer) bool { return l.OpText() == first.Op })
	if v, ok := same.Sum("share"); ok {
		s += fmt.Sprintf(" instead of %.0f %%", 100*v)
	}
	return s + ")"
}

// times says how long another engine takes in multiples of the own latency.
func times(ratio float64) string {
	if ratio >= 10 {
		return fmt.Sprintf("%.0f times as long", ratio)
	}
	return fmt.Sprintf("%.2g times as long", ratio)
}

// shippedEngine names an engine that models of the format usually run on.
func shippedEngine(p *profile.Profile) string {
	if p.Model.Format == "tflite" {
		return "litert"
	}
	return "onnxruntime"
}
