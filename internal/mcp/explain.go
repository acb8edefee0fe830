package mcp

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/profile"
)

type explainArgs struct {
	Profile string `json:"profile" jsonschema:"id of a profile, or a file .opmeter"`
	Layer   int64  `json:"layer" jsonschema:"index of the layer, from 0"`
}

// operand is an input or output of a layer.
type operand struct {
	Name     string  `json:"name,omitempty"`
	DType    string  `json:"dtype,omitempty"`
	Shape    []int64 `json:"shape,omitempty" jsonschema:"absent for scalars and unknown shapes"`
	Constant bool    `json:"constant,omitempty"`
}

type explainAnswer struct {
	Profile   string            `json:"profile"`
	Layer     int64             `json:"layer"`
	Of        int               `json:"of" jsonschema:"number of layers of the model"`
	Op        string            `json:"op"`
	Name      string            `json:"name,omitempty"`
	Scope     string            `json:"scope,omitempty"`
	State     string            `json:"state"`
	Cause     string            `json:"cause,omitempty" jsonschema:"why the layer did not run or has no figure"`
	FusedInto *int64            `json:"fused_into,omitempty"`
	Kernel    string            `json:"kernel,omitempty"`
	Placement string            `json:"placement,omitempty"`
	Bound     string            `json:"bound,omitempty" jsonschema:"what limits the layer: compute, memory, overhead"`
	Use       *float64          `json:"use,omitempty" jsonschema:"least possible time as a part of the time taken"`
	Share     *float64          `json:"share,omitempty" jsonschema:"part of the time of all layers"`
	Rank      []int64           `json:"rank,omitempty" jsonschema:"first and last place by time, from 1"`
	Options   map[string]string `json:"options,omitempty"`
	Inputs    []operand         `json:"inputs,omitempty"`
	Outputs   []operand         `json:"outputs,omitempty"`
	Figures   map[string]figure `json:"figures" jsonschema:"all figures of the layer by key"`
	Left      int               `json:"figures_left,omitempty" jsonschema:"number of figures that are left out"`
	Findings  []string          `json:"findings,omitempty"`
}

// mostOperands bounds the operands and options of an answer.
const mostOperands = 16

func explain(c *call, in *explainArgs) (*explainAnswer, string, error) {
	p, err := c.s.profile(in.Profile)
	if err != nil {
		return nil, "", err
	}
	if in.Layer < 0 || in.Layer >= int64(len(p.Layers)) {
		return nil, "", fmt.Errorf("layer %d: the profile has %d layers, from 0: layers lists them", in.Layer, len(p.Layers))
	}
	l := &p.Layers[in.Layer]
	a := &explainAnswer{
		Profile: in.Profile, Layer: in.Layer, Of: len(p.Layers), Op: clip(l.Op), Name: clip(l.Name), Scope: clip(l.Scope),
		State: string(l.State), FusedInto: l.FusedInto, Kernel: clip(l.Kernel), Share: l.Share,
		Inputs: operands(l.Inputs), Outputs: operands(l.Outputs), Findings: findings(p, in.Layer),
	}
	if l.Cause != nil {
		a.Cause = clip(string(l.Cause.Code) + ": " + agentWords(l.Cause.Text))
	}
	if l.Placement != nil {
		a.Placement = clip(l.Placement.On)
	}
	if l.Roof != nil {
		a.Bound, a.Use = string(l.Roof.Bound), l.Roof.Use
	}
	if l.Rank != nil {
		a.Rank = l.Rank[:]
	}
	for i, o := range l.Options {
		if i == mostOperands {
			break
		}
		if a.Options == nil {
			a.Options = map[string]string{}
		}
		a.Options[clipTo(o.Key, maxClip/2)] = clipTo(o.Value, maxClip/2)
	}
	a.Figures, a.Left = figures(p, l.Figure)
	cost, _ := p.Cost()
	return a, a.text(cost), nil
}

// operands lists the first tensors.
func operands(ts []profile.Tensor) (list []operand) {
	for i, t := range ts {
		if i == mostOperands {
			break
		}
		list = append(list, operand{clipTo(t.Name, maxClip/2), clip(t.DType), t.Shape[:min(len(t.Shape), mostOperands)], t.Constant})
	}
	return list
}

// text describes the layer in sentences.
func (a *explainAnswer) text(cost string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "Layer #%d of %d is %s", a.Layer, a.Of, a.Op)
	if a.Name != "" {
		fmt.Fprintf(&s, " %q", a.Name)
	}
	s.WriteString(".")
	if f, ok := a.Figures[cost]; ok {
		if strings.HasSuffix(cost, "_s") {
			fmt.Fprintf(&s, " It takes %s (%s)", seconds(f.Value), f.Kind)
		} else {
			fmt.Fprintf(&s, " It takes %s %s (%s)", amount(f.Value), cost, f.Kind)
		}
		if a.Share != nil {
			fmt.Fprintf(&s, ", %.1f %% of the time of all layers", 100**a.Share)
		}
		s.WriteString(".")
	}
	if len(a.Rank) == 2 && a.Rank[0] == a.Rank[1] {
		fmt.Fprintf(&s, " By time it is number %d.", a.Rank[0])
	} else if len(a.Rank) == 2 {
		fmt.Fprintf(&s, " By time it is between number %d and %d.", a.Rank[0], a.Rank[1])
	}
	if a.Bound != "" {
		fmt.Fprintf(&s, " Its bottleneck is %s", a.Bound)
		if a.Use != nil {
			fmt.Fprintf(&s, ", it runs at %.0f %% of the limit", 100**a.Use)
		}
		s.WriteString(".")
	}
	if a.State != string(profile.Ran) {
		fmt.Fprintf(&s, " State: %s", a.State)
		if a.FusedInto != nil {
			fmt.Fprintf(&s, " into layer #%d", *a.FusedInto)
		}
		s.WriteString(".")
		if a.Cause != "" {
			s.WriteString(" " + a.Cause)
		}
	}
	for _, x := range []struct {
		what string
		list []operand
	}{{"Inputs", a.Inputs}, {"Outputs", a.Outputs}} {
		var list []string
		for _, o := range x.list {
			text := o.DType + " " + profile.ShapeText(o.Shape)
			if o.Constant {
				text += " (constant)"
			}
			list = append(list, strings.TrimSpace(text))
		}
		if list != nil {
			fmt.Fprintf(&s, "\n%s: %s.", x.what, strings.Join(list, ", "))
		}
	}
	if f, ok := a.Figures["macs"]; ok {
		fmt.Fprintf(&s, "\nWork: %s MACs.", amount(f.Value))
	}
	if a.Kernel != "" {
		fmt.Fprintf(&s, "\nKernel: %s.", a.Kernel)
	}
	for _, f := range a.Findings {
		s.WriteString("\n" + f)
	}
	return s.String()
}

type fitArgs struct {
	modelArgs
	Latency float64 `json:"latency_s,omitempty" jsonschema:"maximum latency in seconds"`
	RAM     int64   `json:"ram_bytes,omitempty" jsonschema:"maximum working memory in bytes"`
	Flash   int64   `json:"flash_bytes,omitempty" jsonschema:"maximum storage of model and program code in bytes"`
	Offset  int     `json:"offset,omitempty" jsonschema:"number of targets to skip"`
}

// fitRow is a target.
type fitRow struct {
	Target  string             `json:"target" jsonschema:"id, the argument target of estimate"`
	Fits    string             `json:"fits" jsonschema:"yes, perhaps, no, or ? if the memory of the target is unknown"`
	Figures map[string]float64 `json:"figures" jsonschema:"latency_s with its band latency_low_s to latency_high_s, ram_bytes, flash_bytes, energy_j; unknown ones are absent"`
	Note    string             `json:"note,omitempty"`
}

type fitAnswer struct {
	Fit int `json:"fit" jsonschema:"number of targets that fit for sure"`
	Of  int `json:"of" jsonschema:"number of targets"`
	page[fitRow]
}

// fitKeys are the columns of figures.
var fitKeys = []string{"latency_s", "latency_low_s", "latency_high_s", "ram_bytes", "flash_bytes", "energy_j"}

func fit(c *call, in *fitArgs) (*fitAnswer, string, error) {
	args, err := in.flags(c.s)
	if err != nil {
		return nil, "", err
	}
	args = append([]string{"fit", "--format=csv"}, args...)
	if in.Latency > 0 {
		args = append(args, "--latency="+time.Duration(in.Latency*float64(time.Second)).String())
	}
	if in.RAM > 0 {
		args = append(args, fmt.Sprintf("--ram=%dB", in.RAM))
	}
	if in.Flash > 0 {
		args = append(args, fmt.Sprintf("--flash=%dB", in.Flash))
	}
	r, err := c.run(args...)
	if err != nil {
		return nil, "", err
	}
	table, err := csv.NewReader(strings.NewReader(r.out)).ReadAll()
	if err != nil || len(table) < 2 {
		return nil, "", r.failed()
	}
	var rows []fitRow
	a := &fitAnswer{Of: len(table) - 1}
	for _, line := range table[1:] {
		row := fitRow{Figures: map[string]float64{}}
		for i, head := range table[0] {
			switch v := line[i]; {
			case head == "target":
				row.Target = v
			case head == "fits":
				row.Fits = v
			case head == "note":
				row.Note = clipTo(agentWords(v), 240)
			case slices.Contains(fitKeys, head):
				if f, err := strconv.ParseFloat(v, 64); err == nil && finite(f) {
					row.Figures[head] = f
				}
			}
		}
		if row.Fits == "yes" {
			a.Fit++
		}
		rows = append(rows, row)
	}
	if a.page, err = pageOf(rows, in.Offset, firstRows, "targets", "call fit again with offset"); err != nil {
		return nil, "", err
	}
	text := fmt.Sprintf("%d of %d targets fit for sure.", a.Fit, a.Of)
	for _, row := range a.Rows {
		text += fmt.Sprintf("\n%s%s: %s", marker, row.Target, row.Fits)
		if v, ok := row.Figures["latency_s"]; ok {
			text += ", " + seconds(v)
		}
		if row.Note != "" {
			text += "; " + row.Note
		}
	}
	return a, text, nil
}

type adviseArgs struct {
	modelArgs
	Target  string  `json:"target,omitempty" jsonschema:"id of a chip to estimate for; default this computer"`
	Seconds float64 `json:"seconds,omitempty" jsonschema:"duration of the measurement, default 2"`
	Threads int     `json:"threads,omitempty" jsonschema:"number of threads, default 1"`
	Offset  int     `json:"offset,omitempty" jsonschema:"number of pieces of advice to skip"`
}

// advice is a piece of advice, as the program writes it.
type advice struct {
	Rule   string  `json:"rule"`
	Title  string  `json:"title"`
	Reason string  `json:"reason"`
	Layers []int64 `json:"layers,omitempty"`
	Gain   struct {
		Quantity string     `json:"quantity"`
		Before   float64    `json:"before"`
		Ratio    float64    `json:"ratio" jsonschema:"expected value divided by the value before"`
		Band     [2]float64 `json:"band" jsonschema:"interval of the ratio"`
	} `json:"gain"`
	Try    string `json:"try" jsonschema:"command for a terminal that tries it"`
	Caveat string `json:"caveat,omitempty"`
}

type adviseAnswer struct {
	Model  string `json:"model"`
	Target string `json:"target"`
	Silent int    `json:"silent" jsonschema:"number of rules that found nothing"`
	page[advice]
}

func advise(c *call, in *adviseArgs) (*adviseAnswer, string, error) {
	var args []string
	if isID(in.Model) || strings.HasSuffix(strings.ToLower(in.Model), profile.Extension) {
		path, err := c.s.file("model", in.Model)
		if err != nil {
			return nil, "", err
		}
		if in.Target != "" || in.Seconds > 0 || in.Threads > 0 || in.Batch > 0 || len(in.Shapes) > 0 {
			return nil, "", fmt.Errorf("model %q: a profile has its own target, seconds, threads, batch and shapes: leave them out", clip(in.Model))
		}
		args = []string{path}
	} else {
		var err error
		if args, err = in.flags(c.s); err != nil {
			return nil, "", err
		}
	}
	if in.Target != "" {
		if err := checkTarget(in.Target); err != nil {
			return nil, "", err
		}
		args = append(args, "--on="+in.Target)
	}
	args, err := measuring(c.s, args, in.Seconds, in.Threads)
	if err != nil {
		return nil, "", err
	}
	r, err := c.run(append([]string{"advise", "--format=json"}, args...)...)
	if err != nil {
		return nil, "", err
	}
	var v struct {
		Model  string     `json:"model"`
		Target string     `json:"target"`
		Advice []advice   `json:"advice"`
		Silent []struct{} `json:"silent"`
	}
	if err := jsonx.Unmarshal([]byte(r.out), &v); err != nil {
		return nil, "", r.failed()
	}
	text := fmt.Sprintf("%d pieces of advice for %s on %s; %d rules found nothing.", len(v.Advice), clip(v.Model), clip(v.Target), len(v.Silent))
	for i := range v.Advice {
		x := &v.Advice[i]
		x.Title, x.Reason, x.Caveat, x.Try = clip(x.Title), clipTo(agentWords(x.Reason), 600), clipTo(agentWords(x.Caveat), 400), clipTo(x.Try, 400)
		x.Layers = x.Layers[:min(len(x.Layers), mostOperands)]
	}
	a := &adviseAnswer{Model: clip(v.Model), Target: clip(v.Target), Silent: len(v.Silent)}
	if a.page, err = pageOf(v.Advice, in.Offset, firstRows, "pieces of advice", "call advise again with offset"); err != nil {
		return nil, "", err
	}
	for _, x := range a.Rows {
		text += fmt.Sprintf("\n%s%s: %s (%s × %.2f, %.2f to %.2f)", marker, x.Title, x.Reason, x.Gain.Quantity, x.Gain.Ratio, x.Gain.Band[0], x.Gain.Band[1])
	}
	return a, text, nil
}
