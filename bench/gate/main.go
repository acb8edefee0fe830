// Command gate shows what opmeter gate decides for changes whose effect is known.
//
//	go run ./bench/gate [-changes 200] [-opmeter PROGRAM] [-rounds 50] [-json FILE]
//
// It has four parts:
//
//   - exact figures: models that differ from their base by a known amount of work and weights, by
//     closed formulas of this program;
//   - measured figures: versions that differ by a known ratio, on a simulated machine with noise,
//     alone and as one matrix;
//   - processes of opmeter gate accept that are killed at a random step: the baselines stay whole;
//   - processes that write at the same time: no record is lost.
//
// The last two parts need a program of opmeter. Exit status 1: a part did not hold what docs/ci.md
// promises.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

// result is what the parts found out.
type result struct {
	Exact    *exactResult    `json:"exact"`
	Measured []measuredGroup `json:"measured"`
	Matrix   *matrixResult   `json:"matrix"`
	Killed   *killedResult   `json:"killed,omitempty"`
	Together *togetherResult `json:"together,omitempty"`
}

func main() {
	changes := flag.Int("changes", 200, "simulated changes")
	program := flag.String("opmeter", "", "program of opmeter, for processes that are killed")
	rounds := flag.Int("rounds", 50, "processes that are killed")
	file := flag.String("json", "", "file for the figures")
	flag.Parse()
	ok, err := run(context.Background(), *changes, *rounds, *program, *file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, changes, rounds int, program, file string) (ok bool, err error) {
	var r result
	if r.Exact, err = exact(changes); err != nil {
		return false, err
	}
	ok = r.Exact.show()
	if r.Measured, err = measured(ctx, changes); err != nil {
		return false, err
	}
	ok = show(r.Measured) && ok
	if r.Matrix, err = matrix(ctx, changes); err != nil {
		return false, err
	}
	ok = r.Matrix.show() && ok
	if program != "" {
		if r.Killed, err = killed(ctx, program, rounds); err != nil {
			return false, err
		}
		ok = r.Killed.show() && ok
		if r.Together, err = together(ctx, program); err != nil {
			return false, err
		}
		ok = r.Together.show() && ok
	}
	if file == "" {
		return ok, nil
	}
	b, err := json.MarshalIndent(&r, "", "  ")
	if err != nil {
		return false, err
	}
	return ok, os.WriteFile(file, append(b, '\n'), 0o644)
}
