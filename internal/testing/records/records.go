// Package records serves tests of formats of records: it reads files with a format,
// and puts runs through the collection that every source goes through. Only tests
// import it.
package records

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// Files finds the files at paths.
func Files(t testing.TB, paths ...string) []*record.File {
	t.Helper()
	var out []*record.File
	for _, p := range paths {
		fs, faults, err := record.Find(p)
		if err != nil || len(faults) > 0 {
			t.Fatal(err, faults)
		}
		out = append(out, fs...)
	}
	return out
}

// Read reads files with a format and collects the runs.
func Read(t testing.TB, f *record.Format, files []*record.File, o record.Options) []*profile.Profile {
	t.Helper()
	out, err := Try(t, f, files, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try is Read with the error of the reader.
func Try(t testing.TB, f *record.Format, files []*record.File, o record.Options) ([]*profile.Profile, error) {
	t.Helper()
	for _, file := range files {
		if f.Match(file) == record.No {
			t.Errorf("%s is not recognised as %s", file.Path, f.Name)
		}
	}
	runs, err := f.Read(context.Background(), &record.Input{Files: files, Options: o})
	out := make([]*profile.Profile, len(runs))
	for i, r := range runs {
		out[i] = Collect(t, r)
	}
	return out, err
}

// Collect makes the profile of a run and checks it: it is valid, and hints are as many as layers.
func Collect(t testing.TB, r *runlog.Run) *profile.Profile {
	t.Helper()
	if n := len(r.Hints); n != 0 && n != len(r.Profile.Layers) {
		t.Errorf("%d hints of %d layers", n, len(r.Profile.Layers))
	}
	p, err := source.Collect(context.Background(), r, source.Options{})
	if err != nil {
		t.Fatalf("collect: %v", err)
	}
	if err := p.Validate(); err != nil {
		t.Fatalf("the profile is not valid: %v", err)
	}
	return p
}

// Found reports whether a profile has a finding.
func Found(p *profile.Profile, id string) bool {
	return slices.ContainsFunc(p.Findings, func(f profile.Finding) bool { return f.ID == id })
}

// Fuzz reads a text as a file with a format, whether it is recognised or not: what
// comes out must be valid profiles.
func Fuzz(t *testing.T, f *record.Format, name string, data []byte) {
	t.Helper()
	file := record.Bytes(name, data)
	f.Match(file)
	runs, _ := f.Read(context.Background(), &record.Input{Files: []*record.File{file}, Options: record.Options{Clocks: map[string]float64{"": 1e8}}})
	for _, r := range runs {
		Collect(t, r)
	}
}

// In lists the files of a folder by their names, in order.
func In(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Join(dir, e.Name()))
	}
	slices.Sort(out)
	return out
}
