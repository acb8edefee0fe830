package report

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// tokenGroup is the group of quantities of language models.
const tokenGroup = "Language model"

type tokenColumn struct{ key, head string }

// tokenColumns are the columns of a list for the figures of language models.
var tokenColumns = []tokenColumn{
	{"prefill_tokens_per_s", "prefill/s"}, {"decode_tokens_per_s", "decode/s"}, {"ttft_s", "first token"}, {"tpot_s", "per token"},
}

// hasTokens reports whether a profile has a figure of a language model.
func hasTokens(r ListRow) bool {
	return r.Profile != nil && len(tokenFacts(r.Profile)) > 0
}

// otherTokens is the first figure of a language model that has no figure for a column, such as
// the rate of prompt and output together; "" otherwise.
func otherTokens(p *profile.Profile) string {
	facts := tokenFacts(p)
	if len(facts) == 0 || slices.ContainsFunc(tokenColumns, func(c tokenColumn) bool { return p.Totals.Figure(c.key) != nil }) {
		return ""
	}
	value, _, _ := strings.Cut(facts[0].value, " (")
	return strings.ToLower(facts[0].label[:1]) + facts[0].label[1:] + ": " + value
}

// shapeGroup is the group of times in other shapes than those of the profile.
const shapeGroup = "Shapes"

// shapeFacts are the times of inferences in other shapes, a line each.
func shapeFacts(p *profile.Profile) (fs []fact) {
	for _, q := range p.Quantities {
		m := p.Totals.Figure(q.Key)
		if v, ok := m.Best(); ok && q.Group == shapeGroup {
			fs = append(fs, fact{"With " + q.Head, Duration(v) + tokenSpread(m, Duration)})
		}
	}
	return fs
}

// tokenFacts are the figures of a language model, a line each. Lengths have one line together.
func tokenFacts(p *profile.Profile) (fs []fact) {
	var lengths []string
	for _, q := range slices.Concat(profile.Quantities(), p.Quantities) {
		m := p.Totals.Figure(q.Key)
		v, ok := m.Best()
		switch {
		case q.Group != tokenGroup || !ok:
		case q.Unit == "":
			lengths = append(lengths, strings.ToLower(strings.TrimSuffix(q.Name, " tokens"))+" "+digits(v))
		default:
			show := Duration
			if q.Unit == "/s" {
				show = func(v float64) string { return perSecond(v) + " tokens/s" }
			}
			fs = append(fs, fact{q.Name, show(v) + tokenSpread(m, show)})
		}
	}
	if len(lengths) > 0 {
		fs = append(fs, fact{"Tokens", strings.Join(lengths, ", ")})
	}
	return fs
}

// tokenSpread has the estimator and the interval of a figure in brackets, "" if neither is known.
func tokenSpread(m *profile.Metric, show func(float64) string) string {
	var s []string
	if e := m.Estimator(); e != "value" && m.N != nil {
		s = append(s, e+" of "+Count(*m.N))
	} else if e != "value" {
		s = append(s, e)
	}
	switch iv := m.Interval(); {
	case iv != nil:
		s = append(s, "95 % CI "+Range(iv[0], iv[1], show))
	case m.StdDev != nil:
		s = append(s, "standard deviation "+show(*m.StdDev))
	}
	if m.P99 != nil {
		s = append(s, "99 % "+show(*m.P99))
	}
	if len(s) == 0 {
		return ""
	}
	return " (" + strings.Join(s, ", ") + ")"
}
