package opmeter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/measure/loop"
	"github.com/opmeter/opmeter/internal/measure/phases"
	"github.com/opmeter/opmeter/profile"
)

// Lists are sizes that replace one of the inputs: see [Options.Lists].
type Lists struct {
	// Batches replace Inputs.Batch.
	Batches []int
	// Dims replace those of Inputs.Dims with the same names. Phases have none.
	Dims map[string][]int
}

// combinations is the number of combinations of all sizes, at most one more than limit.
func (l *Lists) combinations(limit int) int {
	n := max(len(l.Batches), 1)
	for _, list := range l.Dims {
		n = min(n*max(len(list), 1), limit+1)
	}
	return n
}

// validate checks the lists without a model.
func (l *Lists) validate(o *Options) error {
	type list struct {
		option, what string
		low          int
		sizes        []int
	}
	lists := []list{{"Lists.Batches", "batches", 1, l.Batches}}
	for name, sizes := range l.Dims {
		if len(sizes) == 0 {
			return wrong("Lists.Dims", "dimension %q has no sizes", name)
		}
		if _, ok := o.Inputs.Dims[name]; ok {
			return wrong("Lists.Dims", "Inputs.Dims has a size of %q, too: leave one out", name)
		}
		lists = append(lists, list{"Lists.Dims", fmt.Sprintf("dimension %q", name), 0, sizes})
	}
	for _, x := range lists {
		for i, v := range x.sizes {
			switch {
			case v < x.low || v > mostTokens:
				return wrong(x.option, "use %d to %d for %s, not %d", x.low, mostTokens, x.what, v)
			case slices.Contains(x.sizes[:i], v):
				return wrong(x.option, "%s: %d is there twice", x.what, v)
			}
		}
	}
	if n := l.combinations(mostPhases); n > mostPhases {
		return wrong("Lists", "these are more than %d combinations: use fewer sizes", mostPhases)
	}
	for _, x := range append(alone(o), []exclusion{
		{"Inputs.Batch", len(l.Batches) > 0 && o.Inputs.Batch > 0},
		{"Lists.Dims", o.Phases != nil && len(l.Dims) > 0},
	}...) {
		if x.set {
			return wrong(x.name, "%s", "leave it out: it does not go with lists of sizes")
		}
	}
	return nil
}

// exclusion is an option that does not go with another.
type exclusion struct {
	name string
	set  bool
}

// alone are the options of a single inference.
func alone(o *Options) []exclusion {
	return []exclusion{
		{"Engine", isProgram(o.Engine)},
		{"Carry", len(o.Carry) > 0},
		{"Streams", o.Streams > 1},
		{"Rate", o.Rate > 0},
		{"Cold", o.Cold != ""},
		{"Interleaver", o.Interleaver != nil},
	}
}

// batches are those that phases are measured with.
func (o *Options) batches() []int {
	if o.Lists != nil && len(o.Lists.Batches) > 0 {
		return slices.Sorted(slices.Values(o.Lists.Batches))
	}
	return []int{max(o.Inputs.Batch, 1)}
}

// shapes are the combinations of sizes as inputs, with names: "batch 4, rows 64".
func (o *Options) shapes() (all []Inputs, names []string) {
	all, names = []Inputs{o.Inputs}, []string{""}
	expand := func(name string, sizes []int, set func(in *Inputs, size int)) {
		if len(sizes) == 0 {
			return
		}
		var more []Inputs
		var longer []string
		for i, in := range all {
			for _, n := range slices.Sorted(slices.Values(sizes)) {
				next := in
				set(&next, n)
				more = append(more, next)
				longer = append(longer, strings.TrimPrefix(fmt.Sprintf("%s, %s %d", names[i], name, n), ", "))
			}
		}
		all, names = more, longer
	}
	expand("batch", o.Lists.Batches, func(in *Inputs, n int) { in.Batch = n })
	for _, name := range slices.Sorted(maps.Keys(o.Lists.Dims)) {
		expand(name, o.Lists.Dims[name], func(in *Inputs, n int) {
			dims := map[string]int{name: n}
			for k, v := range in.Dims {
				if k != name {
					dims[k] = v
				}
			}
			in.Dims = dims
		})
	}
	return all, names
}

// profileLists measures an inference in each combination of sizes, interleaved, and makes one profile
// of them.
func (m *Model) profileLists(ctx context.Context, o Options) (*profile.Profile, error) {
	h, err := o.host(m)
	if err != nil {
		return nil, err
	}
	shapes, names := o.shapes()
	runs, parts := make([]phases.Run, len(shapes)), make([]part, len(shapes))
	for i, name := range names {
		runs[i].Shapes, parts[i].m = name, m
	}
	each := 2 * parts[0].weights()
	return measureRuns(ctx, o, runs, parts, h.Feed.MaxBytes <= 0 || each < h.Feed.MaxBytes/len(runs),
		func(i int, one *Options) { one.Inputs = shapes[i] },
		func() *profile.Profile { return phases.MergeShapes(runs) })
}

// measureRuns measures runs, interleaved if all fit into the memory together, and merges their
// profiles. The options of each are set before.
func measureRuns(ctx context.Context, o Options, runs []phases.Run, parts []part, fit bool, set func(i int, o *Options), merge func() *profile.Profile) (*profile.Profile, error) {
	release, err := loop.Lease(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	// Each measurement sets the memory limit: they end in any order.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	g := group{together: fit, count: len(runs)}
	errs := make([]error, len(runs))
	var all sync.WaitGroup
	report := share(o.Progress, len(runs))
	for i := range runs {
		one := o
		one.Phases, one.Lists, one.Progress = nil, nil, report(i)
		set(i, &one)
		if i < len(runs)-1 {
			one.Journal = ""
		}
		measure := func() { errs[i] = g.measure(ctx, parts[i].m, one, &runs[i]) }
		if g.together {
			all.Go(measure)
		} else {
			measure()
		}
	}
	all.Wait()
	p := merge()
	if p == nil {
		return nil, errors.Join(errs[0], ctx.Err())
	}
	if !g.together {
		p.Findings = append(p.Findings, profile.Finding{
			ID: "phases.apart", Severity: profile.Info,
			Text: "The runs were measured one after the other: the memory does not hold the model once for each. --max-memory sets another limit.",
		})
	}
	for i, err := range errs {
		if err == nil {
			err = runs[i].Err()
		}
		if err != nil && ctx.Err() == nil {
			return p, fmt.Errorf("%s: %w", runs[i].Name(), err)
		}
	}
	return p, p.Validate()
}
