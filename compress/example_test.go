package compress_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/compress"
	"github.com/opmeter/opmeter/study"
)

// Half of the weights of each layer become zero where that costs least, and the changed model is
// written.
func Example() {
	m, err := opmeter.Open("../examples/autoencoder.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	folder, err := os.MkdirTemp("", "compress")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	job, err := compress.Open(m, compress.Options{Study: filepath.Join(folder, "autoencoder.study")})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = job.Close() }()
	changes := []study.Structure{study.Unstructured}
	plan, err := job.Compress(context.Background(),
		compress.SpeedOptions{Counted: true, Levels: []float64{.5}, Structures: changes, Formats: []study.Format{}},
		compress.LossOptions{Levels: []float64{.5}, Structures: changes, Formats: []study.Format{}},
		compress.PlanOptions{Unrun: true})
	if err != nil {
		log.Fatal(err)
	}
	applied, err := job.Apply(context.Background(), compress.ApplyOptions{Plan: plan.Name})
	if err != nil {
		log.Fatal(err)
	}
	err = applied.Write(filepath.Join(folder, "smaller.tflite"))
	fmt.Println(len(job.Study().Layers), "layers, refused:", len(applied.Refused), "error:", err)
	// Output: 10 layers, refused: 0 error: <nil>
}
