package gobench

import (
	"bytes"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

type measured struct {
	name   string
	n      int
	values map[string]float64
}

var (
	configLine = regexp.MustCompile(`^[a-z][^\sA-Z:]*:[ \t]+(\S.*)$`)
	unitLine   = regexp.MustCompile(`^Unit \S+ better=(higher|lower)$`)
)

// read follows the definition of the format: lines of configuration, of units and
// of results; anything else is refused, unlike the format, which skips it.
func read(t *testing.T, p *profile.Profile) (config map[string]string, results []measured) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(b.Bytes()) {
		t.Fatal("not UTF-8")
	}
	config = map[string]string{}
	for _, l := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
		switch {
		case l == "" || unitLine.MatchString(l) || strings.HasPrefix(l, "# "):
			continue
		case !strings.HasPrefix(l, "Benchmark"):
			m := configLine.FindStringSubmatch(l)
			if m == nil {
				t.Fatalf("line %q", l)
			}
			config[l[:strings.IndexByte(l, ':')]] = m[1]
			continue
		}
		f := strings.Fields(l)
		if len(f) < 4 || len(f)%2 != 0 || !unicode.IsUpper(rune(f[0][len("Benchmark")])) {
			t.Fatalf("line %q", l)
		}
		r := measured{name: f[0], values: map[string]float64{}}
		n, err := strconv.Atoi(f[1])
		if err != nil || n < 1 {
			t.Fatalf("%q iterations", f[1])
		}
		r.n = n
		for i := 2; i < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := r.values[f[i+1]]; ok {
				t.Fatalf("unit %s stands twice in %q", f[i+1], l)
			}
			r.values[f[i+1]] = v
		}
		results = append(results, r)
	}
	return config, results
}

func TestRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		p := sample.Random(rand.New(rand.NewPCG(seed, 6)))
		_, results := read(t, p)
		lines, runs, sums := map[string]int{}, map[string]int{}, map[string]float64{}
		for _, r := range results {
			name := strings.TrimPrefix(r.name, "BenchmarkModel/layer=")
			if strings.ContainsAny(name, "/") || name == r.name {
				t.Fatalf("seed %d: name %q", seed, r.name)
			}
			index, _, _ := strings.Cut(name, ":")
			lines[index]++
			runs[index] += r.n
			sums[index] += float64(r.n) * r.values["ns/op"]
		}
		digits := len(strconv.Itoa(max(0, len(p.Layers)-1)))
		for i := range p.Layers {
			l := &p.Layers[i]
			want, n, sum := min(len(l.Samples), 1), len(l.Samples), 0.0
			for _, s := range l.Samples {
				sum += s * 1e9
			}
			if v, ok := l.Latency.Best(); ok {
				want, n = 1, max(n, 1)
				sum = v * 1e9 * float64(n)
			}
			if l.State != profile.Ran {
				want, n, sum = 0, 0, 0
			}
			k := strings.Repeat("0", digits-len(strconv.Itoa(i))) + strconv.Itoa(i)
			if lines[k] != want || runs[k] != n || math.Abs(sums[k]-sum) > 1e-3*float64(max(n, 1)) {
				t.Fatalf("seed %d: layer %d has %d lines of %d runs with %g ns; want %d, %d, %g", seed, i, lines[k], runs[k], sums[k], want, n, sum)
			}
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	p := sample.Large(12, 100, 0)
	p.Layers[3].Energy = profile.Value(profile.Estimated, 2e-6, "")
	p.Layers[3].Calls = new(2.0)
	p.Layers[3].Latency, p.Layers[3].Samples = profile.Value(profile.Estimated, 1e-3, ""), nil
	config, results := read(t, p)
	for k, want := range map[string]string{"goos": "linux", "goarch": "amd64", "cpu": "Test CPU", "model": "large", "target": "host"} {
		if config[k] != want {
			t.Errorf("%s is %q, want %q", k, config[k], want)
		}
	}
	if r := results[0]; r.name != "BenchmarkModel/layer=all" || r.n != 1 {
		t.Errorf("the model is %+v", r)
	}
	if r := results[1]; r.name != "BenchmarkModel/layer=00:model:block_0:layer_0" || r.n != len(p.Layers[0].Samples) || r.n < 2 {
		t.Errorf("the first layer is %+v", r)
	}
	r := results[1+3]
	for unit, want := range map[string]float64{"ns/op": 1e6, "J/op": 2e-6, "MACs/s": float64(*p.Layers[3].MACs) / 1e-3, "moved-B/s": 131072 / 1e-3} {
		if math.Abs(r.values[unit]-want) > 1e-9*want {
			t.Errorf("%s: %g, want %g", unit, r.values[unit], want)
		}
	}
	if len(r.values) != 4 {
		t.Errorf("figures that are not known: %v", r.values)
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a b/c\n\u2028d\x00": "a_b:c__d_", "日本": "日本", "\xff": "_", strings.Repeat("x", 300): strings.Repeat("x", 200)} {
		if got := Name(in); got != want {
			t.Errorf("Name(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestPairs: what people compare with benchstat, the number of threads above all, is in
// no name and no line of configuration, or nothing pairs.
func TestPairs(t *testing.T) {
	t.Parallel()
	one, two := sample.Large(5, 40, 0), sample.Large(5, 40, 0)
	one.Settings.Threads, two.Settings.Threads = new(int64(1)), new(int64(2))
	config, results := read(t, one)
	other, more := read(t, two)
	if len(results) != len(more) || !maps.Equal(config, other) {
		t.Fatalf("%d and %d lines under %v and %v", len(results), len(more), config, other)
	}
	for i := range results {
		if results[i].name != more[i].name {
			t.Errorf("line %d is %s and %s", i, results[i].name, more[i].name)
		}
	}
}
