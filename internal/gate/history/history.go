// Package history shows how figures develop over commits: series of the index of a gate or of a
// folder of saved profiles, the commits at which they change, and marks where the machine or the
// settings changed, across which measured figures do not compare.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/profile"
)

// SchemaV1 is the value of [History.Schema].
const SchemaV1 = "opmeter/history/v1"

// Limits of a history.
const (
	maxPoints = 1000 // of a series: the newest ones
	maxFiles  = 100_000
)

// History is the series of a folder.
type History struct {
	Schema string `json:"schema"`
	Dir    string `json:"dir"`
	// Order says by what the points of a series are ordered.
	Order  string   `json:"order"`
	Series []Series `json:"series"`
	Notes  []string `json:"notes,omitzero"`
}

// Series is a figure of a model on a target over time.
type Series struct {
	Model  string `json:"model"`
	Target string `json:"target"`
	// Settings is set where a model has several series of one figure, for other settings.
	Settings string `json:"settings,omitzero"`
	Figure   string `json:"figure"`
	Name     string `json:"name"`
	Unit     string `json:"unit,omitzero"`
	// Better is 1 where more is better, -1 where less is, 0 where neither holds.
	Better int64 `json:"better,omitzero"`
	// Measured says that the figure has noise: changes are tested, and other machines do not
	// compare.
	Measured bool     `json:"measured,omitzero"`
	Points   []Point  `json:"points"`
	Changes  []Change `json:"changes,omitzero"`
	Marks    []Mark   `json:"marks,omitzero"`
	// Left is the number of older points that are left out.
	Left int `json:"left,omitzero"`
}

// Point is a value of a series.
type Point struct {
	Time   time.Time `json:"time"`
	Commit string    `json:"commit,omitzero"`
	Dirty  bool      `json:"dirty,omitzero"`
	Value  float64   `json:"value"`
	// Low and High are the interval of the value, absent where it has none.
	Low  *float64 `json:"low,omitzero"`
	High *float64 `json:"high,omitzero"`
	// Estimator is what the value is: median, mean, min, or value for one without spread. Absent
	// in an index, which does not keep it.
	Estimator string `json:"estimator,omitzero"`
	Machine   string `json:"machine,omitzero"`
	Settings  string `json:"settings,omitzero"`
	Version   string `json:"version,omitzero"`
	Accepted  string `json:"accepted,omitzero"` // the reason
	// Model is the SHA-256 of the file of the model, absent if unknown.
	Model string `json:"model_sha256,omitzero"`
	// Format is that of the model, such as "onnx"; absent in an index, which does not keep it.
	Format string `json:"model_format,omitzero"`
	// LeftOut is why the value is not one of the present branch: [gate.Replaced] or
	// [gate.OtherBranch]. Such points have no part in changes and marks.
	LeftOut string `json:"left_out,omitzero"`

	place gate.Place
	line  int // of the index
}

// Change is a point at which the level of a series changes.
type Change struct {
	// At is the index of the first point of the new level.
	At int `json:"at"`
	// Before and After are the medians of the levels.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// P is the significance of the permutation test; absent for exact figures.
	P *float64 `json:"p,omitzero"`
}

// Mark is a point from which a circumstance is another one.
type Mark struct {
	At int `json:"at"`
	// What is machine, settings or version.
	What string `json:"what"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Read reads the index of a gate in a folder, or the heads of the saved profiles there and below.
// Points of an index are in the order of the first-parent history of HEAD, or in that of their lines
// without a repository; saved profiles are in the order of time.
func Read(ctx context.Context, dir string) (*History, error) {
	if st, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: dir, Err: errors.New("is not a folder")}
	}
	h := &History{Schema: SchemaV1, Dir: dir}
	var b builder
	if root := indexed(dir); root != "" {
		s, err := gate.Open(root)
		if err != nil {
			return nil, err
		}
		h.Notes = s.Notes
		h.Order = b.lineage(ctx, dir, s)
		h.Series = b.series()
		return h, ctx.Err()
	}
	notes, err := b.folder(dir)
	if err != nil {
		return nil, err
	}
	h.Notes = notes
	h.Order = "time of recording"
	if h.Series = b.series(); len(h.Series) == 0 {
		return nil, fmt.Errorf("%s: no index of baselines and no %s file inside: opmeter gate --record writes an index", dir, profile.Extension)
	}
	return h, nil
}

// indexed finds the store that a folder is, holds, or is the folder of baselines of; "" for none.
func indexed(dir string) string {
	roots := []string{dir, filepath.Join(dir, gate.Folder)}
	if filepath.Base(filepath.Clean(dir)) == gate.BaselineDir {
		roots = append(roots, filepath.Dir(filepath.Clean(dir)))
	}
	for _, root := range roots {
		if _, err := os.Stat(filepath.Join(root, gate.BaselineDir, gate.IndexFile)); err == nil {
			return root
		}
	}
	return ""
}

// key tells series apart.
type key struct{ model, target, settings, figure string }

// builder collects points.
type builder struct {
	points   map[key][]Point
	measured map[key]bool
	// lines says that points keep the order of their lines.
	lines bool
}

// lineage takes the records of a gate with their places in git, and says what orders them.
func (b *builder) lineage(ctx context.Context, dir string, s *gate.Store) string {
	var places []gate.Place
	repo, err := gate.OpenRepo(ctx, dir)
	if err == nil {
		places, err = repo.Lineage(ctx, s)
	}
	if err != nil {
		b.lines = true
		b.index(s, make([]gate.Place, len(s.Records)))
		return "lines of the index (" + err.Error() + ")"
	}
	b.index(s, places)
	order := "first-parent history of HEAD"
	if slices.ContainsFunc(places, func(p gate.Place) bool { return !p.Known }) {
		order += "; time of recording for points of other commits"
	}
	return order
}

// sorted orders points: those with a place by it, then by time; the others are placed among them by
// time.
func (b *builder) sorted(list []Point) []Point {
	if b.lines {
		sorting.Stable(list, func(a, b Point) int { return cmp.Compare(a.line, b.line) })
		return list
	}
	sorting.Stable(list, func(a, b Point) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.line, b.line)) })
	var placed, others []Point
	for i := range list {
		if list[i].place.Known {
			placed = append(placed, list[i])
		} else {
			others = append(others, list[i])
		}
	}
	sorting.Stable(placed, func(x, y Point) int { return cmp.Compare(x.place.At, y.place.At) })
	out := list[:0:0]
	for _, p := range placed {
		for len(others) > 0 && others[0].Time.Before(p.Time) {
			out, others = append(out, others[0]), others[1:]
		}
		out = append(out, p)
	}
	return append(out, others...)
}

func (b *builder) add(k key, measured bool, p Point) {
	if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
		return
	}
	if b.points == nil {
		b.points, b.measured = map[key][]Point{}, map[key]bool{}
	}
	b.points[k] = append(b.points[k], p)
	b.measured[k] = b.measured[k] || measured
}

// index takes the records of a gate with their places.
func (b *builder) index(s *gate.Store, places []gate.Place) {
	for i := range s.Records {
		r := &s.Records[i]
		at, err := time.Parse(time.RFC3339, r.Time)
		if err != nil {
			continue
		}
		p := Point{Time: at, Commit: r.Commit, Dirty: r.Dirty, Settings: r.Settings, Version: r.Version, Model: r.SHA256, Machine: r.Machine, LeftOut: places[i].LeftOut, place: places[i], line: i}
		if r.Kind == gate.Accepted {
			p.Accepted = r.Reason
		}
		for f, v := range r.Figures {
			p.Value = v
			b.add(key{r.Model, r.Target, r.Settings, f}, false, p)
		}
		p.Machine = r.On
		for f, v := range r.Measured {
			p.Value = v
			b.add(key{r.Model, r.Target, r.Settings, f}, true, p)
		}
	}
}

// folder takes the heads of saved profiles.
func (b *builder) folder(dir string) (notes []string, err error) {
	files, unread := 0, 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == dir {
				return err
			}
			unread++
			return nil
		}
		if filepath.Ext(path) != profile.Extension || !d.Type().IsRegular() {
			return nil
		}
		if files++; files > maxFiles {
			return fmt.Errorf("%s: more than %d profiles", dir, maxFiles)
		}
		h, err := profile.ReadHead(path)
		if err == nil {
			err = b.head(h)
		}
		if err != nil {
			if unread++; unread <= 10 {
				notes = append(notes, fmt.Sprintf("left out: %v", err))
			}
		}
		return nil
	})
	if unread > 10 {
		notes = append(notes, fmt.Sprintf("%d more files left out", unread-10))
	}
	return notes, err
}

// head takes the figures of a saved profile.
func (b *builder) head(h *profile.Head) error {
	at, err := time.Parse(time.RFC3339, h.Created)
	if err != nil {
		return fmt.Errorf("profile of %s has no date", h.Model.Name)
	}
	settings := h.Engine
	if h.Threads != nil {
		settings += fmt.Sprintf(" threads=%d", *h.Threads)
	}
	if h.Batch != nil {
		settings += fmt.Sprintf(" batch=%d", *h.Batch)
	}
	p := Point{Time: at, Settings: settings, Version: h.Version, Model: h.Model.SHA256, Format: h.Model.Format}
	for _, q := range profile.Quantities() {
		if q.Derived() {
			continue
		}
		m := h.Totals.Figure(q.Key)
		v, ok := m.Best()
		if !ok {
			continue
		}
		p.Value, p.Machine = v, ""
		p.Low, p.High, p.Estimator = nil, nil, m.Estimator()
		if iv := m.Interval(); iv != nil {
			p.Low, p.High = new(iv[0]), new(iv[1])
		}
		measured := m.Kind == profile.Measured
		if measured {
			p.Machine = h.Fingerprint
		}
		b.add(key{h.Model.Name, h.Target.ID, settings, q.Key}, measured, p)
	}
	p.Machine, p.Low, p.High, p.Estimator = "", nil, nil, "value"
	whole := &profile.Profile{Target: h.Target, Totals: h.Totals, Memory: h.Memory}
	whole.Model.FileBytes = h.Model.FileBytes
	for f, v := range gate.Counts(whole) {
		p.Value = v
		b.add(key{h.Model.Name, h.Target.ID, settings, f}, false, p)
	}
	return nil
}

// series makes the series, with their changes. Settings are part of a series where a model has
// several at one time: else they changed, which is marked.
func (b *builder) series() []Series {
	several := map[key]bool{}
	seen := map[string]string{}
	for k, list := range b.points {
		for i := range list {
			at := fmt.Sprint(k.model, "\x00", k.target, "\x00", k.figure, "\x00", list[i].Time.Unix(), list[i].Commit)
			if other, ok := seen[at]; ok && other != k.settings {
				several[key{model: k.model, target: k.target}] = true
			}
			seen[at] = k.settings
		}
	}
	joined := map[key][]Point{}
	measured := map[key]bool{}
	for k, list := range b.points {
		to := k
		if !several[key{model: k.model, target: k.target}] {
			to.settings = ""
		}
		joined[to] = append(joined[to], list...)
		measured[to] = measured[to] || b.measured[k]
	}
	order := gate.Keys()
	keys := slices.SortedFunc(maps.Keys(joined), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.target, b.target), cmp.Compare(a.settings, b.settings),
			cmp.Compare(slices.Index(order, a.figure), slices.Index(order, b.figure)), cmp.Compare(a.figure, b.figure))
	})
	out := make([]Series, 0, len(keys))
	for _, k := range keys {
		q, _ := gate.Lookup(k.figure)
		s := Series{
			Model: k.model, Target: k.target, Settings: k.settings, Figure: k.figure, Name: cmp.Or(q.Name, k.figure),
			Unit: q.Unit, Better: q.Better, Measured: measured[k], Points: joined[k],
		}
		s.Points = b.sorted(s.Points)
		if n := len(s.Points) - maxPoints; n > 0 {
			s.Points, s.Left = s.Points[n:], n
		}
		s.mark()
		s.detect()
		out = append(out, s)
	}
	return out
}

// kept are the points of the present branch.
func (s *Series) kept() []int {
	var out []int
	for i := range s.Points {
		if s.Points[i].LeftOut == "" {
			out = append(out, i)
		}
	}
	return out
}

// mark finds where a circumstance changes.
func (s *Series) mark() {
	kept := s.kept()
	for i := 1; i < len(kept); i++ {
		a, b := &s.Points[kept[i-1]], &s.Points[kept[i]]
		for _, c := range []struct{ what, from, to string }{
			{"machine", a.Machine, b.Machine}, {"settings", a.Settings, b.Settings}, {"version", a.Version, b.Version},
		} {
			if c.from != c.to {
				s.Marks = append(s.Marks, Mark{kept[i], c.what, c.from, c.to})
			}
		}
	}
}

// detect finds the changes. A measured figure is divided at changes of machine and settings, and
// each part is tested.
func (s *Series) detect() {
	kept := s.kept()
	values := make([]float64, len(kept))
	for i, at := range kept {
		values[i] = s.Points[at].Value
	}
	bounds := []int{0}
	for _, m := range s.Marks {
		if at := slices.Index(kept, m.At); s.Measured && m.What != "version" && at != bounds[len(bounds)-1] {
			bounds = append(bounds, at)
		}
	}
	bounds = append(bounds, len(values))
	for i := range len(bounds) - 1 {
		for _, c := range Changes(values[bounds[i]:bounds[i+1]], s.Measured) {
			c.At = kept[bounds[i]+c.At]
			s.Changes = append(s.Changes, c)
		}
	}
}

// Changes finds the changes of values that compare: of one machine with the same settings. An exact
// figure changes where its value does, a measured one where [Divide] finds a change point.
func Changes(values []float64, measured bool) (out []Change) {
	if !measured {
		for i := 1; i < len(values); i++ {
			if values[i] != values[i-1] {
				out = append(out, Change{At: i, Before: values[i-1], After: values[i]})
			}
		}
		return out
	}
	found := Divide(values)
	edges := append(append([]int{0}, places(found)...), len(values))
	for k, f := range found {
		out = append(out, Change{
			At: f.At, P: new(f.P), Before: stats.Median(values[edges[k]:f.At]), After: stats.Median(values[f.At:edges[k+2]]),
		})
	}
	return out
}

func places(list []Split) []int {
	out := make([]int, len(list))
	for i := range list {
		out[i] = list[i].At
	}
	return out
}
