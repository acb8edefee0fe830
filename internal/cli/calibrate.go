package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
)

func newCalibrate(a *app) *cobra.Command {
	var (
		f   targetFlags
		id  string
		out string
	)
	c := &cobra.Command{
		Use:   "calibrate DATA.csv --target X",
		Short: "Calibrate a target with measurements of your board",
		Long: `Calibrate fits the processor model of a target to measured latencies and writes a target file
with a table of its errors. The CSV file needs the columns model_file (a path relative to it)
and latency_ms or cycles. A few models suffice: the fit starts from the coefficients of the
target. docs/explanation/estimates.md explains the method.`,
		Example: `  opmeter calibrate board.csv --target stm32l4r5 -o targets/stm32l4r5.yaml
  opmeter profile model.tflite --on stm32l4r5 --targets targets/`,
		Args: one("the file with your measurements"),
		RunE: func(_ *cobra.Command, args []string) error {
			if id == "" {
				return useError("--target names the target to start from: opmeter targets lists them")
			}
			set, faults, err := f.load()
			if err != nil {
				return err
			}
			t, err := set.Find(id)
			if e, ok := errors.AsType[*opmeter.OptionError](err); ok {
				return option(e, "--target")
			}
			if err != nil {
				return told(err)
			}
			a.leftOut(faults)
			if out == "" {
				out = t.ID + ".yaml"
			}
			if !targetFile(out) {
				return useError("--output %s: a target file has a name that ends in .yaml", out)
			}
			if err := writable(out, args[0]); err != nil {
				return err
			}
			fitted, err := t.Calibrate(args[0], f.runtime)
			if _, ok := errors.AsType[*opmeter.OptionError](err); ok {
				return told(err)
			}
			if err != nil {
				return withStatus(statusInput, plainPath(err))
			}
			if err := atomicfile.Write(out, fitted.File); err != nil {
				return withStatus(statusUse, plainPath(err))
			}
			fmt.Fprintf(a.out, "wrote %s: runtime %s fitted to %s\nuse it with --on %[1]s\n", out, fitted.Runtime, plural(fitted.Measurements, "measurement"))
			return nil
		},
	}
	f.addDir(c)
	c.Flags().StringVar(&id, "target", "", "`TARGET`: start from this target")
	c.Flags().StringVar(&f.runtime, "runtime", "", "`NAME`: runtime family (default: the target's first)")
	c.Flags().StringVarP(&out, "output", "o", "", "`FILE`: output file (default: the target's ID with .yaml)")
	return c
}
