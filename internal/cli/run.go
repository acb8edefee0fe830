package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/engine"
	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/host"
	"github.com/opmeter/opmeter/internal/jsonx"
	"github.com/opmeter/opmeter/internal/npy"
	"github.com/opmeter/opmeter/internal/operators"
	"github.com/opmeter/opmeter/internal/read/modelfile"
	"github.com/opmeter/opmeter/internal/synth"
	"github.com/opmeter/opmeter/internal/tensor"
)

// runResult is what the run command writes as result.json.
type runResult struct {
	Model   string      `json:"model"`
	Engine  string      `json:"engine"`
	Seed    uint64      `json:"seed"`
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
}

func newRun(a *app) *cobra.Command {
	r := &runCommand{a: a}
	c := &cobra.Command{
		Use:   "run MODEL --output DIR",
		Short: "Run a model once and write its outputs",
		Long: `Run computes one inference and writes out_0.npy, out_1.npy, … and result.json with
the SHA-256 of every input and output. With --dump-ops every operator's outputs
are written too, computed one by one without fusion.`,
		Example: `  opmeter run model.tflite --seed 1 --output out
  opmeter run model.onnx --input input=cat.npy --output out
  opmeter run model.tflite --seed 1 --dump-ops --output out`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if r.out == "" {
				return useError("--output DIR says where the results go")
			}
			if r.threads < 1 || r.runs < 1 {
				return useError("--threads and --runs are 1 or more")
			}
			return r.run(c.Context(), args[0])
		},
	}
	r.m.add(c)
	r.m.addData(c)
	c.Flags().StringVar(&r.overrides, "inputs", "", "JSON file that sets shapes and fills of generated inputs, by model file name")
	c.Flags().StringVar(&r.out, "output", "", "folder for the results, made if absent")
	c.Flags().BoolVar(&r.dump, "dump-ops", false, "write every operator's outputs")
	c.Flags().IntVar(&r.threads, "threads", 1, "threads that compute")
	c.Flags().IntVar(&r.runs, "runs", 1, "inferences before the outputs are written, for models with state")
	return c
}

func (r *runCommand) run(ctx context.Context, path string) (err error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return withStatus(statusInput, prefixed(path, err))
	}
	if m.Close != nil {
		defer func() { err = errors.Join(err, m.Close()) }()
	}
	o, err := r.feed(path)
	if err != nil {
		return err
	}
	o.MaxBytes = host.MemoryLimit()
	ins, _, err := feed.Inputs(m.Main(), o)
	if err != nil {
		return withStatus(statusOf(err), prefixed(path, err))
	}
	names, err := r.m.carries()
	if err != nil {
		return err
	}
	carry, err := host.Carries(m.Main(), names)
	if err != nil {
		return withStatus(statusUse, err)
	}
	s, err := engine.New(m, ins, engine.Options{Registry: operators.Registry(), Threads: r.threads, KeepAll: r.dump, Carry: carry, MaxBytes: o.MaxBytes})
	if err != nil {
		return withStatus(statusInput, prefixed(path, err))
	}
	defer s.Close()
	for range r.runs {
		if err := s.Run(ctx); err != nil {
			return withStatus(statusSource, prefixed(path, err))
		}
	}
	return r.write(m, s, ins, path)
}

// feed turns the flags into feed options.
func (r *runCommand) feed(path string) (feed.Options, error) {
	o, err := r.m.parse()
	if err != nil {
		return o, err
	}
	if r.overrides != "" {
		all, err := synth.LoadOverrides(r.overrides)
		if err != nil {
			return o, withStatus(statusInput, err)
		}
		o.Overrides = all[filepath.Base(path)]
	}
	return o, nil
}

func (r *runCommand) write(m *graph.Model, s *engine.Session, ins []*tensor.Tensor, path string) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return withStatus(statusUse, err)
	}
	g := m.Main()
	res := runResult{Model: filepath.Base(path), Engine: "opmeter", Seed: r.m.seed, Inputs: []runTensor{}, Outputs: []runTensor{}}
	for i, id := range g.Inputs {
		res.Inputs = append(res.Inputs, describe(g.Values[id].Name, ins[i]))
	}
	missing := 0
	for i, id := range g.Outputs {
		if id < 0 {
			continue
		}
		t := s.Output(i)
		if t == nil {
			missing++
			res.Outputs = append(res.Outputs, runTensor{Name: g.Values[id].Name})
			continue
		}
		d, err := r.save(g.Values[id].Name, fmt.Sprintf("out_%d.npy", i), t)
		if err != nil {
			return err
		}
		res.Outputs = append(res.Outputs, d)
	}
	if r.dump {
		if err := r.dumpOps(g, s, &res); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(r.out, "result.json"))
	if err != nil {
		return withStatus(statusUse, err)
	}
	if err := errors.Join(jsonx.MarshalWrite(f, res), f.Close()); err != nil {
		return withStatus(statusUse, err)
	}
	return r.say(s, res, missing)
}

// dumpOps writes the outputs of every operator of the main graph.
func (r *runCommand) dumpOps(g *graph.Graph, s *engine.Session, res *runResult) error {
	for i, st := range s.Steps() {
		l := runLayer{Op: i, Kind: st.Node.Key(), Name: st.Node.Name}
		if st.Err != nil {
			l.Reason = st.Err.Error()
		}
		for k, id := range st.Node.Outputs {
			t := (*tensor.Tensor)(nil)
			if id >= 0 && st.Err == nil {
				t = s.Value(id)
			}
			if t == nil {
				continue
			}
			d, err := r.save(g.Values[id].Name, fmt.Sprintf("op_%d_%d.npy", i, k), t)
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
func (r *runCommand) say(s *engine.Session, res runResult, missing int) error {
	for _, o := range res.Outputs {
		if o.DType == "" {
			fmt.Fprintf(r.a.out, "%s: not computed\n", o.Name)
			continue
		}
		fmt.Fprintf(r.a.out, "%s %s %s %s\n", o.Name, o.DType, tensor.FormatShape(o.Shape), filepath.Join(r.out, o.File))
	}
	lost := 0
	for _, st := range s.Steps() {
		if st.Err != nil {
			if lost++; lost <= 5 {
				fmt.Fprintf(r.a.err, "node %d (%s): %v\n", st.Node.Index, st.Node.Key(), st.Err)
			}
		}
	}
	if lost > 0 {
		return withStatus(statusSource, fmt.Errorf("%s did not run, so %s missing; others may rest on zeros in their place", plural(lost, "operator"), are(missing, "output")))
	}
	return nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func are(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return plural(n, what) + " are"
}

func describe(name string, t *tensor.Tensor) runTensor {
	d := runTensor{Name: name, DType: t.Type.String(), Shape: t.Shape}
	if d.Shape == nil {
		d.Shape = []int{}
	}
	if t.Type == tensor.String {
		d.Values = t.Strings
		return d
	}
	if t.Known() && !t.Type.IsContainer() {
		h := sha256.Sum256(t.Data)
		d.SHA256 = hex.EncodeToString(h[:])
	}
	return d
}

// save writes a tensor as .npy; strings and containers go into result.json only.
func (r *runCommand) save(name, file string, t *tensor.Tensor) (runTensor, error) {
	d := describe(name, t)
	if t.Type == tensor.String || t.Type.IsContainer() || t.Type == tensor.Resource || t.Type == tensor.Variant {
		return d, nil
	}
	d.File = file
	return d, withStatus(statusUse, npy.WriteFile(filepath.Join(r.out, file), t))
}
