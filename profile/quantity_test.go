package profile

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// forget takes a registered quantity out again.
func forget(key string) {
	known.Lock()
	defer known.Unlock()
	known.list = slices.DeleteFunc(known.list, func(e entry) bool { return e.Key == key })
	index()
}

// TestTable checks that every quantity is described and that what is set is what is
// read, in the field or map that JSON shows.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, e := range table() {
		q := e.Quantity
		if err := q.validate(); err != nil {
			t.Error(err)
		}
		if q.Head == "" || q.Doc == "" || q.Group == "" {
			t.Errorf("%s has no heading, text or group", q.Key)
		}
		if !builtin[q.Key] {
			t.Errorf("%s is not known as built in", q.Key)
		}
		for _, k := range slices.Concat(q.Of, q.Per) {
			if p, ok := Lookup(k); !ok || p.Derived() {
				t.Errorf("%s is a quotient with %s", q.Key, k)
			}
		}
		var l Layer
		var s Totals
		m := &Metric{Kind: Estimated, Median: new(1.0), Band: &[2]float64{0, 2}}
		if q.Derived() {
			if l.Set(q.Key, m) == nil || s.Set(q.Key, m) == nil {
				t.Errorf("%s can be set", q.Key)
			}
			continue
		}
		if err := l.Set(q.Key, m); err != nil {
			t.Error(err)
		}
		if err := s.Set(q.Key, m); err != nil {
			t.Error(err)
		}
		if v, ok := l.Value(q.Key); !ok || v != 1 {
			t.Errorf("%s of a layer: %v, %v", q.Key, v, ok)
		}
		if v, ok := s.Value(q.Key); !ok || v != 1 {
			t.Errorf("%s of all: %v, %v", q.Key, v, ok)
		}
		if (e.layer == nil) != (l.Figures != nil) || (e.total == nil) != (s.Figures != nil) {
			t.Errorf("%s is not in its place", q.Key)
		}
		if l.Set(q.Key, nil) != nil || s.Set(q.Key, nil) != nil || l.Figure(q.Key) != nil || s.Figure(q.Key) != nil {
			t.Errorf("%s cannot be taken away", q.Key)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, want string
		m         *Metric
	}{
		{"ops", "an integer", Value(Counted, 1.5, "")},
		{"ops", "an integer", Value(Counted, 1<<54, "")},
		{"ops", "no value", &Metric{Kind: Counted}},
		{"ops_per_s", "follows from ops, latency_s", Value(Counted, 1, "")},
		{"Ops", "lower-case", Value(Counted, 1, "")},
		{"", "lower-case", nil},
	} {
		l := Layer{Ops: new(int64(7))}
		if err := l.Set(tt.key, tt.m); err == nil || !strings.Contains(err.Error(), tt.want) || *l.Ops != 7 || l.Figures != nil {
			t.Errorf("%s: %v, want %q", tt.key, err, tt.want)
		}
	}
}

// TestSetSharesNothing sets a figure of a copy of a layer.
func TestSetSharesNothing(t *testing.T) {
	t.Parallel()
	a := Layer{Sparsity: &Sparsity{Weights: new(0.5), Pattern: "2:4"}}
	b := a
	if err := b.Set("sparsity_weights", Value(Counted, 0.25, "")); err != nil {
		t.Fatal(err)
	}
	if *a.Sparsity.Weights != 0.5 || *b.Sparsity.Weights != 0.25 || b.Sparsity.Pattern != "2:4" {
		t.Error(*a.Sparsity.Weights, *b.Sparsity.Weights)
	}
	var c Layer
	if err := c.Set("sparsity_activations", nil); err != nil || c.Sparsity != nil {
		t.Error("taking nothing away leaves an empty part")
	}
}

func TestQuotients(t *testing.T) {
	t.Parallel()
	l := Layer{Ops: new(int64(6)), MACs: new(int64(3)), BytesRead: new(int64(1)), BytesWritten: new(int64(2)), Latency: Value(Measured, 2, ""), Energy: Value(Estimated, 4, "")}
	for key, want := range map[string]struct {
		v    float64
		kind Kind
	}{
		"ops_per_s": {3, Measured}, "ops_per_byte": {2, Counted}, "bytes_per_s": {1.5, Measured}, "power_w": {2, Estimated}, "energy_per_mac_j": {4.0 / 3, Estimated},
	} {
		m := l.Figure(key)
		if v, ok := m.Best(); !ok || v != want.v || m.Kind != want.kind {
			t.Errorf("%s is %+v, want %v", key, m, want)
		}
	}
	l.BytesWritten = nil
	if l.Figure("ops_per_byte") != nil {
		t.Error("a quotient of half its parts")
	}
	l.Latency = Value(Measured, 0, "")
	if l.Figure("ops_per_s") != nil {
		t.Error("a quotient by nothing")
	}
	l.Latency = Value(Measured, 5e-324, "")
	if l.Figure("ops_per_s") != nil {
		t.Error("a quotient that is not a number")
	}
}

// TestKinds: figures that are plain numbers in JSON tell their kind all the same.
func TestKinds(t *testing.T) {
	t.Parallel()
	l := Layer{Ops: new(int64(1)), Latency: Value(Simulated, 1, ""), Share: new(1.0), Calls: new(2.5), Sparsity: &Sparsity{Weights: new(0.5), Activations: new(0.5)}}
	for key, want := range map[string]Kind{"ops": Counted, "share": Simulated, "calls": Measured, "sparsity_weights": Counted, "sparsity_activations": Measured} {
		if m := l.Figure(key); m == nil || m.Kind != want {
			t.Errorf("%s is %+v, want %s", key, m, want)
		}
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		q    Quantity
		want string
	}{
		{Quantity{Key: "ops", Name: "x"}, "there already"},
		{Quantity{Key: "x_y"}, "no name"},
		{Quantity{Key: strings.Repeat("x", maxKey+1), Name: "x"}, "at most 100"},
		{Quantity{Key: "x_y", Name: "x", Per: []string{"ops"}}, "both or none"},
		{Quantity{Key: "x_y", Name: "x", Of: []string{"x_y"}, Per: []string{"ops"}}, "itself"},
		{Quantity{Key: "x_y", Name: "x", Of: []string{"ops_per_s"}, Per: []string{"ops"}}, "quotient itself"},
		{Quantity{Key: "x_y", Name: "x", Of: []string{"no_such"}, Per: []string{"ops"}}, "not known"},
	} {
		if err := Register(tt.q); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.q, err, tt.want)
		}
	}
}

// TestRegisterWhileRead registers quantities while others read figures; the race
// detector watches.
func TestRegisterWhileRead(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 20 {
				key := fmt.Sprintf("test_%d_%d", g, i)
				if err := Register(Quantity{Key: key, Name: key, Adds: true}); err != nil {
					t.Error(err)
				}
				defer forget(key)
				l := Layer{Ops: new(int64(6)), Latency: Value(Measured, 2, "")}
				if err := l.Set(key, Value(Counted, 1, "")); err != nil {
					t.Error(err)
				}
				if v, ok := (Layers{&l, &l}).Sum(key); !ok || v != 2 {
					t.Error(key, v, ok)
				}
				if v, _ := l.Value("ops_per_s"); v != 3 {
					t.Error(v)
				}
				if len(Quantities()) < len(builtin) {
					t.Error("quantities are gone")
				}
			}
		})
	}
	all.Wait()
}

func TestAllQuantities(t *testing.T) {
	t.Parallel()
	p := example()
	p.Quantities = []Quantity{{Key: "test_hits", Name: "Hits", Unit: "1"}, {Key: "ops", Name: "not ours"}}
	p.Layers[0].Figures = map[string]*Metric{"test_misses": Value(Counted, 1, ""), "test_hits": Value(Counted, 1, "")}
	var keys []string
	for _, q := range p.AllQuantities() {
		if strings.HasPrefix(q.Key, "test_hits") || q.Key == "test_misses" || q.Name == "not ours" {
			keys = append(keys, q.Key)
		}
	}
	if d := cmp.Diff([]string{"test_hits", "test_misses"}, keys); d != "" {
		t.Error(d)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	const big = math.MaxInt64
	for _, tt := range []struct {
		n       int64
		by, per float64
		want    *int64
	}{
		{7, 1, 1, new(int64(7))},
		{7, 3, 1, new(int64(21))},
		{7, 0.5, 1, new(int64(4))},
		{10, 2.5, 4, new(int64(6))},
		{big, 0.5, 1, new(int64(big/2 + 1))},
		{big, 1, 2, new(int64(big/2 + 1))},
		{big - 1, 0.1, 0.1, new(int64(big - 1))},
		{big, 2, 1, nil},
		{0, 2, 0, nil},
		{7, 0, 0, new(int64(7))},
		{7, 0, 2, new(int64(0))},
		{7, math.Inf(1), 1, nil},
	} {
		if d := cmp.Diff(tt.want, times(tt.n, tt.by, tt.per)); d != "" {
			t.Errorf("%d x %v / %v: %s", tt.n, tt.by, tt.per, d)
		}
	}
}
