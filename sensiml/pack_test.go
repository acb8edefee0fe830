package sensiml

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// TestGenerations: files of every generation load, with what each has.
func TestGenerations(t *testing.T) {
	t.Parallel()
	for _, w := range []struct {
		file                    string
		layout                  Layout
		models, slots, features int
		kind                    string
	}{
		{"real/nano33_2020-09_pme_model.json", LayoutNames, 1, 33, 33, "PME"},
		{"real/nano33_2020-10_pme_model.json", LayoutNames, 1, 17, 17, "PME"},
		{"real/nano33_2021-07_pme_profiled_model.json", LayoutFeatures, 1, 3, 3, "PME"},
		{"real/nicla_2021-11_tflm_model.json", LayoutPipeline, 1, 0, 54, "TensorFlow Lite for Microcontrollers"},
		{"real/xg24_2022_two_models_model.json", LayoutPipeline, 2, 20, 300, "TensorFlow Lite for Microcontrollers"},
		{"real/xg24_audio_tflm_export.json", LayoutPipeline, 1, 20, 300, "TensorFlow Lite for Microcontrollers"},
		{"real/xg24_imu_tree_ensemble_export.json", LayoutPipeline, 1, 42, 11, "Decision Tree Ensemble"},
		{"format/roc7_model.json", LayoutFeatures, 1, 7, 7, "PME"},
		{"format/dup_model.json", LayoutFeatures, 1, 4, 4, "PME"},
	} {
		p, err := OpenPack(material.Path(t, "raw", "sensiml", filepath.FromSlash(w.file)))
		if err != nil {
			t.Error(err)
			continue
		}
		m := p.Models[0]
		if len(p.Models) != w.models || m.Layout != w.layout || len(m.Features) != w.features || m.Type != w.kind || w.slots > 0 && m.BankSlots != w.slots {
			t.Errorf("%s: %d models, layout %s, %d slots, %d features, %s; want %+v", w.file, len(p.Models), m.Layout, m.BankSlots, len(m.Features), m.Type, w)
		}
		for _, f := range m.Features {
			if strings.HasPrefix(f.Name, "gen_") || strings.HasPrefix(f.Name, "_gen_") {
				t.Errorf("%s: feature %q has the number of its generator", w.file, f.Name)
			}
		}
	}
}

// TestLayoutOfExports: slots follow from what an export says of each generator's position and
// number of features.
func TestLayoutOfExports(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"xg24_imu_tree_ensemble_export.json", "xg24_audio_tflm_export.json"} {
		path := material.Path(t, "raw", "sensiml", "real", name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Features []struct {
				Generator string
				Cascade   int `json:"CascadeIndex"`
				True      int `json:"GeneratorTrueIndex"`
				Family    int `json:"GeneratorFamilyFeatures"`
			} `json:"feature_summary"`
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		family, function, banks := map[int]int{}, map[int]string{}, 0
		for _, f := range doc.Features {
			family[f.True], function[f.True], banks = f.Family, f.Generator, max(banks, f.Cascade+1)
		}
		p, err := OpenPack(path)
		if err != nil {
			t.Fatal(err)
		}
		m := p.Models[0]
		order := []int{}
		for k := range family {
			order = append(order, k)
		}
		slices.Sort(order)
		if len(order) != len(m.Generators) || m.Banks != banks {
			t.Fatalf("%s: %d generators in %d banks, want %d in %d", name, len(m.Generators), m.Banks, len(order), banks)
		}
		slot := 0
		for i, k := range order {
			g := m.Generators[i]
			if g.Slot != slot || g.Slots != family[k] || g.Function != function[k] {
				t.Errorf("%s: %s in slots %d+%d, want %s in %d+%d", name, g.Function, g.Slot, g.Slots, function[k], slot, family[k])
			}
			slot += family[k]
		}
	}
}

// TestSlots: numbers of features by name, columns and parameters; the names are the 81 that there
// are.
func TestSlots(t *testing.T) {
	t.Parallel()
	if len(rules) != 81 {
		t.Errorf("%d generators, want 81", len(rules))
	}
	for _, w := range []struct {
		name    string
		columns int
		params  []Param
		want    int // -1 for not known
	}{
		{"Mean", 1, nil, 1},
		{"Linear Regression Stats", 1, nil, 4},
		{"Total Energy", 3, nil, 1},
		{"Power Spectrum", 1, []Param{{"number_of_bins", "16"}}, 16},
		{"Power Spectrum", 3, nil, 48},
		{"MFCC", 1, []Param{{"sample_rate", "16000"}, {"cepstra_count", "20"}}, 20},
		{"MFCC", 1, nil, 23},
		{"Peak Frequencies", 1, nil, 2},
		{"Harmonic Product Spectrum", 1, nil, 102},
		{"Peak Harmonic Product Spectrum", 2, nil, 4},
		{"Histogram Auto Scale Range", 3, []Param{{"number_of_bins", "8"}}, 8},
		{"Downsample", 2, nil, 24},
		{"Downsample Max With Normaliztion", 1, []Param{{"new_length", "32"}}, 32},
		{"Transpose Signal", 2, []Param{{"cutoff", "5"}}, 10},
		{"Transpose Signal", 2, nil, -1},
		{"Interleave Signal", 3, []Param{{"cutoff", "10"}, {"delta", "3"}}, 9},
		{"Two Column Mean Difference", 2, nil, 1},
		{"MFCC", 1, []Param{{"cepstra_count", "-3"}}, -1},
		{"MFCC", 1, []Param{{"cepstra_count", "1e9"}}, -1},
		{"Somebody's own", 1, nil, -1},
	} {
		got, ok := Slots(w.name, w.columns, w.params)
		if !ok {
			got = -1
		}
		if got != w.want {
			t.Errorf("%s of %d columns with %v: %d slots, want %d", w.name, w.columns, w.params, got, w.want)
		}
	}
}

// TestPackShapes: descriptions in an object, indexes the wrong way round, numbers for names, null.
func TestPackShapes(t *testing.T) {
	t.Parallel()
	p, err := ReadPack(strings.NewReader(`{"NumModels": 2, "ModelIndexes": {"first": 0, "second": 1}, "ModelDescriptions": {
		"1": {"Name": 77, "ClassMaps": null, "ModelType": null, "FeatureNames": ["gen_0001_a", null]},
		"0": {"ClassMaps": {"1": 5, "x": "y", "0": "Unknown"}, "ModelType": "PME", "FeatureNames": []}}}`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := p.Find(0), p.Find(1)
	if a.Name != "first" || b.Name != "77" || b.Type != "" || len(b.Classes) != 0 || b.Features[0].Name != "a" || a.Class(1) != "5" || a.Class(0) != "Unknown" {
		t.Errorf("%+v\n%+v", a, b)
	}
	if len(p.Notes) == 0 {
		t.Error("no note on the indexes")
	}
	for _, bad := range []string{
		"", "[]", "{}", `{"ModelDescriptions": []}`, `{"ModelDescriptions": [{"Name": "a"`, `{"ModelDescriptions": 5}`,
		`{"ModelDescriptions": {"x": {}}}`, "\x00\x01", strings.Repeat(`{"ModelDescriptions":[`, 100_000),
	} {
		if p, err := ReadPack(strings.NewReader(bad)); err == nil {
			t.Errorf("%.40q: %+v", bad, p)
		}
	}
}

// TestLayoutByFigures: where firmwares differ, the figures say which it was; a figure that no
// generator explains takes the names away behind it.
func TestLayoutByFigures(t *testing.T) {
	t.Parallel()
	const file = `{"ModelDescriptions":[{"Name":"m","ModelType":"PME","FeatureFunctions":["Histogram","Mean"],"FeatureNames":["h","m"],
		"knowledgepack_summary":[{"type":"generatorset","name":"generator_set","set":[
		{"function_name":"Sum","inputs":{"columns":["X"]},"outputs":[0]},
		{"function_name":"Histogram","inputs":{"columns":["X"],"number_of_bins":2},"outputs":[0]},
		{"function_name":"Mean","inputs":{"columns":["X"]},"outputs":[0]},
		{"function_name":"Mean","inputs":{"columns":["Y"]},"outputs":[0]}]}]}]}`
	run := func(lines string) *ModelResult {
		p, err := ReadPack(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		c := NewCollector(p)
		var d Decoder
		d.Feed([]byte(lines), func(m *Message) bool { c.Add(m); return true })
		c.End()
		return &c.Result(Rules{}).Models[0]
	}
	slots := func(m *ModelResult) (out []int) {
		for _, f := range m.Features {
			s := -1
			if f.Slot != nil {
				s = *f.Slot
			}
			out = append(out, s)
		}
		return out
	}
	usual := run(`{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[5,70,0,6,7],"ClassifierCycles": 9}` + "\n")
	if got := slots(usual); !slices.Equal(got, []int{0, 1, 3, 4}) {
		t.Errorf("usual layout: %v", got)
	}
	none := run(`{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[5,6,7,0,0],"ClassifierCycles": 9}` + "\n")
	if got := slots(none); !slices.Equal(got, []int{0, -1, 1, 2}) || none.Features[1].State != NoSlot {
		t.Errorf("a histogram that emits nothing: %v", got)
	}
	other := run(`{"ModelNumber":0,"Type":"Cycles", "FeatureCycles":[5,6,7,8,9],"ClassifierCycles": 9}` + "\n")
	for _, f := range other.Features {
		if f.Slot != nil && *f.Slot >= 2 && !strings.HasPrefix(f.Name, "slot ") && f.State == Reported {
			t.Errorf("slot %d is called %s though the layout does not explain the figures", *f.Slot, f.Name)
		}
	}
}
