package pprof

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	format "github.com/google/pprof/profile"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile/compare"
)

// Compared writes the difference of the second run to the first one, as pprof shows with
// -diff_base: samples of the first run are negative and have the label pprof::base. Rows have one
// name in both runs, however layers are called, fused and split.
func Compared(w io.Writer, t *compare.Table) error {
	if len(t.Runs) != 2 {
		return fmt.Errorf("a pprof file holds the difference of two runs, and %d are compared", len(t.Runs))
	}
	m := &format.Mapping{ID: 1, Start: 1, Limit: 1 << 40, File: t.Model, HasFunctions: true, HasFilenames: true, HasLineNumbers: true}
	unit, scale := "count", 1.0
	switch t.Unit {
	case "s":
		unit, scale = "nanoseconds", 1e9
	case "B":
		unit = "bytes"
	case "J":
		unit, scale = "nanojoules", 1e9
	}
	name := t.Quantity
	if name == "latency_s" {
		name = "wall"
	}
	f := &format.Profile{
		Mapping: []*format.Mapping{m}, DefaultSampleType: name, SampleType: []*format.ValueType{{Type: name, Unit: unit}},
		PeriodType: &format.ValueType{Type: name, Unit: unit}, Period: 1,
		Comments: []string{strings.ToValidUTF8(fmt.Sprintf("%s minus %s", t.Runs[1].Name, t.Runs[0].Name), "\ufffd")},
	}
	for _, why := range words.VersusApart(t) {
		f.Comments = append(f.Comments, strings.ToValidUTF8(why, "\ufffd"))
	}
	if at, err := time.Parse(time.RFC3339, t.Runs[1].Date); err == nil {
		f.TimeNanos = at.UnixNano()
	}
	c := &converter{f: f, file: t.Model, functions: map[string]*format.Function{}, locations: map[place]*format.Location{}}
	seen := map[string]int{}
	add := func(stack []*format.Location, k int, v *float64) {
		if v == nil || *v == 0 {
			return
		}
		s := &format.Sample{Location: stack, Value: []int64{int64(math.Round(min(*v*scale, math.MaxInt64/2)))}}
		if k == 0 {
			s.Value[0] = -s.Value[0]
			s.Label = map[string][]string{"pprof::base": {"true"}}
		}
		f.Sample = append(f.Sample, s)
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		leaf := g.Name
		if leaf == "" {
			leaf = g.Op
		}
		if seen[leaf]++; seen[leaf] > 1 {
			leaf = fmt.Sprintf("%s #%d", leaf, i)
		}
		stack := []*format.Location{c.at("operator", leaf, 1)}
		if g.Op != "" {
			stack = append(stack, c.at("kind", g.Op, 0))
		}
		stack = append(stack, c.at("model", t.Model, 0))
		for k := range t.Runs {
			add(stack, k, g.Figures[k].Value)
		}
	}
	for _, x := range []struct {
		name string
		get  func(r *compare.Run) *float64
	}{
		{"(added by the engine)", func(r *compare.Run) *float64 { return r.Inserted }},
		{"(outside of layers)", func(r *compare.Run) *float64 { return r.Rest }},
	} {
		stack := []*format.Location{c.at("operator", x.name, 1), c.at("model", t.Model, 0)}
		for k := range t.Runs {
			add(stack, k, x.get(&t.Runs[k]))
		}
	}
	if err := f.CheckValid(); err != nil {
		return err
	}
	return f.Write(w)
}
