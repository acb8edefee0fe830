package compare

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/editdistance"
	"github.com/opmeter/opmeter/profile"
)

// Named is a profile with what tells it from the others, "" for what it says itself.
type Named struct {
	Name    string
	Profile *profile.Profile
	// Repeats are further profiles of the same model and settings, each of a process of its own.
	// Figures are the means over all of them.
	Repeats []*profile.Profile
	// Interleaved says that its inferences were interleaved with those of the other profiles
	// of the table: what disturbed the machine met all of them.
	Interleaved bool
}

// Options say what is compared.
type Options struct {
	// Quantity is the key of a figure, "" for the best one that says what an inference costs and
	// that all profiles have.
	Quantity string
	// By gathers rows.
	By By
}

// OptionError reports a value of [Options] that does not fit the profiles.
type OptionError struct {
	Option string // the field: Quantity or By
	Text   string
}

func (e *OptionError) Error() string { return e.Text }

func wrongOption(option, format string, args ...any) error {
	return &OptionError{option, fmt.Sprintf(format, args...)}
}

// New compares profiles with the first of them, with the usual options. The error says why nothing
// can be compared.
func New(runs []Named) (*Table, error) { return With(runs, Options{}) }

// With compares profiles with the first of them.
func With(runs []Named, o Options) (*Table, error) {
	if len(runs) < 2 || len(runs) > MaxRuns {
		return nil, fmt.Errorf("%d profiles cannot be compared: use 2 to %d", len(runs), MaxRuns)
	}
	b := &builder{named: runs, t: &Table{Schema: SchemaV1, Model: runs[0].Profile.Model.Name, By: o.By}}
	for _, r := range runs {
		b.ps = append(b.ps, r.Profile)
		b.types = append(b.types, executed(r.Profile))
		b.repeats = append(b.repeats, append([]*profile.Profile{r.Profile}, r.Repeats...))
		for _, p := range r.Repeats {
			if err := repeats(r.Profile, p); err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name, err)
			}
		}
	}
	for k := range runs {
		off := [2]float64{hidden(runs[0]), hidden(runs[k])}
		if alternates(b.repeats[0], b.repeats[k]) {
			off = [2]float64{}
		}
		b.errors, b.estimator = append(b.errors, off), append(b.estimator, sameEstimator(runs[0].Profile, runs[k].Profile))
	}
	b.t.Profiles, b.t.Repeats = b.ps, b.repeats
	if err := b.choose(o); err != nil {
		return nil, err
	}
	b.compares()
	b.join()
	b.groups()
	b.insertions()
	b.gather()
	b.figures()
	b.runs(runs)
	b.contribute()
	b.waterfalls()
	b.notes()
	b.whole()
	return b.t, nil
}

// repeats says why a profile cannot be a repetition of another one.
func repeats(first, p *profile.Profile) error {
	x, y := &first.Model, &p.Model
	switch {
	case x.SHA256 != "" && y.SHA256 != "" && x.SHA256 != y.SHA256, len(first.Layers) != len(p.Layers):
		return errors.New("its profiles are of different models: repeated profiles are of one model and one setting")
	case first.Target.ID != p.Target.ID || first.Settings.Engine != p.Settings.Engine:
		return errors.New("its profiles are of different targets or engines: repeated profiles are of one setting")
	case source(first) != source(p):
		return fmt.Errorf("its profiles are %s and %s: repeated profiles are of one kind", source(first), source(p))
	case !sameShapes(first.Model.Inputs, p.Model.Inputs):
		return errors.New("its profiles have different input shapes: repeated profiles are of one setting")
	case apart(first.Settings.Threads, p.Settings.Threads) || apart(first.Settings.Batch, p.Settings.Batch):
		return errors.New("its profiles differ in threads or batch: repeated profiles are of one setting")
	}
	for i := range p.Layers {
		if p.Layers[i].Op != first.Layers[i].Op {
			return errors.New("its profiles have different layers: repeated profiles are of one model and one engine")
		}
	}
	return nil
}

// choose sets the quantity.
func (b *builder) choose(o Options) error {
	if o.By != ByLayer && !slices.Contains(Bys, string(o.By)) {
		return wrongOption("By", "rows cannot be gathered by %q: use one of %s", o.By, strings.Join(Bys, ", "))
	}
	q, err := b.quantity(o.Quantity)
	if err != nil {
		return err
	}
	b.q, b.cost = q, slices.Contains(profile.Costs(), q.Key) || slices.Contains(tokenTimes, q.Key)
	b.counts = o.Quantity == "" && !b.cost
	b.t.Quantity, b.t.Unit, b.t.Topic = q.Key, q.Unit, topicOf(&q)
	return nil
}

// quantity finds what is compared.
func (b *builder) quantity(key string) (profile.Quantity, error) {
	chosen := key == "" // by [common], which may leave runs without the figure
	if chosen {
		var ok bool
		if key, ok = common(b.ps); !ok {
			return profile.Quantity{}, errors.New("the profiles have no figure in common that says what an inference or a token costs: one has times, another none or only counts")
		}
	}
	var q profile.Quantity
	var known []string
	for _, p := range b.ps {
		for _, x := range p.AllQuantities() {
			if x.Key == key {
				q = x
			}
			if _, ok := p.Totals.Value(x.Key); ok && !x.Model && (x.Adds || x.Derived()) && !slices.Contains(known, x.Key) {
				known = append(known, x.Key)
			}
		}
	}
	switch {
	case q.Key == "":
		if slices.ContainsFunc(wholeRows, func(f figureRow) bool { return f.key == key }) {
			return q, wrongOption("Quantity", "%s is a figure of the whole model alone: every comparison shows it", key)
		}
		return q, wrongOption("Quantity", "unknown quantity %q: %sthe profiles have %s; docs/reference/quantities.md explains them", key, editdistance.Suggest(key, known), strings.Join(known, ", "))
	case q.Model && !chosen:
		return q, wrongOption("Quantity", "%s is a figure of the whole model alone: every comparison shows it", key)
	case !q.Adds && !q.Derived() && !chosen:
		return q, wrongOption("Quantity", "%s is a figure that does not add up over layers: it is not compared by rows", key)
	}
	for k, p := range b.ps {
		if _, ok := p.Totals.Value(key); chosen || ok || slices.ContainsFunc(p.Layers, func(l profile.Layer) bool { _, ok := l.Value(key); return ok }) {
			continue
		}
		name := cmp.Or(b.named[k].Name, fmt.Sprintf("profile %d of %d", k+1, len(b.ps)))
		return q, wrongOption("Quantity", "%s has no figure of %s: leave out --quantity, or name a figure of all profiles", name, key)
	}
	return q, nil
}

// tokenTimes are the times of language models without a time of an inference, such as results of
// servers.
var tokenTimes = []string{"tpot_s", "ttft_s"}

// common is the best quantity that says what an inference costs, in all profiles or else in the
// first and another one, or what a token costs. Where none does, it is how much work all of them
// are. A count that layers are missing from says neither.
func common(ps []*profile.Profile) (string, bool) {
	for _, choice := range []struct {
		keys  []string
		least int // how many profiles need the figure, beside the first
	}{
		{profile.Costs(), len(ps) - 1}, {profile.Costs(), 1}, {tokenTimes, len(ps) - 1}, {tokenTimes, 1}, {[]string{"macs", "ops", "weights_bytes"}, len(ps) - 1},
	} {
		for _, key := range choice.keys {
			n := 0
			for k, p := range ps {
				f := whole(p, key, of(p.Totals.Figure(key)))
				if f.Value != nil && !f.Partial {
					n++
				} else if k == 0 {
					break
				}
			}
			if n > choice.least {
				return key, true
			}
		}
	}
	return "", false
}
