package page

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

func TestDistribute(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]float64, 10007)
	for i := range random {
		random[i] = 1e-3 * math.Exp(r.NormFloat64()/4)
	}
	random[77] = 5 // far beyond all others
	equal := slices.Repeat([]float64{0.25}, 300)
	two := append(slices.Repeat([]float64{1}, 999), 2)
	for _, samples := range [][]float64{random, equal, two, {3}, {1, 2}} {
		d := distribute(4, samples, slices.Clone(samples))
		n := len(samples)
		if d.Layer != 4 || d.N != n {
			t.Fatalf("layer %d, n %d", d.Layer, d.N)
		}
		low, high := slices.Min(samples), slices.Max(samples)
		if d.Edges[0] != low || d.Edges[len(d.Edges)-1] != high || len(d.Counts) != len(d.Edges)-1 {
			t.Errorf("edges %v to %v, want %v to %v", d.Edges[0], d.Edges[len(d.Edges)-1], low, high)
		}
		for i, c := range d.Counts {
			want := int32(0)
			for _, x := range samples {
				if x >= d.Edges[i] && (x < d.Edges[i+1] || i == len(d.Counts)-1) {
					want++
				}
			}
			if c != want {
				t.Errorf("bin %d of %d has %d, want %d", i, len(d.Counts), c, want)
			}
		}
		if len(d.Quantiles) != 101 || d.Quantiles[0] != low || d.Quantiles[100] != high || !slices.IsSorted(d.Quantiles) {
			t.Errorf("quantiles %v", d.Quantiles)
		}
		for i := range d.Mins {
			s := slices.Clone(samples[i*d.Stretch : min((i+1)*d.Stretch, n)])
			slices.Sort(s)
			if d.Mins[i] != s[0] || d.Maxs[i] != s[len(s)-1] || d.Medians[i] != stats.Quantile(s, 0.5) {
				t.Errorf("stretch %d is %v %v %v", i, d.Mins[i], d.Medians[i], d.Maxs[i])
			}
		}
		if len(d.Mins) > stretches || len(d.Mins)*d.Stretch < n || (len(d.Mins)-1)*d.Stretch >= n {
			t.Errorf("%d stretches of %d for %d samples", len(d.Mins), d.Stretch, n)
		}
	}
}

func TestReduce(t *testing.T) {
	t.Parallel()
	p := small()
	p.Layers[1].Samples = []float64{1, 2}
	p.Layers[1].Latency = profile.Value(profile.Measured, 1.5, "")
	for _, tt := range []struct {
		limit  int
		layers []int
		kept   int
		text   string
	}{
		{6, nil, 6, ""},
		{5, []int{0}, 4, "whole model and of the 1 layers"},
		{3, []int{1, 0}, 2, "of the whole model."},
		{1, []int{-1, 1, 0}, 0, "6 of 6 samples"},
	} {
		d := &document{}
		split(d, p, tt.limit)
		var layers []int
		for _, s := range d.Distributions {
			layers = append(layers, s.Layer)
		}
		if !slices.Equal(layers, tt.layers) {
			t.Errorf("limit %d: distributions of %v, want %v", tt.limit, layers, tt.layers)
		}
		if tt.text == "" {
			if d.Sampled != nil {
				t.Errorf("limit %d: %+v", tt.limit, d.Sampled)
			}
			continue
		}
		if d.Sampled == nil || d.Sampled.Samples != 6 || d.Sampled.Kept != tt.kept || !strings.Contains(d.Sampled.Text, tt.text) {
			t.Errorf("limit %d: %+v", tt.limit, d.Sampled)
		}
	}
	if len(p.Layers[0].Samples) != 2 {
		t.Error("the profile was changed")
	}
}

// many is a profile with n samples in each of its layers.
func many(layers, n int) *profile.Profile {
	r := rand.New(rand.NewPCG(1, 2))
	p := small()
	p.Timeline, p.Layers = nil, make([]profile.Layer, layers)
	for i := range p.Layers {
		s := make([]float64, n)
		for k := range s {
			s[k] = math.Round(1e9*1e-5*math.Exp(r.NormFloat64()/5)) / 1e9
		}
		p.Layers[i] = profile.Layer{Index: int64(i), Op: "CONV_2D", State: profile.Ran, Samples: s, Latency: profile.Value(profile.Measured, 1e-5, "")}
	}
	return p
}

func TestManySamples(t *testing.T) {
	t.Parallel()
	p := many(30, 100)
	d := &document{}
	c := split(d, p, 1000)
	if len(d.Distributions) != 21 || d.Sampled.Kept != 2+900 {
		t.Errorf("%d distributions, %+v", len(d.Distributions), d.Sampled)
	}
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
}

// The case that the format is made for: 10 million samples.
func BenchmarkWriteSamples(b *testing.B) {
	p := many(1000, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(io.Discard, p, "", Answers{}); err != nil {
			b.Fatal(err)
		}
	}
}

// bars is a profile with a timeline of n bars on four lanes.
func bars(n int) *profile.Profile {
	r := rand.New(rand.NewPCG(1, 2))
	p := small()
	p.Timeline = &timeline.Timeline{}
	for range 4 {
		l := timeline.Lane{Name: "t", Kind: timeline.Thread}
		at := 0.0
		for i := range n / 4 {
			d := math.Round(1e4*r.ExpFloat64()) / 1e9
			l.Starts, l.Durations = append(l.Starts, at), append(l.Durations, d)
			l.Layers, l.Iterations = append(l.Layers, int32(i%2)), append(l.Iterations, int32(i/2))
			at = math.Round((at+d)*1e9+100) / 1e9
		}
		p.Timeline.Lanes = append(p.Timeline.Lanes, l)
	}
	return p
}

func BenchmarkWriteBars(b *testing.B) {
	p := bars(10_000_000)
	b.ReportAllocs()
	n := &counter{}
	for b.Loop() {
		n.n = 0
		if err := Write(n, p, "", Answers{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n.n)/1e6, "MB/page")
}

type counter struct{ n int }

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}
