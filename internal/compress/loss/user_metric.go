package loss

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/subprocess"
	"github.com/opmeter/opmeter/internal/model/npy"
	"github.com/opmeter/opmeter/internal/model/tensor"
)

// maxPrinted bounds the output of a command, in bytes.
const maxPrinted = 1 << 16

// command runs the user's program to compute the metric of outputs. The program gets a folder
// with the outputs of all samples in out_0.npy and so on, and labels in labels.npy; it prints a
// number.
func (j *Job) command(ctx context.Context, outs [][]*tensor.Tensor) (float64, error) {
	dir, remove, err := subprocess.Folder("metric")
	if err != nil {
		return 0, err
	}
	defer remove()
	if err := writeOutputs(dir, outs); err != nil {
		return 0, err
	}
	if l := j.Data.Labels; l != nil {
		t := tensor.From(tensor.Float64, []int{len(l)}, l)
		if !slices.ContainsFunc(l, func(v float64) bool { return v != math.Trunc(v) }) {
			t = tensor.New(tensor.Int64, len(l))
			tensor.WriteFloat64(t, 0, l, tensor.Conversion{})
		}
		if err := npy.WriteFile(filepath.Join(dir, "labels.npy"), t); err != nil {
			return 0, err
		}
	}
	limit := j.CommandTime
	if limit <= 0 {
		limit = time.Minute
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	return runCommand(ctx, j.Command, dir, limit)
}

// writeOutputs writes the outputs of all runs, concatenated along the first axis.
func writeOutputs(dir string, outs [][]*tensor.Tensor) error {
	for i := range outs[0] {
		first := outs[0][i]
		if first == nil || !first.Type.IsNumber() {
			continue
		}
		shape := append([]int(nil), first.Shape...)
		if len(shape) == 0 {
			shape = []int{1}
		}
		shape[0] = 0
		all := &tensor.Tensor{Type: first.Type, Shape: shape}
		for _, o := range outs {
			t := o[i]
			rest := append([]int(nil), t.Shape...)
			if len(rest) == 0 {
				rest = []int{1}
			}
			if !slices.Equal(rest[1:], shape[1:]) {
				return fmt.Errorf("output %d has other shapes for other samples, which one array cannot hold", i)
			}
			shape[0] += rest[0]
			all.Data = append(all.Data, t.Data...)
		}
		if err := npy.WriteFile(filepath.Join(dir, fmt.Sprintf("out_%d.npy", i)), all); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

// limitedBuffer keeps the beginning of a program's output.
type limitedBuffer struct{ b bytes.Buffer }

// Write accepts all data, and keeps maxPrinted bytes.
func (s *limitedBuffer) Write(p []byte) (int, error) {
	if left := maxPrinted - s.b.Len(); left > 0 {
		s.b.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}

// runCommand runs a program without a shell, and parses the number that it prints.
func runCommand(ctx context.Context, args []string, dir string, limit time.Duration) (float64, error) {
	c := exec.CommandContext(ctx, args[0], append(slices.Clone(args[1:]), dir)...)
	var out, bad limitedBuffer
	c.Stdout, c.Stderr = &out, &bad
	c.WaitDelay = time.Second
	err := subprocess.Run(c)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return 0, fmt.Errorf("command %s had not ended after %v, the limit", args[0], limit)
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, fmt.Errorf("command %s: %w%s", args[0], err, lastLine(bad.b.String()))
	}
	text := strings.TrimSpace(out.b.String())
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		if len(text) > 60 {
			text = text[:60] + "..."
		}
		return 0, fmt.Errorf("command %s printed %q, a number was expected", args[0], text)
	}
	return v, nil
}

// lastLine returns the last line of a program's output, after a colon.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	return ": " + text[strings.LastIndexByte(text, '\n')+1:]
}
