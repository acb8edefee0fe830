package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/subprocess"
)

// tinyCommand measures a board with the firmware of MLPerf Tiny.
type tinyCommand struct {
	a           *app
	o           outputFlags
	d           deviceFlags
	port, input string
	runs        int
	window      time.Duration
}

func newDeviceTiny(a *app) *cobra.Command {
	x := &tinyCommand{a: a}
	c := &cobra.Command{
		Use:   "tiny [MODEL]",
		Short: "Measure a board with MLPerf Tiny's firmware",
		Long: `Drive a board with the MLPerf Tiny firmware: load an input, run windows of inferences, read the time
stamps. The report has median latency and throughput, and says which rules of the benchmark are met.
The defaults of this command are its five windows of ten seconds. With a model, the predicted class is
compared with that of opmeter's engine. Only the MLPerf organisation can make a result official.`,
		Example: `  opmeter device tiny --port /dev/ttyACM0
  opmeter device tiny --port /dev/ttyACM0 ic.tflite --input cat.bin
  opmeter device tiny --port COM3 --runs 3 --window 2s -o page.html`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			if x.port == "" {
				return useError("name the board with --port: opmeter devices lists those connected")
			}
			if err := x.o.check(); err != nil {
				return err
			}
			if len(args) == 0 {
				return x.run(c.Context(), nil)
			}
			if err := ready(x.o.files, args[0]); err != nil {
				return err
			}
			return a.withModel(args[0], func(m *opmeter.Model) error { return x.run(c.Context(), m) })
		},
	}
	c.Flags().StringVar(&x.port, "port", "", "`PORT` of the board, such as /dev/ttyACM0")
	c.Flags().StringVar(&x.input, "input", "", "`FILE`: the bytes that the board is fed, or a .npy file")
	wholeVar(c, &x.runs, "runs", 5, 1, most, "windows of inferences", "the benchmark asks for 5")
	spanVar(c, &x.window, "window", 10*time.Second, time.Millisecond, "length of a window", "a time above zero, such as 10s")
	x.d.addOf(c)
	x.o.add(c)
	return c
}

func (x *tinyCommand) run(ctx context.Context, m *opmeter.Model) error {
	opts, err := x.d.options(x.a, x.port, &runFlags{runs: x.runs}, &targetFlags{}, &modelFlags{})
	if err != nil {
		return err
	}
	opts.Protocol = "tiny"
	opts.Benchmark.Window = x.window
	if x.input != "" {
		if opts.Benchmark.Input, err = inputBytes(x.input); err != nil {
			return err
		}
	}
	if m != nil {
		if opts.Benchmark.Input, opts.Benchmark.Expected, err = expected(ctx, m, opts.Benchmark.Input); err != nil {
			return err
		}
	}
	p, err := x.a.measured(ctx, m, opts, x.d.record, x.o.files)
	if p == nil {
		return err
	}
	return errors.Join(x.a.deliver(p, &x.o), err)
}

// maxInput bounds an input; boards have less.
const maxInput = 16 << 20

// inputBytes reads what a board is fed: the file as it is, or the elements of a .npy file.
func inputBytes(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, withStatus(statusInput, plainPath(err))
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxInput+1))
	switch {
	case err != nil:
		return nil, withStatus(statusInput, plainPath(err))
	case len(b) == 0 || len(b) > maxInput:
		return nil, withStatus(statusInput, fmt.Errorf("%s: is empty, or has more than %d bytes", path, maxInput))
	}
	if rest, ok := bytes.CutPrefix(b, []byte("\x93NUMPY")); ok && len(rest) > 4 {
		// A version of two bytes, the length of the header as two or four.
		n, at := int(rest[2])|int(rest[3])<<8, 4
		if rest[0] > 1 && len(rest) > 6 {
			n, at = n|int(rest[4])<<16|int(rest[5])<<24, 6
		}
		if n < 0 || at+n >= len(rest) {
			return nil, withStatus(statusInput, fmt.Errorf("%s: the .npy file is truncated", path))
		}
		if h := string(rest[at : at+n]); !strings.Contains(h, "'descr': '<") && !strings.Contains(h, "'descr': '|") || strings.Contains(h, "'fortran_order': True") {
			return nil, withStatus(statusInput, fmt.Errorf("%s: use little-endian elements in C order", path))
		}
		return rest[at+n:], nil
	}
	return b, nil
}

// expected is what opmeter's engine gives for what the board is fed, nil where it is not known
// how the board's firmware makes the model's input of it. Without an input, random bytes are
// made.
func expected(ctx context.Context, m *opmeter.Model, in []byte) (input []byte, out []float64, err error) {
	ins := m.Inputs()
	if len(ins) != 1 {
		return in, nil, nil
	}
	t := opmeter.Tensor{DType: ins[0].DType}
	n := 1
	for _, d := range ins[0].Shape {
		if d < 0 {
			d = 1 // boards run one sample at a time
		}
		t.Shape = append(t.Shape, int(d))
		if d < 1 || d > maxInput || n > maxInput {
			return in, nil, nil
		}
		n *= int(d)
	}
	size := map[string]int{"int8": 1, "uint8": 1, "float32": 4}[t.DType]
	if size == 0 || size*n > maxInput {
		return in, nil, nil
	}
	if in == nil && size == 1 {
		in = make([]byte, n)
		r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // any bytes do
		for i := range in {
			in[i] = byte(r.UintN(256))
		}
	}
	if len(in) != size*n {
		return in, nil, nil
	}
	t.Data = bytes.Clone(in)
	if pixels := len(t.Shape) == 4 && t.Shape[3] == 3; pixels && t.DType == "int8" {
		for i := range t.Data {
			// the benchmark's images are bytes from 0, of which the firmware takes 128
			t.Data[i] ^= 0x80
		}
	}
	out, err = computed(ctx, m, ins[0].Name, &t)
	return in, out, err
}

// computed runs the model once.
func computed(ctx context.Context, m *opmeter.Model, name string, t *opmeter.Tensor) ([]float64, error) {
	dir, remove, err := subprocess.Folder("")
	if err != nil {
		return nil, withStatus(statusUse, plainPath(err))
	}
	defer remove()
	path := filepath.Join(dir, "input.npy")
	if err := os.WriteFile(path, array(t), 0o600); err != nil {
		return nil, withStatus(statusUse, plainPath(err))
	}
	s, err := opmeter.NewSession(m, opmeter.RunOptions{Inputs: opmeter.Inputs{Files: map[string]string{name: path}}})
	if err != nil {
		return nil, told(err)
	}
	defer s.Close()
	if err := s.Run(ctx); err != nil {
		return nil, told(err)
	}
	outs := s.Outputs()
	if len(outs) != 1 {
		return nil, nil
	}
	return numbers(&outs[0]), nil
}

// array writes a tensor as a .npy file.
func array(t *opmeter.Tensor) []byte {
	var shape strings.Builder
	for _, d := range t.Shape {
		fmt.Fprintf(&shape, "%d, ", d)
	}
	descr := map[string]string{"int8": "|i1", "uint8": "|u1", "float32": "<f4"}[t.DType]
	h := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape.String())
	// The data begins at a multiple of 64 bytes; the header ends with a new line.
	h += strings.Repeat(" ", 63-(10+len(h))%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(h)), byte(len(h)>>8))
	return append(append(b, h...), t.Data...)
}

// numbers are the elements of an output; of quantised ones the order is all that counts.
func numbers(t *opmeter.Tensor) (out []float64) {
	switch t.DType {
	case "int8":
		for _, c := range t.Data {
			out = append(out, float64(int8(c))) //nolint:gosec // the byte is one
		}
	case "uint8":
		for _, c := range t.Data {
			out = append(out, float64(c))
		}
	case "float32":
		for i := 0; i+4 <= len(t.Data); i += 4 {
			out = append(out, float64(math.Float32frombits(uint32(t.Data[i])|uint32(t.Data[i+1])<<8|uint32(t.Data[i+2])<<16|uint32(t.Data[i+3])<<24)))
		}
	}
	return out
}
