// Command firmware makes C programs of models, runs them on this computer and compares
// all outputs with the engine, byte for byte:
//
//	go run ./bench/firmware [-seeds 3] [-cc cc] [-flags "-O2"] FILE.tflite...
//
// It prints a line a model: what became of it, operators, bytes of constants, bytes of
// memory. A model with operators for which there is no C is refused, with the first
// reason; one whose outputs differ makes the exit status 1. With
//
//	-flags "-O1 -fsanitize=address,undefined"
//
// the compiler checks addresses and undefined behaviour as well.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/device"
)

// host runs a program with its embedded inputs and writes all outputs.
const host = `#include <stdio.h>
#include "model.h"

int main(void) {
  uint32_t i, n;
  model_set_inputs();
  model_run();
  for (i = 0; i < model_outputs(); i++) {
    const void *p = model_output(i, &n);
    fwrite(p, 1, n, stdout);
  }
  return 0;
}
`

func main() {
	seeds := flag.Int("seeds", 3, "number of `seeds` of inputs")
	cc := flag.String("cc", "cc", "C `compiler`")
	flags := flag.String("flags", "-O2", "`flags` of the compiler")
	flag.Parse()
	status := 0
	fmt.Printf("%-48s %-10s %6s %10s %10s\n", "model", "outputs", "ops", "constants", "memory")
	for _, file := range flag.Args() {
		p, same, err := compare(file, *seeds, *cc, strings.Fields(*flags))
		name := strings.TrimSuffix(filepath.Base(file), ".tflite")
		switch e, refused := errors.AsType[*device.UnsupportedError](err); {
		case refused:
			fmt.Printf("%-48s refused    %d operators, first: layer %d, %s: %s\n", name, len(e.Layers), e.Layers[0].Layer, e.Layers[0].Op, e.Layers[0].Text)
		case err != nil:
			fmt.Printf("%-48s failed     %v\n", name, err)
			status = 1
		case !same:
			fmt.Printf("%-48s DIFFERENT\n", name)
			status = 1
		default:
			fmt.Printf("%-48s %-10s %6d %10d %10d\n", name, "equal", len(p.Layers), p.WeightBytes, p.ArenaBytes)
		}
	}
	os.Exit(status)
}

// compare makes a program for each seed, and the outputs of a session beside it.
func compare(file string, seeds int, cc string, flags []string) (p *device.Program, same bool, err error) {
	m, err := opmeter.Open(file)
	if err != nil {
		return nil, false, err
	}
	defer m.Close()
	for seed := range seeds {
		in := opmeter.Inputs{Seed: uint64(seed)}
		if p, err = device.NewProgram(m, device.ProgramOptions{Inputs: in}); err != nil {
			return nil, false, err
		}
		got, err := run(p, cc, flags)
		if err != nil {
			return nil, false, err
		}
		want, err := session(m, in)
		if err != nil {
			return nil, false, err
		}
		if !bytes.Equal(got, want) {
			return p, false, nil
		}
	}
	return p, true, nil
}

// run compiles a program in a folder of its own and returns what it writes.
func run(p *device.Program, cc string, flags []string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "opmeter-firmware-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	exe := filepath.Join(dir, "program")
	args := append([]string{"-std=c99", "-DMODEL_NO_AGENT", "-ffp-contract=off", "-o", exe}, flags...)
	files := map[string][]byte{"main.c": []byte(host)}
	for name, data := range p.Files {
		files[name] = data
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, ".c") {
			args = append(args, path)
		}
	}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	return exec.Command(exe).Output()
}

// session returns the engine's outputs.
func session(m *opmeter.Model, in opmeter.Inputs) ([]byte, error) {
	s, err := opmeter.NewSession(m, opmeter.RunOptions{Inputs: in})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.Run(context.Background()); err != nil {
		return nil, err
	}
	var out []byte
	for _, t := range s.Outputs() {
		out = append(out, t.Data...)
	}
	return out, nil
}
