package report

import (
	"math"
	"testing"

	"github.com/opmeter/opmeter/internal/report/words"
)

// TestHuge: figures far beyond their largest unit are short too.
func TestHuge(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Duration(1e305): "1e+305 s", Duration(-2.5e17): "-2.5e+17 s", Quantity(3e40, "op/s"): "3e+28 Top/s", Percent(1e300): "1e+302 %",
		Bytes(math.MaxInt64): "8388608 TiB", Duration(math.Inf(1)): "+Inf s", words.Ratio(1e200): "1e+200",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
