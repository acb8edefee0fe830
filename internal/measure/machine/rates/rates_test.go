package rates

import "testing"

// TestAgain: a busy machine is measured again, and the best of all rounds counts.
func TestAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		rounds       [][]float64
		best, median float64
		passes       int
	}{
		{"at rest", [][]float64{{100, 99, 98}}, 100, 99, 1},
		{"at the limit", [][]float64{{100, 90, 80}}, 100, 90, 1},
		{"busy at first", [][]float64{{50, 20, 20}, {100, 100, 99, 98, 97, 98}}, 100, 98, 2},
		{"busy all the time", [][]float64{{100, 10}, {10, 10}, {10, 10}, {10, 10}, {1000, 1000}}, 100, 10, 4},
	} {
		k := 0
		got, passes := Again(func() []float64 { k++; return tt.rounds[k-1] })
		if got.Best != tt.best || got.Median != tt.median || passes != tt.passes || k != tt.passes {
			t.Errorf("%s: %+v in %d passes", tt.name, got, passes)
		}
	}
	if s := (Rate{}).Spread(); s != 0 {
		t.Errorf("spread of nothing is %v", s)
	}
}

// TestTheory: the best available instruction set counts.
func TestTheory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		dtype    string
		vendor   string
		features []string
		set      string
		ops      float64
	}{
		{"float32", "AuthenticAMD", []string{"sse4.2", "avx", "fma3", "avx2"}, "fma3", 32},
		{"float32", "GenuineIntel", []string{"avx512f", "fma3"}, "avx512f", 64},
		{"float32", "AuthenticAMD", []string{"avx512f", "fma3"}, "avx512f", 32},
		{"float32", "GenuineIntel", []string{"amxbf16", "avx512f", "fma3"}, "amxbf16", 1024.0 / 6},
		{"int8", "AuthenticAMD", []string{"avx512vnni", "avx512vp2intersect"}, "avx512vnni", 256},
		{"int8", "GenuineIntel", []string{"avx2", "avx512vnni"}, "avx512vnni", 256},
		{"int8", "", []string{"asimd", "asimddp"}, "asimddp", 64},
		{"int8", "", []string{"asimd", "asimddp", "i8mm"}, "i8mm", 128},
	} {
		got, ok := TheoryOf(tt.dtype, tt.vendor, tt.features)
		if !ok || got.Set != tt.set || got.OpsPerCycle != tt.ops {
			t.Errorf("%s by %s with %v: %+v, %v", tt.dtype, tt.vendor, tt.features, got, ok)
		}
	}
	if _, ok := TheoryOf("float64", "", []string{"avx2"}); ok {
		t.Error("a type that is not in the list has a bound")
	}
	if _, ok := TheoryOf("float32", "", nil); ok {
		t.Error("a processor of unknown features has a bound")
	}
}
