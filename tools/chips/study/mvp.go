package study

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/fit"
	"github.com/opmeter/opmeter/internal/estimate/mvp"
	"github.com/opmeter/opmeter/internal/model/modelfile"
)

// MVPTable is a published table of layers measured on a device with MVP.
type MVPTable struct {
	ID, Model, Runtime string
	Clock, Seconds     float64
	layers             []mvpLayer
}

type mvpLayer struct {
	*mvp.Terms
	accelerator, cpu, seconds float64 // as published, 0 for none
}

// mvpRuntimes names the runtime of each set of kernels in the published tables.
var mvpRuntimes = map[string]string{"baseline": "tflm-mvp-baseline", "speed_opt": "tflm-mvp"}

// shortest published time that counts, in seconds: tables print tenths of
// milliseconds.
const shortest = 0.0009

// LoadMVP reads the tables below root whose model file is there. The table of
// release 0.6 with depthwise layers is left out: these took three times as long as
// accelerator and processor were busy, in that release only.
func LoadMVP(root string, t *chip.Target) ([]*MVPTable, error) {
	heads, err := fit.OpenTable(filepath.Join(root, "data", "mltk_golden.csv"))
	if err != nil {
		return nil, err
	}
	rows, err := fit.OpenTable(filepath.Join(root, "data", "mltk_golden_layers.csv"))
	if err != nil {
		return nil, err
	}
	byTable := map[string][]map[string]string{}
	for _, r := range rows.Rows {
		byTable[r["table_id"]] = append(byTable[r["table_id"]], r)
	}
	var out []*MVPTable
	for _, h := range heads.Rows {
		rt := t.Runtime(mvpRuntimes[h["conv_kernel"]])
		if h["mode"] != "device" || h["accelerator"] != "mvp" || h["tflite_match"] == "" || rt == nil || h["first_version"] == "0.6.0" && slow06(byTable[h["table_id"]]) {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(root, "models", "mltk", "*__"+h["tflite_sha1_8"]+".tflite"))
		if len(files) == 0 {
			continue
		}
		m, err := modelfile.Open(files[0])
		if err != nil {
			return nil, err
		}
		terms, err := mvp.Layers(m, rt)
		if m.Close != nil {
			m.Close() //nolint:errcheck // only read
		}
		if err != nil {
			return nil, err
		}
		x := &MVPTable{ID: h["table_id"], Model: h["model"], Runtime: rt.Name, Clock: value(h["clock_hz"]), Seconds: value(h["latency_s"])}
		for i, r := range byTable[x.ID] {
			if i < len(terms) && terms[i] != nil {
				x.layers = append(x.layers, mvpLayer{terms[i], value(r["acc_cycles"]), value(r["cpu_cycles"]), value(r["time_s"])})
			}
		}
		out = append(out, x)
	}
	return out, nil
}

func slow06(rows []map[string]string) bool {
	for _, r := range rows {
		if r["opcode"] == "depthwise_conv_2d" {
			return true
		}
	}
	return false
}

func value(s string) float64 {
	v, _ := strconv.ParseFloat(s, 64)
	return v
}

// MVPHeld is a published figure of a model that was left out, with its estimate by
// coefficients that were fitted to the other models.
type MVPHeld struct {
	// Kind is "accelerator", "cpu", "latency" or "model"; Group that of the file.
	Kind, Group, Model, Runtime string
	Published, Predicted        float64
	// Half is the half-width of a band made from the other models.
	Half float64
}

// Miss is the distance of published and predicted in logarithms.
func (h *MVPHeld) Miss() float64 { return math.Abs(math.Log(h.Published / h.Predicted)) }

// MVPStudy leaves one model out at a time, in all its tables, fits the
// coefficients of each group to the others, and estimates what was left out. It
// starts from the coefficients of the file; what the others do not tell stays.
func MVPStudy(tables []*MVPTable, t *chip.Target) []*MVPHeld {
	var out []*MVPHeld
	for _, rt := range slices.Sorted(maps.Keys(invert(mvpRuntimes))) {
		start := t.Runtime(rt)
		if start == nil {
			continue
		}
		models := map[string][]*MVPTable{}
		for _, x := range tables {
			if x.Runtime == rt {
				models[x.Model] = append(models[x.Model], x)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(models)) {
			var rest []*MVPTable
			for _, x := range tables {
				if x.Runtime == rt && x.Model != name {
					rest = append(rest, x)
				}
			}
			c := fitMVP(rest, mvp.Coefficients(start))
			for _, x := range models[name] {
				out = append(out, x.held(c)...)
			}
		}
	}
	for _, h := range out {
		h.Half = mvpHalf(out, h.Kind, h.Group, h.Runtime, h.Model)
	}
	return out
}

func invert(m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[v] = k
	}
	return out
}

// held compares a table with the estimates of coefficients.
func (x *MVPTable) held(c map[string]float64) []*MVPHeld {
	var out []*MVPHeld
	add := func(kind, group string, published, predicted float64) {
		if published > 0 && predicted > 0 {
			out = append(out, &MVPHeld{Kind: kind, Group: group, Model: x.Model, Runtime: x.Runtime, Published: published, Predicted: predicted})
		}
	}
	total := 0.0
	for _, l := range x.layers {
		acc, cpu, elapsed := l.Cycles(c)
		total += elapsed
		if l.Simulated > 0 {
			add("accelerator", l.Group, l.accelerator, acc)
			if l.cpu >= 1000 {
				add("cpu", "cpu."+l.Group, l.cpu, cpu)
			}
			if l.seconds >= shortest {
				add("latency", "latency."+l.Group, l.seconds*x.Clock, elapsed)
			}
		} else if l.cpu >= 1000 {
			add("op", l.Group, l.cpu, cpu)
		}
	}
	add("model", "model", x.Seconds*x.Clock, total)
	return out
}

// fitMVP fits the coefficients of each group to published layers, relative least
// squares near the coefficients of start.
func fitMVP(tables []*MVPTable, start map[string]float64) map[string]float64 {
	type row struct {
		amounts     map[string]float64
		fixed, want float64
	}
	rows := map[string][]row{}
	for _, x := range tables {
		for _, l := range x.layers {
			if l.accelerator > 0 && l.Simulated > 0 {
				rows[l.Group] = append(rows[l.Group], row{l.Accelerator, l.Simulated, l.accelerator})
			}
			if l.cpu >= 1000 {
				rows["cpu."+l.Group] = append(rows["cpu."+l.Group], row{l.CPU, 0, l.cpu})
			}
		}
	}
	out := maps.Clone(start)
	for _, g := range slices.Sorted(maps.Keys(rows)) {
		names := map[string]bool{}
		for _, r := range rows[g] {
			for n := range r.amounts {
				names[n] = start[n] != 0
			}
		}
		var free []string
		for _, n := range slices.Sorted(maps.Keys(names)) {
			if names[n] {
				free = append(free, n)
			}
		}
		if len(free) == 0 {
			continue
		}
		// In units of the starting values, so that one penalty suits all.
		var a [][]float64
		w := make([]float64, 0, len(rows[g]))
		for _, r := range rows[g] {
			v := make([]float64, len(free))
			rest := (r.want - r.fixed) / r.want
			for k, n := range free {
				v[k] = r.amounts[n] * start[n] / r.want
			}
			a = append(a, append(v, rest))
			w = append(w, 1)
		}
		x := ridge(a, w, 1e-4*float64(len(a)))
		for range 4 { // rows far off count less
			for i, v := range a {
				w[i] = 1 / max(1, math.Abs(fit.Dot(v[:len(free)], x)-v[len(free)])/0.02)
			}
			x = ridge(a, w, 1e-4*float64(len(a)))
		}
		for k, n := range free {
			out[n] = start[n] * x[k]
		}
	}
	return out
}

// ridge minimises sum w (a.x - b)^2 + lambda |x - 1|^2; b is the last entry of each
// row. The penalty makes the system regular, so that descent converges.
func ridge(a [][]float64, w []float64, lambda float64) []float64 {
	n := len(a[0]) - 1
	x := make([]float64, n)
	for k := range x {
		x[k] = 1
	}
	for range 500 {
		moved := 0.0
		for k := range x {
			num, den := lambda, lambda
			for i, v := range a {
				if v[k] == 0 {
					continue
				}
				rest := v[n] - fit.Dot(v[:n], x) + v[k]*x[k]
				num += w[i] * v[k] * rest
				den += w[i] * v[k] * v[k]
			}
			next := num / den
			moved = max(moved, math.Abs(next-x[k]))
			x[k] = next
		}
		if moved < 1e-9 {
			break
		}
	}
	return x
}

// enough rows make a band of a group's own. Groups with fewer are at least as
// uncertain as their kind as a whole; those with next to none, twice as uncertain as
// the worst group of their kind.
const (
	enough  = 10
	atLeast = 3
)

// mvpHalf is the half-width of the band of a group, from what was left out of other
// models than the one named; "" for all.
func mvpHalf(all []*MVPHeld, kind, group, runtime, model string) float64 {
	miss := func(keep func(*MVPHeld) bool) []float64 {
		var v []float64
		for _, h := range all {
			if h.Model != model && h.Kind == kind && keep(h) {
				v = append(v, h.Miss())
			}
		}
		return v
	}
	own := miss(func(h *MVPHeld) bool { return h.Group == group && h.Runtime == runtime })
	if len(own) < enough {
		own = miss(func(h *MVPHeld) bool { return h.Group == group })
	}
	if len(own) >= enough {
		return fit.Quantile(own)
	}
	if len(own) >= atLeast {
		return math.Max(fit.Quantile(own), fit.Quantile(miss(func(*MVPHeld) bool { return true })))
	}
	groups := map[string]bool{}
	for _, h := range all {
		if h.Kind == kind && h.Model != model {
			groups[h.Group] = true
		}
	}
	worst := 0.0
	for g := range groups {
		if v := miss(func(h *MVPHeld) bool { return h.Group == g }); len(v) >= atLeast {
			worst = math.Max(worst, fit.Quantile(v))
		}
	}
	return 2 * worst
}

// mvpErrors makes the error table of a runtime from what was left out.
func mvpErrors(all []*MVPHeld, rt *chip.Runtime) (errors []chip.ErrorRow, model chip.ErrorRow) {
	groups := map[string]string{}
	for _, h := range all {
		groups[h.Group] = h.Kind
	}
	// Kernels without a published layer take the band of their kind.
	for _, k := range []string{"conv", "dense", "depthwise_pixel", "depthwise", "max_pool", "average_pool", "average_pool_pixel", "add", "mul"} {
		groups[k], groups["cpu."+k], groups["latency."+k] = "accelerator", "cpu", "latency"
	}
	for op := range rt.MVP.Operators {
		groups["op."+op] = "op"
	}
	groups["op"] = "op"
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		var miss []float64
		for _, h := range all {
			if h.Group == g && h.Runtime == rt.Name {
				miss = append(miss, math.Abs(h.Predicted/h.Published-1))
			}
		}
		sort.Float64s(miss)
		r := chip.ErrorRow{Group: g, Rows: int64(len(miss)), P90Error: math.Exp(mvpHalf(all, groups[g], g, rt.Name, "")) - 1}
		if len(miss) > 0 {
			r.MedianError = stats.Median(miss)
		}
		if g == "model" {
			model = r
			continue
		}
		errors = append(errors, r)
	}
	return errors, model
}

// WriteMVP puts error tables and bands into the text of a target file, which is
// otherwise written by hand.
func WriteMVP(text string, all []*MVPHeld, t *chip.Target) string {
	lines := strings.Split(text, "\n")
	var out []string
	var rt *chip.Runtime
	in := false // the list of errors
	for _, l := range lines {
		if name, ok := strings.CutPrefix(l, "  - name: "); ok {
			rt = t.Runtime(name)
		}
		if rt == nil || !slices.ContainsFunc(all, func(h *MVPHeld) bool { return h.Runtime == rt.Name }) {
			out = append(out, l)
			continue
		}
		errors, model := mvpErrors(all, rt)
		switch key := strings.TrimSpace(l); {
		case in && strings.HasPrefix(key, "- {group:"):
			continue
		case strings.HasPrefix(l, "      rows: "):
			l = fmt.Sprintf("      rows: %d", model.Rows)
		case strings.HasPrefix(l, "      median_error: "):
			l = "      median_error: " + fit.Digits(model.MedianError)
		case strings.HasPrefix(l, "      p90_error: "):
			l = "      p90_error: " + fit.Digits(model.P90Error)
		case strings.HasPrefix(l, "      band: "):
			l = fmt.Sprintf("      band: [%s, %s]", fit.Digits(1/(1+model.P90Error)), fit.Digits(1+model.P90Error))
		case l == "      errors:":
			in = true
			out = append(out, l)
			for _, r := range errors {
				median := ""
				if r.Rows > 0 {
					median = ", median_error: " + fit.Digits(r.MedianError)
				}
				out = append(out, fmt.Sprintf("        - {group: %s, rows: %d%s, p90_error: %s}", r.Group, r.Rows, median, fit.Digits(r.P90Error)))
			}
			continue
		default:
			in = false
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}
