package sensiml

import (
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
)

// The keys of the results of the vendor's parser, in its order.
const (
	keyFeatureTime     = "FeatureTimePerInference"
	keyFeatureCycles   = "FeatureCyclesPerInference"
	keyClassifierTime  = "ClassifierAverageTime"
	keyClassifierCycle = "ClassifierAverageCycles"
	keyRuns            = "RunCount"
)

// cell is a name and its figure. text is a number as it is written, or seconds in quotes.
type cell struct {
	name   string
	null   bool // the name is null
	text   string
	quoted bool // seconds are texts
	absent bool // no figure
}

// table is the figures of one model by name.
type table []cell

// metrics is the result in the shape of the vendor's parser.
type metrics struct {
	featureTime, featureCycles, classifierTime, classifierCycles []table
	runs                                                         int
}

func (m *metrics) lists() map[string][]table {
	return map[string][]table{keyFeatureTime: m.featureTime, keyFeatureCycles: m.featureCycles, keyClassifierTime: m.classifierTime, keyClassifierCycle: m.classifierCycles}
}

var metricKeys = []string{keyFeatureTime, keyFeatureCycles, keyClassifierTime, keyClassifierCycle}

// json is the text that json.dumps makes: a space after commas and colons, on one line.
func (m *metrics) json() []byte {
	if m == nil {
		return []byte("{}")
	}
	var b strings.Builder
	b.WriteByte('{')
	lists := m.lists()
	for _, key := range metricKeys {
		b.WriteString(pyJSONText(key) + ": [")
		for i, t := range lists[key] {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteByte('{')
			for k, c := range t {
				if k > 0 {
					b.WriteString(", ")
				}
				name := pyJSONText(c.name)
				if c.null {
					name = `"null"`
				}
				b.WriteString(name + ": " + c.json())
			}
			b.WriteByte('}')
		}
		b.WriteString("], ")
	}
	b.WriteString(pyJSONText(keyRuns) + ": " + itoa(m.runs) + "}")
	return []byte(b.String())
}

func (c *cell) json() string {
	switch {
	case c.absent:
		return "null"
	case c.quoted:
		return pyJSONText(c.text)
	}
	return c.text
}

// yaml is the text that yaml.dump makes: keys sorted, a list item a model.
func (m *metrics) yaml() []byte {
	if m == nil {
		return []byte("{}\n")
	}
	var b strings.Builder
	lists := m.lists()
	for _, key := range slices.Sorted(slices.Values(metricKeys)) {
		b.WriteString(key + ":")
		if len(lists[key]) == 0 {
			b.WriteString(" []")
		}
		b.WriteByte('\n')
		for _, t := range lists[key] {
			if len(t) == 0 {
				b.WriteString("- {}\n")
			}
			t = slices.Clone(t)
			// Python cannot compare null with names and leaves them as they are.
			if !slices.ContainsFunc(t, func(c cell) bool { return c.null }) {
				sorting.Stable(t, func(a, b cell) int { return strings.Compare(a.name, b.name) })
			}
			for i, c := range t {
				lead := "  "
				if i == 0 {
					lead = "- "
				}
				name := yamlText(c.name)
				if c.null {
					name = "null"
				}
				value := c.text
				switch {
				case c.absent:
					value = "null"
				case c.quoted:
					value = yamlText(c.text)
				}
				// A name that PyYAML does not take for a simple key.
				if len(c.name) > 122 || c.name == "" && !c.null || strings.Contains(c.name, "\n") {
					b.WriteString(lead + "? " + name + "\n  : " + value + "\n")
					continue
				}
				b.WriteString(lead + name + ": " + value + "\n")
			}
		}
	}
	b.WriteString(keyRuns + ": " + itoa(m.runs) + "\n")
	return []byte(b.String())
}

// values is the result as Go values: numbers are int64 or float64, seconds texts, nil for no
// figure.
func (m *metrics) values() map[string]any {
	out := map[string]any{}
	if m == nil {
		return out
	}
	for key, list := range m.lists() {
		models := make([]map[string]any, 0, len(list))
		for _, t := range list {
			x := map[string]any{}
			for i := range t {
				x[t[i].name] = t[i].value()
			}
			models = append(models, x)
		}
		out[key] = models
	}
	out[keyRuns] = int64(m.runs)
	return out
}
