package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/compress"
	"github.com/opmeter/opmeter/study"
)

// lossFlags say how losses are found.
type lossFlags struct {
	data    []string
	labels  string
	column  string
	mean    []float32
	std     []float32
	method  string
	metric  string
	choice  string
	samples int
	command string
}

// add adds how losses are found.
func (f *lossFlags) add(c *cobra.Command) {
	f.addData(c)
	c.Flags().StringVar(&f.labels, "labels", "", "`FILE` with a label for each sample: .npy, .csv, .txt")
	c.Flags().StringVar(&f.column, "label-column", "", "`NAME` or number of the labels' column, or array of a .npz")
	c.Flags().StringVar(&f.metric, "metric", "", "`NAME`: relative_error, snr_db, cosine, kl, top1, accuracy, command")
	c.Flags().StringVar(&f.command, "metric-command", "", "`COMMAND` that prints the metric of a folder of outputs")
	c.Flags().StringVar(&f.method, "method", "", "`NAME`: output, calibrated, end-to-end, magnitude, approximated, one-shot")
	c.Flags().StringVar(&f.choice, "choice", "", "`NAME`: weights go by magnitude (default) or by error on the data")
}

// addData adds what says which data.
func (f *lossFlags) addData(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.data, "data", nil, "`PATH`: .npy, .npz, .csv, image, folder; NAME=PATH")
	c.Flags().Var(&reals{&f.mean}, "mean", "`X,…`: of images: (pixel/255 - mean)/std, by channel")
	c.Flags().Var(&reals{&f.std}, "std", "`X,…`: see --mean")
	wholeVar(c, &f.samples, "samples", 0, 1, most, "most samples that are taken (default: 256 to 2048, by the model's time)", "")
}

// methods are the names of methods for people.
var methods = map[string]study.Method{
	"output": study.OutputError, "calibrated": study.Calibrated, "end-to-end": study.EndToEnd, "magnitude": study.Magnitude, "approximated": study.Approximated, "one-shot": study.OneShot,
}

func (x *compressCommand) lossOptions() (o compress.LossOptions, err error) {
	f := &x.loss
	o = compress.LossOptions{
		Metric: f.metric, Choice: f.choice, Levels: x.levels, Structures: x.shapes, Formats: x.numbers, Threads: x.threads,
		Data: compress.DataOptions{Labels: f.labels, Column: f.column, Mean: f.mean, Std: f.std, Samples: f.samples, Seed: x.m.seed},
	}
	if f.method != "" {
		m, ok := methods[strings.ReplaceAll(f.method, "_", "-")]
		if !ok {
			return o, useError("--method %q: use output, calibrated, end-to-end, magnitude, approximated or one-shot", f.method)
		}
		o.Method = m
	}
	for _, d := range f.data {
		name, path, ok := cutLast(d)
		switch {
		case ok && !exists(d):
			if o.Data.Inputs == nil {
				o.Data.Inputs = map[string]string{}
			}
			o.Data.Inputs[name] = path
		case o.Data.Path != "":
			return o, useError("--data is given twice: write NAME=PATH for models with several inputs")
		default:
			o.Data.Path = d
		}
	}
	if len(f.data) == 0 && (f.labels != "" || f.column != "") {
		return o, useError("--labels needs --data")
	}
	o.Command = strings.Fields(f.command)
	return o, nil
}

// planFlags say what a plan is for.
type planFlags struct {
	speedup  float64
	drop     string
	sparsity float64
	size     string
	fit      string
	cost     string
	exclude  []string
	ends     bool
	compat   string
	balance  float64

	given func(flag string) bool
}

func (f *planFlags) add(c *cobra.Command) {
	f.given = c.Flags().Changed
	c.Flags().Float64Var(&f.speedup, "speedup", 0, "`X` times as fast, at the least loss")
	c.Flags().StringVar(&f.drop, "max-drop", "", "`X`: most that may be lost, such as 1% or 0.01")
	c.Flags().Float64Var(&f.sparsity, "sparsity", 0, "`X`: share of zero weights, at the least loss")
	c.Flags().StringVar(&f.size, "size", "", "`BYTES` of weights at most, such as 500KiB")
	c.Flags().StringVar(&f.fit, "fit", "", "`TARGET` whose flash and RAM the model has to fit into")
	c.Flags().StringVar(&f.cost, "cost", "", "`NAME` of what is made small: time (default), energy, ram, flash, macs, size")
	c.Flags().StringArrayVar(&f.exclude, "exclude", nil, "`LAYER`, operator, weight, structure or precision that is left out")
	c.Flags().BoolVar(&f.ends, "ends", false, "let the first layer and those that make outputs change, too")
	c.Flags().StringVar(&f.compat, "compat", "", "`NAME`: by the rules of sparsify")
	c.Flags().Float64Var(&f.balance, "balance", 1, "`X` of --compat sparsify: 1 is loss alone; below, its performance side, which is inverted")
}

// planOptions gathers the flags of a plan.
func (x *compressCommand) planOptions(j *compress.Job) (o compress.PlanOptions, err error) {
	f := &x.plan
	o.Ends = f.ends
	g := &o.Goal
	goals := slices.DeleteFunc([]string{"--speedup", "--max-drop", "--sparsity", "--size", "--fit"}, func(s string) bool { return !f.given(s[2:]) })
	if len(goals) > 1 {
		return o, useError("%s: a plan has one goal: give one of them", strings.Join(goals, ", "))
	}
	if f.given("speedup") {
		if !(f.speedup > 0) {
			return o, useError("--speedup: use a number above 0, not %v", f.speedup)
		}
		g.Speedup = &f.speedup
	}
	if f.given("max-drop") {
		v, err := share(f.drop)
		if err != nil {
			return o, useError("--max-drop: write a share such as 1%% or 0.01, not %q", f.drop)
		}
		if l := &x.loss; v >= 1 && (l.metric == "accuracy" || l.metric == "top1" || l.metric == "" && l.labels != "") {
			return o, useError("--max-drop %s: accuracy falls by less than 100 %%, so nothing is bounded; write a share such as 1%%", f.drop)
		}
		g.MaxLoss = &v
	}
	if f.given("sparsity") {
		if !(f.sparsity > 0 && f.sparsity <= 1) {
			return o, useError("--sparsity: use a share above 0 and up to 1, not %v", f.sparsity)
		}
		g.Sparsity = &f.sparsity
	}
	if f.given("size") {
		n, err := quantity("size", f.size, "a size such as 500KiB", sizes)
		if err != nil {
			return o, err
		}
		g.Size = new(int64(n))
	}
	if f.given("fit") {
		set, faults, err := x.target.load()
		if err != nil {
			return o, err
		}
		x.a.leftOut(faults)
		t, err := set.Find(f.fit)
		if err != nil {
			return o, told(err)
		}
		o.Fit = &t
	}
	switch f.cost {
	case "", "time", "energy", "ram", "flash", "macs", "size":
	default:
		return o, useError("--cost %q: use time, energy, ram, flash, macs or size", f.cost)
	}
	if f.cost != "" && len(goals) > 0 && goals[0] != "--max-drop" {
		return o, useError("--cost is the objective of --max-drop; with %s the objective is the loss", goals[0])
	}
	g.Cost = f.cost
	var names []string
	for _, n := range f.exclude {
		switch {
		case contains(study.Structures(), n):
			o.WithoutStructures = append(o.WithoutStructures, study.Structure(n))
		case contains(study.Formats(), n):
			o.WithoutFormats = append(o.WithoutFormats, study.Format(n))
		default:
			names = append(names, n)
		}
	}
	if g.Exclude, err = j.Exclude(names); err != nil {
		return o, err
	}
	switch f.compat {
	case "":
		if f.given("balance") {
			return o, useError("--balance needs --compat sparsify")
		}
	case "sparsify":
		if len(goals) > 0 && goals[0] != "--sparsity" {
			return o, useError("%s: --compat sparsify has one goal, --sparsity", goals[0])
		}
		if !(f.balance >= 0 && f.balance <= 1) {
			return o, useError("--balance: use 0 to 1, not %v", f.balance)
		}
		o.Sparsify = &compress.SparsifyOptions{Sparsity: f.sparsity, Balance: &f.balance}
	default:
		return o, useError("--compat %q: use sparsify", f.compat)
	}
	return o, nil
}

func contains[T ~string](list []T, s string) bool {
	for _, x := range list {
		if string(x) == s {
			return true
		}
	}
	return false
}

// share reads "1%", "0.01".
func share(s string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err == nil && (v < 0 || v-v != 0) {
		err = strconv.ErrRange
	}
	return v, err
}

// whole does everything.
func (x *compressCommand) whole(ctx context.Context, j *compress.Job) error {
	s, err := x.speedOptions()
	if err != nil {
		return err
	}
	l, err := x.lossOptions()
	if err != nil {
		return err
	}
	p, err := x.planOptions(j)
	if err != nil {
		return err
	}
	_, err = j.Compress(ctx, s, l, p)
	return err
}
