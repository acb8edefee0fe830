package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/chip"
	"github.com/opmeter/opmeter/internal/chip/fit"
	"github.com/opmeter/opmeter/internal/estimate"
)

func newCalibrate(a *app) *cobra.Command {
	var (
		f   targetFlags
		id  string
		out string
	)
	c := &cobra.Command{
		Use:   "calibrate DATA.csv --target X",
		Short: "Fit a target to measurements of your board",
		Long: `Calibrate fits a target's processor model to measured latencies and writes the
target file with its error table. The table needs the columns model_file (relative to
it) and latency_ms or cycles; a handful of models suffices, because the fit starts
from the target's own coefficients. docs/calibration.md explains it.`,
		Example: `  opmeter calibrate board.csv --target stm32l4r5 -o targets/stm32l4r5.yaml
  opmeter profile model.tflite --on stm32l4r5 --targets targets/`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if id == "" {
				return useError("--target names the target to start from: opmeter targets lists them")
			}
			set, err := chip.Load(f.dir)
			if err != nil {
				return withStatus(statusInput, err)
			}
			t, err := set.Find(id)
			if err != nil {
				return useError("--target: %w; opmeter targets lists them", err)
			}
			rt := t.Runtime(f.runtime)
			if rt == nil {
				return useError("%w", estimate.NoRuntime(t, f.runtime))
			}
			ms, err := fit.LoadBoard(args[0], t, rt)
			if err != nil {
				return withStatus(statusInput, err)
			}
			fitted, err := fit.Board(t, rt.Name, ms, fit.Default)
			if err != nil {
				return withStatus(statusInput, prefixed(args[0], err))
			}
			if out == "" {
				out = t.ID + ".yaml"
			}
			count := "1 measurement"
			if len(ms) > 1 {
				count = fmt.Sprintf("%d measurements", len(ms))
			}
			comment := fmt.Sprintf("%s, runtime %s fitted to %s of %s.", t.Name, rt.Name, count, args[0])
			if err := os.WriteFile(out, fit.Encode(fitted, comment), 0o644); err != nil {
				return withStatus(statusUse, err)
			}
			fmt.Fprintf(a.out, "wrote %s: runtime %s fitted to %s\n", out, rt.Name, count)
			return nil
		},
	}
	f.addDir(c)
	c.Flags().StringVar(&id, "target", "", "target to start from")
	c.Flags().StringVar(&f.runtime, "runtime", "", "runtime family (default: the target's first)")
	c.Flags().StringVarP(&out, "output", "o", "", "target file to write (default: the target's id with .yaml, here)")
	return c
}
