package gate

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	p, err := ParsePolicy([]byte(`
models:
  - model: models/kws.tflite
    targets: [host, "emulate:mps2-an505"]
    shapes: [image=1x3x8x8]
figures:
  - {figure: macs, margin: 1%}
  - {figure: file_bytes, margin: 0.5, floor: 4KiB, required: false}
  - {figure: latency_s, target: host, margin: 5%, floor: 50us}
  - {figure: macs, model: "big*", margin: 0.1}
  - {figure: inferences_per_s, floor: 2}
measure: {budget: 90s, processes: 7}
`), "gate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Models) != 1 || !slices.Equal(p.Models[0].Targets, []string{"host", "emulate:mps2-an505"}) || p.Models[0].Shapes[0] != "image=1x3x8x8" {
		t.Errorf("models %+v", p.Models)
	}
	if p.Budget != 90*time.Second || p.Processes != 7 || len(p.SHA256) != 64 {
		t.Errorf("%+v", p)
	}
	small, big := p.For("models/kws.tflite", "host"), p.For("models/big1.tflite", "stm32l4r5")
	if len(small) != 4 || small[0].Margin != 0.01 || small[1].Floor != 4096 || small[1].Required || small[2].Floor != 50e-6 || !small[2].Measured() || small[3].Better != Higher {
		t.Errorf("rules of the small model: %+v", small)
	}
	if len(big) != 3 || big[0].Margin != 0.1 || big[0].Better != Lower || big[2].Figure != "inferences_per_s" {
		t.Errorf("rules of the large model: %+v", big)
	}
	if big := p.For("x", "stm32l4r5"); slices.ContainsFunc(big, func(r Rule) bool { return r.Measured() }) {
		t.Error("an estimate is measured")
	}
	// JSON is YAML, too.
	if p, err := ParsePolicy([]byte(`{"figures": [{"figure": "macs", "margin": "2%"}]}`), "gate.json"); err != nil || p.Rules[0].Margin != 0.02 {
		t.Errorf("JSON: %+v, %v", p, err)
	}
	// Only a rule that names this computer asks to measure, whatever else the file has.
	rules := small
	for _, r := range append(rules, Default().For("x", Host)...) {
		if want := r.Figure == Latency && r.Target == Host; r.Asked() != want {
			t.Errorf("%+v: asks to measure", r)
		}
	}
	if len(Default().Rules) == 0 {
		t.Error("the built-in policy is empty")
	}
}

// Hints name the nearest keys, each once, also where a word is only a part of them.
func TestNearest(t *testing.T) {
	t.Parallel()
	for wrong, want := range map[string]string{
		"mac": " (did you mean macs?)", "flash": " (did you mean flash_bytes?)", "zzzzzzzzzz": "",
		"models/b": " (did you mean models/b.tflite?)",
	} {
		if got := Nearest(wrong, append(Keys(), "models/b.tflite", "models/b.tflite")); got != want {
			t.Errorf("%s: %q, want %q", wrong, got, want)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "p.yaml: is empty",
		"figures: [":                "p.yaml: is not YAML",
		"figurs: []":                "p.yaml:1: figurs: is not a key here; expected one of models, figures, measure; did you mean figures?",
		"figures: []":               "p.yaml:1: figures: is missing",
		"figures:\n- {figure: mac}": "p.yaml:2: figures[0].figure: is \"mac\", which is not a figure (did you mean macs?)",
		"figures:\n- {margin: 1%}":  "p.yaml:2: figures[0]: has no figure",
		"figures:\n- figure: macs\n  margin: lots":               "p.yaml:3: figures[0].margin: is \"lots\"; expected a part from 0% to 1000%",
		"figures:\n- figure: macs\n  margin: 10":                 "figures[0].margin: is \"10\"",
		"figures:\n- figure: macs\n  margin: -1%":                "figures[0].margin: is \"-1%\"",
		"figures:\n- figure: macs\n  margin: .nan":               "figures[0].margin: is \".nan\"",
		"figures:\n- figure: macs\n  floor: 1KiB":                "figures[0].floor: is \"1KiB\"; expected a number",
		"figures:\n- figure: latency_s\n  floor: fast":           "expected a time with its unit, such as 50us",
		"figures:\n- figure: latency_s\n  floor: 5":              "p.yaml:3: figures[0].floor: is \"5\"; expected a time with its unit, such as 50us",
		"figures:\n- figure: macs\n  model: m/**/*.onnx":         "p.yaml:3: figures[0].model: is \"m/**/*.onnx\": ** is not supported",
		"figures: [{figure: macs}]\nmodels:\n- model: m/**":      "p.yaml:3: models[0].model: is \"m/**\": ** is not supported",
		"figures:\n- figure: macs\n  better: up":                 "expected lower, higher or same",
		"figures:\n- figure: macs\n  required: 1":                "expected true or false",
		"figures:\n- figure: macs\n  figure: ops":                "appears twice",
		"figures:\n- figure: macs\n  model: '['":                 "which is not a pattern",
		"figures: {macs: 1%}":                                    "figures: expected a list",
		"figures: [{figure: macs}]\nmodels: [{targets: [host]}]": "models[0]: has no model",
		"figures: [{figure: macs}]\nmeasure: {budget: 0s}":       "measure.budget: is \"0s\"",
		"figures: [{figure: macs}]\nmeasure: {processes: 2}":     "expected 5 to 1000",
		"figures: [{figure: macs_per_s}]":                        "is not a figure",
		"- 1":                                                    "expected keys and values",
		strings.Repeat("#", maxPolicy+1):                         "a policy has at most",
	} {
		_, err := ParsePolicy([]byte(text), "p.yaml")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}
