package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/report"
)

// wholes is a list of wholes of a range: 1,2,4.
type wholes struct {
	p         *[]int
	low, high int
}

func (n *wholes) String() string {
	if n.p == nil {
		return ""
	}
	s := make([]string, len(*n.p))
	for i, v := range *n.p {
		s[i] = strconv.Itoa(v)
	}
	return strings.Join(s, ",")
}
func (n *wholes) Type() string { return "N,…" }

func (n *wholes) Set(s string) error {
	var out []int
	for _, f := range strings.Split(s, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(f))
		switch {
		case err != nil || v < n.low || v > n.high:
			return fmt.Errorf("write numbers from %d to %d with commas between them, such as 1,2,4, not %q", n.low, n.high, s)
		case slices.Contains(out, v):
			return fmt.Errorf("has %d twice", v)
		}
		out = append(out, v)
	}
	*n.p = out
	return nil
}

type sweepCommand struct {
	a      *app
	m      modelFlags
	o      opmeter.SweepOptions
	time   time.Duration
	warmup time.Duration
	runs   int
	pin    bool
	format string
	files  []string
	e      engineFlags
	names  map[*engine.Engine]string // of several engines, nil for one
}

func newSweep(a *app) *cobra.Command {
	s := &sweepCommand{a: a}
	c := &cobra.Command{
		Use:   "sweep MODEL",
		Short: "Measure all combinations of batch, threads and streams",
		Long: `Measure a model in all combinations of batch size, threads and streams, and list latency,
throughput and memory of each. The best trade-offs of latency and throughput (Pareto front)
are marked. Points are interleaved in several rounds, so that a slow phase of the machine
affects all of them. Ctrl-C keeps what was measured.`,
		Example: `  opmeter sweep model.tflite --threads 1,2 --streams 1,2,4
  opmeter sweep model.onnx --batch 1,4,8 --streams 1,2 -o sweep.csv`,
		Args: one("a model file"),
		RunE: func(c *cobra.Command, args []string) error { return s.run(c.Context(), args[0]) },
	}
	f := c.Flags()
	f.Var(&wholes{&s.o.Batches, 1, 1 << 20}, "batch", "`N,…`: first dimensions of every input")
	f.Var(&wholes{&s.o.Threads, 1, 1024}, "threads", "`N,…`: threads that compute, of each stream")
	f.Var(&wholes{&s.o.Streams, 1, 1024}, "streams", "`N,…`: sessions that run at the same time")
	wholeVar(c, &s.o.Rounds, "rounds", 3, 1, 100, "measurements of each point", "")
	spanVar(c, &s.time, "time", time.Second, 1, "duration of a point, all rounds together", "a time above zero, such as 2s")
	wholeVar(c, &s.runs, "runs", 0, 1, most, "inferences per stream (default: as many as fit --time)", "")
	spanVar(c, &s.warmup, "warmup", 100*time.Millisecond, 0, "minimum warm-up before each measurement", "a time of zero or more, such as 1s")
	f.BoolVar(&s.pin, "pin", false, "pin every thread to a CPU of its own")
	f.StringVar(&s.format, "format", "table", "`NAME`: "+strings.Join(report.SweepFormats, ", "))
	f.StringArrayVarP(&s.files, "output", "o", nil, "`FILE`: write a file: .txt, .csv, .md or .json")
	f.StringArrayVar(&s.m.shapes, "shape", nil, "`NAME=DIMS`: shape of an input, such as image=1x3x224x224")
	f.StringArrayVar(&s.m.dims, "dim", nil, "`NAME=N`: size of a named dimension of ONNX inputs")
	s.m.addData(c)
	s.e.addEngines(c)
	return c
}

// options gathers the flags.
func (s *sweepCommand) options() (opmeter.SweepOptions, error) {
	o := s.o
	var err error
	if o.Inputs, err = s.m.inputs(); err != nil {
		return o, err
	}
	if o.Carry, err = s.m.carries(); err != nil {
		return o, err
	}
	if o.MaxMemory, err = s.m.memory(); err != nil {
		return o, err
	}
	o.Exact, o.MaxLoop, o.Time, o.Runs, o.Pin, o.Warmup = s.m.exact, s.m.loops(), s.time, s.runs, s.pin, s.warmup
	if s.warmup == 0 {
		o.Warmup = -1
	}
	if !slices.Contains(report.SweepFormats, s.format) {
		return o, useError("--format %q: use one of %s", s.format, strings.Join(report.SweepFormats, ", "))
	}
	for _, path := range s.files {
		if _, err := report.SweepFormat(path); err != nil {
			return o, withStatus(statusUse, err)
		}
	}
	return o, s.engines(&o)
}

// engines finds the engines that were asked for.
func (s *sweepCommand) engines(o *opmeter.SweepOptions) error {
	list, err := s.e.find()
	if err != nil {
		return err
	}
	names := map[*engine.Engine]string{}
	for _, c := range list {
		o.Engines = append(o.Engines, c.engine)
		names[c.engine] = c.name
	}
	if len(list) > 1 || list[0].engine != nil {
		s.names = names
	}
	return nil
}

func (s *sweepCommand) run(ctx context.Context, path string) error {
	o, err := s.options()
	if err != nil {
		return err
	}
	if path, err = findModel(path); err != nil {
		return err
	}
	if err := ready(s.files, path); err != nil {
		return err
	}
	s.a.measures(longPatience)
	var points []opmeter.SweepPoint
	err = s.a.withModel(path, func(m *opmeter.Model) error {
		show, stop := s.a.progress()
		defer stop()
		if show != nil {
			o.Each = func(done, of int) { show("measuring", float64(done)/float64(of)) }
		}
		points, err = opmeter.Sweep(ctx, m, o)
		return told(err)
	})
	if err != nil {
		return err
	}
	rows, measured, refused := sweepRows(points, s.names)
	if measured == 0 && ctx.Err() != nil {
		return errUnmeasured
	}
	if err := report.Sweep(s.a.out, baseName(path), rows, s.format, s.a.width); err != nil {
		return err
	}
	for _, f := range s.files {
		if err := report.SweepFile(f, baseName(path), rows); err != nil {
			return withStatus(statusUse, plainPath(err))
		}
	}
	s.a.sayWrote(s.files, s.format == "table")
	if refused > 0 {
		at := slices.IndexFunc(points, func(p opmeter.SweepPoint) bool {
			return p.Err != nil && !errors.Is(p.Err, context.Canceled)
		})
		first := &rows[at] // the table cuts long reasons
		return withStatus(statusSource, fmt.Errorf("%d of %s could not be measured; batch %d, threads %d, streams %d: %s",
			refused, plural(len(rows), "point"), first.Batch, first.Threads, first.Streams, first.Error))
	}
	return nil
}

// sweepRows makes lines of points and counts those with figures and those that failed.
func sweepRows(points []opmeter.SweepPoint, names map[*engine.Engine]string) (rows []report.SweepRow, measured, refused int) {
	for i := range points {
		p := &points[i]
		r := report.SweepRow{Engine: names[p.Engine], Batch: p.Batch, Threads: p.Threads, Streams: p.Streams, Latency: p.Latency, Throughput: p.Throughput, RAMBytes: p.RAMBytes, Best: p.Best}
		if p.Latency != nil {
			measured++
		}
		switch {
		case p.Err == nil:
		case errors.Is(p.Err, context.Canceled):
			r.Error = "stopped before it was measured"
		default:
			refused++
			r.Error = told(p.Err).Error()
		}
		rows = append(rows, r)
	}
	return rows, measured, refused
}
