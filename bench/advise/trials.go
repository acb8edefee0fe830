package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/advise"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/compress/rewrite"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/tensor"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/target"
)

// trial is a model on which a rule is tried: one where it has to fire and to gain what it promises,
// or one where it has to stay silent.
type trial struct {
	rule  string
	fires bool
	model string // a reference model, or one that is made here
	// on is the chip, "" for this computer. There the profile has so many threads, 0 for one.
	on      string
	threads int
	// with says what the external engine does: it runs the model, or is measured beside opmeter's.
	with role
	// cpu is the instruction set that the trial is for, "" for any.
	cpu string
	// instead is the network as the advice asks for it, where it cannot be made from the model.
	instead string
	// cannot says why nothing can be tried here.
	cannot string
}

type role int

const (
	nothing role = iota
	runs
	beside
)

var trials = []trial{
	{rule: "int8-static", fires: true, model: "mlperf_tiny_resnet8_fp32.tflite"},
	{rule: "int8-static", model: "mlperf_tiny_resnet8_int8.tflite"},
	{rule: "int8-dynamic", fires: true, model: "made_dense.onnx"},
	{rule: "int8-dynamic", model: "mlperf_tiny_ad01_fp32.tflite"},
	{rule: "transposes", fires: true, model: "made_transposes.onnx"},
	{rule: "transposes", model: "mltr13_resnet.onnx"},
	{rule: "batch-norm", fires: true, model: "made_batch_norm.onnx"},
	{rule: "batch-norm", model: "mltr13_resnet.onnx"},
	{rule: "threads", fires: true, model: "made_dense.onnx"},
	{rule: "threads", model: "tflm_hello_world_float.tflite"},
	{rule: "fewer-threads", fires: true, model: "made_dense.onnx", threads: 2},
	{rule: "fewer-threads", model: "tflm_hello_world_float.tflite", threads: 2},
	{rule: "batch", fires: true, model: "mlperf_tiny_ad01_fp32.tflite"},
	{rule: "batch", model: "made_dense.onnx"},
	{rule: "first-run", fires: true, model: "mlperf_tiny_ad01_fp32.tflite"},
	{rule: "first-run", model: "mltr13_resnet.onnx"},
	{rule: "kv-cache", fires: true, model: "made_decoder.onnx"},
	{rule: "kv-cache", model: "genai_tiny_gpt2_past.onnx"},
	{rule: "dynamic-shapes", fires: true, model: "made_shapes.onnx", with: runs},
	{rule: "dynamic-shapes", model: "made_shapes.onnx"},
	{rule: "other-engine", fires: true, model: "mltr13_deep_autoencoder.onnx", with: beside, cpu: "go"},
	{rule: "other-engine", model: "mltr13_deep_autoencoder.onnx", with: beside},
	{rule: "channels", fires: true, model: "made_tiles.onnx"},
	{rule: "channels", model: "made_dense.onnx"},
	{rule: "sparse", fires: true, model: "made_zeros.onnx"},
	{rule: "sparse", model: "made_dense.onnx"},
	{rule: "float16", fires: true, model: "genai_tiny_qwen35_fp16.onnx"},
	{rule: "float16", model: "winml_SqueezeNet_fp16.onnx"},
	{rule: "int8-target", fires: true, model: "mlperf_tiny_vww96_fp32.tflite", on: "stm32l4r5"},
	{rule: "int8-target", model: "mlperf_tiny_vww96_int8.tflite", on: "stm32l4r5"},
	{rule: "accelerator", fires: true, model: "made_dilated.yaml", on: "efr32xg24-mvp", instead: "made_plain.yaml"},
	{rule: "accelerator", model: "mlperf_tiny_kws_int8.tflite", on: "efr32xg24-mvp"},
	{rule: "unsupported", fires: true, cannot: "the runtimes of all shipped chips have the same operators"},
	{rule: "unsupported", model: "mlperf_tiny_kws_int8.tflite", on: "stm32l4r5"},
	{rule: "embedding-flash", fires: true, model: "tfsup_movie_review.tflite", on: "stm32l4r5"},
	{rule: "embedding-flash", model: "mlperf_tiny_kws_int8.tflite", on: "stm32l4r5"},
	{rule: "ram", fires: true, model: "mlperf_tiny_vww96_fp32.tflite", on: "nrf52840"},
	{rule: "ram", fires: true, model: "tfsup_mobilenet_v1_025_224_fp32.tflite", on: "stm32l4r5"},
	{rule: "ram", model: "mlperf_tiny_kws_int8.tflite", on: "nrf52840"},
	{rule: "flash", fires: true, model: "mlperf_tiny_ad01_fp32.tflite", on: "nrf52840"},
	{rule: "flash", model: "mlperf_tiny_kws_int8.tflite", on: "nrf52840"},
}

// dilated is a network with a layer of some dilation, which some accelerators do not run.
const dilated = `
name: dilated
type: int8
input: {name: x, shape: [1, 32, 32, 8]}
layers:
  - {op: conv, filters: 16, kernel: 3, activation: relu}
  - {op: conv, filters: 16, kernel: 3, dilation: %d, activation: relu}
  - {op: conv, filters: 16, kernel: 3, stride: 2, activation: relu}
  - {op: avg_pool}
  - {op: flatten}
  - {op: dense, units: 10}
`

// tryRules runs the trials of some rules, "all" for every one.
func tryRules(ctx context.Context, rules []string) error {
	for _, r := range rules {
		if r != "all" && advise.RuleOf(r) == nil {
			return fmt.Errorf("-rules %s: no such rule", r)
		}
	}
	dir, err := os.MkdirTemp("", "advise-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := shown(dir); err != nil {
		return err
	}
	for name, dilation := range map[string]int{"made_dilated.yaml": 2, "made_plain.yaml": 1} {
		if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, dilated, dilation), 0o600); err != nil {
			return err
		}
	}
	load, _ := loaded()
	fmt.Printf("load average %s, %d processors\n", cmp.Or(load, "unknown"), runtime.NumCPU())
	fmt.Printf("%-15s %-36s %-7s %-22s %-22s %s\n", "rule", "model", "expect", "promised (band)", "found (interval)", "outcome")
	for _, t := range trials {
		if !slices.Contains(rules, "all") && !slices.Contains(rules, t.rule) {
			continue
		}
		expect := "silent"
		if t.fires {
			expect = "gain"
		}
		promised, found, outcome := t.run(ctx, dir)
		fmt.Printf("%-15s %-36.36s %-7s %-22s %-22s %s\n", t.rule, t.model, expect, promised, found, outcome)
	}
	return ctx.Err()
}

// loaded reports whether other programs use all processors, with the load average of a minute; ""
// if that is unknown.
func loaded() (load string, busy bool) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", false
	}
	load, _, _ = strings.Cut(string(b), " ")
	v, err := strconv.ParseFloat(load, 64)
	return load, err == nil && v > float64(runtime.NumCPU())
}

// run tries a rule on a model.
func (t *trial) run(ctx context.Context, dir string) (promised, found, outcome string) {
	if t.cannot != "" {
		return "", "", "not tried: " + t.cannot
	}
	if t.cpu != os.Getenv("OPMETER_CPU") && t.with == beside {
		return "", "", fmt.Sprintf("not tried: it is for OPMETER_CPU=%q", t.cpu)
	}
	path := filepath.Join(dir, t.model)
	if !strings.HasPrefix(t.model, "made_") {
		if material.Dir() == "" {
			return "", "", "not tried: no reference material (OPMETER_SHARED)"
		}
		path = filepath.Join(material.Dir(), "models", "real", t.model)
	}
	m, err := opmeter.Open(path)
	if err != nil {
		return "", "", "not tried: " + err.Error()
	}
	defer func() { _ = m.Close() }()
	var e *engine.Engine
	if t.with != nothing {
		if *external == "" || *program == "" {
			return "", "", "not tried: -engine and -opmeter are not given"
		}
		list, err := engine.Find(*external)
		if err != nil {
			return "", "", "not tried: " + err.Error()
		}
		e = list[0]
	}
	f, err := t.facts(ctx, m, path, e)
	if err != nil {
		return "", "", "not tried: " + err.Error()
	}
	err = bridge.Of(m).Reading(func() error {
		r := advise.About(f, t.rule)
		switch {
		case len(r.Advice) == 0 && len(r.Silent) == 0:
			outcome = "not tried: the rule is not for this profile"
			return nil
		case len(r.Advice) == 0:
			outcome = "silent: " + r.Silent[0].Reason
			switch load, busy := loaded(); {
			case t.fires && t.rule == "threads" && busy:
				outcome = fmt.Sprintf("not tried: other programs use the processors (load average %s); %s", load, outcome)
			case t.fires:
				outcome = "DID NOT FIRE, " + outcome
			}
			return nil
		}
		a := r.Advice[0]
		promised = fmt.Sprintf("%.3f (%.3f to %.3f)", a.Gain.Ratio, a.Gain.Band[0], a.Gain.Band[1])
		if a.Gain.Target != "" {
			promised = "it runs on " + a.Gain.Target
		}
		if found, outcome, err = t.follow(ctx, f, r, dir); err != nil {
			outcome = "not tried: " + err.Error()
		}
		if !t.fires {
			outcome = "NOT SILENT, " + outcome
		}
		return nil
	})
	if err != nil {
		outcome = "not tried: " + err.Error()
	}
	return promised, found, outcome
}

// facts profiles or estimates a model.
func (t *trial) facts(ctx context.Context, m *opmeter.Model, path string, e *engine.Engine) (*advise.Facts, error) {
	b := bridge.Of(m)
	f := &advise.Facts{Model: b.Graph, Path: path}
	var err error
	if f.Feed.MaxBytes, err = b.MemoryLimit(0); err != nil {
		return nil, err
	}
	if t.on != "" {
		return f, estimates(f, m, t.on)
	}
	o := opmeter.Options{Time: *span, Warmup: 200 * time.Millisecond, Threads: t.threads}
	if t.with == runs {
		o.Engine = e
	}
	if f.Profile, err = opmeter.Profile(ctx, m, o); err != nil {
		return nil, err
	}
	if t.with == beside {
		o.Engine = e
		if err := opmeter.CompareEngine(ctx, m, f.Profile, o, *span); err != nil {
			return nil, err
		}
		f.Beside = func(string) (*advise.Measured, error) {
			return abRun(ctx, advise.EnginesTime, []string{"ab", path, "--engine", "opmeter," + *external})
		}
	}
	f.Probe = func(v *advise.Variant) (*advise.Measured, error) { return advise.Here(ctx, f, v, *probe) }
	return f, nil
}

// estimates estimates a model for a chip, and lets rules estimate changed models and other chips.
func estimates(f *advise.Facts, m *opmeter.Model, id string) error {
	set, err := target.Load("")
	if err != nil {
		return err
	}
	chip, err := set.Find(id)
	if err != nil {
		return err
	}
	if f.Profile, err = chip.Estimate(m, opmeter.EstimateOptions{}); err != nil {
		return err
	}
	f.Estimate = func(g *graph.Model) (*profile.Profile, error) {
		b, err := rewrite.Encode(g)
		if err != nil {
			return nil, err
		}
		x, err := opmeter.OpenBytes("changed."+g.Format, b)
		if err != nil {
			return nil, err
		}
		defer func() { _ = x.Close() }()
		return chip.Estimate(x, opmeter.EstimateOptions{})
	}
	f.Fits = func() (fit []*profile.Profile, err error) {
		for _, other := range set.List() {
			p, err := other.Estimate(m, opmeter.EstimateOptions{})
			if err != nil {
				return nil, err
			}
			if why := unfit(p, &other); why == "" {
				fit = append(fit, p)
			}
		}
		slices.SortStableFunc(fit, func(a, b *profile.Profile) int {
			x, _ := a.Totals.Latency.Best()
			y, _ := b.Totals.Latency.Best()
			return int(math.Copysign(1, x-y))
		})
		return fit, nil
	}
	return nil
}

// unfit says why a model does not run on a chip, by its operators and by sizes that are counted; ""
// if it does.
func unfit(p *profile.Profile, t *target.Target) string {
	ram, file := p.Totals.RAMBytes, p.Totals.FlashBytes
	switch {
	case slices.ContainsFunc(p.Layers, func(l profile.Layer) bool { return l.State == profile.Unsupported }):
		return "an operator is not supported"
	case len(p.Incomplete) > 0:
		return "the estimate is incomplete"
	case ram == nil || t.RAMBytes == nil || *ram > *t.RAMBytes:
		return "the RAM is too small, or not known"
	case file == nil || t.FlashBytes == nil || *file > *t.FlashBytes:
		return "the flash is too small, or not known"
	}
	return ""
}

// follow does what an advice says, and compares the result with the promise.
func (t *trial) follow(ctx context.Context, f *advise.Facts, r *advise.Result, dir string) (found, outcome string, err error) {
	a := r.Advice[0]
	if a.Gain.Target != "" {
		return t.moved(f, a.Gain.Target)
	}
	switch t.rule {
	case "other-engine":
		return abPrograms(ctx, a, f.Path, "", "opmeter,"+*external)
	case "dynamic-shapes":
		changed, err := a.Change(ctx, f)
		if err != nil {
			return "", "", err
		}
		file := filepath.Join(dir, "fixed.onnx")
		_ = os.Remove(file)
		if err := rewrite.Write(changed.Model, file); err != nil {
			return "", "", err
		}
		return abPrograms(ctx, a, f.Path, file, *external)
	case "accelerator":
		m, err := opmeter.Open(filepath.Join(dir, t.instead))
		if err != nil {
			return "", "", err
		}
		defer func() { _ = m.Close() }()
		var other advise.Facts
		if err := estimates(&other, m, t.on); err != nil {
			return "", "", err
		}
		now, _ := f.Profile.Totals.Latency.Best()
		then, ok := other.Profile.Totals.Latency.Best()
		if !ok || now <= 0 {
			return "", "", errors.New("no estimate of the other network")
		}
		n := then / now
		return shownResult(n, [2]float64{n, n}), verdict(n, n, a.Gain.Band) + ", estimated: the chip is not here", nil
	}
	changed, err := advise.Try(ctx, f, r, advise.Here, *budget)
	if err != nil {
		return "", "", err
	}
	switch {
	case a.Tried == nil:
		return "", "", errors.New("the rule has no change to try")
	case a.Tried.Error != "":
		return "", "", errors.New(a.Tried.Error)
	}
	found, outcome = shownResult(a.Tried.Ratio, *a.Tried.Interval), string(a.Tried.Verdict)
	if t.on == "" {
		return found, fmt.Sprintf("%s, %d sessions, %d blocks", outcome, a.Tried.Processes, a.Tried.Blocks), nil
	}
	// Sizes are counted in the encoded file; times of the chip are estimates on both sides.
	held := verdict(a.Tried.Ratio, a.Tried.Ratio, a.Gain.Band)
	outcome = held + ", estimated: the chip is not here"
	if v := changed[a.Rule]; v != nil && v.Model != nil && a.Gain.Quantity == "flash_bytes" {
		b, err := rewrite.Encode(v.Model)
		if err != nil {
			return "", "", err
		}
		n := float64(len(b)) / a.Gain.Before
		found, outcome = shownResult(n, [2]float64{n, n}), verdict(n, n, a.Gain.Band)+", counted in the changed file"
	}
	if a.Gain.Quantity == "ram_bytes" {
		outcome = held + ", counted by the memory plan"
	}
	return found, outcome, nil
}

// moved checks that a model runs on a chip.
func (t *trial) moved(f *advise.Facts, id string) (found, outcome string, err error) {
	fit, err := f.Fits()
	if err != nil {
		return "", "", err
	}
	if len(fit) == 0 || !slices.ContainsFunc(fit, func(p *profile.Profile) bool { return p.Target.ID == id }) {
		return "", "lost: operators or memories of " + id + " do not do", nil
	}
	return "it does", "kept, counted: operators and memories; the chip is not here", nil
}

func shownResult(ratio float64, ci [2]float64) string {
	if ci[0] == ci[1] {
		return fmt.Sprintf("%.3f", ratio)
	}
	return fmt.Sprintf("%.3f (%.3f to %.3f)", ratio, ci[0], ci[1])
}

// verdict compares an interval with a band as opmeter advise --try does.
func verdict(low, high float64, band [2]float64) string {
	switch {
	case low >= 1:
		return string(advise.Lost)
	case high >= 1:
		return string(advise.Open)
	case low > band[1]:
		return string(advise.Less)
	case high < band[0]:
		return string(advise.More)
	}
	return string(advise.Kept)
}

// abPrograms measures two files, or two engines, with opmeter ab: in several processes.
func abPrograms(ctx context.Context, a *advise.Advice, first, second, engines string) (found, outcome string, err error) {
	args := []string{"ab", first}
	if second != "" {
		args = append(args, second)
	}
	args = append(args, "--engine", engines)
	res, err := abRun(ctx, max(*budget, 20*time.Second), args)
	if err != nil {
		return "", "", err
	}
	if len(res.Comparisons) == 0 {
		return "", "", errors.New("opmeter ab compared nothing: use a larger -budget")
	}
	c := &res.Comparisons[0]
	return shownResult(c.Ratio, [2]float64{c.Low, c.High}), fmt.Sprintf("%s, %d processes", verdict(c.Low, c.High, a.Gain.Band), c.Processes), nil
}

// abRun runs opmeter ab for a time.
func abRun(ctx context.Context, most time.Duration, args []string) (*advise.Measured, error) {
	out, err := exec.CommandContext(ctx, *program, append(args, "--budget", most.String(), "--format", "json")...).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("opmeter ab: %s", strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, err
	}
	res := &advise.Measured{}
	return res, json.Unmarshal(out, res)
}

// moreMade are models for rules that fire for no reference model.
func moreMade() map[string]*net {
	dense := newNet(tensor.Float32, 128, 512)
	for range 4 {
		dense.node("MatMul", nil, dense.weights(512, 512)).node("Relu", nil)
	}
	zeros := newNet(tensor.Float32, 1, 1024)
	for range 4 {
		w := zeros.constant(func(i int) float64 {
			if math.Sin(float64(i)*12.9898) < 0.3 { // 60 % of the weights
				return 0
			}
			return math.Sin(float64(i*i)) / 16
		}, 1024, 1024)
		zeros.node("MatMul", nil, w).node("Relu", nil)
	}
	// Each reshape asks for the shape anew.
	shapes := newNet(tensor.Float32, -1, 16)
	for range 30 {
		x := shapes.last
		shape := shapes.node("Shape", nil).last
		shapes.g.Values[shape].Type = tensor.Int64
		shapes.last = x
		shapes.node("Sigmoid", nil).node("Reshape", nil, shape)
	}
	return map[string]*net{"made_dense.onnx": dense, "made_zeros.onnx": zeros, "made_shapes.onnx": shapes}
}
