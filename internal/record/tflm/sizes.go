package tflm

import (
	"time"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// maxBuilds bounds the rows of a table of sizes.
const maxBuilds = 100_000

// readSizes reads the sizes of a benchmark's binary, a row a build: the last one is the
// profile, the others are counters over time.
func readSizes(s *textscan.Scanner, f *record.File) ([]*runlog.Run, error) {
	d := draft.New("tflm", draft.Stem(f), "TensorFlow Lite Micro")
	names := []string{"text", "data", "bss", "total"}
	var times []float64
	values := make([][]float64, len(names))
	var origin time.Time
	sha := ""
	for s.Scan() {
		fields := textscan.Fields(s.Text(), ',')
		if len(fields) < 6 {
			if textscan.Cell(fields, 0) != "" {
				d.Dropped.Add("rows with too few fields", 1)
			}
			continue
		}
		at, err := time.Parse("2006-01-02 15:04:05.999999", textscan.Cell(fields, 0))
		var row [4]float64
		ok := err == nil
		for i := range names {
			v, is := textscan.Whole(textscan.Cell(fields, 2+i))
			row[i], ok = float64(v), ok && is && v >= 0
		}
		if len(times) == 0 {
			origin = at
		}
		t := at.Sub(origin).Seconds()
		if !ok || len(times) >= maxBuilds || len(times) > 0 && t < times[len(times)-1] {
			d.Dropped.Add("rows out of order or without a date and sizes", 1)
			continue
		}
		times, sha = append(times, t), textscan.Cell(fields, 1)
		for i := range names {
			values[i] = append(values[i], row[i])
		}
	}
	if len(times) == 0 {
		return nil, draft.ErrNothing
	}
	n := len(times) - 1
	last := func(i int) int64 { return int64(values[i][n]) }
	d.P.Totals.FlashBytes = new(last(0) + last(1))
	d.P.Created = origin.Add(time.Duration(times[n] * float64(time.Second))).UTC().Format(time.RFC3339)
	tl := &timeline.Timeline{Origin: origin.UTC().Format(time.RFC3339), Lanes: []timeline.Lane{}, Method: "sizes of the binary of each build"}
	for i, name := range names {
		d.Total(profile.Quantity{Key: "binary_" + name + "_bytes", Unit: "B", Name: "Binary: " + name, Group: "Memory", Whole: true, Better: -1}, values[i][n])
		tl.Counters = append(tl.Counters, timeline.Counter{Name: name, Unit: "B", Times: times, Values: values[i]})
	}
	d.P.Timeline = tl
	d.Note("sha", sha)
	d.Found("tflm.sizes", profile.Info, "The file has the sizes of %d builds. The figures are those of the last one; the timeline has all.", n+1)
	runs := []*runlog.Run{d.Run()}
	if s.Err() != nil {
		return runs, draft.At(f, s.Number(), s.Err())
	}
	return runs, nil
}
