package profile

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rankable returns a measured layer whose time has an interval.
func rankable(low, median, high float64) Layer {
	return Layer{Op: "Add", State: Ran, Latency: &Metric{Kind: Measured, Median: &median, CI95: &[2]float64{low, high}}}
}

func TestRanks(t *testing.T) {
	t.Parallel()
	unreached, value := rankable(50, 60, 70), Layer{Op: "Add", State: Ran, Latency: Value(Measured, 3, "")}
	unreached.State = NotReached
	banded := Layer{Op: "Add", State: Ran, Latency: &Metric{Kind: Measured, Median: new(3.0), Band: &[2]float64{2, 4}}}
	imported := rankable(1, 2, 3)
	imported.Latency.Kind = Imported
	for _, c := range []struct {
		name   string
		layers []Layer
		want   []string
	}{
		{"none", nil, []string{}},
		{"settled", []Layer{rankable(1, 2, 3), rankable(7, 8, 9), rankable(4, 5, 6)}, []string{"3rd", "1st", "2nd"}},
		{"overlap", []Layer{rankable(7, 8, 9), rankable(1, 2, 3), rankable(2.5, 4, 5)}, []string{"1st", "2nd or 3rd", "2nd or 3rd"}},
		{"common bounds overlap", []Layer{rankable(2, 2, 2), rankable(2, 3, 4)}, []string{"1st or 2nd", "1st or 2nd"}},
		{"a chain", []Layer{rankable(1, 2, 3), rankable(3, 4, 5), rankable(5, 6, 7), rankable(8, 9, 10)}, []string{"3rd or 4th", "2nd to 4th", "2nd or 3rd", "1st"}},
		{"layers without a time take no place", []Layer{{Op: "Add", State: Fused}, unreached, rankable(1, 2, 3)}, []string{"", "", "1st"}},
		{"a time without interval", []Layer{rankable(7, 8, 9), value}, []string{"", ""}},
		{"an interval of another statistic", []Layer{rankable(7, 8, 9), rankable(1, 5, 3)}, []string{"", ""}},
		{"a time with a band", []Layer{banded, rankable(7, 8, 9)}, []string{"", ""}},
		{"a time of another tool", []Layer{rankable(7, 8, 9), imported}, []string{"", ""}},
	} {
		got := []string{}
		for _, r := range Ranks(c.layers) {
			got = append(got, RankText(r))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s, -want +got:\n%s", c.name, d)
		}
	}
}

// TestRanksByPairs compares the places with the definition, layer by layer.
func TestRanksByPairs(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		ls := make([]Layer, 1+r.IntN(12))
		for i := range ls {
			low := float64(r.IntN(20))
			ls[i] = rankable(low, low, low+float64(r.IntN(5)))
		}
		got := Ranks(ls)
		for i := range ls {
			want := [2]int64{1, int64(len(ls))}
			for k := range ls {
				if ls[k].Latency.CI95[0] > ls[i].Latency.CI95[1] {
					want[0]++
				}
				if ls[k].Latency.CI95[1] < ls[i].Latency.CI95[0] {
					want[1]--
				}
			}
			if *got[i] != want {
				t.Fatalf("layer %d of %d has places %v, want %v", i, len(ls), *got[i], want)
			}
		}
	}
}

func TestOrdinal(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th", 213: "213th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// TestBuilderRanks builds a profile and takes the intervals of shares and the places from it.
func TestBuilderRanks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind        Kind
		share, rank bool
	}{{Measured, true, true}, {Imported, false, false}, {Estimated, false, false}, {Simulated, false, false}} {
		p := &Profile{Schema: SchemaV1, Model: Model{Name: "m"}, Target: Target{ID: "host", Kind: TargetHost}}
		for i, l := range []Layer{rankable(1, 2, 3), rankable(5, 6, 11)} {
			l.Index, l.Latency.Kind = int64(i), c.kind
			p.Layers = append(p.Layers, l)
		}
		b := NewBuilder()
		if err := b.Describe(p); err != nil {
			t.Fatal(err)
		}
		got, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		l := &got.Layers[1]
		if (l.ShareCI95 != nil) != c.share || (l.Rank != nil) != c.rank {
			t.Errorf("%s: interval %v, places %v", c.kind, l.ShareCI95, l.Rank)
		}
		// A layer cannot take more than the whole.
		if c.share && (*l.ShareCI95 != [2]float64{0.625, 1} || *l.Rank != [2]int64{1, 1}) {
			t.Errorf("interval %v, places %v", *l.ShareCI95, *l.Rank)
		}
	}
}

func TestRankValidate(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Layer){
		"places from 0":         func(l *Layer) { l.Rank = &[2]int64{0, 1} },
		"places out of order":   func(l *Layer) { l.Rank = &[2]int64{3, 2} },
		"an interval above 1":   func(l *Layer) { l.ShareCI95 = &[2]float64{0.5, 1.5} },
		"an interval backwards": func(l *Layer) { l.ShareCI95 = &[2]float64{0.5, 0.25} },
	} {
		l := rankable(1, 2, 3)
		change(&l)
		p := &Profile{Schema: SchemaV1, Model: Model{Name: "m"}, Target: Target{ID: "host", Kind: TargetHost}, Layers: []Layer{l}}
		if p.Validate() == nil {
			t.Errorf("%s is valid", name)
		}
	}
}

// TestTypicalOfOldFiles: files of earlier versions have a mean of the middle runs beside the
// median. The median is the figure, since the interval is its own.
func TestTypicalOfOldFiles(t *testing.T) {
	t.Parallel()
	p, err := Unmarshal([]byte(`{"schema":"` + SchemaV1 + `","model":{"name":"m"},"target":{"id":"host","kind":"host"},
		"layers":[{"index":0,"op":"Add","state":"ran","latency_s":{"kind":"measured","n":9,"median":2,"typical":5,"mean":4,"ci95":[1,3]}}],"totals":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := p.Layers[0].Latency
	if v, ok := m.Best(); !ok || v != 2 || m.Estimator() != "median" {
		t.Errorf("%v by %s, want the median 2", v, m.Estimator())
	}
}
