package push

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/server/store"
	"github.com/opmeter/opmeter/internal/server/work"
	"github.com/opmeter/opmeter/profile/compare"
)

// maxBases bounds the commits that a server is asked about.
const maxBases = 200

// Bases lists the commits that a change compares with, by the repository of a folder: the base that
// opmeter gate chooses and its first parents, or only the commit that the user names. It is empty
// where nothing is known and nobody asked.
func Bases(ctx context.Context, dir, want string, env func(string) string) ([]string, error) {
	repo, err := gate.OpenRepo(ctx, dir)
	if err != nil {
		if want == "" || ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return []string{want}, nil // the server may know the commit
	}
	base, err := gate.FindBase(ctx, repo, nil, &gate.Store{}, cmp.Or(want, gate.Auto), env)
	switch {
	case err != nil && want != "":
		return nil, fmt.Errorf("--base %s: %w", want, err)
	case err != nil:
		return nil, err
	case base.Commit == "":
		return nil, nil
	case base.Kind == gate.Revision:
		return []string{base.Commit}, nil
	}
	return repo.FirstParents(ctx, base.Commit, maxBases)
}

// ran is what of a run is read.
type ran struct {
	store.Run
	About store.Series `json:"about"`
}

// pair is a run with its base.
type pair struct {
	path      string // of the file
	failed    string // why there is no run
	run, base ran
	link      string         // of the comparison, "" without a base
	table     *compare.Table // nil without a base or a comment
}

// baseName is what the base is called.
func (p *pair) baseName() string {
	if p.base.Commit == "" {
		return "the run of " + time.UnixMilli(p.base.Created).UTC().Format(time.DateOnly)
	}
	return "commit " + text.Clean(p.base.Commit[:min(len(p.base.Commit), 10)])
}

// compared asks for the base of a run and, for a comment, for the comparison.
func (o *Options) compared(ctx context.Context, path, id string) (p pair, err error) {
	p.path, id = path, url.PathEscape(id)
	if _, err := o.Server.Call(ctx, http.MethodGet, "/runs/"+id, nil, &p.run); err != nil {
		return p, err
	}
	query := url.Values{"commits": {strings.Join(o.Bases, ",")}}
	_, err = o.Server.Call(ctx, http.MethodGet, "/runs/"+id+"/base?"+query.Encode(), nil, &p.base)
	if no, ok := errors.AsType[*work.Problem](err); ok && no.Status == http.StatusNotFound {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if o.Named && !slices.Contains(o.Bases, p.base.Commit) {
		p.base = ran{} // the newest of the main branch, for which nobody asked
		return p, nil
	}
	runs := "?runs=" + url.QueryEscape(p.base.ID) + "," + id
	p.link = o.at("/compare" + runs)
	if o.Comment == nil {
		return p, nil
	}
	p.table = &compare.Table{}
	_, err = o.Server.Call(ctx, http.MethodGet, "/comparison"+runs, nil, p.table)
	if bad, ok := errors.AsType[*work.Problem](err); ok && bad.Status == http.StatusUnprocessableEntity {
		p.table = nil // such as studies, or other models: the page says why
		return p, nil
	}
	return p, err
}

// noBase says why there is nothing to compare with.
func (o *Options) noBase() string {
	if o.Named {
		return "the server has no run of this model, target and engine of the commit " + text.Clean(strings.Join(o.Bases, ", ")) + " that --base names"
	}
	return "no earlier run of this model, target and engine to compare with"
}

// comment writes the text for a pull request. Its first line lets a program find it again.
func (o *Options) comment(pairs []pair) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- opmeter push %s -->\n", strings.ReplaceAll(url.PathEscape(o.Project), "-", "%2D"))
	res := gate.Result{Commit: o.Labels.Commit}
	for i := range pairs {
		p := &pairs[i]
		j := gate.Job{Model: cmp.Or(p.run.About.Model, "model"), Target: p.run.About.Target}
		switch {
		case p.failed != "":
			j.Model, j.Target, j.Error = filepath.Base(p.path), "the server", p.failed
		case p.link == "":
			j.Error = o.noBase()
		case p.table == nil:
			j.Error = "the two runs do not compare"
		default:
			j.Figures = rows(p.table)
			j.Notes = []string{"compared with " + p.baseName()}
		}
		res.Jobs = append(res.Jobs, j)
	}
	res.Decide()
	b.WriteString(res.Comment())
	b.WriteString("\n")
	for i := range pairs {
		p := &pairs[i]
		if p.failed != "" {
			continue
		}
		name := text.Markdown(cmp.Or(p.run.About.Model, "model") + " on " + p.run.About.Target)
		fmt.Fprintf(&b, "- %s: [profile](<%s>)", name, o.at("/runs/"+p.run.ID))
		if p.link != "" {
			fmt.Fprintf(&b, ", [comparison](<%s>)", p.link)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// rows judges the figures of a comparison by the built-in rules of opmeter gate. Figures without a
// rule do not decide.
func rows(t *compare.Table) (out []gate.Row) {
	rules := map[string]gate.Rule{}
	for _, r := range gate.Default().Rules {
		rules[r.Figure] = r
	}
	for i := range t.Whole {
		w := &t.Whole[i]
		q, known := gate.Lookup(w.Key)
		if !known || len(w.Figures) != 2 || len(w.Ratios) != 2 || len(w.Comparable) != 2 || len(w.Why) != 2 {
			continue
		}
		rule, ok := rules[w.Key]
		if !ok {
			rule = gate.Rule{Figure: w.Key, Better: gate.Lower}
			if q.Better > 0 {
				rule.Better = gate.Higher
			}
		}
		base, fresh, ratio := &w.Figures[0], &w.Figures[1], &w.Ratios[1]
		switch {
		case base.Value == nil || fresh.Value == nil:
			continue
		case !w.Comparable[1]:
			out = append(out, undecided(&rule, base, fresh, "does not compare: "+string(w.Why[1])))
		case base.Interval == compare.Exact && fresh.Interval == compare.Exact:
			out = append(out, gate.Judge([]gate.Rule{rule}, side(w.Key, *base.Value), side(w.Key, *fresh.Value), true)...)
		case ratio.Value == nil || ratio.Low == nil || ratio.High == nil:
			rule.Required = false
			out = append(out, undecided(&rule, base, fresh, "it has no interval"))
		default:
			out = append(out, measured(&rule, *base.Value, *fresh.Value, ratio))
		}
	}
	return out
}

// measured judges by the interval of a ratio.
func measured(rule *gate.Rule, base, fresh float64, r *compare.Ratio) gate.Row {
	if rule.Better != gate.Higher {
		return gate.Measured(rule, base, fresh, gate.Interval{Ratio: *r.Value, Low: *r.Low, High: *r.High})
	}
	// The gate judges costs. The cost is the inverse.
	row := gate.Measured(rule, fresh, base, gate.Interval{Ratio: 1 / *r.Value, Low: 1 / *r.High, High: 1 / *r.Low})
	row.Base, row.New, row.Ratio, row.Low, row.High = &base, &fresh, r.Value, r.Low, r.High
	return row
}

func side(key string, v float64) *gate.Side { return &gate.Side{Figures: map[string]float64{key: v}} }

func undecided(rule *gate.Rule, base, fresh *compare.Figure, why string) gate.Row {
	r := rule.Without(gate.Undecided, why)
	r.Base, r.New = base.Value, fresh.Value
	return r
}
