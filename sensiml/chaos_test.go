package sensiml

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/wire"
)

// pack4 has four generators of one slot each.
const pack4 = `{"NumModels":1,"ModelIndexes":{"0":"m"},"ModelDescriptions":[{"Name":"m","ModelType":"PME","ClassMaps":{"1":"a"},
	"FeatureNames":["XMean","YMean","XSum","XMedian"],"FeatureFunctions":["Mean","Mean","Sum","Median"]}]}`

// base are the figures that the made-up device is near to, the classifier's last.
var base = []float64{16764, 9876, 27355, 131072, 15944}

// made prints inferences as the firmware does; figures differ by at most a hundredth.
func made(n int, times bool) []byte {
	var b bytes.Buffer
	for i := range n {
		v := make([]int, len(base))
		for k := range v {
			v[k] = int(base[k]) + (i*7919+k*104729)%(int(base[k])/50) - int(base[k])/100
		}
		fmt.Fprintf(&b, "{\"ModelNumber\":0,\"Classification\":1}\n{\"ModelNumber\":0,\"Type\":\"Cycles\", \"FeatureCycles\":[%d,%d,%d,%d],\"ClassifierCycles\": %d}\n\n", v[0], v[1], v[2], v[3], v[4])
		if times {
			fmt.Fprintf(&b, "{\"ModelNumber\":0,\"Type\":\"Times\", \"FeatureTimes\":[%.9f,%.9f,%.9f,%.9f], \"ClassifierTime\": %.9f, }\n\n",
				float64(v[0])/FirmwareHz, float64(v[1])/FirmwareHz, float64(v[2])/FirmwareHz, float64(v[3])/FirmwareHz, float64(v[4])/FirmwareHz)
		}
	}
	return b.Bytes()
}

// TestChaos: ten thousand faults of a wire. Nothing panics or hangs. A median is always an honest
// one; a figure outside the honest range is in no statistics unless it is within what nothing can
// tell (a quarter of the figure), and with the line of times beside it not even that. Whatever
// was lost is told of.
func TestChaos(t *testing.T) {
	t.Parallel()
	const want = 10_000
	pack, err := ReadPack(strings.NewReader(pack4))
	if err != nil {
		t.Fatal(err)
	}
	faults, runs, left := 0, 0, 0
	for seed := uint64(1); faults < want; seed++ {
		times := seed%2 == 0
		rate := []float64{0.0005, 0.002, 0.005}[seed%3]
		stream, places := wire.Faults{Seed: seed, Corrupt: rate, Cut: rate / 4, Duplicate: rate / 4, Reorder: rate / 8}.Apply(made(100, times))
		faults += len(places)
		p, err := NewProfileParser(Options{Pack: pack, Input: bytes.NewReader(stream), Messages: -1})
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Run(context.Background())
		res := p.Result()
		if len(res.Models) == 0 || res.Models[0].Classifier == nil {
			continue
		}
		runs += res.Runs
		if res.Runs > 105 {
			t.Errorf("seed %d: %d inferences of 100", seed, res.Runs)
		}
		m := res.Models[0]
		rows := append(slices.Clone(m.Features), *m.Classifier)
		if len(rows) != len(base) {
			t.Errorf("seed %d: %d rows", seed, len(rows))
			continue
		}
		for i, r := range rows {
			s := r.Cycles
			if r.State != Reported || s == nil {
				t.Errorf("seed %d: %s: %s", seed, r.Name, r.State)
				continue
			}
			left += s.Left
			within := func(what string, v, part float64) {
				if !(math.Abs(v-base[i]) <= part*base[i]+1) {
					t.Errorf("seed %d (times %v, %d runs): %s of %s is %v, the device's are near %v", seed, times, res.Runs, what, r.Name, v, base[i])
				}
			}
			// The device's own spread is a hundredth; half of it more for what small damage adds
			// to the tails.
			within("median", s.Median, 0.01)
			within("p5", s.P5, 0.26)
			within("p95", s.P95, 0.26)
			within("min", s.Min, 0.27)
			within("max", s.Max, 0.27)
			within("mean", s.Mean, 0.03)
		}
		lost := false
		for _, n := range res.Rejected {
			lost = lost || n > 0
		}
		if res.Runs < 100 && !lost && !has(res, "sensiml.from_times") {
			t.Errorf("seed %d: %d of 100 inferences and not a word", seed, res.Runs)
		}
		for _, q := range res.Profiles("measured") {
			if err := q.Validate(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
	if runs == 0 || left == 0 {
		t.Errorf("%d runs, %d figures left out: the faults did not show", runs, left)
	}
	t.Logf("%d faults: %d inferences, %d figures left out", faults, runs, left)
}

// TestChaosLive: the same for figures as they come. Behind the first inferences each one that is
// given out is honest or within what nothing can tell.
func TestChaosLive(t *testing.T) {
	t.Parallel()
	pack, err := ReadPack(strings.NewReader(pack4))
	if err != nil {
		t.Fatal(err)
	}
	given, bad := 0, 0
	for seed := uint64(1); seed <= 60; seed++ {
		stream, _ := wire.Faults{Seed: seed, Corrupt: 0.002, Cut: 0.0005, Duplicate: 0.0005}.Apply(made(100, seed%2 == 0))
		l := NewLive(pack, Rules{})
		var d Decoder
		take := func(list []LiveInference) {
			for _, x := range list {
				given++
				bad += len(x.Bad)
				for i, v := range x.Figures {
					if !math.IsNaN(v) && !(math.Abs(v-base[i]) <= 0.27*base[i]) {
						t.Errorf("seed %d: figure %d is %v, the device's are near %v", seed, i, v, base[i])
					}
				}
			}
		}
		d.Feed(stream, func(m *Message) bool { take(l.Add(m)); return true })
		take(l.End())
	}
	if given < 3000 || bad == 0 {
		t.Errorf("%d inferences, %d figures left out", given, bad)
	}
}

// FuzzReader: whatever comes, messages are sound, and figures of them make a valid profile.
func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[1,2,3,4],"ClassifierCycles": 5}` + "\n\r\n"))
	f.Add([]byte(`{"ModelNumber":0,"Type":"Times", "FeatureTimes":[0.1,0.2,0.3,0.4], "ClassifierTime": 0.000194629, }` + "\r"))
	f.Add([]byte("{\"ModelNumber\":0,\"Classification\":2,\"SegmentStart\":400,\"SegmentLength\":200,\"FeatureVectorLength\":3, \"FeatureVector\":[12,0,255],\"OutputSize\":4,\"OutputTensor\":[3.000000,nan]}\n"))
	f.Add([]byte(`{"NumModels":1,"0":"TestModel"}` + "\n\nModel 0 does not have profiling enabled\n"))
	f.Add([]byte("Unscaled Features: 1, 2\x00{\"ModelNumber\":1,\"Result\":-1.5}{\"Mod"))
	pack, err := ReadPack(strings.NewReader(pack4))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, p := range []*Pack{nil, pack} {
			c, l := NewCollector(p), NewLive(p, Rules{})
			r := NewReader(bytes.NewReader(b))
			for r.Scan() {
				m := r.Message()
				if m.Kind < KindResult || m.Kind > KindDisabled || m.Model < 0 || m.Model >= maxModels || m.Offset < 0 || m.Offset > int64(len(b)) {
					t.Fatalf("%+v", m)
				}
				for _, v := range m.Slots {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Fatalf("%+v", m)
					}
				}
				c.Add(m)
				l.Add(m)
			}
			c.End()
			l.End()
			res := c.Result(Rules{ClockHz: 64e6, Warmup: 1, SampleRate: 100})
			r.Decoder().To(res)
			for _, q := range res.Profiles("imported") {
				if err := q.Validate(); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			for _, write := range []error{res.WriteJSON(&out), res.WriteYAML(&out), res.WriteCSV(&out), res.WriteTable(&out)} {
				if write != nil {
					t.Fatal(write)
				}
			}
		}
		o, err := newOriginal(pack)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			o.line(line)
		}
		o.metrics().json()
		o.metrics().yaml()
	})
}

// FuzzPack: whatever a model.json says, layouts are sound.
func FuzzPack(f *testing.F) {
	f.Add([]byte(pack4))
	f.Add([]byte(`{"ModelDescriptions":{"0":{"knowledgepack_summary":[{"type":"generatorset","set":[{"function_name":"Power Spectrum","inputs":{"columns":["X","Y"],"number_of_bins":17}}]},
		{"name":"Feature Cascade","inputs":{"num_cascades":3,"slide":false}}]}}}`))
	f.Add([]byte(`{"feature_summary":[],"model_configuration":{},"knowledgepack_summary":{"recognition_pipeline":[]}}`))
	lines := []byte(`{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[1,2,3,4],"ClassifierCycles": 5}` + "\n" + `{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[1,0,3,4],"ClassifierCycles": 5}` + "\n")
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ReadPack(bytes.NewReader(b))
		if err != nil {
			return
		}
		for _, m := range p.Models {
			at := 0
			for _, g := range m.Generators {
				if g.Slot >= 0 && (g.Slot < at || g.Slots < 0 || g.Slot+g.Slots > maxSlots) {
					t.Fatalf("%+v", g)
				}
				at = max(at, g.Slot+g.Slots)
			}
		}
		c := NewCollector(p)
		var d Decoder
		d.Feed(lines, func(m *Message) bool { c.Add(m); return true })
		c.End()
		res := c.Result(Rules{})
		for _, q := range res.Profiles("measured") {
			if err := q.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = newOriginal(p)
	})
}
