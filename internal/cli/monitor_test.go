package cli

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/device"
	"github.com/opmeter/opmeter/internal/report"
)

func watched(layers int) device.Progress {
	g := device.Progress{Runs: 12, Want: 100, Quantity: "latency_s", Median: 6.62e-3, Half: 0.004}
	for i := range layers {
		g.Layers = append(g.Layers, device.LayerProgress{Name: fmt.Sprint("layer ", i), Last: 1e-3, Mean: float64(i) * 1e-3})
	}
	return g
}

// The bars fit the terminal, the slowest layer first, and what is not known is not a zero.
func TestBars(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {40, 10}, {200, 60}, {20, 4}} {
		var out bytes.Buffer
		b := newBars(&out)
		b.title, b.size = "agent at 115200 baud", func() (int, int) { return size[0], size[1] }
		g := watched(30)
		g.Layers[3].Mean, g.Layers[3].Last = math.NaN(), math.NaN()
		g.Layers[4].Name = strings.Repeat("長い名前", 20) + "\x1b[2J"
		lines := b.draw(&g)
		if len(lines) > max(3, size[1]-1) {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if n := report.Columns(l); n > max(40, size[0]-1) {
				t.Errorf("%v: %d columns: %s", size, n, l)
			}
			if strings.Contains(l, "\x1b") {
				t.Errorf("a name reaches the terminal as it came: %q", l)
			}
		}
		if !strings.Contains(lines[0], "12 inferences, 6.62 ms ± 0.4 %") && size[0] >= 80 {
			t.Errorf("head %q", lines[0])
		}
		if size[1] >= 24 && (!strings.HasPrefix(lines[1], "layer 29") || !strings.Contains(lines[1], "29.0 ms") || !strings.Contains(lines[1], "██")) {
			t.Errorf("slowest: %q", lines[1])
		}
		if size[1] == 60 && !strings.Contains(lines[len(lines)-1], "nothing came of it") {
			t.Errorf("last: %q", lines[len(lines)-1])
		}
	}
}

// Bars are drawn over the ones before, not more often than anyone sees, and are gone afterwards.
func TestBarsRedraw(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newBars(&out)
	at := time.Unix(1, 0)
	b.now, b.size = func() time.Time { return at }, func() (int, int) { return 80, 24 }
	g := watched(2)
	b.show(g)
	b.show(g)
	if n := strings.Count(out.String(), "layer 1"); n != 1 {
		t.Errorf("drawn %d times at once", n)
	}
	at = at.Add(often)
	b.show(g)
	if !strings.Contains(out.String(), "\x1b[3A\r") {
		t.Errorf("not drawn over the 3 lines before: %q", out.String())
	}
	g.Runs = g.Want
	b.show(g)
	if n := strings.Count(out.String(), "layer 1"); n != 3 {
		t.Errorf("the last one is not shown: %d", n)
	}
	out.Reset()
	b.clear()
	if got := out.String(); got != "\x1b[3A\r\x1b[J" {
		t.Errorf("cleared by %q", got)
	}
}

// The progress of a measurement follows the interval where it is to end with that.
func TestFraction(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		g     device.Progress
		until float64
		want  float64
	}{
		{device.Progress{Runs: 25, Want: 100, Half: math.NaN()}, 0, 0.25},
		{device.Progress{Runs: 25, Want: 10000, Half: 0.02}, 0.01, 0.25},
		{device.Progress{Runs: 25, Half: 0.005}, 0.01, 1},
		{device.Progress{Runs: 25, Half: math.NaN()}, 0.01, 0},
	} {
		if got := fraction(&tt.g, tt.until); got != tt.want {
			t.Errorf("%+v until %v: %v, want %v", tt.g, tt.until, got, tt.want)
		}
	}
	for s, want := range map[string]float64{"1%": 0.01, "±1 %": 0.01, "0.02": 0.02, "50%": 0.5, "0": 0, "100%": 0, "x": 0, "-1%": 0, "NaN": 0} {
		if got, err := part("until", s); got != want && err == nil || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
}
