package mcp

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/profile"
)

// modelArgs name a model and its shapes.
type modelArgs struct {
	Model  string            `json:"model" jsonschema:"model file (.tflite, .onnx, .gguf, .litertlm, .mltk.zip, or a .yaml description)"`
	Shapes map[string]string `json:"shapes,omitempty" jsonschema:"shapes by the name of the input, such as 1x3x224x224"`
	Batch  int               `json:"batch,omitempty" jsonschema:"batch size: first dimension of every input"`
}

// flags are the arguments of the program for a model.
func (m *modelArgs) flags(s *server) ([]string, error) {
	path, err := s.paths.read("model", m.Model, false)
	if err != nil {
		return nil, err
	}
	args := []string{path}
	for _, name := range slices.Sorted(maps.Keys(m.Shapes)) {
		if strings.ContainsRune(name+m.Shapes[name], 0) {
			return nil, fmt.Errorf("shapes: a name or shape has a zero byte")
		}
		args = append(args, "--shape="+name+"="+m.Shapes[name])
	}
	if m.Batch > 0 {
		args = append(args, "--batch="+strconv.Itoa(m.Batch))
	}
	return args, nil
}

type summaryArgs struct {
	modelArgs
	Save string `json:"save,omitempty" jsonschema:"name of a file to write below the folder of --write: .opmeter .html .json .csv .md .txt"`
}

type profileArgs struct {
	summaryArgs
	Seconds float64 `json:"seconds,omitempty" jsonschema:"duration of the measurement, default 2"`
	Threads int     `json:"threads,omitempty" jsonschema:"number of threads, default 1"`
	Engine  string  `json:"engine,omitempty" jsonschema:"engine that runs the model: opmeter (default), or one that is installed, such as onnxruntime, litert, openvino"`
}

type estimateArgs struct {
	summaryArgs
	Target string `json:"target" jsonschema:"id of a chip, such as stm32l4r5"`
}

// profileAnswer is a profile in short.
type profileAnswer struct {
	Profile  string            `json:"profile" jsonschema:"id for other tools"`
	Model    string            `json:"model"`
	Target   string            `json:"target"`
	Engine   string            `json:"engine,omitempty"`
	Cost     string            `json:"cost,omitempty" jsonschema:"key of the figure that orders layers"`
	Totals   map[string]figure `json:"totals" jsonschema:"figures of the whole model by key"`
	Left     int               `json:"figures_left,omitempty" jsonschema:"number of figures that are left out"`
	Findings []string          `json:"findings,omitempty"`
	Missing  []string          `json:"missing,omitempty" jsonschema:"what is incomplete, and why"`
	Problem  string            `json:"problem,omitempty" jsonschema:"error of a run that gave figures all the same"`
	Saved    string            `json:"saved,omitempty"`
	page[layerRow]
}

// firstRows is how many layers an answer lists unless asked for more.
const firstRows = 20

func summary(c *call, in *summaryArgs) (*profileAnswer, string, error) {
	args, err := in.flags(c.s)
	if err != nil {
		return nil, "", err
	}
	return c.made("index", in.Save, append([]string{"summary", "--open=false"}, args...))
}

// engineName is a name of an engine: paths of libraries are none.
var engineName = lazyregexp.New(`^[a-z][a-z0-9-]{0,39}$`)

func measure(c *call, in *profileArgs) (*profileAnswer, string, error) {
	args, err := in.flags(c.s)
	if err != nil {
		return nil, "", err
	}
	engine := in.Engine
	if engine == "" {
		engine = "opmeter"
	}
	if !engineName.MatchString(engine) {
		return nil, "", fmt.Errorf("engine %q: expected a name such as opmeter or onnxruntime", clip(engine))
	}
	args = append(args, "--engine="+engine)
	if args, err = measuring(c.s, args, in.Seconds, in.Threads); err != nil {
		return nil, "", err
	}
	return c.made("time", in.Save, append([]string{"profile", "--open=false"}, args...))
}

// measuring adds the flags of a measurement.
func measuring(s *server, args []string, secs float64, threads int) ([]string, error) {
	if secs > 0 {
		d := time.Duration(secs * float64(time.Second))
		if d >= s.o.Limit {
			return nil, fmt.Errorf("seconds %v: the time limit of a call is %v: measure for less time, or start opmeter mcp with --limit", secs, s.o.Limit)
		}
		args = append(args, "--time="+d.String())
	}
	if threads > 0 {
		args = append(args, "--threads="+strconv.Itoa(threads))
	}
	return args, nil
}

// targetID is the id of a target: files and devices are none.
var targetID = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,79}$`)

func checkTarget(id string) error {
	if !targetID.MatchString(id) || id == "host" {
		return fmt.Errorf("target %q: expected the id of a chip, such as stm32l4r5: fit lists them", clip(id))
	}
	return nil
}

func estimate(c *call, in *estimateArgs) (*profileAnswer, string, error) {
	if err := checkTarget(in.Target); err != nil {
		return nil, "", err
	}
	args, err := in.flags(c.s)
	if err != nil {
		return nil, "", err
	}
	return c.made("time", in.Save, append([]string{"profile", "--open=false", "--on=" + in.Target}, args...))
}

// made runs the program for one profile, and answers with it.
func (c *call) made(order, save string, args []string) (*profileAnswer, string, error) {
	if err := c.s.paths.checkSave(save); err != nil {
		return nil, "", err
	}
	dir, remove, err := c.s.folder()
	if err != nil {
		return nil, "", err
	}
	defer remove()
	args = append(args, "-o", filepath.Join(dir, "x"+profile.Extension))
	extra := ""
	if save != "" {
		extra = filepath.Join(dir, "save"+filepath.Ext(save))
		args = append(args, "-o", extra)
	}
	r, err := c.run(args...)
	if err != nil {
		return nil, "", err
	}
	if save != "" && r.problem == nil {
		if err := c.s.paths.save(extra, save); err != nil {
			return nil, "", err
		}
	}
	if extra != "" {
		_ = os.Remove(extra) // only the profile stays
	}
	ids, ps, err := c.s.made(dir)
	if err != nil {
		return nil, "", err
	}
	if len(ids) != 1 {
		return nil, "", r.failed()
	}
	a, err := answerOf(ids[0], ps[0], order, 0, firstRows)
	if err != nil {
		return nil, "", err
	}
	text := strings.Join(opening(r.out), "\n")
	if r.problem != nil {
		a.Problem = r.problem.Error()
		text += "\n" + a.Problem
	} else if a.Saved = save; save != "" {
		text += "\nsaved as " + save
	}
	return a, text + "\nprofile " + ids[0] + a.lines(), nil
}

// answerOf puts a profile in short.
func answerOf(id string, p *profile.Profile, order string, offset, limit int) (*profileAnswer, error) {
	rows, cost := layerRows(p, order)
	a := &profileAnswer{
		Profile: id, Model: clip(p.Model.Name), Target: clip(p.Target.ID), Engine: clip(p.Target.Engine), Cost: cost,
		Findings: findings(p, -1), Missing: missing(p),
	}
	a.Totals, a.Left = figures(p, p.Totals.Figure)
	var err error
	a.page, err = pageOf(rows, offset, limit, "layers", "call layers with profile "+id+" and offset")
	return a, err
}

// lines is the text of the rows.
func (a *profileAnswer) lines() string {
	var b strings.Builder
	for i := range a.Rows {
		fmt.Fprintf(&b, "\n%s%s", marker, a.Rows[i].text(a.Cost))
	}
	return b.String()
}

type importArgs struct {
	Path   string `json:"path" jsonschema:"file or folder that another tool wrote"`
	Model  string `json:"model,omitempty" jsonschema:"file of the model that was recorded"`
	Format string `json:"format,omitempty" jsonschema:"name of the format, if it is not detected"`
}

// imported is a profile of a record.
type imported struct {
	Profile string   `json:"profile" jsonschema:"id for other tools"`
	Model   string   `json:"model"`
	Target  string   `json:"target"`
	Engine  string   `json:"engine,omitempty"`
	Layers  int      `json:"layers"`
	Cost    string   `json:"cost,omitempty" jsonschema:"key of the figure"`
	Total   *figure  `json:"total,omitempty"`
	Missing []string `json:"missing,omitempty"`
}

type importAnswer struct {
	Problem string `json:"problem,omitempty" jsonschema:"error of a part of the record"`
	page[imported]
}

func importRecord(c *call, in *importArgs) (*importAnswer, string, error) {
	path, err := c.s.paths.read("path", in.Path, true)
	if err != nil {
		return nil, "", err
	}
	args := []string{"import", "--open=false", path}
	if in.Model != "" {
		model, err := c.s.paths.read("model", in.Model, false)
		if err != nil {
			return nil, "", err
		}
		args = append(args, "--model="+model)
	}
	if in.Format != "" {
		if !engineName.MatchString(in.Format) {
			return nil, "", fmt.Errorf("format %q: expected a name such as ort or chrome", clip(in.Format))
		}
		args = append(args, "--from="+in.Format)
	}
	dir, remove, err := c.s.folder()
	if err != nil {
		return nil, "", err
	}
	defer remove()
	r, err := c.run(append(args, "-o", filepath.Join(dir, "x"+profile.Extension))...)
	if err != nil {
		return nil, "", err
	}
	ids, ps, err := c.s.made(dir)
	if err != nil {
		return nil, "", err
	}
	if len(ids) == 0 {
		return nil, "", r.failed()
	}
	var rows []imported
	text := strings.Join(opening(r.out), "\n")
	for i, p := range ps {
		row := imported{Profile: ids[i], Model: clip(p.Model.Name), Target: clip(p.Target.ID), Engine: clip(p.Target.Engine), Layers: len(p.Layers), Missing: missing(p)}
		key, m := p.Cost()
		if f, ok := figureOf(m); ok {
			row.Cost, row.Total = key, &f
		}
		rows = append(rows, row)
		text += fmt.Sprintf("\n%sprofile %s: %s on %s, %d layers", marker, row.Profile, row.Model, row.Target, row.Layers)
	}
	a := &importAnswer{}
	if r.problem != nil {
		a.Problem = r.problem.Error()
		text += "\n" + a.Problem
	}
	a.page, err = pageOf(rows, 0, len(rows), "profiles", "their ids follow that of the last row")
	return a, text, err
}

type compareArgs struct {
	Files    []string `json:"files" jsonschema:"two to eight ids of profiles or files: saved profiles, records of other tools, models; the first is the base"`
	Quantity string   `json:"quantity,omitempty" jsonschema:"key of the figure to compare, such as macs or energy_j; default the latency"`
	Save     string   `json:"save,omitempty" jsonschema:"name of a file to write below the folder of --write: .html .json .csv .md .txt"`
	Offset   int      `json:"offset,omitempty" jsonschema:"number of rows to skip"`
	Limit    int      `json:"limit,omitempty" jsonschema:"largest number of rows, default 20"`
}

// versus is what an answer takes of the JSON of a comparison.
type versus struct {
	Quantity string `json:"quantity"`
	Unit     string `json:"unit"`
	Runs     []struct {
		Name   string            `json:"name"`
		Model  string            `json:"model"`
		Target string            `json:"target"`
		Engine string            `json:"engine"`
		Source string            `json:"source"`
		Total  *versusValue      `json:"total"`
		Ratio  *versusValue      `json:"ratio"`
		WhyNot map[string]string `json:"why_not"`
	} `json:"runs"`
	Groups []versusGroup `json:"groups"`
}

// versusGroup is an operator, or several that one run fuses.
type versusGroup struct {
	Op      string         `json:"op"`
	Count   int            `json:"operators"`
	Name    string         `json:"name"`
	Matches []versusMatch  `json:"matches"`
	Layers  [][]int64      `json:"layers"`
	Figures []*versusValue `json:"figures"`
	Ratios  []*versusValue `json:"ratios"`
}

// versusMatch says how the layers of a run differ from those of the first run.
type versusMatch struct {
	Kind    string `json:"kind"`
	Certain bool   `json:"certain"`
}

// row names a group as the tables of opmeter compare do.
func (g *versusGroup) row() comparedRow {
	op := clip(g.Op)
	if g.Count > 1 {
		op = fmt.Sprintf("%s +%d", op, g.Count-1)
	}
	row := comparedRow{Op: op, Name: clip(g.Name), Figures: g.Figures, Ratios: g.Ratios}
	for i, m := range g.Matches {
		if i == 0 {
			m = versusMatch{Certain: true} // the first run is what the others are compared with
		}
		row.Kinds = append(row.Kinds, m.Kind)
		row.Unsure = append(row.Unsure, !m.Certain && m.Kind != "inserted" && m.Kind != "removed")
	}
	return row
}

type versusValue struct {
	Value   *float64 `json:"value,omitempty"`
	Low     *float64 `json:"low,omitempty"`
	High    *float64 `json:"high,omitempty"`
	Verdict string   `json:"verdict,omitempty" jsonschema:"of a ratio, whether it differs by more than chance; open: undecided"`
}

// compared is a run of a comparison.
type compared struct {
	Name   string            `json:"name"`
	Model  string            `json:"model,omitempty"`
	Target string            `json:"target,omitempty"`
	Engine string            `json:"engine,omitempty"`
	Source string            `json:"source,omitempty" jsonschema:"measured, estimated, imported or counted"`
	Total  *versusValue      `json:"total,omitempty"`
	Ratio  *versusValue      `json:"ratio,omitempty" jsonschema:"to the first run"`
	WhyNot map[string]string `json:"why_not,omitempty" jsonschema:"by topic, such as time or memory, why the figures do not compare with the first run"`
}

// comparedRow is an operator, or several that one run fuses.
type comparedRow struct {
	Op      string         `json:"op" jsonschema:"operator; +2 means with two more layers"`
	Name    string         `json:"name,omitempty"`
	Kinds   []string       `json:"kinds,omitempty" jsonschema:"one for each run: how its layers differ from those of the first run, such as same, resized, inserted; empty for the first run"`
	Unsure  []bool         `json:"unsure,omitempty" jsonschema:"one for each run: it is not certain that its layers belong to those of the first run"`
	Figures []*versusValue `json:"figures" jsonschema:"one for each run, null if unknown"`
	Ratios  []*versusValue `json:"ratios"`
}

type compareAnswer struct {
	Quantity string     `json:"quantity" jsonschema:"key of the figures"`
	Unit     string     `json:"unit,omitempty"`
	Summary  []string   `json:"summary" jsonschema:"which run is faster, or why that is not decided"`
	Runs     []compared `json:"runs"`
	Saved    string     `json:"saved,omitempty"`
	page[comparedRow]
}

// mostRuns bounds the columns of a comparison.
const mostRuns = 12

func compare(c *call, in *compareArgs) (*compareAnswer, string, error) {
	if n := len(in.Files); n < 2 || n > 8 {
		return nil, "", fmt.Errorf("files: %d given, expected two to eight ids or files", n)
	}
	if err := c.s.paths.checkSave(in.Save); err != nil {
		return nil, "", err
	}
	dir, remove, err := c.s.folder()
	if err != nil {
		return nil, "", err
	}
	defer remove()
	out := filepath.Join(dir, "x.json")
	args := []string{"compare", "--sort=difference", "--all", "-o", out}
	extra := ""
	if in.Save != "" {
		extra = filepath.Join(dir, "save"+filepath.Ext(in.Save))
		args = append(args, "-o", extra)
	}
	if in.Quantity != "" {
		if !quantityKey.MatchString(in.Quantity) {
			return nil, "", fmt.Errorf("quantity %q: expected a key such as latency_s or macs", clip(in.Quantity))
		}
		args = append(args, "--quantity="+in.Quantity)
	}
	for i, f := range in.Files {
		if slices.Contains(in.Files[:i], f) {
			return nil, "", fmt.Errorf("files: %s is given twice, and would be compared with itself", clip(f))
		}
		path, err := c.s.file("files", f)
		if err != nil {
			return nil, "", err
		}
		args = append(args, path)
	}
	r, err := c.run(args...)
	if err != nil {
		return nil, "", err
	}
	b, err := os.ReadFile(out)
	if err != nil {
		return nil, "", r.failed()
	}
	var v versus
	if err := jsonx.Unmarshal(b, &v); err != nil {
		return nil, "", fmt.Errorf("result of compare: %w", err)
	}
	if len(v.Runs) > mostRuns {
		return nil, "", fmt.Errorf("files: %d runs in them, expected at most %d: import the records, and compare some of their profiles", len(v.Runs), mostRuns)
	}
	if in.Save != "" {
		if err := c.s.paths.save(extra, in.Save); err != nil {
			return nil, "", err
		}
	}
	a := &compareAnswer{Quantity: v.Quantity, Unit: v.Unit, Summary: opening(r.out), Saved: in.Save}
	for i, run := range v.Runs {
		x := compared{clip(run.Name), clip(run.Model), clip(run.Target), clip(run.Engine), run.Source, run.Total, run.Ratio, run.WhyNot}
		if i == 0 {
			x.Ratio = nil
		}
		a.Runs = append(a.Runs, x)
	}
	rows := make([]comparedRow, 0, len(v.Groups))
	for i := range v.Groups {
		rows = append(rows, v.Groups[i].row())
	}
	if a.page, err = pageOf(rows, in.Offset, orDefault(in.Limit), "rows", "call compare again with offset"); err != nil {
		return nil, "", err
	}
	text := strings.Join(a.Summary, "\n")
	if in.Save != "" {
		text += "\nsaved as " + in.Save
	}
	var names []string
	for _, run := range a.Runs {
		names = append(names, run.Name)
	}
	text += fmt.Sprintf("\n%s of %s:", a.Quantity, strings.Join(names, ", "))
	for i := range a.Rows {
		text += "\n" + marker + a.Rows[i].text(a.Unit)
	}
	return a, text, nil
}

// quantityKey is a key of a quantity.
var quantityKey = lazyregexp.New(`^[a-z][a-z0-9_]{0,79}$`)

func orDefault(limit int) int {
	if limit == 0 {
		return firstRows
	}
	return limit
}

// text is a line about a row.
func (r *comparedRow) text(unit string) string {
	list := make([]string, len(r.Figures))
	for i, f := range r.Figures {
		switch {
		case f == nil || f.Value == nil:
			list[i] = "unknown"
		case unit == "s":
			list[i] = seconds(*f.Value)
		default:
			list[i] = strings.TrimSpace(amount(*f.Value) + " " + unit)
		}
		switch {
		case i >= len(r.Kinds) || r.Kinds[i] == "":
		case r.Unsure[i]:
			list[i] += " (" + r.Kinds[i] + "?)"
		case r.Kinds[i] != "same":
			list[i] += " (" + r.Kinds[i] + ")"
		}
	}
	return fmt.Sprintf("%s: %s", strings.TrimSpace(r.Op+" "+r.Name), strings.Join(list, ", "))
}

type layersArgs struct {
	Profile string `json:"profile" jsonschema:"id of a profile, or a file .opmeter"`
	Sort    string `json:"sort,omitempty" jsonschema:"order: time (default), index, macs, params or weights_bytes"`
	Offset  int    `json:"offset,omitempty" jsonschema:"number of layers to skip"`
	Limit   int    `json:"limit,omitempty" jsonschema:"largest number of layers, default 20"`
}

// layersAnswer is a part of the layers.
type layersAnswer struct {
	Profile string `json:"profile"`
	Model   string `json:"model"`
	Cost    string `json:"cost,omitempty" jsonschema:"key of the figure that time sorts by"`
	page[layerRow]
}

// orders are the orders of layers.
var orders = []string{"time", "index", "macs", "params", "weights_bytes"}

func layers(c *call, in *layersArgs) (*layersAnswer, string, error) {
	order := in.Sort
	if order == "" {
		order = "time"
	}
	if !slices.Contains(orders, order) {
		return nil, "", fmt.Errorf("sort %q: expected %s", clip(order), strings.Join(orders, ", "))
	}
	p, err := c.s.profile(in.Profile)
	if err != nil {
		return nil, "", err
	}
	rows, cost := layerRows(p, order)
	a := &layersAnswer{Profile: in.Profile, Model: clip(p.Model.Name), Cost: cost}
	if a.page, err = pageOf(rows, in.Offset, orDefault(in.Limit), "layers", "call layers again with offset"); err != nil {
		return nil, "", err
	}
	text := fmt.Sprintf("%s, %d layers by %s", a.Model, len(rows), order)
	for i := range a.Rows {
		text += "\n" + marker + a.Rows[i].text(cost)
	}
	return a, text, nil
}
