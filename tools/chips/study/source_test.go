package study

import (
	"testing"
)

func TestSource(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"MLPerf Tiny v0.7 results (mlcommons/tiny_results_v0.7) closed/renesas/results/EK-RA6M4/ad/energy":          "MLPerf Tiny v0.7 renesas",
		"STM32 AI model zoo (STMicroelectronics/stm32ai-modelzoo@7f3764d5) image_classification/mobilenetv1/README": "STMicroelectronics/stm32ai-modelzoo@7f3764d5",
		"Samsung/ONE issue 7598": "Samsung/ONE issue 7598",
	} {
		if got := source(in); got != want {
			t.Errorf("source(%q) = %q, want %q", in, got, want)
		}
	}
}
