package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// The table of targets keeps what matters most on a narrow terminal, and loses no
// note.
func TestTargetsNarrow(t *testing.T) {
	t.Parallel()
	metric := func(v float64) *profile.Metric {
		m := profile.Value(profile.Estimated, v, "test")
		m.Band = &[2]float64{v / 2, v * 2}
		return m
	}
	p := &profile.Profile{
		Target: profile.Target{ID: "efr32xg24-mvp"},
		Totals: profile.Totals{
			Latency: metric(0.0738), Energy: metric(757e-6),
			RAMBytes: new(int64(85119)), FlashBytes: new(int64(533264)),
		},
	}
	row := TargetRow{Profile: p, RAM: new(int64(1 << 20)), ExternalFlash: new(int64(1 << 21))}
	const (
		latency = "73.8 ms (36.9 ms to 148 ms)"
		energy  = "757 µJ (378 µJ to 1.51 mJ)"
		note    = "model in external flash"
	)
	for _, c := range []struct {
		width     int
		has, lost []string
	}{
		{0, []string{latency, energy, "521 KiB", "  yes   " + note}, []string{": " + note}},
		{104, []string{latency, energy, "521 KiB", "\nefr32xg24-mvp: " + note}, nil},
		{80, []string{latency, "  757 µJ  yes", "521 KiB", "\nefr32xg24-mvp: " + note}, []string{"1.51 mJ"}},
		{72, []string{latency, "521 KiB", "\nefr32xg24-mvp: " + note}, []string{"energy  fits", "µJ"}},
		{60, []string{latency, "83.1 KiB", "\nefr32xg24-mvp: " + note}, []string{"flash  ", "521 KiB"}},
		{45, []string{"  73.8 ms  83.1 KiB  yes\n"}, []string{"148 ms", "…"}},
	} {
		var b bytes.Buffer
		if err := Targets(&b, []TargetRow{row}, c.width); err != nil {
			t.Fatal(err)
		}
		out := b.String()
		for _, s := range c.has {
			if !strings.Contains(out, s) {
				t.Errorf("width %d lacks %q:\n%s", c.width, s, out)
			}
		}
		for _, s := range c.lost {
			if strings.Contains(out, s) {
				t.Errorf("width %d has %q:\n%s", c.width, s, out)
			}
		}
		for _, l := range strings.Split(out, "\n") {
			if c.width > 0 && text.Width(l) > c.width {
				t.Errorf("width %d: %q is wider", c.width, l)
			}
		}
	}
}

// Models that are compared have a column, notes of one kind stand together, and columns
// without any value or room are absent, the latter named.
func TestTargetsOfModels(t *testing.T) {
	t.Parallel()
	row := func(model, target string, kind profile.TargetKind) TargetRow {
		return TargetRow{Profile: &profile.Profile{
			Model: profile.Model{Name: model}, Target: profile.Target{ID: target, Kind: kind},
			Totals: profile.Totals{Latency: profile.Value(profile.Estimated, 0.02, ""), RAMBytes: new(int64(1000)), FlashBytes: new(int64(2000))},
		}, RAM: new(int64(1 << 20)), ExternalFlash: new(int64(1 << 21))}
	}
	rs := []TargetRow{
		row("a-model-with-a-long-name", "chip-one", profile.TargetSimulator), row("b", "chip-one", profile.TargetSimulator),
		row("b", "chip-two", profile.TargetSimulator), row("b", "host", profile.TargetHost),
	}
	rs[2].Over = []string{"takes 20.0 ms"}
	var b bytes.Buffer
	if err := Targets(&b, rs, 68); err != nil {
		t.Fatal(err)
	}
	const want = `model                     target    latency     RAM     flash  fits
a-model-with-a-long-name  chip-one  20.0 ms  1000 B  1.95 KiB  yes
b                         chip-one  20.0 ms  1000 B  1.95 KiB  yes
b                         chip-two  20.0 ms  1000 B  1.95 KiB  no
b                         host      20.0 ms  1000 B  1.95 KiB
a-model-with-a-long-name on chip-one, b on chip-one: model in
external flash
b on chip-two: takes 20.0 ms
b on host: measured here
`
	if strings.Join(strings.Fields(b.String()), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := Reasons(&b, rs[2:3], 0); err != nil || b.String() != "chip-two: takes 20.0 ms\n" {
		t.Errorf("reasons %q, %v", b.String(), err)
	}
}
