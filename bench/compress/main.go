// Command compress checks the losses of layers, the plans and the predicted times of opmeter
// compress on held-out samples:
//
//	python3 -m venv VENV && VENV/bin/pip install -r bench/compress/requirements.txt
//	VENV/bin/python bench/compress/train.py FOLDER
//	go run ./bench/compress [-losses] [-plans] [-times] [-keep STUDIES] [-for TIME] FOLDER [MODEL]
//
// -losses compares predicted losses with the accuracy drop on held-out samples when one layer
// changes, as a rank correlation over the layers. -plans measures the speed of plans, interleaved
// with the unchanged model, and their accuracy drop, next to uniform sparsity and Sparsify's
// allocator. -times compares predicted and measured times: of these plans, of plans for several
// goals and of random plans. Without a flag all three run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/opmeter/opmeter/internal/compress"
	"github.com/opmeter/opmeter/internal/compress/samples"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/describe"
)

func main() {
	var o options
	flag.BoolVar(&o.losses, "losses", false, "losses of layers against true drops")
	flag.BoolVar(&o.plans, "plans", false, "plans against uniform sparsity and Sparsify's")
	flag.BoolVar(&o.times, "times", false, "predicted against measured times")
	flag.StringVar(&o.keep, "keep", "", "`FOLDER` of studies, with which the same command goes on")
	flag.DurationVar(&o.limit, "for", 0, "`TIME` after which to stop")
	flag.Parse()
	if !o.losses && !o.plans && !o.times {
		o.losses, o.plans, o.times = true, true, true
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

type options struct {
	losses, plans, times bool
	keep                 string
	limit                time.Duration
}

func (o *options) run(ctx context.Context, folder string, models []string) error {
	dir := o.keep
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "compress"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	if o.limit > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, o.limit)
		defer cancel()
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "model.onnx"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("%s has no NAME/model.onnx", folder))
	}
	var nets []*network
	for _, f := range files {
		n, err := open(f, filepath.Join(dir, filepath.Base(filepath.Dir(f))+".study"))
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
	if o.plans {
		if err := profiles(ctx, nets); err != nil {
			return err
		}
		if found, err = plans(ctx, nets); err != nil {
			return err
		}
	}
	if !o.times {
		return nil
	}
	for _, f := range models {
		n, err := open(f, filepath.Join(dir, filepath.Base(f)+".study"))
		if err != nil {
			fmt.Println(err)
			continue
		}
		defer n.close()
		nets = append(nets, n)
	}
	return times(ctx, nets, found, dir)
}

// network is a model with its samples, where it has any.
type network struct {
	name string
	path string
	m    *graph.Model
	job  *compress.Job
	// use is the folder's use_x.npy and use_y.npy, test the others.
	use, test samples.Options
	data      bool
	// batch is how many samples are run at once where times are taken, 0 for one: rows of numbers
	// of dense networks come in batches, since a single one reads each weight once and takes 1 to
	// 3 µs whatever is done to them.
	batch int
}

// rows is the batch of dense networks.
const rows = 32

func open(path, study string) (*network, error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return nil, err
	}
	n := &network{name: filepath.Base(path), path: path, m: m}
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
