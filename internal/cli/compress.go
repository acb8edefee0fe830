package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/compress"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/study"
)

func newCompress(a *app) *cobra.Command {
	x := &compressCommand{a: a}
	c := &cobra.Command{
		Use:        "compress MODEL",
		SuggestFor: []string{"quantize", "quantise", "prune"},
		Short:      "Find which layers to prune or quantise, and at what loss",
		Long: `Measure what pruning and lower-precision weights gain and cost in each layer, choose a change
for every layer, and run the result. NAME.study keeps all results; the same command resumes.
Without --data, losses only rank the layers.`,
		Example: `  opmeter compress model.tflite --data x.npy --labels y.npy --max-drop 1%`,
		Args:    needOneModel,
		RunE: func(c *cobra.Command, args []string) error {
			if err := x.check(); err != nil {
				return err
			}
			return x.with(args[0], func(j *compress.Job) error {
				if err := withoutName(x.whole(c.Context(), j)); err != nil {
					return err
				}
				return x.deliver(j.Study(), report.StudyOptions{})
			})
		},
	}
	x.addStudy(c)
	x.addSpeed(c)
	x.loss.add(c)
	x.plan.add(c)
	x.addOut(c)
	c.AddCommand(newCompressPerf(a), newCompressLoss(a), newCompressPlan(a), newCompressApply(a), newCompressBench(a), newCompressRecipe(a), newCompressImport(a), newCompressExport(a), newCompressShow(a))
	return c
}

// withoutName is the error of a command that measures all profiles, which have no --name there.
func withoutName(err error) error {
	if e, ok := errors.AsType[*opmeter.OptionError](err); ok && e.Option == "Name" {
		return useError("%s", strings.TrimSuffix(e.Text, ": give this one another name")+": name another file with --study")
	}
	return err
}

// needOneModel asks for a model.
func needOneModel(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return useError("name one model file: .tflite or .onnx")
	}
	return nil
}

func newCompressPerf(a *app) *cobra.Command {
	x := &compressCommand{a: a}
	c := &cobra.Command{
		Use:   "perf MODEL",
		Short: "Measure what pruning and quantisation gain in each layer",
		Long: `Measure the time of each layer, unchanged and with pruned or lower-precision weights. Models with
the same change in all layers run interleaved with the unchanged one, with the same kernels.
Each gain has a confidence interval. Ctrl-C keeps what was measured; the same command resumes. Gains
differ between engines: --engine measures in the one that ships.`,
		Example: `  opmeter compress perf model.onnx
  opmeter compress perf model.onnx --engine onnxruntime
  opmeter compress perf model.onnx --threads 2 --batch 8 --name throughput
  opmeter compress perf model.tflite --on efr32xg24-mvp --precision int8`,
		Args: needOneModel,
		RunE: func(c *cobra.Command, args []string) error {
			if err := x.check(); err != nil {
				return err
			}
			return x.with(args[0], func(j *compress.Job) error {
				o, err := x.speedOptions()
				if err != nil {
					return err
				}
				p, err := j.Speed(c.Context(), o)
				if err != nil {
					return err
				}
				return x.deliver(j.Study(), report.StudyOptions{Speed: p.Name})
			})
		},
	}
	x.addStudy(c)
	c.Flags().StringVar(&x.name, "name", "", "`NAME` of the profile (default: host, and what it is of)")
	x.addSpeed(c)
	x.addOut(c)
	return c
}

// speedOptions gathers the flags of a performance profile.
func (x *compressCommand) speedOptions() (o compress.SpeedOptions, err error) {
	o = compress.SpeedOptions{Name: x.name, Counted: x.flops, Batch: x.m.batch, Threads: x.threads, Levels: x.levels, Structures: x.shapes, Formats: x.numbers, Time: x.time}
	if len(x.target.on) > 1 {
		return o, useError("--on: one target per command")
	}
	if x.engines.list != ownEngine && (x.flops || x.target.on[0] != "host") {
		return o, useError("--engine measures on this computer: leave out --flops and --on")
	}
	if o.Engine, err = x.engine(); err != nil {
		return o, err
	}
	if id := x.target.on[0]; id != "host" {
		set, faults, err := x.target.load()
		if err != nil {
			return o, err
		}
		x.a.leftOut(faults)
		t, err := set.Find(id)
		if err != nil {
			return o, told(err)
		}
		o.On = &t
	}
	return o, nil
}

func newCompressShow(a *app) *cobra.Command {
	x := &compressCommand{a: a}
	var o report.StudyOptions
	c := &cobra.Command{
		Use:   "show STUDY",
		Short: "Show a study, or convert it to other formats",
		Long: `Show a study: layers with times, gains and losses, the plan and the benchmarks. It can be read while
another process works on it. Files of -o hold all data.`,
		Example: `  opmeter compress show model.study
  opmeter compress show model.study --speed host-t2 --top 10
  opmeter compress show model.study -o study.xlsx -o study.csv`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return useError("name one study, or the model that it is of")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := x.check(); err != nil {
				return err
			}
			path := args[0]
			if !isStudy(path) && isModel(path) {
				path = studyName(path)
			}
			if err := ready(x.files, path); err != nil {
				return err
			}
			s, damage, err := study.Read(path)
			if err != nil {
				return withStatus(statusInput, plainPath(err))
			}
			for _, d := range damage {
				fmt.Fprintf(a.err, "opmeter: %s: %s\n", text.Clean(path), d)
			}
			return x.deliver(s, o)
		},
	}
	c.Flags().StringVar(&o.Speed, "speed", "", "`NAME` of the performance profile to show (default: the last)")
	c.Flags().StringVar(&o.Loss, "loss", "", "`NAME` of the loss profile to show (default: the last)")
	c.Flags().StringVar(&o.Plan, "plan", "", "`NAME` of the plan to show (default: the last)")
	wholeVar(c, &x.top, "top", 0, 0, most, "the N slowest layers", "")
	x.addOut(c)
	return c
}

// keepsStudy notes that what is known lies in a study, until the returned function is called.
func (a *app) keepsStudy(name string) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.study = name
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.study = ""
	}
}

// stoppedStudy is the end of work that Ctrl-C stopped: what was found is safe.
func (a *app) stoppedStudy(err error, name string) error {
	if errors.Is(err, errStopped) {
		return withStatus(statusStopped, fmt.Errorf("stopped; results so far are in %s, and the same command resumes", name))
	}
	return err
}
