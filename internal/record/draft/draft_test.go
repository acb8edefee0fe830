package draft_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

func TestMetric(t *testing.T) {
	t.Parallel()
	m := draft.Metric(&profile.Metric{Mean: new(5.0), Min: new(6.0), Max: new(7.0), StdDev: new(-1.0), N: new(int64(-3)), P90: new(math.NaN())})
	if m.Min != nil || *m.Max != 7 || m.StdDev != nil || m.N != nil || m.P90 != nil || m.Kind != profile.Imported || m.Validate() != nil {
		t.Errorf("%+v", m)
	}
	for _, v := range []float64{-1, math.NaN(), math.Inf(1)} {
		if m := draft.Value(v); m != nil {
			t.Errorf("%g: %+v", v, m)
		}
	}
	if m, kept := draft.Samples([]float64{1, -1, 3}, ""); *m.N != 2 || *m.Mean != 2 || len(kept) != 2 {
		t.Errorf("%+v", m)
	}
}

// TestRun: whatever a reader puts in, the run is a valid profile.
func TestRun(t *testing.T) {
	t.Parallel()
	d := draft.New("x", "", "")
	i := d.Add(profile.Layer{Op: "\xff", Parent: new(int64(5)), MACs: new(int64(-1))}, runlog.Hint{})
	d.Add(profile.Layer{State: profile.Fused}, runlog.Hint{})
	d.Add(profile.Layer{FusedInto: new(int64(0)), State: profile.Fused}, runlog.Hint{})
	d.Layer(i).Latency = &profile.Metric{Mean: new(-1.0)}
	d.Set(i, profile.Quantity{Name: "A (ms)"}, 5)
	d.Set(i, profile.Quantity{Key: "latency_s"}, -5)
	d.Set(-1, profile.Quantity{Name: "b"}, 1)
	d.Set(i, profile.Quantity{Name: "nan"}, math.NaN())
	d.Total(profile.Quantity{Name: "Whole"}, 7)
	d.Option(i, "HasBias", "1")
	d.Note("key", strings.Repeat("x", 1000))
	d.Dropped.Add("reason", 3)
	p := records.Collect(t, d.Run())
	if v, _ := p.Layers[0].Value("a_ms"); v != 5 || p.Layers[0].Option("has_bias") != "1" || p.Layers[0].Latency != nil || p.Layers[0].MACs != nil || p.Layers[0].Parent != nil {
		t.Errorf("%+v", p.Layers[0])
	}
	if p.Layers[1].State != profile.NotReached || p.Layers[2].State != profile.Fused || len(p.Incomplete) != 3 {
		t.Errorf("%+v", p.Layers)
	}
	for _, q := range p.Quantities {
		if q.Model != (q.Key == "whole") {
			t.Errorf("%+v", q)
		}
	}
	if d.Empty() || !draft.New("x", "", "").Empty() {
		t.Error("empty")
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	in := &record.Input{Files: []*record.File{record.Bytes("dir/net.engine.json", nil), record.Bytes("b", nil)}}
	boom := errors.New("boom")
	runs, err := record.EachFile(t.Context(), in, func(f *record.File) ([]*runlog.Run, error) {
		if f.Name == "b" {
			return nil, boom
		}
		return []*runlog.Run{draft.New("x", draft.Stem(f), "").Run()}, nil
	})
	if len(runs) != 1 || runs[0].Profile.Model.Name != "net.engine" || !errors.Is(err, boom) || !strings.HasPrefix(err.Error(), "b: ") {
		t.Errorf("%v %v", runs, err)
	}
}
