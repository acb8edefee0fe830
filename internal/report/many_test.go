package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// saveAs writes a profile to a file.
func saveAs(t *testing.T, path string, p *profile.Profile) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Save(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// small is a profile with the figures of a list.
func small(name, target string, latency float64) *profile.Profile {
	p := &profile.Profile{
		Schema: profile.SchemaV1, Created: "2026-01-02T03:04:05Z", Model: profile.Model{Name: name, Format: "tflite"}, Target: profile.Target{ID: target, Kind: profile.TargetHost},
		Layers: []profile.Layer{{Index: 0, Op: "ADD", Name: "x", State: profile.Ran, Ops: new(int64(7))}},
	}
	if latency > 0 {
		p.Totals.Latency, p.Totals.MACs = profile.Value(profile.Measured, latency, ""), new(int64(2500))
		p.Layers[0].Latency = profile.Value(profile.Measured, latency, "")
	}
	return p
}

// TestSaved lists what is in a folder and below it, with the reason for what cannot be
// read.
func TestSaved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var none bytes.Buffer
	if _, err := Saved(&none, dir, "", 0); err == nil || err.Error() != dir+": no .opmeter or .opmeter-journal file inside" {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Saved(&none, filepath.Join(dir, "absent"), "", 0); err == nil {
		t.Error("a folder that is absent")
	}
	saveAs(t, filepath.Join(dir, "b.opmeter"), small("net", "host", 0.002))
	cut := small("=odd\x1b", "host", 0)
	cut.Incomplete = []profile.Missing{{Cause: profile.ByDeadline}}
	cut.Totals.UnsupportedLayers = new(int64(2))
	saveAs(t, filepath.Join(dir, "sub", "a.opmeter"), cut)
	for name, text := range map[string]string{"bad.opmeter": "nothing", "bad.opmeter-journal": "nothing", "other.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := profile.NewBuilder()
	j, err := profile.NewJournal(filepath.Join(dir, "run.opmeter-journal"), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Send(profile.Event{Described: small("running", "host", 0)}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	unread, err := Saved(&out, dir, "csv", 0)
	if err != nil || unread != 2 {
		t.Fatalf("%d not read, %v", unread, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{
		"file,model,target,created,latency_s,macs,note",
		"b.opmeter,net,host,2026-01-02T03:04:05Z,0.002,2500,",
		"bad.opmeter,,,,,,not read: ",
		"bad.opmeter-journal,,,,,,",
		"run.opmeter-journal,running,host,2026-01-02T03:04:05Z,,,journal of a run that did not end or is still running",
		`sub/a.opmeter,'=odd\x1b,host,2026-01-02T03:04:05Z,,,` + words.Missing(&profile.Missing{Cause: profile.ByDeadline}) + "; 2 layers not supported",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) || strings.Contains(lines[i], dir) {
			t.Errorf("line %d is %q, want %q", i, slices.Concat(lines, make([]string, 9))[i], want)
		}
	}
	if len(lines) != 6 {
		t.Errorf("%d lines", len(lines))
	}
	out.Reset()
	if unread, err = Saved(&out, dir, "table", 0); err != nil || unread != 2 {
		t.Fatalf("%d not read, %v", unread, err)
	}
	lines = strings.Split(out.String(), "\n")
	for i, want := range []string{
		"file                 model     target  created               latency    MACs  note",
		"b.opmeter            net       host    2026-01-02T03:04:05Z  2.00 ms  2.50 k",
		"bad.opmeter                                                                   not read: ",
		"bad.opmeter-journal                                                           not read: ",
		"run.opmeter-journal  running   host    2026-01-02T03:04:05Z                   journal of a run that did not end or is still running",
		`sub/a.opmeter        =odd\x1b  host    2026-01-02T03:04:05Z                   ` + words.Missing(&profile.Missing{Cause: profile.ByDeadline}) + "; 2 layers not supported",
		"5 profiles, 2 not read",
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is\n%q, want\n%q", i, lines[i], want)
		}
	}
	// A narrow terminal cuts lines; without faults nothing is said of them.
	good := t.TempDir()
	saveAs(t, filepath.Join(good, "b.opmeter"), small(strings.Repeat("n", 60), "host", 0.002))
	out.Reset()
	if unread, err = Saved(&out, good, "", 30); err != nil || unread != 0 {
		t.Fatalf("%d not read, %v", unread, err)
	}
	lines = strings.Split(out.String(), "\n")
	if len([]rune(lines[1])) != 30 || !strings.HasSuffix(lines[1], "…") || lines[2] != "1 profile" {
		t.Errorf("narrow: %q", lines)
	}
	out.Reset()
	if _, err = Saved(&out, good, "", 0); err != nil || !strings.Contains(out.String(), "  "+strings.Repeat("n", 22)+"…"+strings.Repeat("n", 21)+"  ") {
		t.Errorf("a long name is not cut to 44: %q, %v", out.String(), err)
	}
}

// TestWriteAll writes several profiles as each format has them; refused ones are left
// out.
func TestWriteAll(t *testing.T) {
	t.Parallel()
	row := func(p *profile.Profile) ListRow { return ListRow{TargetRow: TargetRow{Profile: p}} }
	rs := []ListRow{row(small("a", "t", 0.002)), {Path: "x", Err: errors.New("bad")}, row(small("b", "t", 0.004)), row(nil)}
	text := func(format string, rs []ListRow) string {
		var b bytes.Buffer
		if err := WriteAll(&b, rs, format, Options{}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		return b.String()
	}
	var js []struct{ Model struct{ Name string } }
	if err := json.Unmarshal([]byte(text("json", rs)), &js); err != nil || len(js) != 2 || js[0].Model.Name != "a" || js[1].Model.Name != "b" {
		t.Errorf("JSON: %+v, %v", js, err)
	}
	if err := json.Unmarshal([]byte(text("json", nil)), &js); err != nil || len(js) != 0 {
		t.Errorf("JSON of none: %+v, %v", js, err)
	}
	docs := strings.Split(text("yaml", rs), "---\n")
	if len(docs) != 3 || docs[0] != "" {
		t.Fatalf("YAML: %d documents", len(docs))
	}
	for i, want := range []string{"a", "b"} {
		var y struct{ Model struct{ Name string } }
		if err := yaml.Unmarshal([]byte(docs[i+1]), &y); err != nil || y.Model.Name != want {
			t.Errorf("YAML: %+v, %v", y, err)
		}
	}
	csv := "model,target,index,op,latency_s,ops,ops_per_s,name,state,latency_median_s\na,t,0,ADD,0.002,7,3500,x,ran,0.002\nb,t,0,ADD,0.004,7,1750,x,ran,0.004\n"
	if got := text("csv", rs); got != csv {
		t.Errorf("CSV:\n%s\nwant\n%s", got, csv)
	}
	if got, want := text("csv", rs[:1]), "index,op,latency_s,ops,ops_per_s,name,state,latency_median_s\n0,ADD,0.002,7,3500,x,ran,0.002\n"; got != want {
		t.Errorf("CSV of one:\n%s\nwant\n%s", got, want)
	}
	for _, format := range []string{"table", "markdown"} {
		got := text(format, rs)
		if !strings.HasPrefix(got, map[string]string{"table": "model", "markdown": "| model"}[format]) || strings.Count(got, "Trust") != 0 || strings.Contains(got, "bad") {
			t.Errorf("%s:\n%s", format, got)
		}
		// The list, and every profile behind it.
		if a, b := strings.Index(got, "2.00 ms"), strings.LastIndex(got, "4.00 ms"); a < 0 || b < a || strings.Count(got, map[string]string{"table": ".tflite on this computer\n", "markdown": "\n\n# Profile of"}[format]) != 2 {
			t.Errorf("%s:\n%s", format, got)
		}
	}
	if got := text("bench", rs); strings.Count(got, "\n\n") < 1 || !strings.Contains(got, "Benchmark") {
		t.Errorf("benchmark text:\n%s", got)
	}
	var b bytes.Buffer
	if err := WriteAll(&b, rs, "xlsx", Options{}); err == nil || err.Error() != `format "xlsx" holds one profile: use one of table, markdown, csv, json, yaml, bench for several` {
		t.Errorf("a workbook of several: %v", err)
	}
	// A column that only one profile has figures for stands in its place; one that only one
	// profile has at all follows those of the others.
	rs[2].Profile.Layers[0].Params = new(int64(3))
	rs[2].Profile.Quantities = []profile.Quantity{{Key: "own", Name: "own"}}
	rs[2].Profile.Layers[0].Figures = map[string]*profile.Metric{"own": profile.Value(profile.Measured, 5, "")}
	want := "model,target,index,op,latency_s,ops,ops_per_s,params,name,state,latency_median_s,own\na,t,0,ADD,0.002,7,3500,,x,ran,0.002,\nb,t,0,ADD,0.004,7,1750,3,x,ran,0.004,5\n"
	if got := text("csv", rs); got != want {
		t.Errorf("CSV:\n%s\nwant\n%s", got, want)
	}
	// Into one file, by its ending.
	path := filepath.Join(t.TempDir(), "all.csv")
	if err := FileAll(path, rs, Options{Top: 1}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("file: %q, %v", got, err)
	}
	if err := FileAll(filepath.Join(t.TempDir(), "all.pdf"), rs, Options{}); err == nil {
		t.Error("an unknown ending")
	}
	// Estimates are compared as targets, profiles of this computer as models.
	if targetRows(rs) != nil {
		t.Error("profiles of one computer are compared as targets")
	}
	rs[2].Profile.Target.Kind = profile.TargetSimulator
	if got := targetRows(rs); len(got) != 2 {
		t.Errorf("%d targets", len(got))
	}
	for path, want := range map[string]string{"a.JSON": ".JSON", "b.trace.json": ".trace.json", "c.trace.json.gz": ".trace.json.gz", "d": "", "e.pdf": "", "dir.csv/f": ""} {
		if got := Ending(path); got != want {
			t.Errorf("%s: ending %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{"a.JSON": "json", "b.trace.json": "trace", "c.bench.txt": "bench", "d.txt": "table", "e.firefox.json.gz": "firefox.gz", "f.yml": "yaml"} {
		if got, err := FormatOf(path); err != nil || got != want {
			t.Errorf("%s: format %q, want %q (%v)", path, got, want, err)
		}
	}
	if err := Write(&b, rs[0].Profile, "odd", Options{}); err == nil || !strings.HasPrefix(err.Error(), `unknown format "odd": use one of table, json, csv`) {
		t.Errorf("an unknown format: %v", err)
	}
	if got := Formats(true); slices.Contains(got, "xlsx") || !slices.Contains(got, "bench") || len(Formats(false)) <= len(got) {
		t.Errorf("formats of a terminal %q", got)
	}
}

// TestMemoryText has the plan of memory in order of place and time, by layers.
func TestMemoryText(t *testing.T) {
	t.Parallel()
	p := small("m", "t", 0.002)
	p.Layers = append(p.Layers, profile.Layer{Index: 1, Op: "MUL", State: profile.Ran})
	p.Memory = &profile.Memory{ArenaBytes: new(int64(2048)), PeakBytes: new(int64(1024)), PersistentBytes: new(int64(10)), Planner: "own", AlignBytes: new(int64(16)), StepLayers: []int64{-1, 0, 1}, Plan: []profile.Buffer{
		{Name: "late", Bytes: 5, Offset: 0, First: 2, Last: 3}, {Name: "a;b", Bytes: 100, Offset: 16, First: 0, Last: 1}, {Bytes: 7, Offset: 0, First: 1, Last: 1, Scratch: true}, {Bytes: 8, Offset: 32, First: 1, Last: 2},
	}}
	title, rows := memoryPlan(p)
	if want := "Memory plan: arena 2.00 KiB, peak 1.00 KiB, persistent 10 B, planner own, aligned to 16 B"; title != want {
		t.Errorf("%q, want %q", title, want)
	}
	var got []string
	for _, r := range rows {
		got = append(got, strings.Join(r, " "))
	}
	if want := []string{"0 7 #0 #0 scratch", "0 5 #1 end late", "16 100 start #0 a", "32 8 #0 #1 "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var b strings.Builder
	writeMemory(&b, p, Options{})
	const want = "\nMemory plan: arena 2.00 KiB, peak 1.00 KiB, persistent 10 B, planner own, aligned to 16 B\n" +
		"offset  bytes   from   to  tensor\n" +
		"     0      7     #0   #0  scratch\n" +
		"     0      5     #1  end  late\n" +
		"    16    100  start   #0  a\n" +
		"    32      8     #0   #1  \n"
	if b.String() != want {
		t.Errorf("%q, want\n%q", b.String(), want)
	}
	b.Reset()
	markdownMemory(&b, p)
	if got := strings.Split(b.String(), "\n"); len(got) != 12 || got[1] != "## Memory plan" || !strings.HasPrefix(got[3], "arena 2.00 KiB") || got[5] != "| offset | bytes | from | to | tensor |" || got[6] != "| ---: | ---: | ---: | ---: | --- |" || got[7] != "| 0 | 7 | #0 | #0 | scratch |" {
		t.Errorf("%q", got)
	}
	// Names are cut to what is left of a line, where that is worth it: 12 columns.
	p.Memory.Plan = []profile.Buffer{{Name: strings.Repeat("n", 40), Bytes: 5, First: 1, Last: 1}}
	for width, want := range map[int]int{60: 60, 37: 37, 36: 25 + 40, 0: 25 + 40} {
		b.Reset()
		writeMemory(&b, p, Options{Width: width})
		lines := strings.Split(b.String(), "\n")
		if got := len([]rune(lines[len(lines)-2])); got != want {
			t.Errorf("%d columns: a line of %d, want %d", width, got, want)
		}
	}
	p.Memory.Plan = nil
	b.Reset()
	writeMemory(&b, p, Options{})
	markdownMemory(&b, p)
	if b.String() != "\nThis profile has no memory plan.\n" {
		t.Errorf("without a plan: %q", b.String())
	}
	p.Memory = &profile.Memory{Plan: []profile.Buffer{{Name: "x"}}, Planner: "own"}
	if title, _ := memoryPlan(p); title != "Memory plan: planner own" {
		t.Errorf("little is known: %q", title)
	}
}

// TestExpectedFigures joins layers that one profile has as several: bands add up, and
// times are shared in proportion.
func TestExpectedFigures(t *testing.T) {
	t.Parallel()
	banded := func(v, low, high float64) *profile.Metric {
		m := profile.Value(profile.Estimated, v, "")
		m.Band = &[2]float64{low, high}
		return m
	}
	layer := func(m *profile.Metric) *profile.Layer { return &profile.Layer{Latency: m} }
	m := together(profile.Layers{layer(banded(2, 1, 4)), layer(profile.Value(profile.Estimated, 3, "")), layer(banded(1, 0.5, 1.5))})
	if *m.Median != 6 || m.Band == nil || *m.Band != [2]float64{4.5, 8.5} || m.Method != "sum of 3 layers" || m.Kind != profile.Estimated {
		t.Errorf("%+v, band %v", m, m.Band)
	}
	if m := together(profile.Layers{layer(profile.Value(profile.Measured, 3, ""))}); m.Band != nil || m.Kind != profile.Measured {
		t.Errorf("without bands: %+v", m)
	}
	node := func(s float64, nodes ...int64) profile.Layer {
		l := profile.Layer{Op: "CONV", State: profile.Ran, Provenance: &profile.Provenance{Confidence: profile.Exact}, Latency: profile.Value(profile.Measured, s, "")}
		for _, n := range nodes {
			l.Provenance.SourceNodes = append(l.Provenance.SourceNodes, profile.SourceNode{Node: n})
		}
		return l
	}
	// Three seconds are shared as 1 to 3.
	p, from := timedModel("1", node(1, 0), node(3, 1)), timedModel("1", node(2, 0, 1))
	if err := Expect(p, from); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.5, 1.5} {
		e := p.Layers[i].Expected
		if v, ok := e.Best(); !ok || !(math.Abs(v-want) <= 1e-12) || e.Method != "part of the time of 2 layers that the other profile has as 1" {
			t.Errorf("layer %d: %+v, want %v", i, e, want)
		}
	}
	if want := "Baseline (t): 2.00 s in 2 layers that both profiles have. This profile: 4.00 s."; !strings.HasPrefix(p.Findings[0].Text, want) || p.Findings[0].ID != "expected.source" || p.Findings[0].Severity != profile.Info {
		t.Errorf("%+v", p.Findings)
	}
	// Again replaces what was there; another target is said, by its description.
	from.Target = profile.Target{ID: "other", Description: "Other chip"}
	if err := Expect(p, from); err != nil {
		t.Fatal(err)
	}
	last := p.Findings[len(p.Findings)-1].Text
	for _, want := range []string{"Baseline (Other chip): ", " The baseline is of another target than this profile (t).", " 2 layers had expected times before, which are replaced."} {
		if !strings.Contains(last, want) {
			t.Errorf("%q lacks %q", last, want)
		}
	}
	// Layers that cannot be compared: no time here, a time of nought here, all but none there.
	for name, c := range map[string]struct {
		p, from *profile.Profile
		want    string
	}{
		"no time here":    {timedModel("1", profile.Layer{Op: "A", Latency: &profile.Metric{}}), timedModel("1", node(1, 0)), "no layer of the profile has a time to compare with"},
		"no time there":   {timedModel("1", node(1, 0)), timedModel("1", profile.Layer{Op: "A", Latency: &profile.Metric{}}), "no layer of the profile with the expected times has a time"},
		"nought here":     {timedModel("1", node(0, 0), node(0, 1)), timedModel("1", node(2, 0, 1)), "no layer of m does the same as one of m"},
		"not called here": {timedModel("1", profile.Layer{Op: "A", State: profile.NotReached}), timedModel("1", node(2, 0)), "no layer of the profile has a time to compare with"},
		"other models":    {timedModel("11111111111111", node(1, 0)), timedModel("22222222222222", node(2, 0)), "the profiles are of different models: m (SHA-256 111111111111…) and m (222222222222…)"},
	} {
		if err := Expect(c.p, c.from); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if got := sureness(map[profile.Confidence]int64{profile.Exact: 5}); got != "" {
		t.Errorf("all exact: %q", got)
	}
	if got, want := sureness(map[profile.Confidence]int64{profile.ByTensor: 1, profile.ByOrder: 2, profile.Unknown: 3}), " Matched 1 layer by tensor, 2 layers by order, 3 layers by uncertain nodes."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRecommended has the recommended figure where it is not the latency.
func TestRecommended(t *testing.T) {
	t.Parallel()
	m := &profile.Metric{Kind: profile.Measured, N: new(int64(9)), Median: new(0.002)}
	p := &profile.Profile{Trust: &profile.Trust{Verdict: profile.Fair, Quote: "undisturbed_latency_s"}, Totals: profile.Totals{Figures: map[string]*profile.Metric{"undisturbed_latency_s": m}}}
	if got := recommended(p); !strings.HasPrefix(got, "2.00 ms, median of ") || strings.Contains(got, "95 %") {
		t.Errorf("%q", got)
	}
	m.CI95 = &[2]float64{0.001, 0.003}
	if got := recommended(p); !strings.HasSuffix(got, ", 95 % CI of this run 1.00 to 3.00 ms") {
		t.Errorf("%q", got)
	}
	if got := recommended(&profile.Profile{}); got != "" {
		t.Errorf("nothing to quote: %q", got)
	}
	for _, c := range []struct {
		m    *profile.Metric
		want bool
	}{{nil, false}, {&profile.Metric{}, false}, {&profile.Metric{CI95: &[2]float64{0, 1}}, false}, {&profile.Metric{CI95: &[2]float64{-1, 0}}, false}, {&profile.Metric{CI95: &[2]float64{1e-9, 1}}, true}, {&profile.Metric{CI95: &[2]float64{-2, -1}}, true}} {
		if got := significant(c.m); got != c.want {
			t.Errorf("%+v: %v", c.m, got)
		}
	}
	// Gaps below a two-thousandth are not worth words; other runs say nothing.
	for _, c := range []struct {
		gap, plain float64
		want       string
	}{
		{0.0005, 0, "1.00 s"},
		{0.00051, 0, "1.00 s + 510 µs not in layers = 1.00 s"},
		{0, 0.92, "1.00 s"},
		{0, 0.9, "1.00 s"},
		{0, 1.12, "1.00 s"},
	} {
		if got := reconcile(&profile.Reconcile{OperatorsS: new(1.0), WallS: new(1.0), GapsS: new(c.gap), PlainS: new(c.plain)}); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestLimitParts has levels in their order and what the engine can do.
func TestLimitParts(t *testing.T) {
	t.Parallel()
	p := &profile.Profile{Target: profile.Target{PeakOpsPerSecond: new(1e9), PeakBytesPerSecond: new(1e9), Peaks: []profile.Peak{
		{DType: "float32", OpsPerSecond: 2e9, ProcessorOpsPerSecond: new(4e9), ProcessorSet: "avx2"}, {DType: "int8", OpsPerSecond: 3e9}, {DType: "int16", OpsPerSecond: 5e9},
	}}}
	for _, x := range []struct {
		s     float64
		b     profile.Bound
		level string
		dtype string
	}{{3, profile.BoundMemory, "memory", "int8"}, {1, profile.BoundMemory, "L1", "int8"}, {2, profile.BoundMemory, "L3", "float32"}, {4, "", "", "float32"}} {
		p.Layers = append(p.Layers, profile.Layer{State: profile.Ran, Latency: profile.Value(profile.Measured, x.s, ""), Roof: &profile.Roof{Bound: x.b, Level: x.level, DType: x.dtype}})
	}
	want := "10 % L1-bound, 20 % L3-bound, 30 % memory-bound, 40 % unknown"
	if got := bottleneck(p); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Target.Kind = profile.TargetHost
	if got := bottleneck(p); got != strings.Replace(want, "memory", "DRAM", 1) {
		t.Errorf("of a computer: %q", got)
	}
	// A bandwidth that a layer raised is named after it.
	p.Target.Levels = []profile.Level{{Name: "L1", BytesPerSecond: 1e9, ReachedBy: new(int64(1))}, {Name: "L3", BytesPerSecond: 1e9}}
	for i := range 3 {
		p.Layers[i].Roof.Use = new(0.5)
	}
	if got, want := bottleneck(p), "10 % L1-bound at 50 % of what #1 reached, 20 % L3-bound at 50 % of bandwidth, 30 % DRAM-bound at 50 % of bandwidth, 40 % unknown"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	want = "float32 2.00 Gop/s measured with this engine (theoretical 4.00 Gop/s with avx2), int8 3.00 Gop/s measured with this engine"
	if got := peaks(p); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Target.Peaks[0].ProcessorOpsPerSecond = new(1e9) // of a lower clock
	if got := peaks(p); strings.Contains(got, "theoretical") {
		t.Errorf("a theoretical peak below the measured one: %q", got)
	}
	p.Target.Peaks = nil
	if got := peaks(p); got != "" {
		t.Errorf("without peaks: %q", got)
	}
}

// TestYAMLWords tells texts that need no quotes, and writes numbers as JSON does.
func TestYAMLWords(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"word": true, "Two words": true, "a-b_c.d": true, "": false, "1e3": false, "-x": false, "x ": false, "x:": false, "a: b": false, "a:b": true, "a #b": false, "a#b": true, "é": false, "aé": false,
		"a\tb": false, "True": false, "no": false, "NULL": false, "inf": false, "nothing": true, "~": false, "{a": false, "z": true, "Z": true, "@a": false, "[a": false, "`a": false,
		strings.Repeat("a", 256): true, strings.Repeat("a", 257): false,
	} {
		if got := plainYAML(s, false); got != want {
			t.Errorf("%.20q: %v, want %v", s, got, want)
		}
	}
	for s, want := range map[string]bool{"a,b": false, "a[b": false, "a]b": false, "a{b": false, "a}b": false, "a b": true} {
		if got := plainYAML(s, true); got != want || !plainYAML(s, false) {
			t.Errorf("%q in a list: %v, want %v", s, got, want)
		}
	}
	for _, v := range []float64{0, 1, -2.5, 1e-6, 9.9e-7, -9.9e-7, 1e20, 1e21, -1e21, 123456789.5, 5e-324} {
		p := small("m", "t", 0)
		p.Layers[0].Latency = profile.Value(profile.Measured, math.Abs(v), "")
		p.Totals.LatencySamples = []float64{math.Abs(v), math.Abs(v)}
		var b bytes.Buffer
		if err := writeYAML(&b, p, Options{}); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(math.Abs(v))
		if err != nil {
			t.Fatal(err)
		}
		if s := fmt.Sprintf("latency_samples_s: [%s, %s]\n", want, want); !strings.Contains(strings.ReplaceAll(b.String(), "e-0", "e-"), strings.ReplaceAll(s, "e-0", "e-")) {
			t.Errorf("%v: no %q in\n%s", v, s, b.String())
		}
	}
	if err := writeYAML(&bytes.Buffer{}, &profile.Profile{}, Options{}); err == nil {
		t.Error("a profile that is none is written")
	}
}

// TestBarLengths draws a share in eighths of a tenth.
func TestBarLengths(t *testing.T) {
	t.Parallel()
	c := bar()
	for share, want := range map[float64]string{0: "", 0.00625: "▏", 0.0125: "▏", 0.05: "▌", 0.1: "█", 0.1125: "█▏", 0.5: "█████", 0.99: "█████████▉", 1: "██████████", 3: "██████████"} {
		r := row{Layers: profile.Layers{{State: profile.Ran, Share: &share, Latency: profile.Value(profile.Measured, 1, "")}}}
		got := c.human(&r)
		if got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
	r := row{Layers: profile.Layers{{State: profile.Ran}}}
	if got := c.human(&r); got != "" {
		t.Errorf("without a share: %q", got)
	}
	for _, c := range []struct {
		ci   *[2]float64
		want float64
		ok   bool
	}{{nil, 0, false}, {&[2]float64{1, 1}, 0, false}, {&[2]float64{2, 1}, 0, false}, {&[2]float64{1, 2}, 0.5, true}} {
		r := row{Layers: profile.Layers{{State: profile.Ran, Latency: &profile.Metric{Median: new(1.5), CI95: c.ci}}}}
		if v, ok := spread(&r); v != c.want || ok != c.ok {
			t.Errorf("%v: %v, %v", c.ci, v, ok)
		}
	}
}

// TestNotesOfRows puts notes below a table, alike ones together: eight rows are named.
func TestNotesOfRows(t *testing.T) {
	t.Parallel()
	var rs []row
	c := drawn{}
	for i := range 11 {
		rs = append(rs, row{Layers: profile.Layers{{Index: int64(i)}}})
		c.cells = append(c.cells, map[bool]string{true: "odd", false: "same"}[i == 1])
	}
	c.cells[10] = ""
	if got, want := notesBelow(rs, c), []string{"#0, #2, #3, #4, #5, #6, #7, #8 and 1 more layer: same", "#1: odd"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := notesBelow(rs[:9], c); got[0] != "#0, #2, #3, #4, #5, #6, #7, #8: same" {
		t.Errorf("%q", got)
	}
}
