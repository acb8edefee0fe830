package opmeter_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/profile"
)

// The whole way: open a model, run it, see which operators take the time.
func Example() {
	m, err := opmeter.Open("examples/ds_cnn.yaml") // or any .tflite or .onnx file
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	p, err := opmeter.Profile(context.Background(), m, opmeter.Options{Runs: 10})
	if err != nil {
		log.Fatal(err)
	}
	total, _ := p.Totals.Latency.Best() // seconds; differs from machine to machine
	fmt.Println(p.Model.Name, "measured:", total > 0)
	for _, l := range p.Layers[:3] {
		_, ok := l.Latency.Best()
		fmt.Println(l.Index, l.Op, l.Outputs[0].Shape, *l.MACs, "MACs, measured:", ok)
	}
	// Output:
	// ds_cnn measured: true
	// 0 CONV_2D [1 25 5 64] 320000 MACs, measured: true
	// 1 DEPTHWISE_CONV_2D [1 25 5 64] 72000 MACs, measured: true
	// 2 CONV_2D [1 25 5 64] 512000 MACs, measured: true
}

// The same model on chips that are absent.
func ExampleEstimate() {
	m, err := opmeter.Open("examples/ds_cnn.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for _, id := range []string{"stm32l4r5", "efr32xg24-mvp"} {
		p, err := opmeter.Estimate(m, id, opmeter.EstimateOptions{})
		if err != nil {
			log.Fatal(err)
		}
		v, _ := p.Totals.Latency.Best()
		band := p.Totals.Latency.Band
		fmt.Printf("%s: %s, in its band: %v, RAM known: %v\n", id, p.Target.Engine, band[0] < v && v < band[1], p.Totals.RAMBytes != nil)
	}
	// Output:
	// stm32l4r5: tflm-cmsis-nn, in its band: true, RAM known: true
	// efr32xg24-mvp: tflm-mvp, in its band: true, RAM known: true
}

func ExampleOpen() {
	m, err := opmeter.Open("examples/resnet8.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(m.Format())
	for _, t := range m.Inputs() {
		fmt.Println("input", t.Name, t.DType, t.Shape)
	}
	for _, t := range m.Outputs() {
		fmt.Println("output", t.DType, t.Shape)
	}
	// Output:
	// tflite
	// input image int8 [1 32 32 3]
	// output int8 [1 10]
}

// A file that is not a model gives an error that says what was expected.
func ExampleOpen_error() {
	_, err := opmeter.Open("LICENSE")
	fmt.Println(err != nil)
	// Output: true
}

func ExampleCount() {
	m, err := opmeter.Open("examples/autoencoder.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for _, n := range []int{1, 4} {
		p, err := opmeter.Count(m, opmeter.Inputs{Batch: n})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("batch", n, "layers", *p.Totals.Layers, "MACs", *p.Totals.MACs, "parameters", *p.Totals.Params)
	}
	// Output:
	// batch 1 layers 10 MACs 264192 parameters 265864
	// batch 4 layers 10 MACs 1056768 parameters 265864
}

// When the context ends, the profile holds what was measured until then.
func ExampleProfile_cancel() {
	m, err := opmeter.Open("examples/ds_cnn.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	p, err := opmeter.Profile(ctx, m, opmeter.Options{Time: time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(p.Layers), "layers, incomplete:", p.Incomplete[0].Cause)
	// Output: 13 layers, incomplete: deadline
}

// Every option has a useful zero value. Errors say by their type whose fault it is.
func ExampleProfile_errors() {
	try := func(file string, o opmeter.Options) {
		m, err := opmeter.Open(file)
		if err == nil {
			defer m.Close()
			_, err = opmeter.Profile(context.Background(), m, o)
		}
		if e, ok := errors.AsType[*opmeter.OptionError](err); ok {
			fmt.Println("wrong option", e.Option+":", e.Text)
		} else if e, ok := errors.AsType[*opmeter.ModelError](err); ok {
			fmt.Println("bad model", e.File)
		} else if e, ok := errors.AsType[*opmeter.NodeError](err); ok {
			fmt.Println("node", e.Node, e.Op, "failed:", e.Err)
		} else {
			fmt.Println("error:", err)
		}
	}
	o := opmeter.Options{Threads: 2, Runs: 5, Warmup: -1} // no warm-up
	try("examples/ds_cnn.yaml", o)
	try("LICENSE", o)
	o.Inputs.Shapes = map[string][]int{"image": {1, 640}}
	try("examples/autoencoder.yaml", o)
	o.Threads = -2
	try("examples/autoencoder.yaml", o)
	// Output:
	// error: <nil>
	// bad model LICENSE
	// wrong option Inputs.Shapes: the model has no input "image"; its inputs are "spectrum"
	// wrong option Threads: use 1 to 1024, not -2
}

// A profile is saved whole and read again by any later version.
func ExampleOptions() {
	m, err := opmeter.Open("examples/autoencoder.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	p, err := opmeter.Profile(context.Background(), m, opmeter.Options{
		Inputs:      opmeter.Inputs{Seed: 7, Shapes: map[string][]int{"spectrum": {8, 640}}},
		Threads:     2,
		Runs:        5,
		Warmup:      -1, // none
		KeepSamples: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("threads", *p.Settings.Threads)
	fmt.Println("input", p.Settings.Inputs["spectrum"].Kind, p.Settings.Inputs["spectrum"].Shape)
	fmt.Println("samples", len(p.Totals.LatencySamples))

	file := filepath.Join(os.TempDir(), "example"+profile.Extension)
	defer os.Remove(file)
	if err := profile.Write(file, p); err != nil {
		log.Fatal(err)
	}
	again, err := profile.Read(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("read again:", again.Model.Name)
	// Output:
	// threads 2
	// input random [8 640]
	// samples 5
	// read again: autoencoder
}

// A session computes outputs.
func ExampleSession() {
	m, err := opmeter.Open("examples/ds_cnn.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	s, err := opmeter.NewSession(m, opmeter.RunOptions{Inputs: opmeter.Inputs{Seed: 1}})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	for _, t := range s.Outputs() {
		fmt.Println(t.DType, t.Shape, len(t.Data), "bytes")
	}
	// Output: int8 [1 12] 12 bytes
}
