package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/shellword"
	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/bridge"
	internaldevice "github.com/opmeter/opmeter/internal/device"
	"github.com/opmeter/opmeter/internal/device/firmware/board"
	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/source/outputdiff"
	"github.com/opmeter/opmeter/profile"
)

// gateJob is a model on a target.
type gateJob struct {
	path   string // of the file
	name   string // from the root, with slashes
	target string
	at     string // place of the target in the policy, "" for the command line
	m      modelFlags
	rules  []gate.Rule
}

// settings names the shapes that the figures are for.
func (j *gateJob) settings() string {
	list := slices.Concat(j.m.shapes, j.m.dims)
	if j.m.batch > 0 {
		list = append(list, fmt.Sprintf("batch=%d", j.m.batch))
	}
	slices.Sort(list)
	return cmp.Or(strings.Join(list, ","), "default")
}

// accept is the command that accepts the model.
func (j *gateJob) accept() string {
	return "opmeter gate accept " + shellword.Quote(j.name) + " --reason TEXT"
}

// outputs reports whether a rule is about the outputs.
func (j *gateJob) outputs() bool {
	return j.target == gate.Host && slices.ContainsFunc(j.rules, func(r gate.Rule) bool { return r.Figure == gate.OutputError })
}

// measured is the rule of the time on this computer, nil for none.
func (j *gateJob) measured() *gate.Rule {
	for i := range j.rules {
		if j.rules[i].Measured() {
			return &j.rules[i]
		}
	}
	return nil
}

// mostJobs bounds the matrix of models and targets.
const mostJobs = 10_000

// jobs makes and checks the matrix: the models of the command line, or those of the policy.
func (g *gateRun) jobs(args []string) ([]gateJob, error) {
	jobs, err := g.matrix(args)
	if err == nil {
		err = g.check(jobs)
	}
	if err == nil {
		err = g.used(jobs)
	}
	return jobs, err
}

// matrix lists all models with all of their targets.
func (g *gateRun) matrix(args []string) ([]gateJob, error) {
	targets := slices.Clone(g.f.t.on)
	if g.f.emulate != "" {
		targets = append(targets, gate.EmulatePrefix+g.f.emulate)
	}
	var out []gateJob
	seen := map[[2]string]string{} // the place in the policy, "" for the command line
	add := func(path, target, at string, m modelFlags) error {
		name := g.name(path)
		if first, twice := seen[[2]string{name, target}]; twice {
			err := useError("%s on %s is given twice", name, target)
			if at != "" && first != at {
				err = withStatus(statusInput, fmt.Errorf("%s: %s on %s is given twice, first by %s: remove one", at, name, target, first))
			}
			return err
		}
		seen[[2]string{name, target}] = at
		out = append(out, gateJob{path: path, name: name, target: target, at: at, m: m, rules: g.rules.For(name, target)})
		if len(out) > mostJobs {
			return useError("more than %d models and targets", mostJobs)
		}
		return nil
	}
	if len(args) > 0 {
		files, _, err := expand(args)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if len(g.f.t.on) == 0 {
				for _, e := range g.entriesOf(g.name(f)) {
					for _, t := range e.Targets {
						if err := add(f, t, e.At, g.with(e)); err != nil {
							return nil, err
						}
					}
				}
			}
			for _, t := range targets {
				if err := add(f, t, "", g.with(g.entryFor(g.name(f), t))); err != nil {
					return nil, err
				}
			}
		}
		return out, nil
	}
	for _, e := range g.rules.Models {
		files, err := filepath.Glob(filepath.Join(g.root, filepath.FromSlash(e.Model)))
		if err != nil || len(files) == 0 {
			return nil, withStatus(statusInput, fmt.Errorf("%s: model %s: no such file below %s; if it was removed, remove the entry", g.rules.File, e.Model, g.root))
		}
		for _, f := range files {
			for _, t := range slices.Concat(e.Targets, targets) {
				if err := add(f, t, e.At, g.with(e)); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, useError("name a model file, or list models in %s", filepath.Join(gate.Folder, gate.PolicyFile))
	}
	return out, nil
}

// entriesOf are the entries of the policy for a model; without one it is judged on this computer.
func (g *gateRun) entriesOf(name string) (out []gate.Entry) {
	for _, e := range g.rules.Models {
		if gate.Matches(path.Clean(e.Model), name) {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		out = append(out, gate.Entry{Targets: []string{gate.Host}})
	}
	return out
}

// entryFor is the entry of a model that has a target, else its first one.
func (g *gateRun) entryFor(name, target string) gate.Entry {
	list := g.entriesOf(name)
	i := slices.IndexFunc(list, func(e gate.Entry) bool { return slices.Contains(e.Targets, target) })
	return list[max(i, 0)]
}

// with is the flags of the models with the shapes of an entry.
func (g *gateRun) with(e gate.Entry) modelFlags {
	m := g.f.m
	m.shapes = slices.Concat(e.Shapes, m.shapes)
	return m
}

// used refuses rules of the policy that are for nothing that the gate judges.
func (g *gateRun) used(jobs []gateJob) error {
	var all [][2]string
	for i := range jobs {
		all = append(all, [2]string{jobs[i].name, jobs[i].target})
	}
	for _, e := range g.rules.Models {
		files, err := filepath.Glob(filepath.Join(g.root, filepath.FromSlash(e.Model)))
		if err != nil {
			continue // reported where the models are listed
		}
		for _, f := range files {
			for _, t := range e.Targets {
				all = append(all, [2]string{g.name(f), t})
			}
		}
	}
	return withStatus(statusInput, g.rules.Unused(all))
}

// check refuses targets that do not exist, before any work is done.
func (g *gateRun) check(jobs []gateJob) error {
	seen := map[string]bool{gate.Host: true}
	for i := range jobs {
		target := jobs[i].target
		if seen[target] {
			continue
		}
		seen[target] = true
		if err := g.exists(target); err != nil {
			if at := jobs[i].at; at != "" && !slices.Contains(g.f.t.on, target) {
				why := strings.TrimPrefix(err.Error(), "--on: ")
				err = withStatus(statusInput, fmt.Errorf("%s: targets: %s", at, why))
			}
			return err
		}
	}
	return nil
}

// exists refuses a target that does not exist.
func (g *gateRun) exists(target string) error {
	if name, ok := strings.CutPrefix(target, gate.EmulatePrefix); ok {
		_, err := (&boardFlags{board: name}).find()
		return err
	}
	if _, ok := devicePort(target); ok {
		return useError("%s: a gate measures on no device: use host, a target to estimate for, or %sBOARD", target, gate.EmulatePrefix)
	}
	set, faults, err := g.f.t.load()
	if err != nil {
		return err
	}
	if _, err := set.Find(target); err != nil {
		return withFaults(told(err), faults)
	}
	return nil
}

// name is the name of a model in baselines: its file from the root.
func (g *gateRun) name(path string) string {
	if g.repo != nil {
		if rel, ok := g.repo.Relative(path); ok {
			return rel
		}
	}
	if abs, err := filepath.Abs(path); err == nil {
		if rel, err := filepath.Rel(g.root, abs); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return filepath.ToSlash(filepath.Clean(path))
}

// taken is what was found out about one version of a model on a target.
type taken struct {
	side    *gate.Side
	outputs gate.Outputs
	machine string
	sha256  string
	// weights is the hash of all weights, those in files beside the model included, and beside
	// names these files.
	weights string
	beside  []string
	notes   []string
}

// same reports whether two versions are equal.
func (t *taken) same(sha256, weights string) bool {
	return sha256 != "" && t.sha256 == sha256 && t.weights == weights
}

// take finds out the exact figures of a model.
func (g *gateRun) take(ctx context.Context, j *gateJob, path string) (*taken, error) {
	m, err := opmeter.Open(path)
	if err != nil {
		return nil, told(err)
	}
	defer m.Close()
	in, err := j.m.inputs()
	if err != nil {
		return nil, err
	}
	t := &taken{machine: j.target}
	var p *profile.Profile
	if name, ok := strings.CutPrefix(j.target, gate.EmulatePrefix); ok {
		p, err = g.emulated(ctx, j, m, name, t)
	} else if j.target == gate.Host {
		t.machine = "any"
		p, err = opmeter.Count(m, in)
		if err == nil && j.outputs() {
			t.run(ctx, m, in)
		}
	} else {
		p, err = g.estimated(j, m, in)
	}
	if err != nil {
		return nil, told(err)
	}
	t.side, t.sha256, t.weights, t.beside = gate.NewSide(p), p.Model.SHA256, p.Model.WeightsSHA256, bridge.Of(m).Graph.Beside
	for i := range p.Incomplete {
		if c := p.Incomplete[i].Cause; c == profile.ByData {
			t.notes = append(t.notes, "counts take one iteration of loops that depend on data")
		}
	}
	return t, nil
}

// run runs the model once, for its outputs.
func (t *taken) run(ctx context.Context, m *opmeter.Model, in opmeter.Inputs) {
	err := func() error {
		s, err := opmeter.NewSession(m, opmeter.RunOptions{Inputs: in})
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.Run(ctx); err != nil {
			return err
		}
		scale := map[string]float64{}
		for _, o := range m.Outputs() {
			if o.Scale != nil {
				scale[o.Name] = *o.Scale
			}
		}
		for _, o := range s.Outputs() {
			t.outputs = append(t.outputs, outputdiff.Tensor{
				Name: o.Name, DType: o.DType, Shape: slices.Clone(o.Shape), Data: bytes.Clone(o.Data),
				Strings: slices.Clone(o.Strings), Scale: scale[o.Name],
			})
		}
		return nil
	}()
	if err != nil {
		t.outputs = nil
		t.notes = append(t.notes, "no outputs to compare: "+err.Error())
	}
}

// estimated estimates a model for a target.
func (g *gateRun) estimated(j *gateJob, m *opmeter.Model, in opmeter.Inputs) (*profile.Profile, error) {
	set, faults, err := g.f.t.load()
	if err != nil {
		return nil, err
	}
	t, err := set.Find(j.target)
	if err != nil {
		return nil, errors.Join(told(err), faults)
	}
	return t.Estimate(m, opmeter.EstimateOptions{Inputs: in})
}

// emulated counts instructions on an emulated board.
func (g *gateRun) emulated(ctx context.Context, j *gateJob, m *opmeter.Model, name string, t *taken) (*profile.Profile, error) {
	f := &boardFlags{board: name, m: j.m}
	b, err := f.find()
	if err != nil {
		return nil, err
	}
	// Counts repeat exactly: one inference to warm up, and one that counts.
	e := &emulation{
		a: g.a, b: b, f: f, r: &runFlags{runs: 1}, o: &outputFlags{},
		d: &deviceFlags{discard: 1, timeout: internaldevice.DefaultTimeout},
	}
	var p *profile.Profile
	err = e.built(ctx, m, func(elf string) error {
		image, err := board.ReadImage(elf)
		if err != nil {
			return withStatus(statusSource, err)
		}
		t.machine = strings.TrimSpace(b.Name + " " + image.Compiler)
		var differ error
		if p, differ, err = e.profiled(ctx, m, elf); err == nil && differ != nil {
			t.notes = append(t.notes, differ.Error())
		}
		return err
	})
	return p, err
}

// baseOf finds out the figures of the base of a job. known is false if they cannot be had, and the
// note says why; the side is nil if the base has no such model.
func (g *gateRun) baseOf(ctx context.Context, j *gateJob, fresh *taken, b *gate.Base, since *gate.Store) (o origin) {
	if heads := g.store.Heads(j.name, j.target, j.settings()); slices.ContainsFunc(heads, since.Has) {
		return g.head(ctx, j, fresh, heads)
	}
	switch b.Kind {
	case gate.Saved:
		p := g.saved
		return origin{taken: &taken{side: gate.NewSide(p), sha256: p.Model.SHA256}, known: true, from: b.String(), note: another(p, fresh.side.Profile)}
	case gate.Accepted:
		return g.accepted(ctx, j, fresh, "")
	case gate.Missing:
		return origin{note: "no base: " + cmp.Or(b.Why, "no baseline was accepted") + "; run " + j.accept()}
	}
	if !filepath.IsLocal(filepath.FromSlash(j.name)) {
		return g.accepted(ctx, j, fresh, "the file is outside the repository, so that the base is the last accepted baseline")
	}
	blob, err := g.repo.Blob(ctx, b.Commit, j.name)
	if err != nil {
		return origin{note: err.Error()}
	}
	switch {
	case blob != "":
		return g.extracted(ctx, j, fresh, blob, b.Commit, b.String())
	case !g.repo.Tracked(ctx, j.path):
		// A model that git never has, such as a build output, is not new: git cannot show its base.
		return g.accepted(ctx, j, fresh, "git does not track the file, so that the base is the last accepted baseline")
	}
	return origin{known: true, note: "the base has no such model"}
}

// accepted takes the last accepted baseline; why says why it is the base, "" where that is known.
func (g *gateRun) accepted(ctx context.Context, j *gateJob, fresh *taken, why string) origin {
	heads := g.store.Heads(j.name, j.target, j.settings())
	if len(heads) == 0 {
		return origin{note: strings.TrimPrefix(why+"; no baseline was accepted for it: run "+j.accept(), "; ")}
	}
	o := g.head(ctx, j, fresh, heads)
	if why != "" && o.from != "" {
		o.from += " (" + why + ")"
	}
	return o
}

// head takes the accepted baseline. Where branches were merged that each accepted the model, it is
// the one of this model; if it is neither, people have to decide.
func (g *gateRun) head(ctx context.Context, j *gateJob, fresh *taken, heads []*gate.Record) origin {
	if len(heads) == 1 {
		return g.stored(ctx, j, fresh, heads[0])
	}
	var list []string
	var this *gate.Record
	for _, r := range heads {
		list = append(list, fmt.Sprintf("%q of %s", r.Reason, r.Time[:min(len(r.Time), len(time.DateOnly))]))
		if fresh.same(r.SHA256, r.WeightsSHA256) {
			this = r
		}
	}
	what := fmt.Sprintf("%d branches accepted this model, and none replaces the other: %s", len(heads), strings.Join(list, ", "))
	if this == nil {
		return origin{note: fmt.Sprintf("%s; the model is none of theirs: run %s, which replaces them", what, j.accept())}
	}
	o := g.stored(ctx, j, fresh, this)
	o.note = strings.TrimPrefix(o.note+"; "+what+"; the model is that of the one that is taken", "; ")
	return o
}

// origin is the base of a job.
type origin struct {
	*taken
	known bool
	from  string
	note  string
	// file is the model of the base while the run lasts, "" where only its figures are known.
	file string
}

// stored takes the model of an accepted baseline from git, or the figures of the index where git
// lacks it.
func (g *gateRun) stored(ctx context.Context, j *gateJob, fresh *taken, r *gate.Record) origin {
	if r.Removed {
		return origin{known: true, note: "the baseline says that the model was removed: " + r.Reason}
	}
	from := fmt.Sprintf("accepted %s: %s", r.Time[:min(len(r.Time), len(time.DateOnly))], r.Reason)
	if fresh.same(r.SHA256, r.WeightsSHA256) && r.Machine == fresh.machine {
		return origin{taken: fresh, known: true, from: from, file: j.path}
	}
	if g.repo != nil && g.repo.Has(ctx, r.Blob) {
		// Files beside the model may be others at the commit: the change came with the baseline.
		if o := g.extracted(ctx, j, fresh, r.Blob, r.Commit, from); o.known && o.same(r.SHA256, r.WeightsSHA256) {
			return o
		}
	}
	if r.Machine != fresh.machine {
		return origin{note: fmt.Sprintf("the baseline is of %s and this one of %s, and its model is not in the repository: figures do not compare", r.Machine, fresh.machine), from: from}
	}
	p, note := g.store.Profile(r)
	t := &taken{side: &gate.Side{Profile: p, Figures: r.Figures}, sha256: r.SHA256}
	if r.Outputs != "" && fresh.outputs != nil && r.Outputs == fresh.outputs.Hash() {
		t.outputs = fresh.outputs
	}
	if r.Version != g.version() {
		note = strings.TrimPrefix(note+"; the baseline is of opmeter "+r.Version+", whose rules of counting may differ", "; ")
	}
	return origin{taken: t, known: true, from: from, note: note}
}

// extracted takes the figures of a model in git.
func (g *gateRun) extracted(ctx context.Context, j *gateJob, fresh *taken, blob, commit, from string) origin {
	beside := map[string]string{}
	if commit != "" {
		var err error
		if beside, err = g.repo.Beside(ctx, commit, j.name, g.names(fresh.beside)); err != nil {
			return origin{note: err.Error()}
		}
	}
	if blob == g.repo.Hash(ctx, j.path) && !slices.ContainsFunc(fresh.beside, func(file string) bool {
		return beside[g.name(file)] != g.repo.Hash(ctx, file)
	}) {
		return origin{taken: fresh, known: true, from: from, file: j.path}
	}
	dir, err := g.folder()
	if err != nil {
		return origin{note: err.Error()}
	}
	if dir, err = os.MkdirTemp(dir, "base"); err != nil {
		return origin{note: err.Error()}
	}
	file := filepath.Join(dir, filepath.Base(filepath.FromSlash(j.name)))
	if err := g.repo.Extract(ctx, blob, j.name, file); err != nil {
		return origin{note: err.Error()}
	}
	for path, object := range beside {
		if err := g.repo.Extract(ctx, object, path, filepath.Join(dir, filepath.Base(path))); err != nil {
			return origin{note: err.Error()}
		}
	}
	t, err := g.take(ctx, j, file)
	if err != nil {
		return origin{note: "the model of the base cannot be judged: " + err.Error()}
	}
	return origin{taken: t, known: true, from: from, file: file}
}

// names are the names of files from the root.
func (g *gateRun) names(files []string) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = g.name(f)
	}
	return out
}

// folder is a folder for models of the base, which is removed at the end.
func (g *gateRun) folder() (string, error) {
	if g.temp == "" {
		dir, remove, err := subprocess.Folder("gate")
		if err != nil {
			return "", err
		}
		g.temp, g.remove = dir, remove
	}
	return g.temp, nil
}
