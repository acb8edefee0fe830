// Command join says how much of what ONNX Runtime executes is led back to the model's
// operators, and how surely: a line a model and level of optimisation.
//
//	go run ./bench/guests/join -library .../libonnxruntime.so [-levels none,all] [-v] MODEL...
//
// Shares are of the time that the library's profiler recorded. "sure" is exactly or by
// tensor; "own" is what the engine put in by itself, such as a change of layout.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/internal/guest"
	"github.com/opmeter/opmeter/internal/guest/onnxruntime"
	"github.com/opmeter/opmeter/internal/ingest"
	"github.com/opmeter/opmeter/internal/join"
	"github.com/opmeter/opmeter/internal/read/modelfile"
	"github.com/opmeter/opmeter/profile"
)

func main() {
	library := flag.String("library", "", "ONNX Runtime's library")
	levels := flag.String("levels", "none,basic,extended,all", "levels of optimisation")
	runs := flag.Int("runs", 10, "runs of each")
	verbose := flag.Bool("v", false, "rows that are not sure")
	flag.Parse()
	l, err := onnxruntime.Open(*library)
	if err != nil {
		fmt.Fprintln(os.Stderr, "join:", err)
		os.Exit(1)
	}
	fmt.Printf("%-44s %-9s %6s %8s %8s %8s %8s %8s %8s\n", "model", "level", "rows", "own", "exact", "tensor", "name", "order", "none")
	for _, path := range flag.Args() {
		for _, level := range strings.Split(*levels, ",") {
			if err := one(l, path, level, *runs, *verbose); err != nil {
				fmt.Printf("%-44s %-9s %v\n", filepath.Base(path), level, err)
				break
			}
		}
	}
}

func one(l guest.Library, path, level string, runs int, verbose bool) error {
	base, t, err := task(path)
	if err != nil {
		return err
	}
	defer os.RemoveAll(t.Folder)
	t.Options = []guest.Option{{Key: "optimization", Value: level}}
	run, err := record(l, t, runs)
	if err != nil {
		return err
	}
	rows := run.Profile.Layers
	ms := join.Find(base.Layers, rows, run.Hints)
	join.Fill(run.Profile, base, ms)
	by, all, own := map[profile.Confidence]float64{}, 0.0, 0.0
	for i := range rows {
		if rows[i].Latency == nil || rows[i].Latency.Typical == nil {
			continue
		}
		s := *rows[i].Latency.Typical
		all += s
		if len(ms[i].Serves) > 0 {
			own += s
			continue
		}
		by[rows[i].Provenance.Confidence] += s
	}
	p := func(c profile.Confidence) float64 { return 100 * by[c] / all }
	fmt.Printf("%-44s %-9s %6d %8.2f %8.2f %8.2f %8.2f %8.2f %8.2f\n", filepath.Base(path), level, len(rows), 100*own/all, p(profile.Exact), p(profile.ByTensor), p(profile.ByName), p(profile.ByOrder), p(profile.Unknown))
	for i := range rows {
		c := rows[i].Provenance.Confidence
		if !verbose || rows[i].Latency == nil {
			continue
		}
		mark := " "
		if len(ms[i].Serves) == 0 && c != profile.Exact && c != profile.ByTensor {
			mark = "!"
		}
		fmt.Printf("  %s %5.2f %% %-9s %s %q in %v out %v:", mark, 100**rows[i].Latency.Typical/all, c, rows[i].Op, rows[i].Name, run.Hints[i].Inputs, run.Hints[i].Outputs)
		for k, at := range ms[i].Layers {
			fmt.Printf(" %s %q %s;", base.Layers[at].Op, base.Layers[at].Name, ms[i].How[k])
		}
		fmt.Println()
	}
	return nil
}

func record(l guest.Library, t *guest.Task, runs int) (*ingest.Run, error) {
	s, err := l.Load(t)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	p := s.(guest.Profiled)
	for range runs {
		if err := p.Run(); err != nil {
			return nil, err
		}
		if err := p.After(0); err != nil {
			return nil, err
		}
	}
	run, err := p.Recorded()
	if err == nil && run == nil {
		err = fmt.Errorf("nothing was recorded")
	}
	return run, err
}

// task makes inputs of a model, and describes it with them.
func task(path string) (*profile.Profile, *guest.Task, error) {
	m, err := modelfile.Open(path)
	if err != nil {
		return nil, nil, err
	}
	o := feed.Options{}
	ins, src, err := feed.Inputs(m, o)
	if err != nil {
		return nil, nil, err
	}
	in := opmeter.Inputs{}
	if h := feed.Suggest(m, ins, src, o); h != nil {
		in.Dims = h.Dims
		for i, s := range h.Shapes {
			if s != nil {
				if in.Shapes == nil {
					in.Shapes = map[string][]int{}
				}
				in.Shapes[m.Main().Values[m.Main().Inputs[i]].Name] = s
			}
		}
		o.Dims, o.Shapes = in.Dims, in.Shapes
		if ins, _, err = feed.Inputs(m, o); err != nil {
			return nil, nil, err
		}
	}
	om, err := opmeter.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer om.Close()
	base, err := opmeter.Count(om, in)
	if err != nil {
		return nil, nil, err
	}
	folder, err := os.MkdirTemp("", "opmeter-join-")
	if err != nil {
		return nil, nil, err
	}
	t := &guest.Task{Model: path, Format: "onnx", Threads: 1, Profiled: true, Folder: folder}
	for i, x := range ins {
		t.Inputs = append(t.Inputs, guest.Tensor{Name: m.Main().Values[m.Main().Inputs[i]].Name, DType: x.Type.String(), Shape: x.Shape, Data: x.Data, Strings: x.Strings})
	}
	return base, t, nil
}
