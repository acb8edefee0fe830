package stages

import (
	"path"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// Layout represents a pipeline as layers: each stage followed by its nested stages.
type Layout struct {
	Layers []profile.Layer
	// Nodes has the node of each layer, At the layer of each node.
	Nodes []int
	At    map[int]int
	// Models names the model of each layer, "" for none, Sums has their SHA-256.
	Models, Sums []string
}

// Layout lists the stages of a pipeline that are known so far.
func (c *Collector) Layout(pipeline int) *Layout {
	within := map[int][]int{}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Pipeline == pipeline {
			within[n.Parent] = append(within[n.Parent], i)
		}
	}
	l := &Layout{At: map[int]int{}, Layers: []profile.Layer{}}
	var add func(node, parent int, path string)
	add = func(node, parent int, path string) {
		n := &c.Nodes[node]
		x := profile.Layer{Index: int64(len(l.Layers)), Op: n.Name, Name: path + n.Name, State: profile.Ran}
		if x.Op == "" {
			x.Op = "unnamed"
		}
		if parent >= 0 {
			x.Parent = new(int64(parent))
		}
		file, sum := c.Model(n.Name)
		if file != "" {
			x.Options = []profile.Option{{Key: "model", Value: file}}
			if sum != "" {
				x.Options = append(x.Options, profile.Option{Key: "model_sha256", Value: sum})
			}
		}
		at := len(l.Layers)
		l.At[node] = at
		l.Layers, l.Nodes = append(l.Layers, x), append(l.Nodes, node)
		l.Models, l.Sums = append(l.Models, file), append(l.Sums, sum)
		for _, k := range within[node] {
			add(k, at, x.Name+"/")
		}
	}
	for _, k := range within[-1] {
		add(k, -1, "")
	}
	return l
}

// Attach gives the stage that runs a model its operation counts and weights from the model's
// description, and the profile its identity. It reports whether there is such a stage: the one
// that runs a model of this file or hash according to the application, or the only one that runs
// any.
func (l *Layout) Attach(p, model *profile.Profile) bool {
	at, any := -1, -1
	several := false
	for i, file := range l.Models {
		if file == "" {
			continue
		}
		several = several || any >= 0
		any = i
		same := l.Sums[i] != "" && strings.EqualFold(l.Sums[i], model.Model.SHA256)
		base := strings.TrimSuffix(path.Base(strings.ReplaceAll(file, `\`, "/")), path.Ext(file))
		if same || l.Sums[i] == "" && at < 0 && base == model.Model.Name {
			at = i
		}
	}
	if at < 0 && any >= 0 && !several && l.Sums[any] == "" {
		at = any
	}
	if at < 0 {
		return false
	}
	x, t := &p.Layers[at], &model.Totals
	x.Ops, x.MACs, x.Params, x.WeightsBytes = t.Ops, t.MACs, t.Params, t.WeightsBytes
	x.Inputs, x.Outputs = model.Model.Inputs, model.Model.Outputs
	p.Totals.Ops, p.Totals.MACs, p.Totals.Params, p.Totals.WeightsBytes = t.Ops, t.MACs, t.Params, t.WeightsBytes
	format := p.Model.Format
	p.Model = model.Model
	if format != "" {
		p.Settings.Libraries = map[string]string{"record": format}
	}
	return true
}

// Quantity describes a figure that an application counts. Suffixes of its name such as _bytes and
// _s determine the unit.
func Quantity(name string, adds bool) (q profile.Quantity, ok bool) {
	q = profile.Quantity{Key: "marked_" + key(name), Name: name, Group: "Application", Adds: adds, Doc: "A figure that the application counts in its stages."}
	switch {
	case strings.HasSuffix(q.Key, "_bytes") || q.Key == "marked_bytes":
		q.Unit, q.Whole = "B", adds
	case strings.HasSuffix(q.Key, "_s") || strings.HasSuffix(q.Key, "_seconds"):
		q.Unit = "s"
	}
	return q, q.Key != "marked_"
}

// key converts a text to a key: lower-case letters and digits, everything else becomes an
// underscore.
func key(text string) string {
	s := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(text)), "_")
	for strings.Contains(s, "__") {
		s = strings.ReplaceAll(s, "__", "_")
	}
	return strings.TrimRight(s[:min(len(s), 60)], "_")
}

// Unmarked describes the time of a frame in which none of its stages ran.
var Unmarked = profile.Quantity{
	Key: "unmarked_s", Unit: "s", Head: "unmarked", Name: "Time between stages", Group: "Application", Better: -1, Model: true,
	Doc: "Time of a frame in which none of its stages ran, on whatever thread.",
}

// Rate describes the number of frames per second.
var Rate = profile.Quantity{
	Key: "frames_per_s", Unit: "/s", Head: "frames/s", Name: "Frames per second", Group: "Application", Better: 1, Model: true,
	Doc: "Frames that ended, divided by the time from the beginning of the first to the end of the last; time without a process left out.",
}
