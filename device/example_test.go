package device_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/device"
)

// A recording is measured like the board that it comes from.
func ExampleMeasure() {
	folder, err := os.MkdirTemp("", "device")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "board.log")
	const line = `{"ModelNumber":0,"Type":"Cycles","FeatureCycles":[1000,2000],"ClassifierCycles":500}` + "\n"
	if err := os.WriteFile(file, []byte(strings.Repeat(line, 8)), 0o600); err != nil {
		log.Fatal(err)
	}
	p, err := device.Measure(context.Background(), nil, device.Options{Port: "file:" + file, ClockHz: 1e6})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range p.Layers {
		seconds, _ := l.Latency.Best()
		fmt.Println(l.Op, seconds, "s")
	}
	// Output:
	// generator 0.001 s
	// generator 0.002 s
	// classifier 0.0005 s
}

func ExampleNewProgram() {
	m, err := opmeter.Open("../examples/ds_cnn.yaml")
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	p, err := device.NewProgram(m, device.ProgramOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(p.Layers), "operators, main source:", len(p.Files["model.c"]) > 0)
	// Output: 13 operators, main source: true
}
