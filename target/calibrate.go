package target

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/estimate/fit"
)

// Calibration is a target fitted to measurements of a board.
type Calibration struct {
	// Runtime is the fitted runtime family, Measurements the number of measurements.
	Runtime      string
	Measurements int
	// File is the content of a target file for the folder of [Load].
	File []byte
}

// Calibrate fits the cycle model of one of the target's runtimes, "" for the first, to measured
// latencies. The table is a .csv file with the columns model_file (relative to it) and latency_ms
// or cycles; docs/explanation/estimates.md explains it. Errors are an [opmeter.OptionError], or
// name the file and row.
func (t Target) Calibrate(table, runtime string) (*Calibration, error) {
	c, err := t.chip()
	if err != nil {
		return nil, err
	}
	rt := c.Runtime(runtime)
	if rt == nil {
		return nil, bridge.Failed(table, estimate.NoRuntime(c, runtime))
	}
	ms, err := fit.LoadBoard(table, c, rt)
	if err != nil {
		return nil, err
	}
	fitted, err := fit.Board(c, rt.Name, ms, fit.Default)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", table, err)
	}
	count := "1 measurement"
	if len(ms) > 1 {
		count = fmt.Sprintf("%d measurements", len(ms))
	}
	comment := fmt.Sprintf("%s, runtime %s fitted to %s of %s.", t.Name, rt.Name, count, table)
	return &Calibration{Runtime: rt.Name, Measurements: len(ms), File: fit.Encode(fitted, comment)}, nil
}
