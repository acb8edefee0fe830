package report

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/profile"
)

// TestUnitBounds has the figures at which prefixes and digits change.
func TestUnitBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{digits(0), "0"},
		{digits(0.12), "0.12"},
		{digits(0.126), "0.13"},
		{digits(0.9994), "1"}, // two digits of what is below one
		{digits(0.9995), "1.00"},
		{digits(9.994), "9.99"},
		{digits(9.995), "10.0"},
		{digits(99.94), "99.9"},
		{digits(99.95), "100"},
		{digits(12345), "12345"},
		{digits(-9.996), "-10.0"},
		{digits(-123.4), "-123"},
		{digits(1e-7), "1e-07"},
		{Duration(1), "1.00 s"},
		{Duration(999.4e-3), "999 ms"},
		{Duration(999.6e-3), "1.00 s"},
		{Duration(0.9994e-6), "999 ns"},
		{Duration(1e-9), "1.00 ns"},
		{Duration(2e-10), "0.2 ns"}, // the smallest prefix
		{Duration(12345), "12345 s"},
		{Count(0), "0"},
		{Count(-999), "-999"},
		{Count(1000), "1.00 k"},
		{Count(-1000), "-1.00 k"},
		{Count(999_400), "999 k"},
		{Count(999_600), "1.00 M"},
		{Count(2_500_000_000), "2.50 G"},
		{Count(3_000_000_000_000), "3.00 T"},
		{Count(4e15), "4.00 P"},
		{Count(9e18), "9000 P"},
		{Bytes(0), "0 B"},
		{Bytes(-1023), "-1023 B"},
		{Bytes(1024), "1.00 KiB"},
		{Bytes(-1024), "-1.00 KiB"},
		{Bytes(1023 << 10), "1023 KiB"},
		{Bytes(1<<20 - 1), "1.00 MiB"},
		{Bytes(5 << 30), "5.00 GiB"},
		{Bytes(5 << 40), "5.00 TiB"},
		{Bytes(5 << 50), "5120 TiB"},
		{Quantity(0, "J"), "0 J"},
		{Quantity(1, ""), "1.00"},
		{Quantity(2e-12, "J"), "2.00 pJ"},
		{Quantity(2e-15, "J"), "0.002 pJ"},
		{Quantity(3e12, "op/s"), "3.00 Top/s"},
		{Quantity(3e16, "op/s"), "30000 Top/s"},
		{Percent(1), "100.0 %"},
		{Percent(0.00049), "0.0 %"},
		{PlainNumber(3), "3"},
		{PlainNumber(-3), "-3"},
		{PlainNumber(0), "0"},
		{PlainNumber(2.5), "2.5"},
		{PlainNumber(1e-7), "1e-07"},
		{PlainNumber(1<<53 - 1), "9007199254740991"},
		{PlainNumber(1 << 53), "9.007199254740992e+15"},
		{PlainNumber(-(1 << 53)), "-9.007199254740992e+15"},
		{runs(1), "1 run"},
		{runs(9999), "9999 runs"},
		{runs(10_000), "10.0 k runs"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// TestShown has how people read quantities by unit.
func TestShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		q    profile.Quantity
		v    float64
		want string
	}{
		{profile.Quantity{Key: "against_expected", Unit: "1"}, 1.5, "1.50"},
		{profile.Quantity{Unit: "s"}, 0.0015, "1.50 ms"},
		{profile.Quantity{Unit: "B"}, 2048, "2.00 KiB"},
		{profile.Quantity{Unit: "1"}, 0.25, "25.0 %"},
		{profile.Quantity{Unit: "cycles"}, 1234, "1.23 k"},
		{profile.Quantity{Whole: true}, 1234, "1.23 k"},
		{profile.Quantity{}, 1.25, "1.25"},
		{profile.Quantity{Unit: "/s"}, 2e6, "2.00 M"},
		{profile.Quantity{Unit: "°C"}, 41.5, "41.5 °C"},
		{profile.Quantity{Unit: "%rh"}, 41.5, "41.5 %rh"},
		{profile.Quantity{Unit: "V"}, 0.0033, "3.30 mV"},
		{profile.Quantity{Unit: "J"}, 1e18, "1e+18 J"},
		{profile.Quantity{}, -1e18, "-1e+18"},
	} {
		if got := inUnit(&c.q)(c.v); got != c.want {
			t.Errorf("%+v of %v: %q, want %q", c.q, c.v, got, c.want)
		}
	}
}

// TestCuts has texts cut to a width: in the middle, at the beginning, at the end; wide
// characters take two columns.
func TestCuts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{shorten("abcdefg", 7), "abcdefg"},
		{shorten("abcdefgh", 7), "abc…fgh"},
		{shorten("abcdefgh", 6), "abc…gh"},
		{shorten("abcdefgh", 3), "a…h"},
		{shorten("日本語の層", 10), "日本語の層"},
		{shorten("日本語の層", 7), "日…の層"},
		{shorten("日本語の層", 6), "日…層"},
		{ending("abcdefg", 7), "abcdefg"},
		{ending("abcdefgh", 7), "…cdefgh"},
		{ending("日本語の層", 6), "…の層"},
		{ending("日本語の層", 5), "…の層"},
		{ending("ab", 1), "…b"},
		{clip("abcdef", 0), "abcdef"},
		{clip("abcdef", 6), "abcdef"},
		{clip("abcdef", 5), "abcd…"},
		{clip("日本語", 5), "日本…"},
		{clip("日本語", 4), "日…"},
		{pad("ab", 4, true), "ab  "},
		{pad("ab", 4, false), "  ab"},
		{pad("abcd", 2, false), "abcd"},
		{pad("日", 4, false), "  日"},
		{reasonClass(`x.buffers[3] at byte 12: offset 77 leads outside the 500 bytes`), "offset N leads outside the N bytes"},
		{reasonClass(`bad magic 0x1f2e or 1f 8b in "na\"me", 3.5 of -7x8`), `bad magic … or … in "…", N of N`},
		{reasonClass("first\nsecond"), "first"},
		{reasonClass("a place with blanks at byte 3: what"), "a place with blanks at byte N: what"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	for _, c := range []struct {
		s     string
		width int
		want  []string
	}{
		{"one two three four five", 0, []string{"one two three four five"}},
		{"one two three four five", 19, []string{"one two three four five"}},
		{"one two three four five", 20, []string{"one two three four", "five"}},
		{"one two three four five", 23, []string{"one two three four five"}},
		{strings.Repeat("x", 45), 20, []string{strings.Repeat("x", 20), strings.Repeat("x", 20), "xxxxx"}},
		{"ab " + strings.Repeat("x", 25), 20, []string{"ab", strings.Repeat("x", 20), "xxxxx"}},
		{"takes 12.5 ms of all of it", 20, []string{"takes 12.5 ms of all", "of it"}},
		{"which takes altogether 12.5 ms", 27, []string{"which takes altogether", "12.5 ms"}},
	} {
		if got := wrap(c.s, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d: %q, want %q", c.s, c.width, got, c.want)
		}
	}
	for word, want := range map[string]bool{"18.1": true, "(2.4": true, "±3": true, "3": true, "x3": false, "3x": false, "3,": false, "": false, "(": false, "−7": true} {
		if got := isNumber(word); got != want {
			t.Errorf("%q is a number: %v", word, got)
		}
	}
}

// TestFit gives columns their width: the most needed first, texts at least a part, and
// what is left to the most needed again.
func TestFit(t *testing.T) {
	t.Parallel()
	col := func(keep, width, flex int) drawn {
		return drawn{column: column{keep: keep, flex: flex, head: "h"}, width: width}
	}
	for _, c := range []struct {
		name  string
		cols  []drawn
		width int
		want  []int
	}{
		{"no limit", []drawn{col(1, 10, 0), col(2, 20, 4)}, 0, []int{10, 20}},
		{"all fit", []drawn{col(1, 10, 0), col(2, 20, 4)}, 32, []int{10, 20}},
		{"one short", []drawn{col(1, 10, 0), col(2, 20, 4)}, 31, []int{10, 19}},
		{"the least needed goes", []drawn{col(5, 5, 0), col(4, 5, 0), col(1, 10, 0)}, 23, []int{5, 5, 0}},
		{"a smaller one after it stays", []drawn{col(5, 5, 0), col(4, 5, 0), col(3, 10, 0), col(1, 4, 0)}, 20, []int{5, 5, 0, 4}},
		{"room goes to the most needed", []drawn{col(5, 20, 4), col(4, 20, 4)}, 30, []int{20, 8}},
		{"which row it is must be seen", []drawn{col(5, 30, 0), col(4, 30, 0), col(3, 2, 0)}, 20, []int{20, 1, 0}},
		{"a heading is not cut", []drawn{{column: column{keep: 5, flex: 2, head: "heading"}, width: 20}, col(4, 9, 0)}, 18, []int{7, 9}},
	} {
		fit(c.cols, c.width)
		var got []int
		for _, x := range c.cols {
			got = append(got, x.shown)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// sorted are layers with figures for every order.
func sorted() *profile.Profile {
	p := &profile.Profile{}
	for i, x := range []struct {
		op, name, scope string
		time, share     float64
		macs, read      int64
		state           profile.State
	}{
		{"B", "z", "s", 1, 0.1, 30, 1, profile.Ran},
		{"A", "y", "s", 5, 0.5, 0, 0, profile.Ran},
		{"C", "x", "", 0, 0, 10, 3, profile.Lost},
		{"A", "w", "t", 4, 0.4, 20, 2, profile.Ran},
		{"D", "v", "t", 0, 0, 0, 0, profile.Folded},
		{"E", "u", "t", 0, 0, 0, 0, profile.NotReached},
	} {
		l := profile.Layer{Index: int64(i), Op: x.op, Name: x.name, Scope: x.scope, State: x.state}
		if x.time > 0 {
			l.Latency, l.Share = profile.Value(profile.Measured, x.time, ""), &x.share
		}
		if x.state == profile.NotReached { // never called: nought, which is not a time of its own
			l.Latency, l.Share = profile.Value(profile.Measured, 0, ""), new(0.0)
		}
		if x.macs > 0 {
			l.MACs = &x.macs
		}
		if x.read > 0 {
			l.BytesRead = &x.read
		}
		p.Layers = append(p.Layers, l)
	}
	return p
}

// TestOrders sorts layers and groups: the largest first, unknown ones last.
func TestOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    Options
		want string
		cum  string
		err  string
	}{
		{Options{}, "0 1 2 3 5", "0.1 0.6 - 1.0 -", ""},
		{Options{All: true}, "0 1 2 3 4 5", "0.1 0.6 - 1.0 - -", ""},
		{Options{Sort: "index"}, "0 1 2 3 5", "0.1 0.6 - 1.0 -", ""},
		// what was never called has no time
		{Options{Sort: "time"}, "1 3 0 2 5", "0.5 0.9 1.0 - -", ""},
		{Options{Sort: "macs"}, "0 3 2 1 5", "0.1 0.5 - 1.0 -", ""},
		{Options{Sort: "bytes"}, "2 3 0 1 5", "- 0.4 0.5 1.0 -", ""},
		{Options{Sort: "op"}, "1 3 0 2 5", "0.5 0.9 1.0 - -", ""},
		{Options{Sort: "name"}, "5 3 2 1 0", "- 0.4 - 0.9 1.0", ""},
		{Options{Sort: "bytes_read"}, "2 3 0 1 5", "- 0.4 0.5 1.0 -", ""},
		{Options{Sort: "size"}, "", "", `cannot sort by "size": use one of index, time, macs, ops, params, bytes, op, name, or the key of a quantity such as energy_j`},
		{Options{By: "kind"}, "", "", `cannot group by "kind": use one of op, scope, block`},
		{Options{By: "op"}, "A B E C D", "", ""},
		{Options{By: "op", Sort: "macs"}, "B A C D E", "", ""},
		{Options{By: "scope"}, "s t (none)", "", ""},
		{Options{By: "block"}, "1 3 0 2 5", "0.5 0.9 1.0 - -", ""},
	} {
		rs, err := rows(sorted(), c.o)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%+v: %v, want %q", c.o, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c.o, err)
			continue
		}
		var got, cum []string
		for i := range rs {
			if l := rs[i].layer(); l != nil {
				got = append(got, fmt.Sprint(l.Index))
			} else {
				got = append(got, rs[i].op())
			}
			if rs[i].cum == nil {
				cum = append(cum, "-")
			} else {
				cum = append(cum, fmt.Sprintf("%.1f", *rs[i].cum))
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%+v: %s, want %s", c.o, s, c.want)
		}
		if s := strings.Join(cum, " "); c.cum != "" && s != c.cum {
			t.Errorf("%+v: sums of shares %s, want %s", c.o, s, c.cum)
		}
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, ""}, {Options{Top: 3}, "time"}, {Options{Top: 3, Sort: "op"}, "op"}, {Options{Sort: "op"}, "op"},
	} {
		if got := c.o.order(sorted()); got != c.want {
			t.Errorf("%+v: order %q, want %q", c.o, got, c.want)
		}
	}
	p := sorted()
	for i := range p.Layers {
		p.Layers[i].Latency = nil
	}
	if got := (&Options{Top: 1}).order(p); got != "macs" {
		t.Errorf("without times: order %q", got)
	}
	if got := (&Options{Top: 1}).order(&profile.Profile{}); got != "" {
		t.Errorf("without figures: order %q", got)
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "the first 2 of 9 layers: leave out --top for all"},
		{Options{Sort: "index"}, "the first 2 of 9 layers: leave out --top for all"},
		{Options{Sort: "time"}, "the slowest 2 of 9 layers: leave out --top for all"},
		{Options{By: "op"}, "the slowest 2 of 9 operators: leave out --top for all"},
		{Options{By: "scope", Sort: "macs"}, "the first 2 of 9 scopes by macs: leave out --top for all"},
	} {
		if got := topLine(2, 9, c.o); got != c.want {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
}

// TestSummaryLines has the lines of the summary, and when there is one.
func TestSummaryLines(t *testing.T) {
	t.Parallel()
	value := func(p *profile.Profile, label string) string {
		for _, f := range summary(p) {
			if f.label == label {
				return f.value
			}
		}
		return ""
	}
	one := func(v float64) *profile.Metric { return profile.Value(profile.Estimated, v, "") }
	many := func(n int) (ts []profile.Tensor) {
		for i := range n {
			ts = append(ts, profile.Tensor{Name: fmt.Sprint("t", i), DType: "int8", Shape: []int64{1}})
		}
		return ts
	}
	for _, c := range []struct {
		name, label string
		change      func(p *profile.Profile)
		want        string
	}{
		{"name alone", "Model", func(*profile.Profile) {}, "m"},
		{"format", "Model", func(p *profile.Profile) { p.Model.Format = "onnx" }, "m (onnx)"},
		{"size", "Model", func(p *profile.Profile) { p.Model.FileBytes = new(int64(2048)) }, "m (2.00 KiB)"},
		{"target", "Target", func(p *profile.Profile) {
			p.Host, p.Settings.Threads, p.Target.Engine, p.Target.ClockHz = &profile.Host{CPUModel: "cpu"}, new(int64(1)), "own", new(78e6)
		}, "t, cpu, 1 thread, engine own, 78.0 MHz"},
		{"a host without a name", "Target", func(p *profile.Profile) { p.Host = &profile.Host{} }, "t"},
		{"inputs", "Input", func(p *profile.Profile) { p.Model.Inputs = many(1) }, "t0 int8 1"},
		{"a list has no shape", "Input", func(p *profile.Profile) {
			p.Model.Inputs = []profile.Tensor{{Name: "s", DType: "sequence", Shape: []int64{3}}}
		}, "s sequence"},
		{"what was fed", "Input", func(p *profile.Profile) {
			p.Model.Inputs = []profile.Tensor{{Name: "s", DType: "int64", Shape: []int64{1}, Made: &profile.Made{Use: profile.UseLength, Fill: new(int64(3))}}}
		}, "s int64 1, fed 3 (a length)"},
		{"no layers", "Layers", func(*profile.Profile) {}, ""},
		{"layers", "Layers", func(p *profile.Profile) { p.Totals.Layers = new(int64(3)) }, "3"},
		{"layers by state", "Layers", func(p *profile.Profile) {
			p.Totals.Layers = new(int64(5))
			for _, s := range []profile.State{profile.Folded, profile.Folded, profile.Fused, profile.Unsupported, profile.Ran} {
				p.Layers = append(p.Layers, profile.Layer{State: s})
			}
		}, "5 (2 computed once at load, 1 fused into others, 1 not supported)"},
		{"parameters", "Parameters", func(p *profile.Profile) { p.Totals.Params = new(int64(5)) }, "5"},
		{"parameters with size", "Parameters", func(p *profile.Profile) { p.Totals.Params, p.Totals.WeightsBytes = new(int64(5)), new(int64(20)) }, "5, 20 B"},
		{"size alone", "Parameters", func(p *profile.Profile) { p.Totals.WeightsBytes = new(int64(20)) }, ""},
		{"computed parameters", "Parameters", func(p *profile.Profile) { p.Totals.Params, p.Totals.ComputedParams = new(int64(5)), new(int64(7)) }, "5, and 7 computed at load (not in the file)"},
		{"operations", "Operations", func(p *profile.Profile) { p.Totals.Ops = new(int64(5)) }, "5"},
		{"all counted", "Operations", func(p *profile.Profile) { p.Totals.Ops, p.Totals.UncountedLayers = new(int64(5)), new(int64(0)) }, "5"},
		{"some not counted", "Operations", func(p *profile.Profile) { p.Totals.Ops, p.Totals.UncountedLayers = new(int64(5)), new(int64(2)) }, "5, 2 layers not counted"},
		{"none counted", "Operations", func(p *profile.Profile) { p.Totals.UncountedLayers = new(int64(1)) }, "unknown: 1 layer cannot be counted"},
		{"nothing to count", "Operations", func(p *profile.Profile) { p.Totals.UncountedLayers = new(int64(0)) }, ""},
		{"padding", "MACs", func(p *profile.Profile) { p.Totals.MACs, p.Totals.MACsExecuted = new(int64(5)), new(int64(4)) }, "5 (4 without padding)"},
		{"no padding", "MACs", func(p *profile.Profile) { p.Totals.MACs, p.Totals.MACsExecuted = new(int64(5)), new(int64(5)) }, "5"},
		{"flash", "Flash", func(p *profile.Profile) { p.Totals.FlashBytes = new(int64(1024)) }, "1.00 KiB (model)"},
		{"RAM", "RAM", func(p *profile.Profile) { p.Totals.RAMBytes = new(int64(1024)) }, "1.00 KiB"},
		{"flash of a chip", "Flash", func(p *profile.Profile) {
			p.Target.Kind, p.Totals.FlashBytes = profile.TargetSimulator, new(int64(1024))
		}, "1.00 KiB (model) + program code"},
		{"RAM here", "Engine RAM", func(p *profile.Profile) {
			p.Target.Kind, p.Totals.RAMBytes = profile.TargetHost, new(int64(1024))
			p.Memory = &profile.Memory{ArenaBytes: new(int64(1000)), ScratchBytes: new(int64(24))}
		}, "1.00 KiB (arena 1000 B, scratch 24 B)"},
		{"RAM of a chip", "RAM", func(p *profile.Profile) {
			p.Target.Kind, p.Totals.RAMBytes = profile.TargetSimulator, new(int64(1024))
			p.Memory = &profile.Memory{ArenaBytes: new(int64(1000)), PersistentBytes: new(int64(24)), PeakBytes: new(int64(900))}
		}, "1.00 KiB (arena 1000 B, persistent 24 B)"},
		{"what any runtime needs", "Activations", func(p *profile.Profile) { p.Memory = &profile.Memory{PeakBytes: new(int64(512))} }, "512 B at the peak"},
		{"arena elsewhere", "TFLM arena", func(p *profile.Profile) {
			p.Memory = &profile.Memory{TFLMArenaBytes: new(int64(512))}
		}, "512 B + persistent part (see --on TARGET)"},
		{"a time", "Latency", func(p *profile.Profile) { p.Totals.Latency = one(0.002) }, "2.00 ms"},
		{"a time with a band", "Latency", func(p *profile.Profile) {
			p.Totals.Latency = one(0.002)
			p.Totals.Latency.Band = &[2]float64{0.001, 0.003}
		}, "2.00 ms, 90 % band 1.00 to 3.00 ms"},
		{"a time with its spread", "Latency", func(p *profile.Profile) {
			p.Totals.Latency = &profile.Metric{Kind: profile.Measured, N: new(int64(50)), Median: new(0.0021), Min: new(0.001), P90: new(0.003), P99: new(0.004), Max: new(0.005)}
		}, "2.10 ms median; min 1.00 ms, p90 3.00 ms, p99 4.00 ms, max 5.00 ms, 50 runs"},
		{"a median", "Latency", func(p *profile.Profile) {
			p.Totals.Latency = &profile.Metric{Kind: profile.Measured, N: new(int64(1)), Median: new(0.002)}
		}, "2.00 ms median; 1 run"},
		{"cycles", "CPU cycles", func(p *profile.Profile) {
			p.Totals.CPUCycles = one(2e6)
			p.Totals.CPUCycles.Band = &[2]float64{1e6, 3e6}
		}, "2.00 M, 90 % band 1.00 to 3.00 M"},
		{"cycles of the accelerator", "Accelerator cycles", func(p *profile.Profile) { p.Totals.AcceleratorCycles = one(2e6) }, "2.00 M"},
		{"cycles of a simulator", "Simulator cycles", func(p *profile.Profile) { p.Totals.SimulatorCycles = one(2e6) }, "2.00 M in the vendor's simulator"},
		{"no cycles of a simulator", "Simulator cycles", func(p *profile.Profile) { p.Totals.SimulatorCycles = one(0) }, ""},
		{"energy", "Energy", func(p *profile.Profile) { p.Totals.Energy = one(2e-6) }, "2.00 µJ"},
		{"rates", "Throughput", func(p *profile.Profile) {
			p.Totals.Latency, p.Totals.Ops, p.Totals.MACs, p.Totals.Energy = one(0.002), new(int64(4000)), new(int64(2000)), one(2e-6)
		}, "500 inferences/s, 2.00 Mop/s, 1.00 MMAC/s, 500 pJ/op, 1.00 nJ/MAC"},
		{"high rates", "Throughput", func(p *profile.Profile) { p.Totals.Latency = one(0.001) }, "1.00 k inferences/s"},
		{"no rates", "Throughput", func(p *profile.Profile) { p.Totals.Ops = new(int64(4000)) }, ""},
		{"rates of no work", "Throughput", func(p *profile.Profile) { p.Totals.Latency, p.Totals.Ops = one(0.5), new(int64(0)) }, "2.00 inferences/s"},
		{"start", "Startup", func(p *profile.Profile) {
			p.Phases = &profile.Phases{LoadS: new(0.001), PlanS: new(0.002), FirstRunS: new(0.003), Warmup: &profile.Warmup{TimeS: new(0.5), Count: new(int64(10_000))}}
		}, "load 1.00 ms, compile 2.00 ms, first run 3.00 ms, warm-up 10.0 k runs in 500 ms"},
		{"start, little", "Startup", func(p *profile.Profile) {
			p.Phases = &profile.Phases{PlanS: new(0.002), Warmup: &profile.Warmup{TimeS: new(0.5)}}
		}, "compile 2.00 ms"},
		{"speed", "Normalised", func(p *profile.Profile) {
			p.Totals.Figures = map[string]*profile.Metric{"reference_latency_s": one(0.002), "machine_speed": one(0.8)}
		}, "2.00 ms; machine at 80.0 % of reference speed"},
		{"speed with its spread", "Normalised", func(p *profile.Profile) {
			r, s := one(0.002), one(0.8)
			r.CI95, s.Min, s.Max = &[2]float64{0.001, 0.003}, new(0.7), new(0.9)
			p.Totals.Figures = map[string]*profile.Metric{"reference_latency_s": r, "machine_speed": s}
		}, "2.00 ms, 95 % CI of repeated runs 1.00 to 3.00 ms; machine at 80.0 % of reference speed (70.0 to 90.0 %)"},
		{"steady speed", "Normalised", func(p *profile.Profile) {
			s := one(0.8)
			s.Min, s.Max = new(0.8), new(0.8)
			p.Totals.Figures = map[string]*profile.Metric{"reference_latency_s": one(0.002), "machine_speed": s}
		}, "2.00 ms; machine at 80.0 % of reference speed"},
		{"nothing to quote", "Recommended", func(p *profile.Profile) {
			p.Trust = &profile.Trust{Verdict: profile.Fair, Quote: "undisturbed_latency_s"}
		}, ""},
	} {
		p := &profile.Profile{Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "t"}}
		c.change(p)
		if got := value(p, c.label); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	// Four inputs and outputs are told, of more how many there are.
	for n, want := range map[int]string{4: "", 5: "and 1 more input", 7: "and 3 more inputs"} {
		p := &profile.Profile{Model: profile.Model{Inputs: many(n), Outputs: many(n)}}
		var got []string
		in, out, more := 0, 0, 0
		for _, f := range summary(p) {
			switch {
			case f.label == "Input" || f.label == "Output":
				got = append(got, f.value)
				if f.label == "Input" {
					in++
				} else {
					out++
				}
			case strings.HasPrefix(f.value, "and "):
				more++
				if !strings.HasPrefix(f.value, strings.TrimSuffix(strings.TrimSuffix(want, "s"), "input")) {
					t.Errorf("%d inputs: %q, want %q", n, f.value, want)
				}
			}
		}
		if in != 1 || out != 1 || (more == 2) != (want != "") {
			t.Errorf("%d inputs: %q, %d times more", n, got, more)
		}
	}
}

// TestFitsTarget says whether a target holds a model, and why not.
func TestFitsTarget(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	for _, c := range []struct {
		name   string
		change func(r *TargetRow, p *profile.Profile)
		ok     string
		why    string
	}{
		{"all of it", nil, "yes", ""},
		{"to the byte", func(r *TargetRow, _ *profile.Profile) { r.RAM, r.Flash = n(100), n(200) }, "yes", ""},
		{"a byte of RAM", func(r *TargetRow, _ *profile.Profile) { r.RAM = n(99) }, "no", "1 B short of RAM"},
		{"a byte of flash", func(r *TargetRow, _ *profile.Profile) { r.Flash = n(199) }, "no", "1 B short of flash"},
		{"both", func(r *TargetRow, _ *profile.Profile) { r.RAM, r.Flash = n(50), n(100) }, "no", "50 B short of RAM, 100 B short of flash"},
		{"limits of the user", func(r *TargetRow, _ *profile.Profile) { r.Over, r.RAM = []string{"too slow"}, n(99) }, "no", "too slow, 1 B short of RAM"},
		{"outside", func(r *TargetRow, _ *profile.Profile) { r.Flash, r.ExternalFlash = nil, n(200) }, "yes", "model in external flash"},
		{"a byte outside", func(r *TargetRow, _ *profile.Profile) { r.Flash, r.ExternalFlash = nil, n(199) }, "no", "1 B short of external flash"},
		{"inside before outside", func(r *TargetRow, _ *profile.Profile) { r.Flash, r.ExternalFlash = n(199), n(1000) }, "no", "1 B short of flash"},
		{"nothing is known", func(r *TargetRow, _ *profile.Profile) { r.RAM, r.Flash = nil, nil }, "?", "unknown memory size"},
		{"no flash", func(r *TargetRow, _ *profile.Profile) { r.Flash = nil }, "?", "no size of flash"},
		{"no RAM", func(r *TargetRow, _ *profile.Profile) { r.RAM = nil }, "?", "no size of RAM"},
		{"need not known", func(_ *TargetRow, p *profile.Profile) { p.Totals.RAMBytes = nil }, "?", "need of RAM not known"},
		{"the least is known", func(_ *TargetRow, p *profile.Profile) {
			p.Totals.RAMBytes, p.Memory = nil, &profile.Memory{PeakBytes: n(100)}
		}, "?", "needs more than 100 B of RAM (activations alone)"},
		{"the least is too much", func(r *TargetRow, p *profile.Profile) {
			p.Totals.RAMBytes, p.Memory, r.RAM = nil, &profile.Memory{PeakBytes: n(100)}, n(99)
		}, "no", "1 B short of RAM"},
		{"program code", func(_ *TargetRow, p *profile.Profile) {
			p.Findings = []profile.Finding{{ID: "target.flash", Severity: profile.Problem}}
		}, "no", "too little flash for the program code"},
		{"program code may not fit", func(_ *TargetRow, p *profile.Profile) {
			p.Findings = []profile.Finding{{ID: "target.flash", Severity: profile.Warning}}
		}, "perhaps", "program code may not fit in flash"},
		{"near a limit", func(r *TargetRow, _ *profile.Profile) { r.Near = []string{"takes 1.00 s"} }, "perhaps", "takes 1.00 s"},
		{"near a limit, of unknown size", func(r *TargetRow, _ *profile.Profile) { r.Near, r.RAM = []string{"takes 1.00 s"}, nil }, "?", "no size of RAM, takes 1.00 s"},
		{"remarks on it", func(_ *TargetRow, p *profile.Profile) {
			p.Findings = []profile.Finding{{ID: "target.flash", Severity: profile.Info}, {ID: "target.ram", Severity: profile.Problem}}
		}, "yes", ""},
		{"refused", func(r *TargetRow, p *profile.Profile) {
			r.RAM = n(1)
			p.Findings = []profile.Finding{{ID: "target.refused", Severity: profile.Problem}}
		}, "no", "the runtime does not load this model"},
		{"this computer", func(r *TargetRow, p *profile.Profile) { p.Target.Kind, r.RAM = profile.TargetHost, n(1) }, "", "measured here"},
	} {
		p := &profile.Profile{Target: profile.Target{ID: "t", Kind: profile.TargetSimulator}, Totals: profile.Totals{RAMBytes: n(100), FlashBytes: n(200)}}
		r := TargetRow{Profile: p, RAM: n(1000), Flash: n(1000)}
		if c.change != nil {
			c.change(&r, p)
		}
		ok, why := r.fits()
		if ok != c.ok || why != c.why || r.Fits() != c.ok {
			t.Errorf("%s: %q, %q, want %q, %q", c.name, ok, why, c.ok, c.why)
		}
	}
	// Layers without an estimate, constants not counted, and warnings go into the note.
	p := &profile.Profile{
		Target: profile.Target{ID: "t", Kind: profile.TargetSimulator}, Totals: profile.Totals{RAMBytes: n(100), FlashBytes: n(200)},
		Layers: []profile.Layer{{State: profile.NoEstimate}, {State: profile.Lost, Constant: true}, {State: profile.Ran}},
		Findings: []profile.Finding{
			{ID: "a", Severity: profile.Info, Text: "No."},
			{ID: "target.ram", Severity: profile.Warning, Text: "No."},
			{ID: "target.flash", Severity: profile.Info, Text: "No."},
			{ID: "target.incomplete", Severity: profile.Problem, Text: "No."},
			{ID: "b", Severity: profile.Warning, Text: "Yes."},
			{ID: "c", Severity: profile.Problem, Text: "Too"},
		},
	}
	r := TargetRow{Profile: p, RAM: n(99), Flash: n(1000)}
	if got, want := r.note(), "1 B short of RAM; incomplete: 1 layer without an estimate; yes; too"; got != want || !r.Incomplete() {
		t.Errorf("note %q, want %q", got, want)
	}
	p.Target.Kind = profile.TargetHost
	if got, want := r.note(), "measured here; incomplete: 1 layer that did not run"; got != want {
		t.Errorf("note %q, want %q", got, want)
	}
	p.Layers = nil
	if r.Incomplete() {
		t.Error("nothing is missing")
	}
}

// TestLargest names the layer that takes most of the time, or has most of the work.
func TestLargest(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Layers: []profile.Layer{{Index: 0, Op: "A", MACs: new(int64(30))}, {Index: 1, Op: "B", MACs: new(int64(60))}, {Index: 2, Op: "C"}}}
	if got := largestLayer(p); got != "#1 B 66.7 %" {
		t.Errorf("by work: %q", got)
	}
	p.Layers[0].Share, p.Layers[2].Share = new(0.25), new(0.5)
	p.Layers[0].Latency, p.Layers[2].Latency = profile.Value(profile.Measured, 1, ""), profile.Value(profile.Measured, 2, "")
	if got := largestLayer(p); got != "#2 C 50.0 %" {
		t.Errorf("by time: %q", got)
	}
	if got := largestLayer(&profile.Profile{Layers: []profile.Layer{{Op: "A"}}}); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// TestListFormats lists profiles and refusals in every format.
func TestListFormats(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{
		Model: profile.Model{Name: "net", Format: "onnx", FileBytes: new(int64(2048))}, Target: profile.Target{ID: "chip", Kind: profile.TargetHost},
		Totals: profile.Totals{Layers: new(int64(3)), MACs: new(int64(2000)), Params: new(int64(40)), RAMBytes: new(int64(1024)), FlashBytes: new(int64(4096)), Latency: &profile.Metric{Kind: profile.Measured, N: new(int64(5)), Median: new(0.002), CI95: &[2]float64{0.001, 0.003}}, Energy: profile.Value(profile.Estimated, 1e-6, "")},
		Trust:  &profile.Trust{Verdict: profile.Good}, Incomplete: []profile.Missing{{Cause: "odd"}}, Layers: []profile.Layer{{Op: "A", State: profile.Ran, MACs: new(int64(2000))}},
	}
	rs := []ListRow{{TargetRow: TargetRow{Profile: p}, Path: "dir/net.onnx"}, {Path: "dir/=bad.onnx", Err: errors.New("dir/=bad.onnx: the file is empty")}}
	show := func(format string, width int) string {
		var b bytes.Buffer
		l := NewList(&b, ListOptions{Format: format, Width: width, Measured: true, Files: []string{"dir/net.onnx", "dir/=bad.onnx"}})
		for _, r := range rs {
			if err := l.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	// The size holds external data, which the flash has too; file_bytes is that of the file alone.
	for format, want := range map[string]string{
		"csv": "model,target,format,file_bytes,layers,macs,params,ram_bytes,flash_bytes,latency_s,latency_low_s,latency_high_s,inferences_per_s,loaded_latency_s,response_s,trust,energy_j,fits,largest_layer,note\n" +
			"net.onnx,chip,onnx,2048,3,2000,40,1024,4096,0.002,0.001,0.003,,,,good,1e-06,,#0 A 100.0 %,odd\n" +
			"'=bad.onnx,,,,,,,,,,,,,,,,,,,refused: the file is empty\n",
		"markdown": "| model | format | size | layers | MACs | params | RAM | latency | quality | slowest layer | note |\n" +
			"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | --- |\n" +
			"| net.onnx | onnx | 4.00 KiB | 3 | 2.00 k | 40 | 1.00 KiB | 2.00 ms | comparing | #0 A 100.0 % | odd |\n" +
			"| =bad.onnx |  |  |  |  |  |  |  |  |  | refused: the file is empty |\n",
		"": "model      format      size  layers     MACs   params       RAM   latency  quality    slowest layer           note\n" +
			"net.onnx   onnx    4.00 KiB       3   2.00 k       40  1.00 KiB   2.00 ms  comparing  #0 A 100.0 %            odd\n" +
			"=bad.onnx                                                                                                     refused: the file is empty\n" +
			"2 models, 1 refused:\n\ncount  example    reason\n    1  =bad.onnx  the file is empty\n",
	} {
		if got := show(format, 0); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", format, got, want)
		}
	}
	// Reasons are counted, the most frequent first, and no more than twenty shown, or
	// twenty-one where that is one line, too.
	letters := func(n int) (out []string) {
		for i := range n {
			out = append(out, strings.Repeat(string(rune('a'+i)), 3))
		}
		return out
	}
	for n, more := range map[int]string{20: "", 21: "", 22: "  and 2 more reasons"} {
		rs = []ListRow{{Path: "x", Err: errors.New("x: zzz")}, {Path: "y", Err: errors.New("y: zzz")}}
		for _, why := range letters(n - 1) {
			rs = append(rs, ListRow{Path: "f", Err: errors.New(why)})
		}
		got := strings.Split(strings.TrimSuffix(show("", 0), "\n"), "\n")
		i := slices.IndexFunc(got, func(s string) bool { return strings.HasPrefix(s, "count") })
		table := got[i+1:]
		want := n
		if more != "" {
			want = 21
		}
		if len(table) != want || !strings.HasSuffix(table[0], "zzz") || !strings.HasPrefix(table[0], "    2  x") || !strings.HasSuffix(table[1], "aaa") || more != "" && !strings.HasSuffix(table[20], more) {
			t.Errorf("%d reasons: %q", n, table)
		}
	}
	rs = nil
	if got := show("", 0); got != "0 models\n" {
		t.Errorf("no models: %q", got)
	}
}
