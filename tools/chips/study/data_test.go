package study_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/tools/chips/study"
)

// TestLoad counts what the tables give. The second has 224 rows, of which 168
// are used: 40 are of tools whose kernels have no model, 8 of hybrid networks, which the
// runtime does not take, and 8 of builds that are doubtful.
func TestLoad(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][3]int{
		"mcu_measured.csv":          {271, 0, 96},
		"mcu_measured_edgemark.csv": {70, 27, 71},
	} {
		ms, skipped, err := study.Load(material.Path(t, "data", file), material.Path(t))
		if err != nil {
			t.Fatal(err)
		}
		var got [3]int
		for _, m := range ms {
			got[study.TypeOf(m)]++
			if !(m.Cycles > 0) || m.Work[cortexm.Call] != 1 || m.Core == "" || m.Family == "" {
				t.Errorf("%s: %+v", file, m)
			}
		}
		if got != want {
			t.Errorf("%s: %v rows of int8, int16 and float, want %v; left out: %v", file, got, want, skipped)
		}
	}
}
