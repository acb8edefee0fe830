package opmeter_test

import (
	"context"
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
	p, err := opmeter.Profile(context.Background(), m, opmeter.Runs(10))
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

// The same model on chips that are not there.
func ExampleEstimate() {
	m, err := opmeter.Open("examples/ds_cnn.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for _, id := range []string{"stm32l4r5", "efr32xg24-mvp"} {
		p, err := opmeter.Estimate(m, id)
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
		p, err := opmeter.Count(m, opmeter.Batch(n))
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
	p, err := opmeter.Profile(ctx, m, opmeter.For(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(p.Layers), "layers,", p.Incomplete)
	// Output: 13 layers, stopped before all runs were done; figures are of the runs until then
}

func ExampleOption() {
	m, err := opmeter.Open("examples/autoencoder.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	p, err := opmeter.Profile(context.Background(), m,
		opmeter.Threads(2),
		opmeter.Seed(7),
		opmeter.Shape("spectrum", 8, 640),
		opmeter.Warmup(-1, -1), // none
		opmeter.Runs(5),
		opmeter.KeepSamples(),
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("threads", *p.Settings.Threads)
	fmt.Println("input", p.Settings.Inputs["spectrum"].Kind, p.Settings.Inputs["spectrum"].Shape)
	fmt.Println("samples", len(p.Totals.LatencySamples))

	// A profile is saved whole and read again by any later version.
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
