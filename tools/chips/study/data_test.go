package study_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/chip/fit"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/tools/chips/study"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	ms, skipped, err := study.Load(material.Path(t, "data", "mcu_measured.csv"), material.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	byGroup := map[fit.Group]int{}
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
