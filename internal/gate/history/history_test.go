package history

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

// steps makes a series with levels and noise.
func steps(seed uint64, noise float64, levels []float64, each int) []float64 {
	r := rand.New(rand.NewPCG(seed, 7))
	var out []float64
	for _, l := range levels {
		for range each {
			out = append(out, l*(1+noise*r.NormFloat64()))
		}
	}
	return out
}

func TestDivide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		values []float64
		want   []int
	}{
		{"none", nil, nil},
		{"short", []float64{1, 1, 1, 2, 2, 2}, nil},
		{"constant", slices.Repeat([]float64{3}, 40), nil},
		{"one step, no noise", steps(1, 0, []float64{1, 2}, 10), []int{10}},
		{"5 % with 1 % noise", steps(2, 0.01, []float64{1, 1.05}, 20), []int{20}},
		{"up and down", steps(3, 0.01, []float64{1, 1.1, 1}, 15), []int{15, 30}},
		{"three levels", steps(4, 0.01, []float64{1, 1.1, 1.3}, 12), []int{12, 24}},
	} {
		got := places(Divide(c.values))
		ok := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			ok = ok && math.Abs(float64(got[i]-c.want[i])) <= 1
		}
		if !ok {
			t.Errorf("%s: changes at %v, want %v", c.name, got, c.want)
		}
	}
	// One value that is far away is an outlier, not a level.
	spike := steps(5, 0.01, []float64{1}, 30)
	spike[12] = 9
	if got := Divide(spike); len(got) > 0 {
		t.Errorf("a spike: %v", got)
	}
}

// The statistic is that of its definition.
func TestWidest(t *testing.T) {
	t.Parallel()
	mean := func(a, b []float64, own bool) float64 {
		sum, n := 0.0, 0
		for i, x := range a {
			for k, y := range b {
				if !own || i != k {
					sum, n = sum+math.Abs(x-y), n+1
				}
			}
		}
		return sum / float64(n)
	}
	v := steps(6, 0.2, []float64{1, 1.3}, 9)
	at, best := 0, math.Inf(-1)
	for k := least; k <= len(v)-least; k++ {
		a, b := v[:k], v[k:]
		m, n := float64(len(a)), float64(len(b))
		if q := m * n / (m + n) * (2*mean(a, b, false) - mean(a, a, true) - mean(b, b, true)); q > best {
			at, best = k, q
		}
	}
	// The sums are in another order: they differ by rounding.
	if gotAt, got := widest(v); gotAt != at || math.Abs(got-best) > 1e-9*best {
		t.Errorf("%d, %v; want %d, %v", gotAt, got, at, best)
	}
}

// Series without a change show one in at most about one of a hundred cases, whatever their
// distribution; a change of three standard deviations is found in nearly all.
func TestDivideRates(t *testing.T) {
	t.Parallel()
	const series = 300
	for name, draw := range map[string]func(r *rand.Rand) float64{
		"normal":  func(r *rand.Rand) float64 { return r.NormFloat64() },
		"skewed":  func(r *rand.Rand) float64 { return r.ExpFloat64() },
		"bimodal": func(r *rand.Rand) float64 { return float64(r.IntN(2)) + 0.1*r.NormFloat64() },
	} {
		alarms, found := 0, 0
		for i := range series {
			r := rand.New(rand.NewPCG(uint64(i), 11))
			v := make([]float64, 24)
			for k := range v {
				v[k] = draw(r)
			}
			if len(Divide(v)) > 0 {
				alarms++
			}
			for k := len(v) / 2; k < len(v); k++ {
				v[k] += 3
			}
			if len(Divide(v)) > 0 {
				found++
			}
		}
		// 3 are expected; 10 or more have a probability below 0.1 %.
		if alarms > 9 {
			t.Errorf("%s: %d of %d series without a change show one", name, alarms, series)
		}
		if found < series*95/100 {
			t.Errorf("%s: %d of %d changes found", name, found, series)
		}
	}
}

func record(day int, f map[string]float64) gate.Record {
	return gate.Record{
		Kind: gate.Ran, Time: time.Date(2030, 1, day, 0, 0, 0, 0, time.UTC).Format(time.RFC3339), Commit: fmt.Sprintf("%040x", day),
		Model: "models/<b>.tflite", Target: "host", Machine: "any", Settings: "default", Figures: f,
	}
}

// stored is a history of an index in which MACs change once, and times change after the machine
// did, which is no change point.
func stored(t *testing.T) (string, *History) {
	t.Helper()
	s := &gate.Store{Dir: filepath.Join(t.TempDir(), gate.Folder)}
	times := append(steps(1, 0.01, []float64{1e-3}, 10), steps(2, 0.01, []float64{2e-3, 2.2e-3}, 10)...)
	for i, v := range times {
		r := record(i+1, map[string]float64{"macs": 1000, "layers": 3})
		if i >= 5 {
			r.Figures["macs"] = 1001
		}
		r.Measured, r.On = map[string]float64{"latency_s": v}, "one"
		if i >= 10 {
			r.On = "two"
		}
		if i == 5 {
			r.Kind, r.Reason = gate.Accepted, "wider"
		}
		if err := s.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	h, err := Read(t.Context(), s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return s.Dir, h
}

func (h *History) find(figure string) *Series {
	for i := range h.Series {
		if h.Series[i].Figure == figure {
			return &h.Series[i]
		}
	}
	return nil
}

func TestIndex(t *testing.T) {
	t.Parallel()
	dir, h := stored(t)
	if len(h.Series) != 3 || len(h.Notes) > 0 {
		t.Fatalf("%d series, notes %q", len(h.Series), h.Notes)
	}
	macs, layers, latency := h.find("macs"), h.find("layers"), h.find("latency_s")
	if len(macs.Changes) != 1 || macs.Changes[0].At != 5 || macs.Changes[0].P != nil || macs.Changes[0].After != 1001 || len(macs.Marks) > 0 {
		t.Errorf("MACs: %+v, %+v", macs.Changes, macs.Marks)
	}
	if len(layers.Changes) > 0 {
		t.Errorf("layers: %+v", layers.Changes)
	}
	if len(latency.Marks) != 1 || latency.Marks[0] != (Mark{10, "machine", "one", "two"}) {
		t.Errorf("marks %+v", latency.Marks)
	}
	if len(latency.Changes) != 1 || latency.Changes[0].At < 19 || latency.Changes[0].At > 21 || latency.Changes[0].P == nil {
		t.Errorf("changes of the time: %+v", latency.Changes)
	}
	// The folder around it and the one of the index give the same.
	for _, d := range []string{filepath.Dir(dir), filepath.Join(dir, gate.BaselineDir)} {
		if o, err := Read(t.Context(), d); err != nil || len(o.Series) != 3 {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// Several settings at one time are series of their own; else they changed.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := &gate.Store{Dir: t.TempDir()}
	for day := range 4 {
		small, large := record(day+1, map[string]float64{"macs": 10}), record(day+1, map[string]float64{"macs": 20})
		small.Settings, large.Settings = "x=1x1", "x=2x2"
		later := record(day+1, map[string]float64{"macs": 30})
		later.Model = "other"
		if day > 1 {
			later.Settings = "x=3x3"
		}
		if err := s.Add(small, large, later); err != nil {
			t.Fatal(err)
		}
	}
	h, err := Read(t.Context(), s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Series) != 3 || h.Series[0].Settings != "x=1x1" || h.Series[1].Settings != "x=2x2" || len(h.Series[0].Changes) > 0 {
		t.Fatalf("%+v", h.Series)
	}
	if o := h.Series[2]; len(o.Marks) != 1 || o.Marks[0].What != "settings" || o.Marks[0].At != 2 {
		t.Errorf("%+v", o.Marks)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "no index of baselines") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Read(t.Context(), filepath.Join(dir, "none")); err == nil {
		t.Error("a missing folder is read")
	}
	for day := range 3 {
		p := &profile.Profile{
			Schema: profile.SchemaV1, Created: fmt.Sprintf("2030-01-0%dT00:00:00Z", day+1),
			Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost},
			Memory: &profile.Memory{ArenaBytes: new(int64(64 + day/2))},
			Totals: profile.Totals{Layers: new(int64(3)), MACs: new(int64(100 + day/2)), Latency: &profile.Metric{Kind: profile.Measured, Median: new(0.5), N: new(int64(9)), CI95: &[2]float64{0.4, 0.6}}},
		}
		if err := profile.Write(filepath.Join(dir, fmt.Sprint(day)+profile.Extension), p); err != nil {
			t.Fatal(err)
		}
	}
	h, err := Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	macs, latency := h.find("macs"), h.find("latency_s")
	if macs == nil || latency == nil || macs.Measured || !latency.Measured || len(macs.Changes) != 1 || macs.Changes[0].At != 2 {
		t.Errorf("%+v", h.Series)
	}
	arena, layers := h.find("arena_bytes"), h.find("layers")
	if arena == nil || layers == nil || arena.Measured || len(arena.Changes) != 1 || arena.Points[2].Value != 65 || len(layers.Changes) > 0 {
		t.Errorf("arena %+v, layers %+v", arena, layers)
	}
	if p := latency.Points[0]; p.Low == nil || *p.Low != 0.4 || p.High == nil || *p.High != 0.6 || p.Estimator != "median" {
		t.Errorf("interval of %+v", p)
	}
	if p := macs.Points[0]; p.Low != nil || p.High != nil || p.Estimator != "value" {
		t.Errorf("interval of %+v", p)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	_, h := stored(t)
	out := map[string]string{}
	for _, f := range Formats {
		var b bytes.Buffer
		if err := h.Write(&b, f, false, 0); err != nil {
			t.Fatal(err)
		}
		out[f] = b.String()
	}
	for _, want := range []string{"2 of 3 figures changed. --all shows the others.", "2030-01-06 0000000000: 1,000 → 1,001 (+0.1 %), accepted: wider", "machine one → two"} {
		if !strings.Contains(out["table"], want) {
			t.Errorf("table lacks %q:\n%s", want, out["table"])
		}
	}
	rows, err := csv.NewReader(strings.NewReader(out["csv"])).ReadAll()
	if err != nil || len(rows) != 1+3*30 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows[1:] {
		if strings.Contains(r[6], "e+") {
			t.Errorf("%s in CSV, want an integer in full", r[6])
		}
	}
	if got := report.PlainNumber(11207296); got != "11207296" {
		t.Error(got)
	}
	page := out["html"]
	// What changed comes first; the rest is closed. Each axis has its values.
	if rest := strings.Index(page, "<h2>Without a change</h2>"); rest < 0 || strings.Count(page[:rest], "<svg") != 2 || !strings.Contains(page, "</text>") {
		t.Errorf("series without a change begin at %d", rest)
	}
	if strings.Contains(page, "<b>") || !strings.Contains(page, "&lt;b&gt;.tflite") || strings.Count(page, "<svg") != 3 || strings.Contains(page, "<script") || strings.Contains(page, "http") && strings.Contains(page, "src=") {
		t.Error("the page is not self-contained, or a name became markup")
	}
	if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
		t.Error("the page has places that are not numbers")
	}
	if _, err := FormatOf("x.pdf"); err == nil {
		t.Error("PDF is a format")
	}
}

// Points are in the order of their commits, not in that in which they were recorded: here an older
// commit was measured later. Points of other commits are left out; without git, lines decide.
func TestOrder(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is absent")
	}
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.com"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	var commits []string
	for range 3 {
		git("commit", "-q", "--allow-empty", "-m", "c")
		commits = append(commits, git("rev-parse", "HEAD"))
	}
	s := &gate.Store{Dir: filepath.Join(dir, gate.Folder)}
	add := func(day int, commit string, macs float64) {
		t.Helper()
		r := record(day, map[string]float64{"macs": macs})
		r.Commit = commit
		if err := s.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	add(2, commits[2], 3)
	add(1, commits[1], 2)
	add(9, commits[0], 1)
	values := func(h *History) (out []float64) {
		for _, p := range h.find("macs").Points {
			out = append(out, p.Value)
		}
		return out
	}
	h, err := Read(t.Context(), s.Dir)
	if err != nil || !slices.Equal(values(h), []float64{1, 2, 3}) || h.Order != "first-parent history of HEAD" {
		t.Errorf("%v, order %q, %v", values(h), h.Order, err)
	}
	add(10, strings.Repeat("a", 40), 4)
	if h, err = Read(t.Context(), s.Dir); err != nil || !slices.Equal(values(h), []float64{1, 2, 3, 4}) || !strings.Contains(h.Order, "time of recording for points of other commits") {
		t.Errorf("%v, order %q, %v", values(h), h.Order, err)
	}
	// A point of another branch has no part in changes: table, page and JSON say why.
	macs := h.find("macs")
	if len(macs.Changes) != 2 || macs.Points[3].LeftOut != gate.OtherBranch {
		t.Errorf("%+v", macs)
	}
	for format, want := range map[string]string{
		"table": "left out 2030-01-10 aaaaaaaaaa: 4, on another branch", "html": "<li>2030-01-10 aaaaaaaaaa: 4, on another branch</li>",
		"json": `"left_out":"other_branch"`, "csv": ",other_branch\n",
	} {
		var b strings.Builder
		if err := h.Write(&b, format, false, 0); err != nil || !strings.Contains(strings.ReplaceAll(b.String(), `": "`, `":"`), want) {
			t.Errorf("%s lacks %q: %v\n%s", format, want, err, b.String())
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	if h, err = Read(t.Context(), s.Dir); err != nil || !slices.Equal(values(h), []float64{3, 2, 1, 4}) || !strings.HasPrefix(h.Order, "lines of the index (") {
		t.Errorf("%v, order %q, %v", values(h), h.Order, err)
	}
	var b strings.Builder
	if err := h.Write(&b, "table", true, 40); err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(b.String()) {
		if utf8.RuneCountInString(strings.TrimSuffix(l, "\n")) > 40 {
			t.Errorf("wider than 40 columns: %q", l)
		}
	}
}
