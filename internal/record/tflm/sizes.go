package tflm

import (
	"time"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// maxBuilds limits the rows of a table of sizes.
const maxBuilds = 100_000

var sizeNames = [4]string{"text", "data", "bss", "total"}

// sizes is the table of the sizes of a benchmark's binary, one row per build.
type sizes struct {
	d      *draft.Draft
	origin time.Time
	times  []float64 // seconds since the first build
	values [len(sizeNames)][]float64
	sha    string
}

func (s *sizes) row(l string) {
	fields := textscan.Fields(l, ',')
	if len(fields) < 6 {
		if textscan.Cell(fields, 0) != "" {
			s.d.Dropped.Add("rows with too few fields", 1)
		}
		return
	}
	at, err := time.Parse("2006-01-02 15:04:05.999999", textscan.Cell(fields, 0))
	var row [len(sizeNames)]float64
	ok := err == nil
	for i := range row {
		v, is := textscan.Whole(textscan.Cell(fields, 2+i))
		row[i], ok = float64(v), ok && is && v >= 0
	}
	n := len(s.times)
	if n == 0 {
		s.origin = at
	}
	t := at.Sub(s.origin).Seconds()
	if !ok || n >= maxBuilds || n > 0 && t < s.times[n-1] {
		s.d.Dropped.Add("rows out of order or without a date and sizes", 1)
		return
	}
	s.times, s.sha = append(s.times, t), textscan.Cell(fields, 1)
	for i, v := range row {
		s.values[i] = append(s.values[i], v)
	}
}

// runs makes the run: the last build is the profile, all builds are counters over time.
func (s *sizes) runs() []*runlog.Run {
	d, n := s.d, len(s.times)-1
	if n < 0 {
		return nil
	}
	last := func(i int) float64 { return s.values[i][n] }
	d.P.Totals.FlashBytes = new(int64(last(0)) + int64(last(1)))
	d.P.Created = s.origin.Add(time.Duration(s.times[n] * float64(time.Second))).UTC().Format(time.RFC3339)
	d.P.Timeline = &timeline.Timeline{Origin: s.origin.UTC().Format(time.RFC3339), Lanes: []timeline.Lane{}, Method: "sizes of the binary of each build"}
	for i, name := range sizeNames {
		d.Total(profile.Quantity{Key: "binary_" + name + "_bytes", Unit: "B", Name: "Binary: " + name, Group: "Memory", Whole: true, Better: -1}, last(i))
		d.P.Timeline.Counters = append(d.P.Timeline.Counters, timeline.Counter{Name: name, Unit: "B", Times: s.times, Values: s.values[i]})
	}
	d.Note("sha", s.sha)
	d.Found("tflm.sizes", profile.Info, "The file has the sizes of %d builds. The figures are those of the last one; the timeline has all.", n+1)
	return []*runlog.Run{d.Run()}
}
