package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// pool is the profiles of a model in the order in which they were made.
type pool struct {
	name     string
	profiles []*profile.Profile
}

// read reads the profiles of a folder.
func read(dir string) ([]pool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.opmeter"))
	if err != nil {
		return nil, err
	}
	by := map[string]*pool{}
	for _, f := range files {
		p, err := profile.Read(f)
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(filepath.Base(f), "-")
		if by[name] == nil {
			by[name] = &pool{name: name}
		}
		by[name].profiles = append(by[name].profiles, p)
	}
	var out []pool
	for _, p := range by {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b pool) int { return cmp.Compare(a.name, b.name) })
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no profiles: use -collect", dir)
	}
	return out, nil
}

// design says how the profiles of two sides are chosen of a pool.
type design struct {
	name        string
	n           int // profiles of a side
	consecutive bool
}

var designs = []design{
	{"one each", 1, false},
	{"5 each, alternating", 5, false},
	{"5 each, one side after the other", 5, true},
}

// draw chooses the profiles of two sides. Alternating sides change places at random within each
// pair of neighbours.
func (d design) draw(r *rand.Rand, p *pool) (a, b []*profile.Profile) {
	at := r.Perm(len(p.profiles))[:2*d.n]
	slices.Sort(at)
	if d.consecutive {
		from := r.IntN(len(p.profiles) - 2*d.n + 1)
		a, b = p.profiles[from:from+d.n], p.profiles[from+d.n:from+2*d.n]
		if r.IntN(2) == 0 {
			a, b = b, a
		}
		return a, b
	}
	for i := 0; i < len(at); i += 2 {
		x, y := p.profiles[at[i]], p.profiles[at[i+1]]
		if r.IntN(2) == 0 {
			x, y = y, x
		}
		a, b = append(a, x), append(b, y)
	}
	return a, b
}

// slow returns profiles whose samples are slower by a part: those of one layer, or of all for a
// negative one.
func slow(ps []*profile.Profile, layer int, part float64) []*profile.Profile {
	out := make([]*profile.Profile, len(ps))
	for i, p := range ps {
		c := *p
		c.Layers = slices.Clone(p.Layers)
		share := 1.0
		if layer >= 0 {
			c.Layers[layer] = slower(&p.Layers[layer], 1+part)
			share = 0
			if s := p.Layers[layer].Share; s != nil {
				share = *s
			}
		} else {
			for k := range c.Layers {
				c.Layers[k] = slower(&p.Layers[k], 1+part)
			}
		}
		c.Totals.Latency = times(p.Totals.Latency, 1+part*share)
		c.Totals.LatencySamples = scaled(p.Totals.LatencySamples, 1+part*share)
		out[i] = &c
	}
	return out
}

func slower(l *profile.Layer, by float64) profile.Layer {
	c := *l
	c.Latency, c.Samples = times(l.Latency, by), scaled(l.Samples, by)
	return c
}

func scaled(s []float64, by float64) []float64 {
	out := make([]float64, len(s))
	for i := range s {
		out[i] = s[i] * by
	}
	return out
}

// times is a metric whose samples are all multiplied.
func times(m *profile.Metric, by float64) *profile.Metric {
	if m == nil {
		return nil
	}
	c := *m
	for _, v := range []**float64{&c.Median, &c.Mean, &c.Min, &c.Max, &c.P90, &c.P95, &c.P99, &c.StdDev, &c.MAD} {
		if *v != nil {
			*v = new(**v * by)
		}
	}
	for _, v := range []**[2]float64{&c.CI95, &c.Band} {
		if *v != nil {
			*v = &[2]float64{(*v)[0] * by, (*v)[1] * by}
		}
	}
	return &c
}

// outcome is what a comparison says.
type outcome struct {
	model bool  // the model is said to differ
	rows  []int // the first layers of the rows that are said to differ
}

// judge compares two sides with opmeter.
func judge(a, b []*profile.Profile) (o outcome, err error) {
	t, err := compare.New([]compare.Named{{Name: "a", Profile: a[0], Repeats: a[1:]}, {Name: "b", Profile: b[0], Repeats: b[1:]}})
	if err != nil {
		return o, err
	}
	differs := func(v compare.Verdict) bool { return v == compare.Slower || v == compare.Faster }
	o.model = differs(t.Runs[1].Ratio.Verdict)
	for i := range t.Groups {
		if g := &t.Groups[i]; differs(g.Ratios[1].Verdict) {
			o.rows = append(o.rows, int(slices.Concat(g.Layers...)[0]))
		}
	}
	return o, nil
}
