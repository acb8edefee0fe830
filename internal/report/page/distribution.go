package page

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/base/stats"
)

// sampled says that the page does not hold every sample.
type sampled struct {
	Samples int    `json:"samples"` // in the profile
	Kept    int    `json:"kept"`    // in the page
	Text    string `json:"text"`
}

// distribution stands for samples that the page does not hold one by one.
type distribution struct {
	Layer int `json:"layer"` // -1 for the whole model
	N     int `json:"n"`     // samples that it stands for
	// Edges bound the bins of a histogram and Counts holds their samples, the
	// lower edge of a bin being in it, and in the last one the upper edge too. All
	// bins but the last have one width.
	Edges  []float64 `json:"edges_s"`
	Counts []int32   `json:"counts"`
	// Quantiles at 0, 1 %, … 100 %, linear between order statistics.
	Quantiles []float64 `json:"quantiles_s"`
	// Stretch is the number of samples that follow one another in each entry of
	// Mins, Medians and Maxs; the last entry may have fewer.
	Stretch int       `json:"stretch"`
	Mins    []float64 `json:"mins_s"`
	Medians []float64 `json:"medians_s"`
	Maxs    []float64 `json:"maxs_s"`
}

const (
	bins      = 60  // of equal width, and one more for the longest samples
	stretches = 200 // of the order of runs
)

// reduce replaces samples by distributions where d's profile has more than limit.
// The samples of the whole model stay, if they fit, and those of the layers that
// take most time. The samples of p are not touched: the layers are copies.
func reduce(d *document, limit int) {
	p := d.Profile
	total := len(p.Totals.LatencySamples)
	for i := range p.Layers {
		total += len(p.Layers[i].Samples)
	}
	if total <= limit {
		return
	}
	order := make([]int, len(p.Layers))
	for i := range order {
		order[i] = i
	}
	sorting.Stable(order, func(a, b int) int {
		x, _ := p.Layers[a].Latency.Best()
		y, _ := p.Layers[b].Latency.Best()
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	type work struct {
		layer   int
		samples []float64
	}
	var todo []work
	kept, whole, layers := 0, 0, 0
	visit := func(layer int, samples *[]float64) {
		n := len(*samples)
		if n == 0 {
			return
		}
		if kept+n <= limit {
			kept += n
			if layer >= 0 {
				layers++
			} else {
				whole++
			}
			return
		}
		todo = append(todo, work{layer, *samples})
		*samples = nil
	}
	visit(-1, &p.Totals.LatencySamples)
	for _, i := range order {
		visit(i, &p.Layers[i].Samples)
	}
	// Sorting is most of the work of a page with many samples.
	d.Distributions = make([]distribution, len(todo))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(todo)) {
		wg.Go(func() {
			var scratch []float64
			for i := next.Add(1) - 1; i < int64(len(todo)); i = next.Add(1) - 1 {
				scratch = append(scratch[:0], todo[i].samples...)
				d.Distributions[i] = distribute(todo[i].layer, todo[i].samples, scratch)
			}
		})
	}
	wg.Wait()
	s := &sampled{Samples: total, Kept: kept}
	switch {
	case whole > 0 && layers > 0:
		s.Text = fmt.Sprintf("This page holds all samples of the whole model and of the %d layers that take most time.", layers)
	case whole > 0:
		s.Text = "This page holds all samples of the whole model."
	case layers > 0:
		s.Text = fmt.Sprintf("This page holds all samples of %d layers.", layers)
	}
	if s.Text != "" {
		s.Text += " "
	}
	s.Text += fmt.Sprintf("%d of %d samples are replaced by histograms, quantiles and the smallest, middle and largest sample of stretches of runs. A saved profile (.opmeter) has them all.", total-kept, total)
	d.Sampled = s
}

// distribute describes samples; sorted is a copy of them that it may change.
func distribute(layer int, samples, sorted []float64) distribution {
	n := len(samples)
	d := distribution{Layer: layer, N: n, Stretch: (n + stretches - 1) / stretches}
	// Stretches first: they sort pieces in their places.
	for at := 0; at < n; at += d.Stretch {
		s := sorted[at:min(at+d.Stretch, n)]
		slices.Sort(s)
		d.Mins = append(d.Mins, s[0])
		d.Medians = append(d.Medians, stats.Quantile(s, 0.5))
		d.Maxs = append(d.Maxs, s[len(s)-1])
	}
	slices.Sort(sorted)
	d.Quantiles = make([]float64, 101)
	for i := range d.Quantiles {
		d.Quantiles[i] = stats.Quantile(sorted, float64(i)/100)
	}
	// A few samples are often many times longer than the others. One bin for them
	// leaves the width of the others to what matters.
	low, high, most := sorted[0], sorted[n-1], stats.Quantile(sorted, 0.995)
	d.Edges = []float64{low}
	if width := (most - low) / bins; width > 0 {
		for i := 1; i <= bins; i++ {
			if e := low + float64(i)*width; e > d.Edges[len(d.Edges)-1] && e < high {
				d.Edges = append(d.Edges, e)
			}
		}
	}
	d.Edges = append(d.Edges, high)
	d.Counts = make([]int32, len(d.Edges)-1)
	before := 0
	for i := range d.Counts {
		upTo := n
		if i < len(d.Counts)-1 {
			upTo, _ = slices.BinarySearch(sorted, d.Edges[i+1])
		}
		d.Counts[i] = int32(upTo - before)
		before = upTo
	}
	return d
}
