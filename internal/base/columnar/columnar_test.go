package columnar_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/columnar"
)

func same[T columnar.Number](a, b []T) bool {
	return slices.EqualFunc(a, b, func(x, y T) bool {
		return math.Float64bits(float64(x)) == math.Float64bits(float64(y)) && x == y || x != x && y != y
	})
}

// roundTrip writes columns of all types side by side and reads them back.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		reals := rapid.SliceOf(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), 1e-9, 1e300}))).Draw(t, "reals")
		at := rapid.Int64Range(0, 1<<60).Draw(t, "at")
		times := make([]float64, rapid.IntRange(0, 50).Draw(t, "n"))
		for i := range times {
			at += rapid.Int64Range(0, 1<<33).Draw(t, "step")
			times[i] = float64(at) / 1e9
		}
		longs := rapid.SliceOf(rapid.Int64()).Draw(t, "longs")
		ints := rapid.SliceOf(rapid.Int32()).Draw(t, "ints")
		w := &columnar.Writer{}
		columnar.AddExact(w, reals, "reals")
		columnar.AddExact(w, times, "times", 3)
		columnar.Add(w, columnar.I64, longs, "longs")
		columnar.Add(w, columnar.I32, ints, "ints")
		columnar.Add(w, columnar.I32, longs, "more longs")
		var b bytes.Buffer
		n, err := w.WriteTo(&b)
		if err != nil || n != int64(b.Len()) {
			t.Fatalf("%d of %d bytes, %v", n, b.Len(), err)
		}
		size := 0
		for _, r := range w.Refs {
			size += r.Length * r.Type.Width()
		}
		if size != b.Len() {
			t.Fatalf("refs say %d bytes, there are %d", size, b.Len())
		}
		if got, err := columnar.Read[float64](&b, w.Refs[0]); err != nil || !same(got, reals) {
			t.Fatalf("%v, %v, want %v", got, err, reals)
		}
		if got, err := columnar.Read[float64](&b, w.Refs[1]); err != nil || !same(got, times) {
			t.Fatalf("%v, %v, want %v", got, err, times)
		}
		if got, err := columnar.Read[int64](&b, w.Refs[2]); err != nil || !slices.Equal(got, longs) {
			t.Fatalf("%v, %v, want %v", got, err, longs)
		}
		if got, err := columnar.Read[int32](&b, w.Refs[3]); err != nil || !slices.Equal(got, ints) {
			t.Fatalf("%v, %v, want %v", got, err, ints)
		}
		if got, err := columnar.Read[int64](&b, w.Refs[4]); err != nil || !slices.Equal(got, longs) {
			t.Fatalf("%v, %v, want %v", got, err, longs)
		}
	})
}

func TestWidths(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []int64
		want   columnar.Code
	}{
		{nil, columnar.I8},
		{[]int64{-128, 127}, columnar.I8},
		{[]int64{128}, columnar.I16},
		{[]int64{-129}, columnar.I16},
		{[]int64{-32768, 32767}, columnar.I16},
		{[]int64{32768}, columnar.I32},
		{[]int64{math.MinInt32, math.MaxInt32}, columnar.I32},
		{[]int64{math.MaxInt32 + 1}, columnar.I64},
		{[]int64{math.MinInt64, math.MaxInt64}, columnar.I64},
	} {
		w := &columnar.Writer{}
		columnar.Add(w, columnar.I64, tt.values)
		if got := w.Refs[0].Type; got != tt.want {
			t.Errorf("%v is stored as %s, want %s", tt.values, got, tt.want)
		}
	}
	for _, tt := range []struct {
		values []float64
		exact  columnar.Code
		near   columnar.Code
	}{
		{nil, columnar.F64, columnar.F64},
		{[]float64{0, 1e-9, 2}, columnar.NS, columnar.NS},
		// the first one may be far out
		{[]float64{5e8, 5e8 + 1}, columnar.NS, columnar.NS},
		{[]float64{math.Nextafter(0.3, 1)}, columnar.F64, columnar.NS}, // a bit beside 300 ms
		{[]float64{1.5e-9}, columnar.F64, columnar.F64},                // half a nanosecond
		{[]float64{0, 3}, columnar.F64, columnar.F64},                  // more than 2^31 ns apart
		{[]float64{math.Copysign(0, -1)}, columnar.F64, columnar.NS},   // a bit of its own
		{[]float64{math.NaN()}, columnar.F64, columnar.F64},
		{[]float64{math.Inf(1)}, columnar.F64, columnar.F64},
		{[]float64{1e300}, columnar.F64, columnar.F64},
		{[]float64{1e10}, columnar.F64, columnar.F64}, // beyond 64 bits of nanoseconds
	} {
		w := &columnar.Writer{}
		columnar.AddExact(w, tt.values)
		columnar.Add(w, columnar.NS, tt.values)
		if got := w.Refs[0].Type; got != tt.exact {
			t.Errorf("%v is stored exactly as %s, want %s", tt.values, got, tt.exact)
		}
		if got := w.Refs[1].Type; got != tt.near {
			t.Errorf("%v is stored as %s, want %s", tt.values, got, tt.near)
		}
	}
}

// TestSingle stores what asks for 32 bits in 32 bits.
func TestSingle(t *testing.T) {
	t.Parallel()
	w := &columnar.Writer{}
	columnar.Add(w, columnar.F32, []float64{0.1, 1e300}, "x")
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil || b.Len() != 8 {
		t.Fatal(b.Len(), err)
	}
	got, err := columnar.Read[float64](&b, w.Refs[0])
	if err != nil || got[0] != float64(float32(0.1)) || !math.IsInf(got[1], 1) {
		t.Error(got, err)
	}
}

func TestHostileRefs(t *testing.T) {
	t.Parallel()
	data := make([]byte, 64)
	for _, tt := range []struct {
		ref  columnar.Ref
		want string
	}{
		{columnar.Ref{Type: "f16", Length: 1}, `"f16"`},
		{columnar.Ref{Type: "", Length: 0}, `""`},
		{columnar.Ref{Type: columnar.I8, Length: -1}, "-1"},
		{columnar.Ref{Type: columnar.I8, Length: 65}, "EOF"},
		{columnar.Ref{Type: columnar.I32, Length: math.MaxInt}, "EOF"},
		{columnar.Ref{Type: columnar.F64, Length: 1}, "f64"}, // a real where integers belong
		{columnar.Ref{Type: columnar.I64, Length: 1}, "i64"}, // wider than what it goes into
	} {
		got, err := columnar.Read[int32](bytes.NewReader(data), tt.ref)
		if err == nil || got != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, %v, want %q", tt.ref, got, err, tt.want)
		}
	}
	// The sum of steps may leave all bounds; the caller checks the figures.
	if got, err := columnar.Read[float64](bytes.NewReader(data), columnar.Ref{Type: columnar.NS, Length: 16, First: math.MaxInt64}); err != nil || len(got) != 16 {
		t.Error(got, err)
	}
}

func TestWriterFails(t *testing.T) {
	t.Parallel()
	full := errors.New("full")
	w := &columnar.Writer{}
	columnar.Add(w, columnar.I64, make([]int64, 1<<17))
	r, p := io.Pipe()
	_ = r.CloseWithError(full)
	if _, err := w.WriteTo(p); !errors.Is(err, full) {
		t.Error(err)
	}
}
