package report

import (
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/report/text"
)

// TestShortenApart cuts names of which many begin or end alike.
func TestShortenApart(t *testing.T) {
	t.Parallel()
	for _, all := range [][]string{
		{"one", "two"},
		{"ratio", "a rather long heading", "ratio"},
		{"mlperf_tiny_kws_int8.tflite", "mlperf_tiny_vww_int8.tflite", "mlperf_tiny_ad_int8.tflite"},
		{"aaaaaaaaaaaaaaaaaa1bbbbbbbbbbbbbbbbbbb", "aaaaaaaaaaaaaaaaaa2bbbbbbbbbbbbbbbbbbb", "aaaaaaaaaaaaaaaaaa1bbbbbbbbbbbbbbbbbbb"},
		{"results/monday/model", "results/monday/model-and-more", "results/monday/model-and-more-still"},
		{"日本語日本語日本語日本語日本語一", "日本語日本語日本語日本語日本語二"},
	} {
		for width := 5; width < 40; width++ {
			got := shortenApart(all, slices.Repeat([]int{width}, len(all)))
			for i := range got {
				if text.Width(got[i]) > width {
					t.Errorf("%q is wider than %d", got[i], width)
				}
				for k := range got {
					if (got[i] == got[k]) != (all[i] == all[k]) {
						t.Errorf("%d columns: %q and %q became %q and %q", width, all[i], all[k], got[i], got[k])
					}
				}
			}
		}
	}
	if got := shortenApart([]string{"hidden", "hidden, too"}, []int{0, 0}); got[0] != "" || got[1] != "" {
		t.Errorf("columns without room: %q", got)
	}
}
