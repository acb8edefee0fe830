// Command hostile changes real models until they make no sense, and sends each through
// reader, plan, description and engine:
//
//	go run ./bench/hostile -n 20000 [-level graph|bytes] [-seed N] [-models DIR] [-workers N]
//
// The same seed makes the same models. At the level of the graph a change is one to
// three of: an attribute, an element type, a shape, an edge, an input or output that is
// absent or twice there, a scale or zero point, the elements of a constant, another
// operator. At the level of bytes it is flipped bits, a cut end, a piece of another
// model, a length or offset of an odd size.
//
// A model fails when something panics or ends in an internal error, when it takes more
// than 10 s or, over all workers, 1 GiB each, or when its description is not a valid
// profile. Failing models are kept in the folder -keep, and the exit status is 1.
//
// With -out the models are written to a folder and not tried. With
//
//	go run ./bench/hostile -files DIR -program PATH
//
// the program itself profiles each file below the folder, within 10 s and 1 GiB, and
// must end with status 0, 3 or 4 and one line of error at most.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/opmeter/opmeter/internal/testing/conformance"
	"github.com/opmeter/opmeter/internal/testing/material"
)

func main() {
	var o options
	flag.IntVar(&o.n, "n", 1000, "number of models")
	flag.IntVar(&o.first, "first", 0, "number of the first one, to run a part")
	flag.StringVar(&o.level, "level", "graph", "what is changed: graph or bytes")
	flag.StringVar(&o.models, "models", "", "folder of the models to change (default: the reference material's)")
	flag.Uint64Var(&o.seed, "seed", 1, "seed")
	flag.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "models that are tried at the same time")
	flag.StringVar(&o.keep, "keep", "", "folder for models that fail")
	out := flag.String("out", "", "write the models to this folder instead of trying them")
	files := flag.String("files", "", "folder of files to profile with -program")
	program := flag.String("program", "opmeter", "program for -files")
	flag.Parse()
	var err error
	switch {
	case *files != "":
		err = runFiles(os.Stdout, *program, *files)
	case *out != "":
		err = write(o, *out)
	default:
		err = try(os.Stdout, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

type options struct {
	n, first, workers   int
	level, models, keep string
	seed                uint64
}

// source is a sound model.
type source struct {
	name string
	data []byte
}

// sizeLimit keeps a thousand files small.
const sizeLimit = 1 << 18

func sources(o options) ([]source, error) {
	dir := o.models
	if dir == "" {
		if dir = material.Dir(); dir == "" {
			return nil, errors.New("-models names a folder of models: the reference material is absent")
		}
		dir = filepath.Join(dir, "models")
	}
	out, err := load(dir)
	if err != nil {
		return nil, err
	}
	tests, err := conformance.Load(filepath.Join(dir, "onnx_node_tests"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, t := range tests {
		if len(t.Model) <= sizeLimit {
			out = append(out, source{t.Name + ".onnx", t.Model})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no .tflite or .onnx file of up to %d KiB", dir, sizeLimit>>10)
	}
	return out, nil
}

// load reads the models below a folder, in order of their paths.
func load(dir string) ([]source, error) {
	var out []source
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(p, ".tflite") && !strings.HasSuffix(p, ".onnx") {
			return err
		}
		if st, err := d.Info(); err != nil || st.Size() > sizeLimit || st.Size() < 64 {
			return err
		}
		b, err := os.ReadFile(p)
		out = append(out, source{filepath.Base(p), b})
		return err
	})
	return out, err
}

// mutant makes model number i.
func mutant(all []source, o options, i int) (name string, data []byte) {
	r := rand.New(rand.NewPCG(o.seed, uint64(i)))
	for {
		s := all[r.IntN(len(all))]
		var kinds []string
		if o.level == "bytes" {
			data, kinds = damaged(r, all, s)
		} else if data, kinds = changed(r, all, s); data == nil {
			continue // a model that our own writers do not write
		}
		ext := filepath.Ext(s.name)
		return fmt.Sprintf("%05d_%s_%s%s", i, strings.TrimSuffix(s.name, ext), strings.Join(kinds, "-"), ext), data
	}
}

// write makes the files.
func write(o options, dir string) error {
	all, err := sources(o)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := o.first; i < o.first+o.n; i++ {
		name, data := mutant(all, o, i)
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d files of %d models in %s\n", o.n, len(all), dir)
	return nil
}
