package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// program measures fresh processes of the opmeter program, interleaved: its version, and an
// estimate of a model up to the table. It prints medians, minima and the size of the file.
func program(path, model string, rounds int) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	commands := [][]string{{"version"}, {"profile", model, "--on", "stm32l4r5"}}
	times := make([][]float64, len(commands))
	for range rounds {
		for i, args := range commands {
			c := exec.Command(path, args...)
			began := time.Now()
			if out, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("%s %s: %w: %s", path, args[0], err, out)
			}
			times[i] = append(times[i], 1e3*time.Since(began).Seconds())
		}
	}
	fmt.Printf("size %.1f MB\n", float64(info.Size())/1e6)
	for i, name := range []string{"version", "estimate"} {
		slices.Sort(times[i])
		fmt.Printf("%-9s median %.1f ms, minimum %.1f ms, %d processes\n", name, times[i][rounds/2], times[i][0], rounds)
	}
	return nil
}
