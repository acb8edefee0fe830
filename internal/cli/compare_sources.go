package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/source/studies"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
	"github.com/opmeter/opmeter/record"
	"github.com/opmeter/opmeter/study"
)

// sides divides arguments into the sides of a comparison: one each, or what stands between "--".
func sides(args []string, dash int) ([][]string, error) {
	var out [][]string
	if dash < 0 {
		for _, f := range args {
			out = append(out, []string{f})
		}
	} else {
		out = append(out, args[:dash])
		for rest := args[dash:]; ; {
			i := slices.Index(rest, "--")
			if i < 0 {
				out = append(out, rest)
				break
			}
			out, rest = append(out, rest[:i]), rest[i+1:]
		}
	}
	for _, f := range slices.Concat(out...) {
		if dash >= 0 && len(f) > 1 && f[0] == '-' {
			return nil, useError("%s stands behind --, where only files stand: write opmeter compare OPTIONS A1 A2 -- B1 B2", f)
		}
	}
	if slices.ContainsFunc(out, func(s []string) bool { return len(s) == 0 }) {
		return nil, useError("nothing stands on one side of --: write opmeter compare A1 A2 -- B1 B2")
	}
	return out, nil
}

// twice refuses a file that is named twice: compared with itself it shows nothing, and as a repeat
// it would hide the spread.
func twice(files []string) error {
	var seen []os.FileInfo
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			continue // reading it says why
		}
		if slices.ContainsFunc(seen, func(x os.FileInfo) bool { return os.SameFile(x, st) }) {
			second := "measure again for a second profile"
			if isModel(f) {
				second = "name another model"
			}
			return useError("%s: is named twice, and would be compared with itself: %s", f, second)
		}
		seen = append(seen, st)
	}
	return nil
}

// sources reads the sides of a comparison. Profiles of one side are repeats of one run; a file with
// several runs is a column for each where it stands alone.
func (a *app) sources(ctx context.Context, sides [][]string) ([]compare.Named, error) {
	var out []compare.Named
	var only []string // the file of a run, "" for several
	for _, files := range sides {
		var side []compare.Named
		for _, f := range files {
			found, err := a.source(ctx, f)
			if err != nil {
				return nil, err
			}
			side = append(side, found...)
		}
		if len(files) > 1 {
			whole := side[0]
			for _, x := range side[1:] {
				whole.Repeats = append(whole.Repeats, x.Profile)
			}
			whole.Name = sideName(files)
			side = []compare.Named{whole}
		}
		for range side {
			if len(side) == 1 && len(files) == 1 {
				only = append(only, files[0])
			} else {
				only = append(only, "")
			}
		}
		out = append(out, side...)
	}
	if len(out) > compare.MaxRuns {
		return nil, useError("%d profiles: at most %d are compared at once", len(out), compare.MaxRuns)
	}
	if len(out) < 2 {
		return nil, useError("%s holds one run: name a second profile to compare it with", sides[0][0])
	}
	unique(out, only)
	return out, nil
}

// sideName is what the names of files have in common at their beginning, or the first of them.
func sideName(files []string) string {
	first := plainName(files[0])
	common := first
	for _, f := range files[1:] {
		n := plainName(f)
		i := 0
		for i < min(len(common), len(n)) && common[i] == n[i] {
			i++
		}
		common = common[:i]
	}
	const between = "-_. ("
	// Digits behind a separator count the files; others belong to the name.
	if number := strings.TrimRight(common, "0123456789"); number != strings.TrimRight(number, between) {
		common = number
	}
	if common = strings.TrimRight(common, between); common == "" {
		return first
	}
	return common
}

// plainName is a file's name without its ending.
func plainName(f string) string {
	n := base(f)
	return cmp.Or(strings.TrimSuffix(n, filepath.Ext(n)), n)
}

// unique gives the names of files their endings or else their folders where that tells runs apart,
// and numbers those that are equal.
func unique(runs []compare.Named, files []string) {
	seen := map[string]int{}
	for i := range runs {
		seen[runs[i].Name]++
	}
	alike := make([]string, len(files))
	for i, f := range files {
		if seen[runs[i].Name] > 1 {
			alike[i] = f
		}
	}
	ending := func(f string) string { // only where it tells files apart
		if slices.ContainsFunc(alike, func(o string) bool { return o != f && o != "" && base(o) == base(f) }) {
			return plainName(f)
		}
		return base(f)
	}
	for i, name := range named(alike, ending) {
		if name != "" {
			runs[i].Name = name
		}
	}
	clear(seen)
	for i := range runs {
		n := runs[i].Name
		if seen[n]++; seen[n] > 1 {
			runs[i].Name = fmt.Sprintf("%s (%d)", n, seen[n])
		}
	}
}

// named are the names of files by their base names, with as many of their folders as tell files of
// one base name apart; "" for no file.
func named(files []string, plain func(file string) string) []string {
	out, same := make([]string, len(files)), map[string][]int{}
	for i, f := range files {
		if f != "" {
			same[base(f)] = append(same[base(f)], i)
		}
	}
	for _, at := range same {
		paths, most := map[string]bool{}, 1
		for _, i := range at {
			f := filepath.ToSlash(filepath.Clean(files[i]))
			paths[f], most = true, max(most, strings.Count(f, "/")+1)
		}
		for n := 1; n <= most; n++ {
			seen := map[string]bool{}
			for _, i := range at {
				parts := strings.Split(filepath.ToSlash(filepath.Clean(files[i])), "/")
				out[i] = strings.Join(append(parts[max(0, len(parts)-n):len(parts)-1], plain(files[i])), "/")
				seen[out[i]] = true
			}
			if len(seen) == len(paths) {
				break
			}
		}
	}
	return out
}

// source reads what a file holds: a saved profile, a study, a model, which is counted, or a record
// of another tool.
func (a *app) source(ctx context.Context, path string) ([]compare.Named, error) {
	name := plainName(path)
	if strings.EqualFold(filepath.Ext(path), ".study") {
		return studySource(path, name)
	}
	p, err := profile.Read(path)
	switch {
	case err == nil:
		return []compare.Named{{Name: name, Profile: p}}, nil
	case isFolder(path + "/."): // a record of several files
	case !errors.Is(err, profile.ErrNotProfile):
		return nil, withStatus(statusInput, plainPath(err))
	}
	if isModel(path) {
		return a.modelSource(path, name)
	}
	return a.recordSource(ctx, path, name)
}

// modelSource counts what a model is; its times are unknown.
func (a *app) modelSource(path, name string) (out []compare.Named, err error) {
	err = a.withModel(path, func(m *opmeter.Model) error {
		p, err := opmeter.Count(m, opmeter.Inputs{})
		out = []compare.Named{{Name: name, Profile: p}}
		return told(err)
	})
	return out, err
}

// studySource reads the profiles that a study holds.
func studySource(path, name string) ([]compare.Named, error) {
	s, _, err := study.Read(path)
	if err != nil {
		return nil, withStatus(statusInput, plainPath(err))
	}
	var out []compare.Named
	for _, x := range studies.Profiles(s) {
		out = append(out, compare.Named{Name: name + ":" + x.Name, Profile: x.Profile})
	}
	if len(out) == 0 {
		return nil, withStatus(statusInput, fmt.Errorf("%s: holds no times and no plan: run opmeter compress perf or opmeter compress plan first", path))
	}
	return out, nil
}

// recordSource imports a profile or trace of another tool.
func (a *app) recordSource(ctx context.Context, path, name string) ([]compare.Named, error) {
	got, err := record.Import(ctx, path, record.Options{})
	if err != nil && (got == nil || len(got.Profiles) == 0) {
		if what := modelfile.Describe(path); what != "" {
			return nil, withStatus(statusInput, fmt.Errorf("%s: is %s", path, what))
		}
		return nil, told(err)
	}
	if len(got.Profiles) == 0 {
		return nil, withStatus(statusInput, fmt.Errorf("%s: holds no run", path))
	}
	if err != nil { // what is right is compared
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(a.err, "opmeter: %s\n", text.Clean(line))
		}
	}
	a.skipped(got.Skipped)
	var out []compare.Named
	for _, p := range got.Profiles {
		n := name
		if len(got.Profiles) > 1 {
			if n = p.Model.Name; !strings.HasPrefix(n, name) {
				n = name + ":" + n
			}
		}
		out = append(out, compare.Named{Name: n, Profile: p})
	}
	return out, nil
}
