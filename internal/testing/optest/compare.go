package optest

import (
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/model/tensor"
)

// Within reports whether got is want, or no further from it than abs plus rel times its
// size. A NaN is only within reach of a NaN, an infinity of itself.
func Within(got, want, abs, rel float64) bool {
	if math.IsNaN(want) || math.IsInf(want, 0) {
		return got == want || math.IsNaN(got) && math.IsNaN(want)
	}
	return math.Abs(got-want) <= abs+rel*math.Abs(want)
}

// Differ compares an output with results of a definition by [Within], all elements of
// both. It says what is wrong, "" where nothing is.
func Differ(got *tensor.Tensor, want []float64, abs, rel float64) string {
	if got == nil || !got.Known() {
		return "no output"
	}
	if got.Len() != len(want) {
		return fmt.Sprintf("%s has %d elements, want %d", tensor.FormatShape(got.Shape), got.Len(), len(want))
	}
	for i, w := range want {
		if g := tensor.At(got, i); !Within(g, w, abs, rel) {
			return fmt.Sprintf("element %d is %v, want %v", i, g, w)
		}
	}
	return ""
}

// T is what a comparison needs of a test; property tests have a type of their own.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Near fails the test where [Differ] finds a difference; what names the output.
func Near(t T, what string, got *tensor.Tensor, want []float64, abs, rel float64) {
	t.Helper()
	if why := Differ(got, want, abs, rel); why != "" {
		t.Fatalf("%s: %s", what, why)
	}
}
