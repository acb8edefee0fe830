package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/compress"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/study"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func newCompressLoss(a *app) *cobra.Command {
	x := &compressCommand{a: a}
	c := &cobra.Command{
		Use:   "loss MODEL",
		Short: "Measure what pruning and quantisation of each layer cost",
		Long: `Change one layer at a time (layers that must lose filters together count as one) and measure the loss.
Method end-to-end runs the model from that layer on and compares its outputs, or its accuracy if
labels are given. Method output takes the relative error of the layer's own output. Method calibrated
converts these errors to losses of the model's outputs, with a few runs per layer. The default is
calibrated for large models without labels, else end-to-end. The methods magnitude, approximated and
one-shot are those of Sparsify.
Each figure has a confidence interval from resampling the samples.`,
		Example: `  opmeter compress loss model.onnx --data x.npy
  opmeter compress loss model.onnx --data x.npy --labels y.npy --method end-to-end
  opmeter compress loss model.tflite --method magnitude`,
		Args: needOneModel,
		RunE: func(c *cobra.Command, args []string) error {
			if err := x.check(); err != nil {
				return err
			}
			o, err := x.lossOptions()
			if err != nil {
				return err
			}
			o.Name = x.name
			return x.with(args[0], func(j *compress.Job) error {
				p, err := j.Loss(c.Context(), o)
				if err != nil {
					return err
				}
				return x.deliver(j.Study(), report.StudyOptions{Loss: p.Name})
			})
		},
	}
	x.addStudy(c)
	c.Flags().StringVar(&x.name, "name", "", "`NAME` of the profile (default: that of method or metric)")
	wholeVar(c, &x.threads, "threads", 1, 1, 1024, "threads that compute", "")
	x.loss.add(c)
	x.addChanges(c)
	x.addOut(c)
	return c
}

func newCompressPlan(a *app) *cobra.Command {
	x := &compressCommand{a: a}
	var o compress.PlanOptions
	c := &cobra.Command{
		Use:   "plan MODEL",
		Short: "Choose a change for every layer, and benchmark the result",
		Long: `Choose a change for every layer from a performance and a loss profile of the study. The result is the
fastest model within a loss, or the smallest loss for a speed or size. The plan is applied and run
interleaved with the unchanged model; a second choice uses the measured difference. With --data, the
loss is measured on held-out samples.`,
		Example: `  opmeter compress plan model.onnx --speedup 2
  opmeter compress plan model.onnx --max-drop 1% --data x.npy --labels y.npy
  opmeter compress plan model.onnx --compat sparsify --sparsity 0.85`,
		Args: needOneModel,
		RunE: func(c *cobra.Command, args []string) error {
			if err := x.check(); err != nil {
				return err
			}
			l, err := x.lossOptions()
			if err != nil {
				return err
			}
			return x.with(args[0], func(j *compress.Job) error {
				p, err := x.planOptions(j)
				if err != nil {
					return err
				}
				p.Name, p.Speed, p.Loss, p.Unrun, p.Time = x.name, o.Speed, o.Loss, o.Unrun, x.time
				if p.Engine, err = x.engine(); err != nil {
					return err
				}
				if len(x.loss.data) > 0 {
					p.Data = &l
				}
				made, err := j.Plan(c.Context(), p)
				if err != nil {
					return err
				}
				return x.deliver(j.Study(), report.StudyOptions{Plan: made.Name})
			})
		},
	}
	x.addStudy(c)
	c.Flags().StringVar(&x.name, "name", "", "`NAME` of the plan (default: its goal)")
	c.Flags().StringVar(&o.Speed, "speed", "", "`NAME` of the performance profile (default: the last)")
	c.Flags().StringVar(&o.Loss, "loss", "", "`NAME` of the loss profile (default: the last)")
	spanVar(c, &x.time, "time", 0, 0, "time of each comparison with the unchanged model (default: 1.6s)", "a time of zero or more, such as 2s")
	c.Flags().BoolVar(&o.Unrun, "untried", false, "do not apply and run the plan")
	x.engines.addEngines(c)
	x.plan.add(c)
	x.loss.add(c)
	x.target.addDir(c)
	x.addOut(c)
	return c
}

func newCompressApply(a *app) *cobra.Command {
	x := &compressCommand{a: a}
	var o compress.ApplyOptions
	var out string
	c := &cobra.Command{
		Use:   "apply MODEL -o FILE",
		Short: "Write the compressed model of a plan",
		Long: `Write the model of a plan. Pruned weights are exact zeros. Channels and filters are removed together
with their consumers, and lower-precision weights are stored as the format defines them. Layers that
cannot follow the plan stay unchanged and are named. The flag --correct adjusts the remaining weights to minimise the
error of each layer's output on the data.`,
		Example: `  opmeter compress apply model.onnx -o small.onnx
  opmeter compress apply model.onnx --data x.npy --correct -o small.onnx
  opmeter compress apply model.tflite --plan speedup-2 -o small.tflite`,
		Args: needOneModel,
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return useError("name the file to write with -o")
			}
			l, err := x.lossOptions()
			if err != nil {
				return err
			}
			if len(x.loss.data) > 0 {
				o.Data = &l.Data
			}
			return x.with(args[0], func(j *compress.Job) error {
				if end := "." + j.Study().Model.Format; !strings.EqualFold(filepath.Ext(out), end) {
					return useError("%s: the compressed model has the format of the original: use the ending %s", out, end)
				}
				if err := writable(out, args[0], j.Study().Model.Path); err != nil {
					return err
				}
				made, err := j.Apply(c.Context(), o)
				if err != nil {
					return err
				}
				if err := made.Write(out); err != nil {
					return withStatus(statusUse, plainPath(err))
				}
				for i := range j.Study().Layers {
					name := text.Clean(j.Study().Layers[i].Name)
					if why, ok := made.Refused[i]; ok {
						fmt.Fprintf(a.err, "opmeter: %s stays as it is: %s\n", name, words.StudyCause(why))
					}
					if e, ok := made.Corrected[i]; ok {
						fmt.Fprintf(a.out, "%s: error of its output %.3g, corrected %.3g\n", name, e[0], e[1])
					}
				}
				a.sayWrote([]string{out}, true)
				z, err := made.ZeroStorage(out)
				if err != nil {
					return withStatus(statusUse, plainPath(err))
				}
				if s := zeroWords(z, j.Study().Model.Format); s != "" {
					fmt.Fprintln(a.out, s)
				}
				return nil
			})
		},
	}
	x.addStudy(c)
	c.Flags().StringVar(&o.Plan, "plan", "", "`NAME` of the plan (default: the last)")
	c.Flags().BoolVar(&o.Correct, "correct", false, "change the weights that are left to make up for pruned ones, on --data")
	x.loss.addData(c)
	c.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write")
	return c
}

// Zeros are worth a word where they are this share of the weights, and a sparse encoding would save
// this share of their bytes.
const (
	manyZeros   = .3
	worthSaving = .1
)

// zeroWords says which storage gains from the zeros of a file, "" if there are few.
func zeroWords(z compress.ZeroStorage, format string) string {
	if float64(z.Zeros) < manyZeros*float64(z.Weights) || float64(z.Sparse) > (1-worthSaving)*float64(z.Bytes) {
		return ""
	}
	s := fmt.Sprintf("%s of its weights are zero; the file stores all of them, %s.", report.Percent(float64(z.Zeros)/float64(max(z.Weights, 1))), report.Bytes(z.Bytes))
	if z.Compressed > 0 {
		s += fmt.Sprintf(" With gzip it has %s: compress it for downloads and updates.", report.Bytes(z.Compressed))
	}
	s += fmt.Sprintf(" As non-zero values with indices they would take %s", report.Bytes(z.Sparse))
	if format == "tflite" {
		return s + ": LiteRT reads TFLite's sparse tensors, TensorFlow Lite Micro does not. Removed filters make every file smaller (--structure filter)."
	}
	return s + ": ONNX Runtime expands sparse initializers when it loads them. Removed filters make every file smaller (--structure filter)."
}

func newCompressBench(a *app) *cobra.Command {
	x := &compressCommand{a: a}
	var o compress.BenchOptions
	var e engineFlags
	c := &cobra.Command{
		Use:   "bench MODEL [COMPRESSED]",
		Short: "Benchmark the compressed model against the unchanged one",
		Long: `Measure the unchanged and the compressed model interleaved: the model of a plan or of a file, with
every engine, thread count and batch size. Each gain has a confidence interval; a missing one has a
reason.`,
		Example: `  opmeter compress bench model.onnx
  opmeter compress bench model.onnx small.onnx --engine opmeter,onnxruntime --threads 1,2 --batch 1,8`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return useError("name a model, and optionally the compressed one")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := x.check(); err != nil {
				return err
			}
			list, err := e.find()
			if err != nil {
				return err
			}
			for _, f := range list {
				o.Engines = append(o.Engines, f.engine)
				if f.engine != nil {
					a.measures(longPatience)
				}
			}
			return x.with(args[0], func(j *compress.Job) error {
				if len(args) > 1 {
					m, err := opmeter.Open(args[1])
					if err != nil {
						return err
					}
					defer m.Close()
					o.Model = m
				}
				b, err := j.Bench(c.Context(), o)
				if err != nil {
					return err
				}
				if err := x.deliver(j.Study(), report.StudyOptions{}); err != nil {
					return err
				}
				failed := func(p study.BenchPoint) bool { return p.Error != "" }
				if n := len(b.Points) - len(slices.DeleteFunc(slices.Clone(b.Points), failed)); n > 0 {
					return withStatus(statusSource, fmt.Errorf("%d of %s could not be measured", n, plural(len(b.Points), "point")))
				}
				return nil
			})
		},
	}
	x.addStudyOnly(c)
	c.Flags().StringVar(&o.Plan, "plan", "", "`NAME` of the plan that is applied (default: the last)")
	c.Flags().StringVar(&o.Name, "name", "", "`NAME` of the comparison (default: that of plan or file)")
	c.Flags().Var(&wholes{&o.Threads, 1, 1024}, "threads", "`N,…`: threads that compute")
	c.Flags().Var(&wholes{&o.Batches, 1, 1 << 20}, "batch", "`N,…`: first dimensions of every input")
	spanVar(c, &o.Time, "time", 0, 0, "time of each comparison (default: 1.6s, 2s for external engines)", "a time of zero or more, such as 2s")
	e.addEngines(c)
	x.addOut(c)
	return c
}

// exported adds the flags of what is written for other tools.
func (x *compressCommand) exported(c *cobra.Command, o *compress.ExportOptions) {
	x.addStudy(c)
	c.Flags().StringVar(&o.Plan, "plan", "", "`NAME` of the plan (default: the last)")
	wholeVar(c, &o.Epochs, "epochs", 0, 1, 1_000_000, "epochs of the training (default: 100)", "")
}

func newCompressRecipe(a *app) *cobra.Command {
	x := &compressCommand{a: a}
	o := compress.ExportOptions{Kind: "recipe"}
	var out string
	var asJSON bool
	var first, last float64
	c := &cobra.Command{
		Use:   "recipe MODEL",
		Short: "Write a plan as a SparseML training recipe",
		Long: `Write a plan as YAML for SparseML, which prunes while it trains: a modifier with a schedule for each
level, and learning rates if given. Parts that a recipe cannot express are named.`,
		Example: `  opmeter compress recipe model.onnx --epochs 60 -o recipe.yaml
  opmeter compress recipe model.onnx --lr 0.01 --final-lr 0.0001`,
		Args: needOneModel,
		RunE: func(c *cobra.Command, args []string) error {
			if asJSON {
				o.Kind = "recipe-json"
			}
			if c.Flags().Changed("lr") {
				o.InitialRate = &first
			}
			if c.Flags().Changed("final-lr") {
				o.FinalRate = &last
			}
			return x.export(args[0], o, out)
		},
	}
	x.exported(c, &o)
	c.Flags().Float64Var(&first, "lr", 0, "`X`: learning rate of the training")
	c.Flags().Float64Var(&last, "final-lr", 0, "`X`: learning rate at its end")
	c.Flags().BoolVar(&asJSON, "json", false, "plain JSON in place of YAML")
	c.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write (default: standard output)")
	return c
}

func newCompressExport(a *app) *cobra.Command {
	x := &compressCommand{a: a}
	o := compress.ExportOptions{Kind: "sparsify-perf"}
	var out string
	var structures []study.Structure
	c := &cobra.Command{
		Use:   "export MODEL",
		Short: "Export profiles and plans to other tools",
		Long: `Write a part of the study in the format of another tool. That is Sparsify's analysis, performance or
loss profile, or a SparseML recipe. For NNCF and Neural Compressor it is a list of the layers that a
plan leaves unchanged.`,
		Example: `  opmeter compress export model.onnx --kind sparsify-analysis -o analysis.json
  opmeter compress export model.onnx --kind nncf`,
		Args: needOneModel,
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(compress.ExportKinds(), o.Kind) {
				return useError("--kind %q: use one of %s", o.Kind, strings.Join(compress.ExportKinds(), ", "))
			}
			if len(structures) > 0 {
				o.Structure = structures[0]
			}
			return x.export(args[0], o, out)
		},
	}
	x.exported(c, &o)
	c.Flags().StringVar(&o.Kind, "kind", o.Kind, "`NAME`: "+strings.Join(compress.ExportKinds(), ", "))
	c.Flags().StringVar(&o.Speed, "speed", "", "`NAME` of the performance profile (default: the last)")
	c.Flags().StringVar(&o.Loss, "loss", "", "`NAME` of the loss profile (default: the last)")
	c.Flags().Var(&listed[study.Structure]{&structures, study.Structures()}, "structure", "`NAME` of the structure that profiles are of")
	c.Flags().BoolVar(&o.Compat, "compat", false, "count operations as Sparsify does, defects included")
	c.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write (default: standard output)")
	return c
}

// export writes a part of a study for another tool.
func (x *compressCommand) export(model string, o compress.ExportOptions, out string) error {
	return x.with(model, func(j *compress.Job) error {
		if out != "" {
			if err := writable(out, model, j.Study().Model.Path); err != nil {
				return err
			}
		}
		data, lost, err := j.Export(o)
		if err != nil {
			return err
		}
		for _, l := range lost {
			fmt.Fprintf(x.a.err, "opmeter: not in it: %s\n", text.Clean(l))
		}
		if out == "" {
			_, err := x.a.out.Write(data)
			return err
		}
		if err := atomicfile.Write(out, data); err != nil {
			return withStatus(statusUse, plainPath(err))
		}
		x.a.sayWrote([]string{out}, true)
		return nil
	})
}

// mostImported bounds the files of other tools, in bytes.
const mostImported = 256 << 20

func newCompressImport(a *app) *cobra.Command {
	x := &compressCommand{a: a}
	c := &cobra.Command{
		Use:   "import MODEL FILE",
		Short: "Import a Sparsify profile or a SparseML recipe",
		Long: `Read a performance or loss profile of Sparsify into the study of a model. A SparseML recipe becomes a
plan, and so does {"changes": [{"layer": 3, "structure": "filter", "level": 0.5, "format": "int8"}]}
with the numbers of layers that compress show prints. For exclusion lists of NNCF or Neural Compressor, print the layers for --exclude.`,
		Example: `  opmeter compress import model.onnx perf.json --name sparsify
  opmeter compress import model.onnx recipe.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return useError("name a model, and the file to import")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := infile.Read(args[1], mostImported)
			if err != nil {
				return withStatus(statusInput, plainPath(err))
			}
			return x.with(args[0], func(j *compress.Job) error {
				i, err := j.Import(data, args[1], x.name)
				if err != nil {
					return err
				}
				for _, u := range i.Unmatched {
					fmt.Fprintf(a.err, "opmeter: not in the model: %s\n", text.Clean(u))
				}
				if i.Kind == "excluded" {
					for _, l := range i.Excluded {
						fmt.Fprintf(a.out, "--exclude %s\n", text.Clean(j.Study().Layers[l].Name))
					}
					return nil
				}
				fmt.Fprintf(a.out, "%s %q is in %s\n", map[string]string{"speed": "performance profile", "loss": "loss profile", "plan": "plan"}[i.Kind], i.Name, text.Clean(x.file(args[0])))
				return nil
			})
		},
	}
	x.addStudy(c)
	c.Flags().StringVar(&x.name, "name", "", "`NAME` that it gets in the study")
	return c
}
