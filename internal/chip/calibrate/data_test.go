package calibrate_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/chip/calibrate"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	ms, skipped, err := calibrate.Load(material.Path(t, "data", "mcu_measured.csv"), material.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	byGroup := map[calibrate.Group]int{}
	for _, m := range ms {
		byGroup[m.Group()]++
	}
	t.Log(len(ms), skipped)
	for g, n := range byGroup {
		t.Log(g, n)
	}
	if len(ms) < 250 {
		t.Errorf("%d measurements", len(ms))
	}
}
