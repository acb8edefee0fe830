package cortexm_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/material"
	"github.com/opmeter/opmeter/internal/modelfile"
	"github.com/opmeter/opmeter/internal/target"
	"github.com/opmeter/opmeter/internal/target/cortexm"
)

func BenchmarkCosts(b *testing.B) {
	set, err := target.Load("")
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
		if _, err := (cortexm.Model{}).Costs(m, tg, tg.Runtime(""), target.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
