// Command compress shows what losses of layers, plans and predicted times of opmeter compress are worth, on
// samples that were not used:
//
//	python3 -m venv VENV && VENV/bin/pip install -r bench/compress/requirements.txt
//	VENV/bin/python bench/compress/train.py FOLDER
//	go run ./bench/compress [-losses] [-plans] [-times] [-random] FOLDER [MODEL ...]
//
// Losses: the rank correlation, over layers, of what is predicted of a network with the drop of accuracy that the change of
// one layer makes on the held-out samples. Plans: their speed, in turns with the unchanged model, and their drop on the held-out samples,
// beside uniform sparsity and Sparsify's allocator. Times: those predicted of plans against those measured, also of further
// models with random inputs. Random: the same of models whose layers have changes drawn at random. Without a flag, all four.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/describe"
	"github.com/opmeter/opmeter/internal/graph"
	"github.com/opmeter/opmeter/internal/read/modelfile"
)

func main() {
	var o options
	flag.BoolVar(&o.losses, "losses", false, "losses of layers against true drops")
	flag.BoolVar(&o.plans, "plans", false, "plans against uniform sparsity and Sparsify's")
	flag.BoolVar(&o.times, "times", false, "predicted against measured times")
	flag.BoolVar(&o.random, "random", false, "predicted against measured times of random changes")
	flag.Parse()
	if o == (options{}) {
		o = options{true, true, true, true}
	}
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := o.run(context.Background(), flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compress:", err)
		os.Exit(1)
	}
}

type options struct{ losses, plans, times, random bool }

func (o *options) run(ctx context.Context, folder string, models []string) error {
	dir, err := os.MkdirTemp("", "compress")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := filepath.Glob(filepath.Join(folder, "*", "model.onnx"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("%s has no NAME/model.onnx", folder))
	}
	var nets []*network
	for _, f := range files {
		n, err := open(f, filepath.Join(dir, fmt.Sprintf("%d.study", len(nets))))
		if err != nil {
			return err
		}
		defer n.close()
		nets = append(nets, n)
	}
	if o.losses {
		if err := truths(ctx, nets); err != nil {
			return err
		}
	}
	var found []timed
	if o.plans || o.times {
		if err := profiles(ctx, nets); err != nil {
			return err
		}
	}
	if o.plans {
		if found, err = plans(ctx, nets); err != nil {
			return err
		}
	}
	if !o.times && !o.random {
		return nil
	}
	for i, f := range models {
		n, err := open(f, filepath.Join(dir, fmt.Sprintf("more%d.study", i)))
		if err != nil {
			fmt.Println(err)
			continue
		}
		defer n.close()
		nets = append(nets, n)
	}
	if o.random {
		if err := randoms(ctx, nets); err != nil {
			return err
		}
	}
	if !o.times {
		return nil
	}
	return times(ctx, nets, found)
}

// network is a model with its samples, where it has any.
type network struct {
	name string
	m    *graph.Model
	job  *compress.Job
	// use is the folder's use_x.npy and use_y.npy, test the others.
	use, test samples.Options
	data      bool
	// batch is how many samples are run at once where times are taken, 0 for one: rows of numbers of dense networks come in
	// batches, since a single one reads each weight once and takes 1 to 3 µs whatever is done to them.
	batch int
}

// rows is the batch of dense networks.
const rows = 32

func open(path, study string) (*network, error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return nil, err
	}
	n := &network{name: filepath.Base(path), m: m}
	o := compress.Options{Identity: func() (*describe.Identity, error) { return describe.Identify(m, nil) }}
	if n.job, err = compress.Open(n.m, study, o); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	dir := filepath.Dir(path)
	at := func(kind string) samples.Options {
		return samples.Options{Path: filepath.Join(dir, kind+"_x.npy"), Labels: filepath.Join(dir, kind+"_y.npy")}
	}
	n.use, n.test = at("use"), at("test")
	if _, err := os.Stat(n.use.Path); err == nil {
		n.data, n.name = true, filepath.Base(dir)
		if v := m.Main().Values[m.Main().Inputs[0]]; len(v.Shape) == 2 {
			n.batch = rows
		}
	}
	return n, nil
}

func (n *network) close() {
	_ = n.job.Close()
	if n.m.Close != nil {
		_ = n.m.Close()
	}
}
