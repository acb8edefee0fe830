// Package advise says what to change about a model, and what that gains. Rules are data: each has a
// condition on the figures of a profile, an expected gain with a band, where the band comes from,
// and a command that tries it. A rule without a figure stays silent.
//
// Expected gains follow from the profile itself, from estimates of the changed model, or from a
// short run of it: bench/advise measures how far they hold.
package advise

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/shellword"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/profile"
)

// Schema names the format of a [Result] in JSON.
const Schema = "opmeter/advice/v1"

// Facts is what rules know about a model.
type Facts struct {
	// Profile has the figures.
	Profile *profile.Profile
	// Model is the model of the profile, nil if its file is absent or has changed since.
	Model *graph.Model
	// Feed are the inputs of the model.
	Feed inputs.Options
	// Path is the model file and Options the flags of its inputs, as commands repeat them.
	Path    string
	Options []string
	// Estimate estimates a changed model on the target of the profile; nil on this computer.
	Estimate func(*graph.Model) (*profile.Profile, error)
	// Probe measures a variant for a short time; nil where that is not possible.
	Probe func(v *Variant) (*Measured, error)
	// Beside measures another engine interleaved with opmeter's, in several processes; nil where that
	// is not possible.
	Beside func(engine string) (*Measured, error)
	// Fits lists targets that hold the model, fastest first; nil where that is not known.
	Fits func() ([]*profile.Profile, error)

	layers map[int]int // index of the layer by node of the main graph
}

// Figure is a figure that an advice follows from.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitzero"`
}

// Source says where the band of an expected gain comes from.
type Source string

// Sources of bands.
const (
	// FromProbe: a short interleaved run on this computer.
	FromProbe Source = "probe"
	// FromProfile: the figures of the profile and their intervals.
	FromProfile Source = "profile"
	// FromEstimate: the estimate of the changed model with its band.
	FromEstimate Source = "estimate"
	// FromFormat: sizes that follow from the file format.
	FromFormat Source = "format"
)

// Gain is what an advice promises.
type Gain struct {
	// Quantity is the key of the figure that becomes smaller, such as "latency_s".
	Quantity string `json:"quantity"`
	// Before is its value now.
	Before float64 `json:"before"`
	// Ratio is the expected value as a part of Before, below 1. Band has the smallest and the
	// largest ratio to expect.
	Ratio float64    `json:"ratio"`
	Band  [2]float64 `json:"band"`
	// Source says where the band comes from, Basis in words: machine, date, number of models.
	Source Source `json:"source"`
	Basis  string `json:"basis"`
	// Target is the chip to choose, where the gain is that the model runs there.
	Target string `json:"target,omitzero"`
}

// Saved is the expected saving as a part of the figure.
func (g *Gain) Saved() float64 { return 1 - g.Ratio }

// Advice is what one rule says about a model.
type Advice struct {
	// Rule is the code of the rule, Title what to do.
	Rule  string `json:"rule"`
	Title string `json:"title"`
	// Reason says why, with the figures.
	Reason string `json:"reason"`
	// Figures are the figures of the reason.
	Figures []Figure `json:"figures"`
	// Layers are the indices of the layers that it is about.
	Layers []int64 `json:"layers,omitzero"`
	// Gain is what to expect.
	Gain Gain `json:"gain"`
	// Try is a command that tries it. Caveat is what the command does not check.
	Try    string `json:"try"`
	Caveat string `json:"caveat,omitzero"`
	// Costs are figures that become larger.
	Costs string `json:"costs,omitzero"`
	// Tried is the outcome of --try, nil without it.
	Tried *Tried `json:"tried,omitzero"`

	rule  *Rule
	apart bool // the change of the rule does not belong to this advice
	// threads is what --try measures in place of the rule's change, 0 for that
	threads int
}

// Result is all advice about a model.
type Result struct {
	Schema string `json:"schema"`
	// Model and Target name what the advice is about, Engine and Threads how it ran.
	Model   string `json:"model"`
	Target  string `json:"target"`
	Engine  string `json:"engine,omitzero"`
	Threads int    `json:"threads,omitzero"`
	// Blocked says why the model does not run on the target at all.
	Blocked string `json:"blocked,omitzero"`
	// Advice is sorted: what gains most first, figures that do not fit a chip before all others.
	Advice []*Advice `json:"advice"`
	// Silent says of each rule that applies here and has no advice why.
	Silent []Silence `json:"silent"`
}

// Silence says why a rule has no advice.
type Silence struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// About applies the rules to a profile. only names rules by their codes; empty stands for all.
func About(f *Facts, only ...string) *Result {
	p := f.Profile
	r := &Result{Schema: Schema, Model: p.Model.Name, Target: p.Target.ID, Engine: p.Settings.Engine, Advice: []*Advice{}, Silent: []Silence{}}
	if p.Settings.Threads != nil {
		r.Threads = int(*p.Settings.Threads)
	}
	if OnTarget.applies(p) {
		r.Blocked = blocked(p)
	}
	f.index()
	for i := range Rules {
		rule := &Rules[i]
		if len(only) > 0 && !slices.Contains(only, rule.Code) || !rule.Where.applies(p) {
			continue
		}
		list, why := rule.find(f)
		for _, a := range list {
			a.Rule, a.Title, a.rule = rule.Code, rule.Title, rule
			a.Gain.Quantity = cmp.Or(a.Gain.Quantity, rule.Quantity)
			a.Caveat = strings.ReplaceAll(cmp.Or(a.Caveat, rule.Caveat), " MODEL ", " "+shellword.Quote(f.Path)+" ")
			if a.Try == "" {
				a.Try = f.command(rule)
			}
			r.Advice = append(r.Advice, a)
		}
		if len(list) == 0 {
			r.Silent = append(r.Silent, Silence{rule.Code, why})
		}
	}
	sorting.Stable(r.Advice, func(a, b *Advice) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), cmp.Compare(b.Gain.Saved(), a.Gain.Saved()))
	})
	return r
}

// urgency sorts advice: a model that does not fit, then latency, then all other figures.
func urgency(a *Advice) int {
	switch {
	case a.rule.Blocking:
		return 0
	case a.Gain.Quantity == latency:
		return 1
	case a.Gain.Quantity == firstRun: // once, however much it is
		return 3
	}
	return 2
}

// Quantities of gains.
const (
	latency  = "latency_s"
	item     = "item_s"  // time of an item of a batch
	token    = "token_s" // time of a new token
	firstRun = "first_inference_s"
	flash    = "flash_bytes"
	ram      = "ram_bytes"
	missing  = "unsupported_layers"
)

// least is the smallest saving that an advice promises at the pessimistic end of its band. A
// smaller one is lost in the noise of measurements.
const least = 0.02

// promise returns a gain, false if its pessimistic end saves too little.
func promise(before, ratio, low, high float64, source Source, basis string) (Gain, bool) {
	low, high = min(low, ratio), max(high, ratio)
	g := Gain{Before: before, Ratio: ratio, Band: [2]float64{low, high}, Source: source, Basis: basis}
	ok := before > 0 && ratio > 0 && high <= 1-least && !math.IsNaN(ratio+low+high)
	return g, ok
}

// index finds the layers of the nodes of the main graph.
func (f *Facts) index() {
	f.layers = map[int]int{}
	for i := range f.Profile.Layers {
		v := f.Profile.Layers[i].Provenance
		if v == nil {
			continue
		}
		for _, n := range v.SourceNodes {
			if _, ok := f.layers[int(n.Node)]; n.Graph == 0 && !ok {
				f.layers[int(n.Node)] = i
			}
		}
	}
}

// timed returns the time of the whole model in seconds.
func (f *Facts) timed() (float64, bool) {
	v, ok := f.Profile.Totals.Latency.Best()
	return v, ok && v > 0
}

// share is the part of the time that layers take, with the interval of its sum: the intervals of
// the layers are added up, which assumes that they err together.
func (f *Facts) share(layers []int) (share, low, high float64) {
	for _, i := range layers {
		l := &f.Profile.Layers[i]
		if l.Share == nil {
			continue
		}
		share += *l.Share
		if c := l.ShareCI95; c != nil {
			low, high = low+c[0], high+c[1]
		} else {
			low, high = low+*l.Share, high+*l.Share
		}
	}
	return share, max(low, 0), min(high, 1)
}

// indices returns positions as the indices of a profile.
func indices(list []int) []int64 {
	out := make([]int64, len(list))
	for i, at := range list {
		out[i] = int64(at)
	}
	return out
}
