package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/shellword"
	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/model/modelfile"
)

// gone adds the models that the base has and the working tree lacks: they are worse, because a
// renamed model would be new and a deleted one would not be judged at all. What was accepted as
// removed is not.
func (g *gateRun) gone(ctx context.Context, args []string, jobs []gateJob, b *gate.Base, res *gate.Result) error {
	if b.Kind == gate.Saved {
		return nil // it names no other model
	}
	folders, dirs := g.folders(args)
	blobs := map[string]string{} // by the name of a model that is gone; "" without git
	descriptions := map[string]string{}
	add := func(name, blob string) {
		if _, err := os.Lstat(filepath.Join(g.root, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) && !g.wasRemoved(name) {
			blobs[name] = cmp.Or(blob, blobs[name])
		}
	}
	below := func(dir, name string) bool { return dir == "." || strings.HasPrefix(name, dir+"/") }
	if b.Commit != "" {
		for _, dir := range folders {
			if !filepath.IsLocal(filepath.FromSlash(dir)) {
				continue // git has no files outside the repository
			}
			if err := g.repo.Files(ctx, b.Commit, dir, func(name, blob string) {
				whole := slices.Contains(dirs, dir)
				switch {
				case len(args) > 0 && !whole && path.Dir(name) != dir:
				case g.listed(name), len(args) > 0 && g.hasBaseline(name), whole && modelfile.HasEnding(name):
					add(name, blob)
				case whole && isDescriptionName(name):
					descriptions[name] = blob
				}
			}); err != nil {
				return err
			}
		}
		for name, blob := range descriptions { // other files have their endings, too
			add(name, blob)
			if _, ok := blobs[name]; ok && !g.describes(ctx, name, blob) {
				delete(blobs, name)
			}
		}
	}
	for _, at := range g.store.Places(func(name string) bool {
		return len(args) == 0 && g.listed(name) || slices.ContainsFunc(dirs, func(d string) bool { return below(d, name) })
	}) {
		add(at[0], "")
	}
	for _, name := range slices.Sorted(maps.Keys(blobs)) {
		had := "the base has this model"
		if blobs[name] == "" {
			had = "a baseline of this model was accepted"
		}
		note := fmt.Sprintf("%s, and there is no such file now; if that is meant, run opmeter gate accept %s --reason TEXT", had, shellword.Quote(name))
		for i := range jobs {
			if blobs[name] != "" && g.repo.Hash(ctx, jobs[i].path) == blobs[name] && !g.had(ctx, b.Commit, jobs[i].name) {
				note = fmt.Sprintf("the model is %s now, which has the same content; if it was renamed, run opmeter gate accept %s --reason TEXT", jobs[i].name, shellword.Quote(name))
				break
			}
		}
		for _, target := range g.targets(name) {
			res.Jobs = append(res.Jobs, gate.Job{Model: name, Target: target, Removed: true, Notes: []string{note}})
		}
	}
	return nil
}

// describes reports whether a file of git that has the ending of a description describes a model.
func (g *gateRun) describes(ctx context.Context, name, blob string) bool {
	dir, err := g.folder()
	if err != nil {
		return false
	}
	if dir, err = os.MkdirTemp(dir, "gone"); err != nil {
		return false
	}
	file := filepath.Join(dir, path.Base(name))
	return g.repo.Extract(ctx, blob, name, file) == nil && isModel(file)
}

// had reports whether a commit has a file.
func (g *gateRun) had(ctx context.Context, commit, name string) bool {
	blob, err := g.repo.Blob(ctx, commit, name)
	return err == nil && blob != ""
}

// folders are the folders in which a model may be gone: those of the arguments or of the policy,
// "." for all. dirs are the arguments that are folders: all models below them are judged.
func (g *gateRun) folders(args []string) (folders, dirs []string) {
	for _, a := range args {
		name := g.name(a)
		if st, err := os.Stat(a); err == nil && st.IsDir() {
			dirs = append(dirs, name)
		} else {
			name = path.Dir(name)
		}
		folders = append(folders, name)
	}
	if len(args) == 0 {
		for _, e := range g.rules.Models {
			fixed, _, _ := strings.Cut(path.Clean(e.Model), "*")
			fixed, _, _ = strings.Cut(fixed, "?")
			fixed, _, _ = strings.Cut(fixed, "[")
			folders = append(folders, path.Dir(fixed+"x"))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders), dirs
}

// listed reports whether an entry of the policy is for a model.
func (g *gateRun) listed(name string) bool {
	return slices.ContainsFunc(g.rules.Models, func(e gate.Entry) bool {
		ok, _ := path.Match(path.Clean(e.Model), name)
		return ok
	})
}

// hasBaseline reports whether a baseline of a model was accepted.
func (g *gateRun) hasBaseline(name string) bool {
	return len(g.store.Places(func(m string) bool { return m == name })) > 0
}

// wasRemoved reports whether the newest baselines of a model say that it was removed.
func (g *gateRun) wasRemoved(name string) bool {
	places := g.store.Places(func(m string) bool { return m == name })
	return len(places) > 0 && !slices.ContainsFunc(places, func(at [3]string) bool {
		return slices.ContainsFunc(g.store.Heads(at[0], at[1], at[2]), func(r *gate.Record) bool { return !r.Removed })
	})
}

// targets are those that a model is judged on.
func (g *gateRun) targets(name string) []string {
	list := slices.Clone(g.f.t.on)
	if len(list) == 0 {
		for _, e := range g.entriesOf(name) {
			list = append(list, e.Targets...)
		}
	}
	if g.f.emulate != "" {
		list = append(list, gate.EmulatePrefix+g.f.emulate)
	}
	return list
}

// removals makes the records of the arguments that name models whose files are gone: those that a
// baseline or the commit has. The rest of the arguments is returned.
func (g *gateRun) removals(ctx context.Context, args []string) (list []gate.Record, rest []string, err error) {
	for _, a := range args {
		name := g.name(a)
		_, err := os.Lstat(a)
		places := g.store.Places(func(m string) bool { return m == name })
		known := len(places) > 0
		if !known && g.repo != nil && g.repo.Head != "" && errors.Is(err, fs.ErrNotExist) {
			if known, err = g.atBase(ctx, name); err != nil {
				return nil, nil, withStatus(statusSource, err)
			}
			for _, t := range g.targets(name) {
				places = append(places, [3]string{name, t, (&gateJob{m: g.with(g.entryFor(name, t))}).settings()})
			}
			err = fs.ErrNotExist
		}
		if !errors.Is(err, fs.ErrNotExist) || !known {
			rest = append(rest, a)
			continue
		}
		for _, at := range places {
			r := gate.Record{
				Kind: gate.Accepted, Time: g.stamp(), Policy: g.rules.SHA256, Model: at[0], Target: at[1], Settings: at[2],
				Machine: at[1], Version: g.version(), Removed: true,
			}
			if g.repo != nil {
				r.Commit, r.Dirty = g.repo.Head, g.repo.Dirty(ctx)
			}
			list = append(list, r)
		}
	}
	return list, rest, nil
}

// atBase reports whether the commit or the base of the change has a file.
func (g *gateRun) atBase(ctx context.Context, name string) (bool, error) {
	b, err := gate.FindBase(ctx, g.repo, g.why, g.store, gate.Auto, g.env)
	if err != nil {
		return false, err
	}
	return g.had(ctx, g.repo.Head, name) || b.Commit != "" && g.had(ctx, b.Commit, name), nil
}
