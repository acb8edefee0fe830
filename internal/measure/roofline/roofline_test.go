package roofline

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/measure/machine/rates"
	"github.com/opmeter/opmeter/profile"
)

func TestPut(t *testing.T) {
	t.Parallel()
	var g profile.Target
	rate := func(v float64) rates.Rate { return rates.Rate{Best: v, Median: 0.75 * v} }
	w := &Way{Kernel: "go", Threads: 2, Operations: "operations", Bytes: "bytes"}
	Put(&g, &rates.Rates{
		Float: rate(4e9), Integer: rate(6e9), Clock: 2e9, Buffer: 64 << 20, Cache: 8 << 20, Passes: 3,
		Levels: []rates.Level{{Name: "L1", Bytes: 64 << 10, Rate: rate(1e11)}, {Name: "memory", Rate: rate(1e10)}},
	}, w, &profile.Host{Features: []string{"fma3", "avx2"}})
	if *g.PeakOpsPerSecond != 12e9 || *g.PeakBytesPerSecond != 1e10 {
		t.Errorf("peaks are %v and %v", *g.PeakOpsPerSecond, *g.PeakBytesPerSecond)
	}
	// Two threads of 2 GHz with 32 operations per cycle; 64 bytes in three instructions, two of
	// which issue at once.
	want := []profile.Peak{
		{DType: "float32", Kernel: "go", OpsPerSecond: 8e9, Spread: new(0.25), ProcessorOpsPerSecond: new(2 * 2e9 * 32.0), ProcessorSet: "fma3"},
		{DType: "int8", Kernel: "go", OpsPerSecond: 12e9, Spread: new(0.25), ProcessorOpsPerSecond: new(2e9 * 32 * 2 * 2 / 3.0 * 2), ProcessorSet: "avx2"},
	}
	if !reflect.DeepEqual(g.Peaks, want) {
		t.Errorf("peaks %+v", g.Peaks)
	}
	if len(g.Levels) != 2 || *g.Levels[0].Bytes != 64<<10 || g.Levels[1].Bytes != nil || *g.Levels[1].Spread != 0.25 {
		t.Errorf("levels %+v", g.Levels)
	}
	for _, s := range []string{"measured here after the runs (in 3 passes, since the machine was busy), 2 threads", ": operations, a multiply-accumulate being two; bytes in 64 MiB", "cache 8 MiB"} {
		if !strings.Contains(g.PeakMethod, s) {
			t.Errorf("%q is not in %q", s, g.PeakMethod)
		}
	}
	g = profile.Target{}
	Put(&g, &rates.Rates{}, w, &profile.Host{})
	if !reflect.DeepEqual(g, profile.Target{}) {
		t.Errorf("nothing was measured, but the target has %+v", g)
	}
}

func TestPutOfLittle(t *testing.T) {
	t.Parallel()
	rate := rates.Rate{Best: 4e9, Median: 4e9}
	for _, c := range []struct {
		name    string
		r       rates.Rates
		threads int
		earlier bool
		host    profile.Host
		peaks   int
		of      *float64 // of the processor
		memory  bool
		says    string
		not     string
	}{
		{"only floats", rates.Rates{Float: rate}, 1, false, profile.Host{}, 1, nil, false, "measured here after the runs, 1 thread: operations", "passes"},
		{"clock of the system", rates.Rates{Float: rate, Passes: 1}, 2, true, profile.Host{Features: []string{"fma3"}, MaxHz: new(3e9)}, 1, new(2 * 3e9 * 32.0), false, "measured here earlier in the same process, 2 threads", "passes"},
		{"no clock", rates.Rates{Float: rate, Passes: 2}, 1, false, profile.Host{Features: []string{"fma3"}}, 1, nil, false, "(in 2 passes", ""},
		{"between inferences", rates.Rates{Float: rate, Interleaved: 9}, 1, false, profile.Host{}, 1, nil, false, "measured here in 9 slices between the inferences", "passes"},
		{"only memory", rates.Rates{Buffer: 3 << 20, Levels: []rates.Level{{Name: "L1", Bytes: 1}, {Name: "memory", Rate: rate}}}, 1, false, profile.Host{}, 0, nil, true, "and in 3 MiB", "last-level"},
		{"no memory", rates.Rates{Float: rate, Levels: []rates.Level{{Name: "L1", Bytes: 64, Rate: rate}}}, 1, false, profile.Host{}, 1, nil, false, "operations", "bytes, and"},
	} {
		var g profile.Target
		Put(&g, &c.r, &Way{Threads: c.threads, Earlier: c.earlier, Operations: "operations", Bytes: "bytes, and"}, &c.host)
		if len(g.Peaks) != c.peaks || (g.PeakBytesPerSecond != nil) != c.memory || !strings.Contains(g.PeakMethod, c.says) || c.not != "" && strings.Contains(g.PeakMethod, c.not) {
			t.Errorf("%s: %+v", c.name, g)
		}
		if c.peaks == 1 && (*g.PeakOpsPerSecond != 8e9 || *g.Peaks[0].Spread != 0 || !cmp.Equal(g.Peaks[0].ProcessorOpsPerSecond, c.of)) {
			t.Errorf("%s: peak %+v", c.name, g.Peaks[0])
		}
		for _, l := range g.Levels {
			if !(l.BytesPerSecond > 0) {
				t.Errorf("%s: level %+v", c.name, l)
			}
		}
	}
	// The rate in 16 bits is not compared with the processor's peak in 32.
	var half profile.Target
	Put(&half, &rates.Rates{Float: rate, Integer: rate, Clock: 1e9}, &Way{Threads: 1, Half: true}, &profile.Host{Features: []string{"fma3", "avx2"}})
	if half.Peaks[0].ProcessorOpsPerSecond != nil || half.Peaks[1].ProcessorOpsPerSecond == nil || !strings.Contains(half.PeakMethod, "float32 in 16 bits") {
		t.Errorf("16 bits: %+v", half)
	}
	// The target's peak is the larger of two, in any order.
	var g profile.Target
	Put(&g, &rates.Rates{Float: rates.Rate{Best: 9}, Integer: rates.Rate{Best: 5}}, &Way{Threads: 1}, &profile.Host{})
	if *g.PeakOpsPerSecond != 18 || len(g.Peaks) != 2 {
		t.Errorf("peaks %+v", g)
	}
}

// TestTypes lists the types with a kernel that layers compute in, each once.
func TestTypes(t *testing.T) {
	t.Parallel()
	of := func(names ...string) (ls []profile.Layer) {
		for _, n := range names {
			ls = append(ls, profile.Layer{Inputs: []profile.Tensor{{DType: n}}})
		}
		return ls
	}
	for _, tt := range []struct {
		layers []profile.Layer
		want   []string
	}{
		{nil, []string{}},
		{of("int8", "uint8", "int4"), []string{"int8"}},
		{of("int64", "float16", "float64"), []string{"float32"}},
		{append(of("float32"), profile.Layer{Computes: "int8", Inputs: of("float32")[0].Inputs}), []string{"float32", "int8"}},
	} {
		if got := Types(tt.layers); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v, want %v", got, tt.want)
		}
	}
}
