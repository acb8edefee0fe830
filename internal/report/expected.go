package report

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opmeter/opmeter/profile"
)

// Expect fills in the expected time of p's layers from another profile of the
// same model, such as an estimate made before p was measured. Findings say where
// the times come from and which layers have none.
func Expect(p, from *profile.Profile) error {
	a, b := &p.Model, &from.Model
	if a.SHA256 != "" && b.SHA256 != "" && a.SHA256 != b.SHA256 {
		return fmt.Errorf("the profiles are of different models: %s (SHA-256 %.12s…) and %s (%.12s…)", a.Name, a.SHA256, b.Name, b.SHA256)
	}
	if !slices.ContainsFunc(from.Layers, timed) {
		return errors.New("no layer of the profile with the expected times has a time")
	}
	if !slices.ContainsFunc(p.Layers, timed) {
		return errors.New("no layer of the profile has a time to compare with")
	}
	pairs := match(p.Layers, from.Layers)
	matched, replaced := 0, 0
	var have, want float64
	var lost []int64
	for i := range p.Layers {
		l := &p.Layers[i]
		if l.Expected != nil {
			replaced++
			l.Expected = nil
		}
		if j := pairs[i]; j >= 0 && from.Layers[j].Latency != nil {
			l.Expected = from.Layers[j].Latency
		}
		switch {
		case !timed(*l):
		case l.Expected == nil:
			lost = append(lost, int64(i))
		default:
			matched++
			t, _ := l.Latency.Best()
			e, _ := l.Expected.Best()
			have += t
			want += e
		}
	}
	if matched == 0 {
		return fmt.Errorf("no layer of %s agrees with one of %s in position, operator and name", a.Name, b.Name)
	}
	text := fmt.Sprintf("Expected times are those of the profile for %s: %s in %s with both, where this one has %s.", targetName(&from.Target), Duration(want), plural(int64(matched), "layer"), Duration(have))
	if p.Target.ID != from.Target.ID {
		text += fmt.Sprintf(" That is another target than %s, so the ratio compares targets as well as the estimate.", targetName(&p.Target))
	}
	if a.SHA256 == "" || b.SHA256 == "" {
		text += " Whether both are of the same file is not known, because the hash of one is not: layers were matched by position, operator and name."
	}
	if replaced > 0 {
		text += fmt.Sprintf(" They replace those that %s had.", plural(int64(replaced), "layer"))
	}
	p.Findings = append(p.Findings, profile.Finding{ID: "expected.source", Severity: profile.Info, Text: text})
	if len(lost) > 0 {
		p.Findings = append(p.Findings, profile.Finding{
			ID: "expected.unmatched", Severity: profile.Warning, Layers: lost,
			Text: fmt.Sprintf("No expected time for %s: the other profile has no time for it, or no layer of that position, operator and name.", plural(int64(len(lost)), "layer")),
		})
	}
	return nil
}

func timed(l profile.Layer) bool {
	_, ok := l.Latency.Best()
	return ok
}

func targetName(t *profile.Target) string {
	if t.Description != "" {
		return t.Description
	}
	return t.ID
}

// match gives for each layer of a the index of the one of b that is the same, or
// -1. Those that agree in position, operator and name go first; the rest go by
// graph, operator and name where these stand for one layer alone, because engines
// fold and fuse differently.
func match(a, b []profile.Layer) []int {
	out := make([]int, len(a))
	taken := make([]bool, len(b))
	for i := range a {
		out[i] = -1
		if i < len(b) && a[i].Op == b[i].Op && a[i].Name == b[i].Name && a[i].Graph == b[i].Graph {
			out[i], taken[i] = i, true
		}
	}
	type key struct{ graph, op, name string }
	of := func(l *profile.Layer) key { return key{l.Graph, l.Op, l.Name} }
	index := map[key]int{}
	for j := range b {
		if taken[j] || b[j].Name == "" {
			continue
		}
		if _, twice := index[of(&b[j])]; twice {
			index[of(&b[j])] = -1
			continue
		}
		index[of(&b[j])] = j
	}
	for i := range a {
		if j, ok := index[of(&a[i])]; out[i] < 0 && ok && j >= 0 {
			out[i] = j
			index[of(&a[i])] = -1 // the second layer of a that has this name is not the one
		}
	}
	return out
}
