package report

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

// Expect fills in the expected time of p's layers from another profile of the
// same model, such as an estimate made before p was measured. Layers are joined by
// the nodes of the model that they do; where an engine fused some, their times are
// summed. Findings say where the times come from, how surely layers were joined, and
// which have none.
func Expect(p, from *profile.Profile) error {
	a, b := &p.Model, &from.Model
	structure := a.StructureSHA256 != "" && a.StructureSHA256 == b.StructureSHA256
	if a.SHA256 != "" && b.SHA256 != "" && a.SHA256 != b.SHA256 && !structure {
		return fmt.Errorf("the profiles are of different models: %s (SHA-256 %.12s…) and %s (%.12s…)", a.Name, a.SHA256, b.Name, b.SHA256)
	}
	if len(timed(from, nil)) == 0 {
		return errors.New("no layer of the profile with the expected times has a time")
	}
	have := timed(p, nil)
	if len(have) == 0 {
		return errors.New("no layer of the profile has a time to compare with")
	}
	replaced := int64(0)
	for i := range p.Layers {
		if p.Layers[i].Expected != nil {
			replaced++
			p.Layers[i].Expected = nil
		}
	}
	joined := map[profile.Confidence]int64{}
	for _, pair := range align.Layers(p, from) {
		joined[pair.Confidence] += expect(p, from, &pair)
	}
	var matched profile.Layers
	var lost []int64
	for _, l := range have {
		if l.Expected != nil {
			matched = append(matched, l)
		} else {
			lost = append(lost, l.Index)
		}
	}
	if len(matched) == 0 {
		return fmt.Errorf("no layer of %s does the same as one of %s", a.Name, b.Name)
	}
	is, _ := matched.Sum("latency_s")
	want := 0.0
	for _, l := range matched {
		v, _ := l.Expected.Best()
		want += v
	}
	text := fmt.Sprintf("Baseline (%s): %s in %s that both profiles have. This profile: %s.", targetName(&from.Target), Duration(want), words.Plural(int64(len(matched)), "layer"), Duration(is))
	if p.Target.ID != from.Target.ID {
		text += fmt.Sprintf(" The baseline is of another target than this profile (%s).", targetName(&p.Target))
	}
	switch {
	case a.SHA256 == "" || b.SHA256 == "":
		text += " Whether both are of the same model file is unknown: one has no hash."
	case a.SHA256 != b.SHA256:
		text += " The two model files have the same structure with other names or weights."
	}
	text += sureness(joined)
	if replaced > 0 {
		text += fmt.Sprintf(" %s had expected times before, which are replaced.", words.Plural(replaced, "layer"))
	}
	p.Findings = append(p.Findings, profile.Finding{ID: "expected.source", Severity: profile.Info, Text: text})
	if len(lost) > 0 {
		p.Findings = append(p.Findings, profile.Finding{
			ID: "expected.unmatched", Severity: profile.Warning, Layers: lost,
			Text: fmt.Sprintf("No expected time for %s: the baseline has no time for the operator, or only for a part of it.", words.Plural(int64(len(lost)), "layer")),
		})
	}
	return nil
}

// sureness says how many layers were joined other than exactly.
func sureness(joined map[profile.Confidence]int64) string {
	var parts []string
	for _, c := range []profile.Confidence{profile.ByTensor, align.ByStructure, profile.ByName, profile.ByOrder, profile.Unknown} {
		if n := joined[c]; n > 0 {
			how := string(c)
			if c == profile.Unknown {
				how = "by uncertain nodes"
			}
			parts = append(parts, words.Plural(n, "layer")+" "+how)
		}
	}
	if parts == nil {
		return ""
	}
	return " Matched " + strings.Join(parts, ", ") + "."
}

// timed lists the layers that have a time of their own, of all with nil or of some.
func timed(p *profile.Profile, of []int64) profile.Layers {
	var ls profile.Layers
	if of == nil {
		ls = p.Select(func(*profile.Layer) bool { return true })
	}
	for _, i := range of {
		ls = append(ls, &p.Layers[i])
	}
	var out profile.Layers
	for _, l := range ls {
		if _, ok := l.Latency.Best(); ok && !l.State.Blank() && l.State != profile.NotReached {
			out = append(out, l)
		}
	}
	return out
}

// whole reports whether no layer of some lacks its time, so that their sum is the
// time of all that they do.
func whole(p *profile.Profile, of []int64) bool {
	for _, i := range of {
		if l := &p.Layers[i]; l.State.Blank() && !l.Constant {
			return false
		}
	}
	return true
}

// expect sets the expected times of one pair and returns how many layers got one.
// Several layers that the other profile has as fewer, or as others, share its time
// in proportion to their own.
func expect(p, from *profile.Profile, pair *align.Pair) int64 {
	if len(pair.A) == 0 || len(pair.B) == 0 || !whole(p, pair.A) || !whole(from, pair.B) {
		return 0
	}
	have, want := timed(p, pair.A), timed(from, pair.B)
	if len(have) == 0 || len(want) == 0 {
		return 0
	}
	sum := want[0].Latency
	if len(want) > 1 {
		sum = together(want)
	}
	if len(have) == 1 {
		have[0].Expected = sum
		return 1
	}
	total, _ := have.Sum("latency_s")
	if total <= 0 {
		return 0
	}
	v, _ := sum.Best()
	for _, l := range have {
		own, _ := l.Latency.Best()
		l.Expected = profile.Value(sum.Kind, v*own/total, fmt.Sprintf("part of the time of %d layers that the other profile has as %d", len(have), len(want)))
	}
	return int64(len(have))
}

// together sums the times of layers. Bands add up as if their errors went
// together, which is the wider reading.
func together(ls profile.Layers) *profile.Metric {
	v, _ := ls.Sum("latency_s")
	m := profile.Value(ls[0].Latency.Kind, v, fmt.Sprintf("sum of %d layers", len(ls)))
	var band [2]float64
	banded := false
	for _, l := range ls {
		own, _ := l.Latency.Best()
		low, high := own, own
		if b := l.Latency.Band; b != nil {
			low, high, banded = b[0], b[1], true
		}
		band[0], band[1] = band[0]+low, band[1]+high
	}
	if banded {
		m.Band = &band
	}
	return m
}

func targetName(t *profile.Target) string {
	if t.Description != "" {
		return t.Description
	}
	return t.ID
}
