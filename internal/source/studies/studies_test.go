package studies_test

import (
	"slices"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/source/studies"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
	"github.com/opmeter/opmeter/study"
)

// TestProfiles compares the unchanged model of a study with that of its plans.
func TestProfiles(t *testing.T) {
	t.Parallel()
	ms := func(v float64) *profile.Metric { return profile.Value(profile.Measured, v*1e-3, "") }
	s := &study.Study{
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Model: profile.Model{Name: "net"},
		Layers: []study.Layer{
			{Node: 0, Name: "a", Op: "Conv", Params: 100, MACs: new(int64(1000))},
			{Node: 3, Name: "b", Op: "MatMul", Params: 50, MACs: new(int64(500))},
		},
		Speeds: []*study.Speed{{
			SpeedSettings: study.SpeedSettings{Name: "perf", Target: "host", Threads: 2}, Latency: ms(10),
			Layers: []study.LayerTime{{Layer: 0, Latency: ms(6)}, {Layer: 1, Latency: ms(3)}, {Layer: 7, Latency: ms(1)}},
		}},
		Losses: []*study.Loss{{LossSettings: study.LossSettings{Name: "loss", Metric: "accuracy", Higher: true}, Base: profile.Value(profile.Measured, 0.9, "")}},
		Plans: []*study.Plan{
			{
				Name: "fast", Speed: "perf", Loss: "loss", Predicted: study.Outcome{LatencyS: ms(5)},
				Measured: &study.Outcome{LatencyS: ms(6), Loss: profile.Value(profile.Measured, 0.05, ""), Params: new(int64(80))},
				Choices:  []study.Choice{{Layer: 0, Change: study.Change{Structure: study.Filter}, TimeS: new(2e-3)}, {Layer: 1, TimeS: new(3e-3)}},
			},
			{Name: "guess", Speed: "perf", Loss: "loss", Predicted: study.Outcome{LatencyS: ms(4)}, Choices: []study.Choice{{Layer: 0, TimeS: new(2e-3)}}},
			{Name: "empty", Speed: "perf", Loss: "loss"},
		},
	}
	var runs []compare.Named
	for _, x := range studies.Profiles(s) {
		if err := x.Profile.Validate(); err != nil {
			t.Errorf("%s: %v", x.Name, err)
		}
		runs = append(runs, compare.Named{Name: x.Name, Profile: x.Profile})
	}
	x, err := compare.New(runs)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Runs) != 3 || x.Runs[0].Source != compare.Measured || x.Runs[1].Source != compare.Measured || x.Runs[2].Source != compare.Estimated {
		t.Fatalf("%+v", x.Runs)
	}
	for k, want := range []float64{0.010, 0.006, 0.004} {
		if got := *x.Runs[k].Total.Value; got != want {
			t.Errorf("%s: %v s, want %v", x.Runs[k].Name, got, want)
		}
	}
	if g := x.Groups[0]; g.Name != "a" || *g.Figures[0].Value != 0.006 || g.Figures[1].Value != nil || *g.Figures[2].Value != 0.002 {
		t.Errorf("%+v", g)
	}
	// The total of a plan was measured, its layers were not: there is no time outside of them.
	if r := x.Runs[1]; r.Rest != nil || r.Operators != nil || r.Ratio.Value == nil {
		t.Errorf("%+v", r)
	}
	if !slices.ContainsFunc(x.Notes, func(n compare.Note) bool { return n.Code == compare.NoLayers && slices.Equal(n.Runs, []int{1}) }) {
		t.Errorf("%+v", x.Notes)
	}
	rows := map[string]compare.Row{}
	for _, r := range x.Whole {
		rows[r.Key] = r
	}
	if r := rows["params"]; *r.Figures[0].Value != 150 || *r.Figures[1].Value != 80 || r.Figures[2].Value != nil {
		t.Errorf("%+v", r)
	}
	// The outcome has the decrease of an accuracy.
	if r := rows["study_accuracy"]; *r.Figures[0].Value != 0.9 || *r.Figures[1].Value != 0.9-0.05 || r.Better != 1 || r.Topic != compare.Accuracy {
		t.Errorf("%+v", r)
	}
}
