package study_test

import (
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/tools/chips/study"
)

// The bands of MVP hold nine of ten published figures of models that neither
// coefficients nor bands know.
func TestMVPBands(t *testing.T) {
	t.Parallel()
	set, err := chip.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tg, err := set.Find("efr32xg24-mvp")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := study.LoadMVP(material.Path(t), tg)
	if err != nil {
		t.Fatal(err)
	}
	held := study.MVPStudy(tables, tg)
	by := map[string][2]int{}
	for _, h := range held {
		for _, k := range []string{h.Kind, "all", h.Runtime + " " + h.Group} {
			n := by[k]
			n[1]++
			if h.Miss() <= h.Half {
				n[0]++
			}
			by[k] = n
		}
	}
	var keys []string
	for k := range by {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		t.Logf("%-34s %4d of %4d inside, %.1f %%", k, by[k][0], by[k][1], 100*float64(by[k][0])/float64(by[k][1]))
	}
	for _, k := range []string{"accelerator", "cpu", "latency", "op", "model"} {
		if share := float64(by[k][0]) / float64(by[k][1]); share < 0.85 || share > 0.97 {
			t.Errorf("%s: %.3f of %d inside", k, share, by[k][1])
		}
	}
	file := filepath.Join(material.Root(), "internal", "estimate", "chip", "chips", "efr32xg24-mvp.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if study.WriteMVP(string(text), held, tg) != string(text) {
		t.Errorf("%s differs from what the study gives now; run go generate ./tools/chips", file)
	}
}
