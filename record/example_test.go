package record_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/record"
)

// A profile of ONNX Runtime becomes one of opmeter.
func ExampleImport() {
	folder, err := os.MkdirTemp("", "record")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	const trace = `[{"cat": "Node", "pid": 7, "tid": 7, "ts": 5, "dur": 30, "ph": "X", "name": "a_kernel_time",
		"args": {"op_name": "Relu", "node_index": "0"}}]`
	if err := os.WriteFile(filepath.Join(folder, "trace.json"), []byte(trace), 0o600); err != nil {
		log.Fatal(err)
	}
	found, err := record.Import(context.Background(), folder, record.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range found.Profiles {
		seconds, _ := p.Totals.Latency.Best()
		fmt.Println(p.Model.Format, p.Layers[0].Op, seconds, "s")
	}
	// Output: onnxruntime Relu 3e-05 s
}
