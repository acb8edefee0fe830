package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// prepared is a job with both versions.
type prepared struct {
	*gateJob
	fresh *taken
	base  origin
	at    int // its place in the result
}

// run judges the matrix and shows the result.
func (g *gateRun) run(ctx context.Context, args []string) error {
	defer g.close()
	jobs, err := g.jobs(args)
	if err != nil {
		return err
	}
	base, since, err := g.base(ctx, jobs)
	if err != nil {
		return err
	}
	res := &gate.Result{
		Schema: gate.SchemaV1, Version: g.version(), Created: g.stamp(), Base: base,
		Policy: g.rules.File, PolicySHA256: g.rules.SHA256, Notes: g.store.Notes,
	}
	if g.repo != nil {
		res.Commit, res.Dirty = g.repo.Head, g.repo.Dirty(ctx)
	}
	var faults []error
	var all []prepared
	for i := range jobs {
		p, fault := g.judge(ctx, &jobs[i], &base, since, res)
		if ctx.Err() != nil {
			return told(ctx.Err())
		}
		faults = append(faults, fault)
		if fault == nil {
			all = append(all, p)
		}
	}
	if err := g.gone(ctx, args, jobs, &base, res); err != nil {
		return withStatus(statusSource, err)
	}
	faults = append(faults, g.measureAll(ctx, all, res))
	for i := range all {
		all[i].compared(&res.Jobs[all[i].at])
	}
	res.Acknowledge(g.store, g.now)
	res.Decide()
	if g.f.record {
		faults = append(faults, g.recordAll(all, res))
	}
	return errors.Join(errors.Join(faults...), g.show(res))
}

// base chooses the base, and what was accepted after it.
func (g *gateRun) base(ctx context.Context, jobs []gateJob) (gate.Base, *gate.Store, error) {
	none := &gate.Store{}
	if strings.HasSuffix(g.f.base, profile.Extension) {
		if len(jobs) > 1 {
			return gate.Base{}, nil, useError("--base %s is of one model and target, and there are %d", g.f.base, len(jobs))
		}
		p, err := readProfile(g.f.base)
		if err != nil {
			return gate.Base{}, nil, err
		}
		g.saved = p
		return gate.Base{Kind: gate.Saved, Ref: g.f.base}, none, nil
	}
	b, err := gate.FindBase(ctx, g.repo, g.why, g.store, g.f.base, g.env)
	if err != nil {
		return b, nil, withStatus(statusUse, err)
	}
	if g.f.base != gate.Auto || b.Commit == "" {
		return b, none, nil
	}
	old, err := g.storeAt(ctx, b.Commit)
	if err != nil {
		return b, nil, withStatus(statusSource, err)
	}
	return b, g.store.Since(old), nil
}

// suits refuses a saved profile as the base of another target: its figures do not compare.
func (g *gateRun) suits(j *gateJob, fresh *taken) error {
	if g.saved == nil {
		return nil
	}
	if have, want := g.saved.Target, fresh.side.Profile.Target; have.ID != want.ID || have.Kind != want.Kind {
		return useError("--base %s is a profile of %s, and %s is judged on %s: figures do not compare; name that target with --on, or another profile", g.f.base, cmp.Or(have.ID, string(have.Kind)), j.name, j.target)
	}
	return nil
}

// another says how the model of a saved profile differs from the one that is judged, "" for not.
func another(saved, fresh *profile.Profile) string {
	shapes := func(p *profile.Profile) (out []string) {
		for i := range p.Model.Inputs {
			out = append(out, fmt.Sprint(p.Model.Inputs[i].Shape))
		}
		return out
	}
	switch {
	case saved.Model.Name != fresh.Model.Name:
		return fmt.Sprintf("the base is a profile of another model, %s; this one is %s", saved.Model.Name, fresh.Model.Name)
	case !slices.Equal(shapes(saved), shapes(fresh)):
		return "the inputs of the base have other shapes"
	}
	return ""
}

// storeAt reads the index of a commit.
func (g *gateRun) storeAt(ctx context.Context, commit string) (*gate.Store, error) {
	empty := &gate.Store{}
	index, ok := g.repo.Relative(filepath.Join(g.store.Dir, gate.BaselineDir, gate.IndexFile))
	if !ok {
		return empty, nil
	}
	blob, err := g.repo.Blob(ctx, commit, index)
	if err != nil || blob == "" {
		return empty, err
	}
	dir, err := g.folder()
	if err != nil {
		return nil, err
	}
	at := filepath.Join(dir, "index", gate.BaselineDir)
	if err := os.MkdirAll(at, 0o700); err != nil {
		return nil, err
	}
	if err := g.repo.Extract(ctx, blob, index, filepath.Join(at, gate.IndexFile)); err != nil {
		return nil, err
	}
	return gate.Open(filepath.Dir(at))
}

// judge judges the exact figures of a job. fault is the error of a model that cannot be read.
func (g *gateRun) judge(ctx context.Context, j *gateJob, b *gate.Base, since *gate.Store, res *gate.Result) (p prepared, fault error) {
	at := len(res.Jobs)
	res.Jobs = append(res.Jobs, gate.Job{Model: j.name, Target: j.target, Settings: j.settings()})
	out := &res.Jobs[at]
	fresh, err := g.take(ctx, j, j.path)
	if err != nil {
		out.Error = oneLine(err.Error())
		return p, err
	}
	if err := g.suits(j, fresh); err != nil {
		out.Error = oneLine(err.Error())
		return p, err
	}
	out.Machine, out.SHA256 = fresh.machine, fresh.sha256
	out.Notes = append(out.Notes, fresh.notes...)
	if fresh.outputs != nil {
		out.OutputsSHA256 = fresh.outputs.Hash()
	}
	o := g.baseOf(ctx, j, fresh, b, since)
	out.From = o.from
	if o.note != "" {
		out.Notes = append(out.Notes, o.note)
	}
	var side *gate.Side
	if o.taken != nil {
		side, out.BaseSHA256 = o.side, o.sha256
		if o.taken != fresh {
			out.Notes = append(out.Notes, g.outputs(fresh, o.taken)...)
		} else if fresh.outputs != nil {
			fresh.side.Figures[gate.OutputError] = 0
		}
	}
	out.Figures = gate.Judge(j.rules, side, fresh.side, o.known)
	if len(out.Figures) == 0 && j.measured() == nil {
		out.Error = "no figure of the policy is known: add one, such as macs"
		return p, withStatus(statusInput, fmt.Errorf("%s on %s: %s", j.name, j.target, out.Error))
	}
	if side != nil && side != fresh.side && side.Profile != nil {
		out.Layers = gate.Changes(side.Profile, fresh.side.Profile, layerFigure(j, out.Figures))
	}
	return prepared{j, fresh, o, at}, nil
}

// compared makes a job undecided of which no figure was compared: its only rule is about a time
// that is not measured.
func (p *prepared) compared(job *gate.Job) {
	isNew := p.base.known && p.base.taken == nil
	if len(job.Figures) == 0 && p.base.taken != p.fresh && !isNew {
		job.Figures = append(job.Figures, p.measured().Without(gate.Undecided, "nothing is compared: the time is not measured; add --measure, or a figure such as macs to the policy"))
	}
}

// outputs compares the outputs of two versions: the figure of the new one, whose base is zero.
func (g *gateRun) outputs(fresh, base *taken) (notes []string) {
	if fresh.outputs == nil || base.outputs == nil {
		return nil
	}
	v, what, ok := fresh.outputs.Difference(base.outputs)
	if !ok {
		return []string{what}
	}
	if base.side.Figures == nil {
		base.side.Figures = map[string]float64{}
	}
	fresh.side.Figures[gate.OutputError], base.side.Figures[gate.OutputError] = v, 0
	if what != "" {
		notes = append(notes, what)
	}
	return notes
}

// layerFigure is the figure by which layers are listed: the first of those that layers have and
// that changed.
func layerFigure(j *gateJob, rows []gate.Row) string {
	if strings.HasPrefix(j.target, gate.EmulatePrefix) {
		return "instructions"
	}
	for _, key := range []string{"macs", "weights_bytes", "params", "bytes_written", "bytes_read"} {
		if slices.ContainsFunc(rows, func(r gate.Row) bool { return r.Figure == key && r.Verdict != gate.Equal }) {
			return key
		}
	}
	return "macs"
}

// show writes the result to the files and to standard output.
func (g *gateRun) show(res *gate.Result) error {
	var failed error
	var wrote []string
	for _, f := range g.f.files {
		if err := res.File(f); err != nil {
			failed = errors.Join(failed, withStatus(statusUse, plainPath(err)))
			continue
		}
		wrote = append(wrote, f)
	}
	if err := res.Write(g.a.out, g.f.format, g.f.all, g.a.width); err != nil {
		failed = errors.Join(failed, fmt.Errorf("standard output: %w", err))
	}
	g.a.sayWrote(wrote, false)
	status := statusDone
	switch res.Verdict {
	case gate.Worse:
		status = statusGate
	case gate.Undecided:
		status = statusUndecided
	}
	if failed != nil || status == statusDone {
		return failed
	}
	return withStatus(status, fmt.Errorf("the gate is not passed: %s", res.Verdict))
}

// records are the records of jobs, for the index.
func (g *gateRun) records(kind string, all []prepared, ctx context.Context) []gate.Record {
	var out []gate.Record
	for i := range all {
		p := &all[i]
		r := gate.Record{
			Kind: kind, Time: g.stamp(), Policy: g.rules.SHA256, Model: p.name, SHA256: p.fresh.sha256, WeightsSHA256: p.fresh.weights,
			Target: p.target, Machine: p.fresh.machine, Settings: p.settings(), Version: g.version(),
			Figures: p.fresh.side.Figures,
		}
		if p.fresh.outputs != nil {
			r.Outputs = p.fresh.outputs.Hash()
		}
		if g.repo != nil {
			r.Commit, r.Dirty, r.Blob = g.repo.Head, g.repo.Dirty(ctx), g.repo.Hash(ctx, p.path)
		}
		out = append(out, r)
	}
	return out
}

// recordAll appends the figures of a run to the index.
func (g *gateRun) recordAll(all []prepared, res *gate.Result) error {
	list := g.records(gate.Ran, all, context.Background())
	for i := range list {
		job := &res.Jobs[all[i].at]
		list[i].Verdict = job.Verdict
		list[i].Figures = maps.Clone(list[i].Figures)
		delete(list[i].Figures, gate.OutputError) // says how it differs from its base only
		for k := range job.Figures {
			if f := &job.Figures[k]; f.Kind == profile.Measured && f.Ratio != nil && f.New != nil {
				list[i].Measured, list[i].On = map[string]float64{f.Figure: *f.New}, thisMachine()
			}
		}
	}
	if err := g.store.Add(list...); err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	return nil
}

// accept makes the figures of the working tree the baselines. Files that are gone are removed.
func (g *gateRun) accept(ctx context.Context, args []string, reason string) error {
	defer g.close()
	list, args, err := g.removals(ctx, args)
	if err != nil {
		return err
	}
	profiles := make([]*profile.Profile, len(list))
	if len(list) == 0 || len(args) > 0 {
		jobs, err := g.jobs(args)
		if err != nil {
			return err
		}
		var all []prepared
		for i := range jobs {
			t, err := g.take(ctx, &jobs[i], jobs[i].path)
			if err != nil {
				return fmt.Errorf("nothing is accepted: %w", err)
			}
			all = append(all, prepared{gateJob: &jobs[i], fresh: t})
			profiles = append(profiles, t.side.Profile)
		}
		list = append(list, g.records(gate.Accepted, all, ctx)...)
	}
	before := make([]*gate.Record, len(list))
	for i := range list {
		list[i].Reason = reason
		if heads := g.store.Heads(list[i].Model, list[i].Target, list[i].Settings); len(heads) > 0 {
			before[i] = heads[len(heads)-1]
		}
	}
	if err := g.store.Accept(list, profiles); err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	for i := range list {
		r := &list[i]
		what := acceptedChange(before[i], r, g.rules.For(r.Model, r.Target))
		if n := len(r.Replaces); n > 1 { // it differs from each of them otherwise
			what = fmt.Sprintf("replaces %d baselines of merged branches", n)
		}
		for k, l := range report.Wrap(fmt.Sprintf("accepted %s on %s: %s", text.Clean(r.Model), r.Target, what), max(g.a.width-2, 0)) {
			fmt.Fprintf(g.a.out, "%s%s\n", strings.Repeat("  ", min(k, 1)), l)
		}
	}
	for _, n := range g.store.Notes {
		fmt.Fprintf(g.a.out, "note: %s\n", text.Clean(n))
	}
	fmt.Fprintf(g.a.out, "commit %s with the change\n", gate.Folder)
	return nil
}

// acceptedChange says which figures of the policy a new baseline changes.
func acceptedChange(old, fresh *gate.Record, rules []gate.Rule) string {
	if fresh.Removed {
		return "removed"
	}
	if old == nil || old.Removed {
		return "first baseline, " + plural(len(fresh.Figures), "figure")
	}
	var list []string
	for i := range rules {
		key := rules[i].Figure
		a, had := old.Figures[key]
		b, has := fresh.Figures[key]
		if had && has && a != b {
			q, _ := gate.Lookup(key)
			list = append(list, fmt.Sprintf("%s %s → %s", q.Name, gate.Amount(a, q.Unit), gate.Amount(b, q.Unit)))
		}
	}
	if len(list) == 0 {
		return "no figure of the policy changed"
	}
	return strings.Join(list, ", ")
}

// close removes the models of the base.
func (g *gateRun) close() {
	if g.remove != nil {
		g.remove()
	}
}
