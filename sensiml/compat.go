package sensiml

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/opmeter/opmeter/internal/base/jsontree"
)

func itoa(n int) string { return strconv.Itoa(n) }

func (c *cell) value() any {
	switch {
	case c.absent:
		return nil
	case c.quoted:
		return c.text
	}
	if n, err := strconv.ParseInt(c.text, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(c.text, 64)
	return f
}

// original does what the vendor's parser does with a stream, mistakes included: distinct generator
// names take the first slots of the array, lines with times are dropped where they are not JSON and
// doubled where they are, whatever is JSON counts as a run.
type original struct {
	models []*originalModel
	by     map[int]*originalModel
	runs   int
}

type originalModel struct {
	index                              int
	names                              []string
	cycles, times                      []pyNumbers
	meanCycles, meanTimes              []string
	kind                               string
	kindNull                           bool
	clfCycles, clfTimes                pyNumbers
	meanClassifierCycle, meanClassTime string
}

// newOriginal reads the descriptions as the vendor's parser does, and fails where it does.
func newOriginal(p *Pack) (*original, error) {
	o := &original{by: map[int]*originalModel{}}
	indexes, descriptions := p.doc.Get("ModelIndexes"), p.doc.Get("ModelDescriptions")
	if indexes == nil || indexes.Kind != jsontree.Object || descriptions == nil || descriptions.Kind != jsontree.List {
		return nil, fmt.Errorf("the vendor's parser does not read such a file: it needs ModelIndexes, and ModelDescriptions as a list; leave --compat out")
	}
	for key := range indexes.Members() {
		n, err := strconv.Atoi(key)
		if err != nil || n < 0 || n >= len(descriptions.Items) {
			return nil, fmt.Errorf("the vendor's parser does not read such a file: ModelIndexes has the key %q and not the number of a model; leave --compat out", clip(key))
		}
		d := descriptions.Items[n]
		functions := d.Get("FeatureFunctions")
		if functions == nil || !d.Has("ModelType") {
			return nil, fmt.Errorf("the vendor's parser does not read such a file: model %d has no FeatureFunctions, as files from before the middle of 2021; leave --compat out", n)
		}
		kind := d.Get("ModelType")
		m := &originalModel{index: n, kind: kind.Str(), kindNull: kind.Kind == jsontree.Null, meanClassifierCycle: "0"}
		seen := map[string]bool{}
		for _, f := range functions.List() {
			if name := f.Str(); !seen[name] {
				seen[name] = true
				m.names = append(m.names, name)
			}
		}
		m.cycles, m.times = make([]pyNumbers, len(m.names)), make([]pyNumbers, len(m.names))
		m.meanCycles, m.meanTimes = make([]string, len(m.names)), make([]string, len(m.names))
		if o.by[n] == nil {
			o.by[n] = m
			o.models = append(o.models, m)
		}
	}
	return o, nil
}

// line takes a line, with or without its end.
func (o *original) line(b []byte) {
	v, err := pyParse(b)
	if err != nil {
		return
	}
	message, ok := v.(map[string]pyValue)
	if !ok {
		return
	}
	index := big.NewInt(0)
	if n, ok := message["ModelNumber"]; ok {
		if index, ok = n.(*big.Int); !ok {
			return
		}
	}
	if !index.IsInt64() {
		return
	}
	m := o.by[int(index.Int64())]
	if m == nil {
		return
	}
	switch kind, _ := message["Type"].(string); kind {
	case "Cycles":
		ok = m.take(message, "FeatureCycles", "ClassifierCycles", m.cycles, m.meanCycles, &m.clfCycles, &m.meanClassifierCycle, pyRound)
	case "Times":
		ok = m.take(message, "FeatureTimes", "ClassifierTime", m.times, m.meanTimes, &m.clfTimes, &m.meanClassTime, pyTime)
	default:
		ok = true
	}
	if ok {
		o.runs++
	}
}

// take adds the figures of a message. Where it fails, what was added stays, as there.
func (m *originalModel) take(message map[string]pyValue, list, last string, sums []pyNumbers, means []string, clf *pyNumbers, clfMean *string, format func(float64) (string, bool)) bool {
	figures, _ := message[list].([]pyValue)
	for i := range m.names {
		if i >= len(figures) {
			return false
		}
		sums[i].add(figures[i])
		mean, ok := sums[i].mean()
		if !ok {
			return false
		}
		if means[i], ok = format(mean); !ok {
			return false
		}
		v, ok := message[last]
		if !ok {
			return false
		}
		clf.add(v)
	}
	mean, ok := clf.mean()
	if !ok {
		return false
	}
	*clfMean, ok = format(mean)
	return ok
}

// metrics is the result until now.
func (o *original) metrics() *metrics {
	out := &metrics{runs: o.runs}
	number := func(s string) cell {
		if s == "" {
			s = "0"
		}
		return cell{text: s}
	}
	seconds := func(s string) cell { return cell{text: s, quoted: true} }
	either := func(s string) cell {
		if s == "" {
			return number(s)
		}
		return seconds(s)
	}
	for _, m := range o.models {
		var times, cycles table
		for i, name := range m.names {
			t, c := either(m.meanTimes[i]), number(m.meanCycles[i])
			t.name, c.name = name, name
			times, cycles = append(times, t), append(cycles, c)
		}
		t, c := either(m.meanClassTime), number(m.meanClassifierCycle)
		t.name, c.name, t.null, c.null = m.kind, m.kind, m.kindNull, m.kindNull
		out.featureTime, out.featureCycles = append(out.featureTime, times), append(out.featureCycles, cycles)
		out.classifierTime, out.classifierCycles = append(out.classifierTime, table{t}), append(out.classifierCycles, table{c})
	}
	return out
}
