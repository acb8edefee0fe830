package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
)

// effect is a slow-down of one side.
type effect struct {
	Part  float64 `json:"part"`
	Layer bool    `json:"layer"` // of one layer, the slowest one, else of all layers
}

// effects begin with none: both sides are equal.
var effects = []effect{{}, {0.01, false}, {0.02, false}, {0.05, false}, {0.10, false}, {0.01, true}, {0.02, true}, {0.05, true}, {0.10, true}}

// result counts the comparisons of a design that say that something differs.
type result struct {
	Design string `json:"design"`
	effect
	Draws int `json:"draws"`
	// Model says that the model differs: by opmeter, by the tests with one figure of each process,
	// by the same tests with all inferences. Row says that any row differs, Layer that the changed
	// layer does.
	Model      int `json:"model"`
	Ranks      int `json:"ranks"`
	Welch      int `json:"welch"`
	RanksRuns  int `json:"ranks_all_inferences"`
	WelchRuns  int `json:"welch_all_inferences"`
	Row        int `json:"row"`
	Layer      int `json:"layer_found"`
	OtherLayer int `json:"other_layer"`
}

const level = 0.05

func bench(dir string, draws int, out string) error {
	pools, err := read(dir)
	if err != nil {
		return err
	}
	for _, p := range pools {
		lat := figures(p.profiles)
		fmt.Printf("%s: %d processes, median %.3g ms, spread %.1f %%\n", p.name, len(p.profiles), 1e3*stats.Median(lat), 100*stats.CV(lat))
	}
	fmt.Printf("\n%-32s %-16s %6s | %6s %6s | %6s %6s | %6s %6s %6s\n", "per cent of comparisons", "slower by", "model", "ranks", "t-test", "ranks*", "t*", "row", "layer", "other")
	var all []result
	for _, d := range designs {
		for _, e := range effects {
			r, err := try(pools, d, e, draws)
			if err != nil {
				return err
			}
			all = append(all, r)
			print(r)
		}
	}
	fmt.Println("* all inferences of a process as if they were independent")
	if out == "" {
		return nil
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(b, '\n'), 0o644)
}

func print(r result) {
	name := "nothing"
	switch {
	case r.effect.Layer:
		name = fmt.Sprintf("%.0f %%, one layer", 100*r.Part)
	case r.Part > 0:
		name = fmt.Sprintf("%.0f %%, all", 100*r.Part)
	}
	part := func(n int) string { return fmt.Sprintf("%.1f", 100*float64(n)/float64(r.Draws)) }
	fmt.Printf("%-32s %-16s %6s | %6s %6s | %6s %6s | %6s %6s %6s\n", r.Design, name, part(r.Model), part(r.Ranks), part(r.Welch), part(r.RanksRuns), part(r.WelchRuns), part(r.Row), part(r.Layer), part(r.OtherLayer))
}

// try compares drawn profiles with an effect on the second side.
func try(pools []pool, d design, e effect, draws int) (result, error) {
	out := result{Design: d.name, effect: e, Draws: draws}
	r := rand.New(rand.NewPCG(1, 2)) // the same draws for all effects
	add := func(to *int, yes bool) {
		if yes {
			*to++
		}
	}
	for i := range draws {
		p := &pools[i%len(pools)]
		a, b := d.draw(r, p)
		layer := -1
		if e.Layer {
			layer = slowest(a[0])
		}
		if e.Part > 0 {
			b = slow(b, layer, e.Part)
		}
		o, err := judge(a, b)
		if err != nil {
			return out, err
		}
		add(&out.Model, o.model)
		add(&out.Row, len(o.rows) > 0)
		add(&out.Layer, slices.Contains(o.rows, layer))
		add(&out.OtherLayer, slices.ContainsFunc(o.rows, func(k int) bool { return k != layer }))
		add(&out.Ranks, mannWhitney(figures(a), figures(b)) < level)
		add(&out.Welch, welch(figures(a), figures(b)) < level)
		add(&out.RanksRuns, mannWhitney(samples(a), samples(b)) < level)
		add(&out.WelchRuns, welch(samples(a), samples(b)) < level)
	}
	return out, nil
}

// slowest is the index of the slowest layer.
func slowest(p *profile.Profile) int {
	best, at := 0.0, 0
	for i := range p.Layers {
		if v, ok := p.Layers[i].Latency.Best(); ok && v > best {
			best, at = v, i
		}
	}
	return at
}
