package sensiml

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/testing/material"
)

func file(t testing.TB, elem ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(material.Path(t, append([]string{"raw", "sensiml"}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// replays are the recorded streams with the model.json of each and the messages that were asked
// for.
var replays = []struct {
	name, model string
	messages    int
}{
	{"roc7_nano33", "format/roc7_model.json", 20},
	{"roc7_runner", "format/roc7_model.json", 20},
	{"dup_runner", "format/dup_model.json", 20},
	{"xg24_two_models", "real/xg24_2022_two_models_model.json", 24},
	{"times_fixed", "format/roc7_model.json", 2},
}

// replay runs a parser over a stream.
func replay(t testing.TB, model string, stream []byte, o Options) *ProfileParser {
	t.Helper()
	if model != "" {
		o.ModelJSON = material.Path(t, "raw", "sensiml", filepath.FromSlash(model))
	}
	o.Input = bytes.NewReader(stream)
	p, err := NewProfileParser(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCompat: results are those of the vendor's parser to the last byte.
func TestCompat(t *testing.T) {
	t.Parallel()
	for _, r := range replays {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			p := replay(t, r.model, file(t, "format", r.name+".log"), Options{Messages: r.messages, Compat: true})
			if diff := cmp.Diff(string(file(t, "format", r.name+".expected.json")), string(p.JSON())); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(string(file(t, "format", r.name+".expected.yml")), string(p.YAML())); diff != "" {
				t.Error(diff)
			}
			var want map[string]any
			if err := json.Unmarshal(file(t, "format", r.name+".expected.json"), &want); err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(p.Metrics())
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCompatOdd: of the odd lines the vendor's parser takes the one with seven figures, which
// another with three has spoilt, and the object of somebody else.
func TestCompatOdd(t *testing.T) {
	t.Parallel()
	p := replay(t, "format/roc7_model.json", file(t, "format", "odd.log"), Options{Messages: 5, Compat: true})
	got := p.Metrics()
	if got["RunCount"] != int64(2) {
		t.Errorf("RunCount is %v, want 2", got["RunCount"])
	}
	// The means of 1 and -1, 2 and 2, 3 and 3, then of what only the whole line has.
	want := map[string]any{
		"Mean Crossing Rate": int64(0), "Mean Difference": int64(2), "Second Sigma Crossing Rate": int64(3), "Sigma Crossing Rate": int64(4),
		"Threshold Crossing Rate": int64(5), "Threshold With Offset Crossing Rate": int64(6), "Zero Crossing Rate": int64(7),
	}
	if diff := cmp.Diff([]map[string]any{want}, got["FeatureCyclesPerInference"]); diff != "" {
		t.Error(diff)
	}
}

// line is a Cycles line of a recording, read by the standard library.
type line struct {
	ModelNumber      int
	Type             string
	FeatureCycles    []float64
	ClassifierCycles float64
	Classification   int
}

// truth reads the lines with cycles of a recording.
func truth(t testing.TB, stream []byte) (out []line) {
	t.Helper()
	for s := range strings.Lines(string(stream)) {
		if !strings.Contains(s, `"Cycles"`) {
			continue
		}
		var l line
		if err := json.Unmarshal([]byte(s), &l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// equal compares means: sums of some dozens of integers divided once differ by rounding only.
func equal(t testing.TB, name string, got *Stats, want []float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: no figure", name)
		return
	}
	m := mean(want)
	if d := got.Mean - m; !(d <= 1e-9*m && -d <= 1e-9*m) || got.N != len(want) {
		t.Errorf("%s: %d values with mean %v, want %d with %v", name, got.N, got.Mean, len(want), m)
	}
}

func column(ls []line, model, slot int) (out []float64) {
	for _, l := range ls {
		if l.ModelNumber == model {
			out = append(out, l.FeatureCycles[slot])
		}
	}
	return out
}

// TestThreeMeans: each mean has its own figure, and the sum is not a mean.
func TestThreeMeans(t *testing.T) {
	t.Parallel()
	stream := file(t, "format", "dup_runner.log")
	ls := truth(t, stream)
	p := replay(t, "format/dup_model.json", stream, Options{Messages: -1, Rules: Rules{ClockHz: 64e6}})
	res := p.Result()
	m := res.Models[0]
	for i, want := range []string{"Mean AccelerometerX", "Mean AccelerometerY", "Mean AccelerometerZ", "Sum AccelerometerX"} {
		f := m.Features[i]
		if f.Name != want || *f.Slot != i || f.State != Reported {
			t.Errorf("generator %d: %+v, want %s", i, f, want)
		}
		equal(t, want, f.Cycles, column(ls, 0, i))
		// Seconds are cycles by the clock that was given, not by the firmware's.
		if w := f.Cycles.Mean / 64e6; f.Time == nil || f.Time.Mean != w && !(f.Time.Mean/w-1 < 1e-12 && w/f.Time.Mean-1 < 1e-12) {
			t.Errorf("%s: %v s, want %v", want, f.Time, w)
		}
	}
	var clf, means []float64
	for _, l := range ls {
		clf = append(clf, l.ClassifierCycles)
		means = append(means, l.FeatureCycles[0]+l.FeatureCycles[1]+l.FeatureCycles[2])
	}
	equal(t, "classifier", m.Classifier.Cycles, clf)
	equal(t, "all means", m.ByGenerator[0].Cycles, means)
	if res.Runs != len(ls) || m.Partial || m.Classes[0].N+m.Classes[1].N+m.Classes[2].N != m.Results {
		t.Errorf("%d runs of %d, classes %v of %d", res.Runs, len(ls), m.Classes, m.Results)
	}
	if m.Classes[0].Label != "idle" {
		t.Errorf("class 1 is %q, want idle", m.Classes[0].Label)
	}
}

// TestTwoModels: the layout of a real pack: a cascade of fifteen segments, and generators of
// sixteen features that push later ones off the array.
func TestTwoModels(t *testing.T) {
	t.Parallel()
	stream := file(t, "format", "xg24_two_models.log")
	ls := truth(t, stream)
	res := replay(t, "real/xg24_2022_two_models_model.json", stream, Options{Messages: -1}).Result()
	audio, imu := res.Models[0], res.Models[1]
	// All banks change with every line of this recording: each is a segment.
	var segments []float64
	for b := range 15 {
		segments = append(segments, column(ls, 0, 20*b)...)
	}
	if audio.Banks != 15 || len(audio.Features) != 1 || audio.Features[0].Name != "MFCC channel_0" {
		t.Fatalf("audio: %d banks, %d generators", audio.Banks, len(audio.Features))
	}
	equal(t, "MFCC", audio.Features[0].Cycles, segments)
	want := []struct {
		name  string
		slot  int
		state State
	}{
		{"100th Percentile AccelerometerZ", 0, Reported},
		{"25th Percentile AccelerometerZ", 1, Reported},
		{"75th Percentile AccelerometerY", 2, Reported},
		{"Global Peak to Peak AccelerometerY", 3, Reported},
		{"Global Peak to Peak AccelerometerZ", 4, Reported},
		{"Min Column AccelerometerY+AccelerometerZ+Magnitude_ST_0000", 5, Reported},
		{"Power Spectrum AccelerometerY", 6, Reported},
		{"Power Spectrum AccelerometerZ", 22, NotReported},
		{"Power Spectrum Magnitude_ST_0000", 38, NotReported},
		{"Total Energy AccelerometerY+AccelerometerZ+Magnitude_ST_0000", 54, NotReported},
		{"Two Column Peak To Peak Difference AccelerometerY+AccelerometerZ", 55, NotReported},
		{"Two Column Peak To Peak Difference AccelerometerZ+Magnitude_ST_0000", 56, NotReported},
	}
	if len(imu.Features) != len(want) {
		t.Fatalf("%d generators, want %d", len(imu.Features), len(want))
	}
	for i, w := range want {
		f := imu.Features[i]
		if f.Name != w.name || *f.Slot != w.slot || f.State != w.state {
			t.Errorf("generator %d: %s in slot %d, %s; want %+v", i, f.Name, *f.Slot, f.State, w)
		}
		if w.state == Reported {
			equal(t, w.name, f.Cycles, column(ls, 1, w.slot))
		} else if f.Cycles != nil || f.Time != nil {
			t.Errorf("%s has a figure", w.name)
		}
	}
	if !imu.Partial || audio.Partial || imu.Features[0].Share != nil {
		t.Errorf("the whole of the second model lacks generators: partial %v, %v, share %v", imu.Partial, audio.Partial, imu.Features[0].Share)
	}
	if len(res.Rejected) != 0 || res.Repaired != int64(len(ls)) {
		t.Errorf("rejected %v, repaired %d of %d", res.Rejected, res.Repaired, len(ls))
	}
}

// TestRunner: the same stream with result lines gives all of its inferences, and only those.
func TestRunner(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"roc7_runner", "roc7_nano33"} {
		stream := file(t, "format", name+".log")
		ls := truth(t, stream)
		res := replay(t, "format/roc7_model.json", stream, Options{Messages: -1}).Result()
		if res.Runs != len(ls) {
			t.Errorf("%s: %d runs, want %d", name, res.Runs, len(ls))
		}
		for i, f := range res.Models[0].Features {
			equal(t, name+" "+f.Name, f.Cycles, column(ls, 0, i))
		}
		// Warm-up is left out, and the first inference is kept apart.
		res = replay(t, "format/roc7_model.json", stream, Options{Messages: 5, Rules: Rules{Warmup: 2}}).Result()
		f := res.Models[0].Features[0]
		equal(t, name+" with warm-up", f.Cycles, column(ls, 0, 0)[2:7])
		if *f.Cycles.First != column(ls, 0, 0)[0] || res.Runs != 5 || res.Models[0].Warmup != 2 {
			t.Errorf("%s: first %v, %d runs, %d of warm-up", name, *f.Cycles.First, res.Runs, res.Models[0].Warmup)
		}
	}
}

// TestTimesOnly: where only times come, cycles are what the firmware divided.
func TestTimesOnly(t *testing.T) {
	t.Parallel()
	res := replay(t, "format/roc7_model.json", file(t, "format", "times_fixed.log"), Options{Messages: -1}).Result()
	f := res.Models[0].Features
	// 1 ms and 3 ms at 81.92 MHz.
	equal(t, "first", f[0].Cycles, []float64{81920, 245760})
	equal(t, "second", f[1].Cycles, []float64{20480, 20480})
	equal(t, "fifth", f[4].Cycles, []float64{102400000, 102400000})
	if !has(res, "sensiml.from_times") {
		t.Errorf("nothing says that they follow from times: %v", res.Findings)
	}
}

func has(res *Result, id string) bool {
	for _, f := range res.Findings {
		if f.ID == id {
			return true
		}
	}
	return false
}

// TestOdd: what is not a message is counted by reason, what is one is read.
func TestOdd(t *testing.T) {
	t.Parallel()
	res := replay(t, "format/roc7_model.json", file(t, "format", "odd.log"), Options{Messages: -1}).Result()
	want := map[Reason]int64{ReasonText: 3, ReasonForeign: 1, ReasonLength: 1}
	if diff := cmp.Diff(want, res.Rejected); diff != "" {
		t.Error(diff)
	}
	f := res.Models[0].Features
	equal(t, "negative", f[0].Cycles, []float64{1<<32 - 1})
	equal(t, "second", f[1].Cycles, []float64{2})
	if c := res.Models[0].Classifier; c.Cycles.Mean != 1<<32-5 {
		t.Errorf("classifier %v", c.Cycles.Mean)
	}
	if !has(res, "sensiml.disabled") && !has(res, "sensiml.model") {
		t.Error(res.Findings)
	}
}
