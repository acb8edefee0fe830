package cortexm_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func BenchmarkCosts(b *testing.B) {
	set, err := chip.Load("")
	if err != nil {
		b.Fatal(err)
	}
	tg, err := set.Find("cortex-m33")
	if err != nil {
		b.Fatal(err)
	}
	m, err := modelfile.Open(material.Path(b, "models", "mcu", "mlperf_vww_96_int8.tflite"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := (cortexm.Model{}).Costs(m, m.Main(), tg, tg.Runtime(""), chip.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
