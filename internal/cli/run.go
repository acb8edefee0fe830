package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
)

// runResult is what the run command writes as result.json.
type runResult struct {
	Model   string      `json:"model"`
	Engine  string      `json:"engine"`
	Seed    uint64      `json:"seed"`
	Exact   bool        `json:"exact,omitempty"`
	Inputs  []runTensor `json:"inputs"`
	Outputs []runTensor `json:"outputs"`
	// Layers lists every operator's outputs, with --dump-ops.
	Layers []runLayer `json:"layers,omitempty"`
}

type runTensor struct {
	Name   string   `json:"name"`
	DType  string   `json:"dtype"`
	Shape  []int    `json:"shape"`
	SHA256 string   `json:"sha256,omitempty"`
	File   string   `json:"file,omitempty"`
	Values []string `json:"values,omitempty"` // strings
}

type runLayer struct {
	Op      int         `json:"op"`
	Kind    string      `json:"kind"`
	Name    string      `json:"name,omitempty"`
	Outputs []runTensor `json:"outputs,omitempty"`
	Reason  string      `json:"reason,omitempty"` // why it did not run
}

type runCommand struct {
	a         *app
	m         modelFlags
	overrides string
	out       string
	dump      bool
	threads   int
	runs      int
	instances int
	profiles  []string
}

func newRun(a *app) *cobra.Command {
	r := &runCommand{a: a}
	c := &cobra.Command{
		Use:   "run MODEL --output DIR",
		Short: "Run a model once and write its outputs to files",
		Long: `Run one inference and write out_0.npy, out_1.npy, … and result.json with the SHA-256 of every
input and output. Text is an array of numpy's type U, in files of --input, too; without --input,
strings are empty. With --dump-ops, operators run one by one without fusion and the outputs of
each are written, too.

With ENGINE_PROFILING set, or --instances N, the run is recorded in the format of Intel's
Neural Engine profiler, in engine_profiling/ here; docs/reference/neural-engine.md has the rules.`,
		Example: `  opmeter run model.tflite --seed 1 --output out
  opmeter run model.onnx --input input=cat.npy --output out
  opmeter run model.tflite --seed 1 --dump-ops --output out
  opmeter run model.onnx --instances 4 --profile four.html --output out`,
		Args: one("a model file"),
		RunE: func(c *cobra.Command, args []string) error {
			if r.out == "" {
				return useError("name the folder for the results with --output DIR")
			}
			for _, p := range r.profiles {
				if _, err := report.FormatOf(p); err != nil {
					return withStatus(statusUse, err)
				}
			}
			if err := ready(r.profiles, args[0]); err != nil {
				return err
			}
			return r.run(c.Context(), args[0])
		},
	}
	r.m.add(c)
	r.m.addData(c)
	a.addSignature(c)
	c.Flags().StringVar(&r.overrides, "inputs", "", "`FILE`: shapes and fills of generated inputs, as JSON")
	c.Flags().StringVar(&r.out, "output", "", "`DIR`: folder for the results, created if missing")
	c.Flags().BoolVar(&r.dump, "dump-ops", false, "write every operator's outputs")
	wholeVar(c, &r.threads, "threads", 1, 1, 1024, "number of threads", "")
	wholeVar(c, &r.runs, "runs", 1, 1, most, "inferences before outputs are written, for models with state", "")
	wholeVar(c, &r.instances, "instances", 0, 1, 64, "record N sessions at the same time", "")
	c.Flags().StringArrayVar(&r.profiles, "profile", nil, "`FILE`: write the recorded run, all instances in one")
	return c
}

func (r *runCommand) run(ctx context.Context, path string) error {
	o := opmeter.RunOptions{Threads: r.threads, Exact: r.m.exact, KeepAll: r.dump, MaxLoop: r.m.loops()}
	var err error
	if o.Carry, err = r.m.carries(); err != nil {
		return err
	}
	if o.MaxMemory, err = r.m.memory(); err != nil {
		return err
	}
	if o.Inputs, err = r.m.inputs(); err != nil {
		return err
	}
	o.Inputs.Overrides = r.overrides
	if err := told(o.Validate()); err != nil {
		return err
	}
	if r.recorded() {
		o.Record = true
		return r.a.withModel(path, func(m *opmeter.Model) error { return r.record(ctx, m, o) })
	}
	return r.a.withModel(path, func(m *opmeter.Model) error {
		s, err := opmeter.NewSession(m, o)
		if err != nil {
			return told(err)
		}
		defer s.Close()
		for range r.runs {
			if err := s.Run(ctx); err != nil {
				return told(err)
			}
		}
		return r.write(s, m.Name())
	})
}

// write saves the outputs and says which there are.
func (r *runCommand) write(s *opmeter.Session, path string) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	res := runResult{Model: filepath.Base(path), Engine: "opmeter", Seed: r.m.seed, Exact: r.m.exact, Inputs: []runTensor{}, Outputs: []runTensor{}}
	for _, t := range s.Inputs() {
		res.Inputs = append(res.Inputs, describe(&t))
	}
	missing := 0
	for _, t := range s.Outputs() {
		if t.DType == "" {
			missing++
			res.Outputs = append(res.Outputs, runTensor{Name: t.Name})
			continue
		}
		d, err := r.save(&t, fmt.Sprintf("out_%d.npy", t.Place))
		if err != nil {
			return err
		}
		res.Outputs = append(res.Outputs, d)
	}
	ops := s.Operators()
	if r.dump {
		if err := r.dumpOps(ops, &res); err != nil {
			return err
		}
	}
	err := create(filepath.Join(r.out, "result.json"), func(w io.Writer) error { return jsonx.MarshalWrite(w, res) })
	if err != nil {
		return err
	}
	return r.say(ops, res, missing)
}

// create writes a file.
func create(path string, write func(io.Writer) error) error {
	err := atomicfile.Stream(path, write)
	return withStatus(statusUse, plainPath(err))
}

// dumpOps writes the outputs of every operator of the main graph.
func (r *runCommand) dumpOps(ops []opmeter.Operator, res *runResult) error {
	for i, o := range ops {
		l := runLayer{Op: i, Kind: o.Op, Name: o.Name}
		if o.Err != nil {
			l.Reason = o.Err.Error()
		}
		for _, t := range o.Outputs {
			d, err := r.save(&t, fmt.Sprintf("op_%d_%d.npy", i, t.Place))
			if err != nil {
				return err
			}
			l.Outputs = append(l.Outputs, d)
		}
		res.Layers = append(res.Layers, l)
	}
	return nil
}

// say prints the outputs and what could not be computed.
func (r *runCommand) say(ops []opmeter.Operator, res runResult, missing int) error {
	for _, o := range res.Outputs {
		if o.DType == "" {
			fmt.Fprintf(r.a.out, "%s: not computed\n", text.Clean(o.Name))
			continue
		}
		where := filepath.Join(r.out, "result.json")
		if o.File != "" {
			where = filepath.Join(r.out, o.File)
		}
		shape := make([]int64, len(o.Shape))
		for i, d := range o.Shape {
			shape[i] = int64(d)
		}
		fmt.Fprintf(r.a.out, "%s %s %s %s\n", text.Clean(o.Name), o.DType, words.Shape(shape), where)
	}
	lost := 0
	for _, o := range ops {
		if o.Err != nil {
			if lost++; lost <= 5 {
				fmt.Fprintf(r.a.err, "node %d (%s): %s\n", o.Node, text.Clean(o.Op), text.Clean(o.Err.Error()))
			}
		}
	}
	if lost > 0 {
		return withStatus(statusSource, fmt.Errorf("%s did not run, so %s missing", plural(lost, "operator"), are(missing, "output")))
	}
	return nil
}

func plural(n int, what string) string { return words.Plural(int64(n), what) }

func are(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + " is"
	case 1:
		return "1 " + what + " is"
	}
	return plural(n, what) + " are"
}

func describe(t *opmeter.Tensor) runTensor {
	d := runTensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Values: t.Strings}
	if t.Data != nil {
		h := sha256.Sum256(t.Data)
		d.SHA256 = hex.EncodeToString(h[:])
	}
	return d
}

// save writes a tensor as .npy. Containers go into result.json only, as does text that numpy cannot
// hold. Other text is in both.
func (r *runCommand) save(t *opmeter.Tensor, file string) (runTensor, error) {
	d := describe(t)
	if !t.Array() {
		return d, nil
	}
	d.File = file
	return d, withStatus(statusUse, plainPath(atomicfile.Many(filepath.Join(r.out, file), t.WriteNPY)))
}
