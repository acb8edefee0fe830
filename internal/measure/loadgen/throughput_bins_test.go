package loadgen

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestTally compares the bins with counts by hand.
func TestTally(t *testing.T) {
	t.Parallel()
	var none throughputBins
	if n := none.until(1e9); n != 0 {
		t.Errorf("%v inferences of none", n)
	}
	// One at the opening of the window, a quarter of which lies within, then one after the other.
	var c throughputBins
	c.add(-3_000_000, 1_000_000)
	for i := range int64(9) {
		c.add(1_000_000+i*1_000_000, 2_000_000+i*1_000_000)
	}
	for _, w := range []struct{ moment, want float64 }{{0, 0}, {500_000, 0.125}, {1e6, 0.25}, {5.5e6, 4.75}, {10e6, 9.25}} {
		// Half of a bin of 16.4 µs, shared by an inference of 1 ms and one of 4 ms.
		if n := c.until(w.moment); !(math.Abs(n-w.want) <= 0.01) {
			t.Errorf("%v before %v ns, want %v", n, w.moment, w.want)
		}
	}
	// Inferences of zero duration count, and late ones widen the bins.
	var long throughputBins
	r := rand.New(rand.NewPCG(1, 2))
	at, n := int64(0), 0
	for at < int64(time.Hour) {
		took := r.Int64N(2_000_000_000)
		if n%100 == 0 {
			took = 0
		}
		long.add(at, at+took)
		at += took
		n++
		if width := long.width; width*bins < at || width&(width-1) != 0 {
			t.Fatalf("bins of %d ns for %d", width, at)
		}
	}
	// sums of some ten thousand parts
	if got := long.until(math.Inf(1)); math.Abs(got-float64(n)) > 1e-6 {
		t.Errorf("%v of %d inferences", got, n)
	}
}

// TestRates: parts of the window show changes of throughput, and they are absent if they would be
// too short.
func TestRates(t *testing.T) {
	t.Parallel()
	// 100 and 40 per second in any part; the slower stream has 4 in a tenth of the window.
	r, err := drive(t, Options{Time: time.Second, Warmup: 1}, takes(10*time.Millisecond), takes(25*time.Millisecond))
	if err != nil || len(r.Rates) != 10 {
		t.Fatalf("%v, %v", r.Rates, err)
	}
	for _, v := range r.Rates {
		if !(math.Abs(v-140) <= 140*0.002) { // half a bin at each edge of the window's 512, at most
			t.Errorf("%v a second, want 140: %v", v, r.Rates)
		}
	}
	// 10 ms each, and from the 51st on 20 ms, after one of the warm-up.
	n := 0
	slower := func() error {
		n++
		if n > 51 {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond)
		return nil
	}
	r, err = drive(t, Options{Time: time.Second, Warmup: -1}, slower)
	// 75 inferences in a second, of 13.33 ms on average: four of them 18 times.
	if err != nil || len(r.Rates) != 18 || !near(r.PerSecond, 75) {
		t.Fatalf("%v a second, %v, %v", r.PerSecond, r.Rates, err)
	}
	for i, v := range r.Rates {
		want := 100.
		if i >= 9 {
			want = 50
		}
		// A part has 28 bins or more, and only the one with the change contains both rates.
		if !(math.Abs(v-want) <= 50./28) {
			t.Errorf("part %d: %v a second, want %v", i, v, want)
		}
	}
	// Eleven are not enough for three parts of four.
	r, err = drive(t, Options{Runs: 11, Warmup: -1}, takes(10*time.Millisecond))
	if err != nil || r.Rates != nil || !near(r.PerSecond, 100) {
		t.Errorf("%v, %v a second, %v", r.Rates, r.PerSecond, err)
	}
	r, err = drive(t, Options{Runs: 13, Warmup: -1}, takes(10*time.Millisecond))
	if err != nil || len(r.Rates) != 3 {
		t.Errorf("%v, %v", r.Rates, err)
	}
	// At a fixed rate they are the served inferences.
	r, err = drive(t, Options{Time: time.Second, Warmup: -1, Rate: 50}, takes(time.Millisecond))
	if err != nil || len(r.Rates) != 12 {
		t.Fatalf("%v, %v", r.Rates, err)
	}
	sum := 0.0
	for _, v := range r.Rates {
		sum += v / 12
	}
	if !(math.Abs(sum-50) <= 0.1) { // half a bin of 512 at the end
		t.Errorf("%v served a second, want 50", sum)
	}
}
