package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/firmware"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
)

// newDeviceAgent writes the header that a user adds to firmware of their own.
func newDeviceAgent(a *app) *cobra.Command {
	out := "."
	c := &cobra.Command{
		Use:   "agent [-o DIR]",
		Short: "Write the C header that measures inside your own firmware",
		Long: `Agent writes opmeter.h, which any firmware can include. It times the operators that the
firmware marks, and sends the figures over its serial port. The file opmeter_tflm.h is a
profiler for TensorFlow Lite Micro.

  #define OPMETER_IMPLEMENTATION       /* in one file */
  #include "opmeter.h"

  opmeter_start(&config);              /* once: how to send bytes, the clock in Hz */
  opmeter_inference_begin();
  opmeter_op_begin(0, "CONV_2D");      /* around each operator */
  opmeter_op_end(0);
  opmeter_inference_end();

Then measure: opmeter profile model.tflite --on device:/dev/ttyACM0`,
		Example: `  opmeter device agent -o firmware/`,
		Args:    none,
		RunE: func(_ *cobra.Command, _ []string) error {
			if err := os.MkdirAll(out, 0o777); err != nil {
				return withStatus(statusUse, plainPath(err))
			}
			for _, name := range []string{"opmeter.h", "opmeter_tflm.h"} {
				data, err := fs.ReadFile(firmware.Files, name)
				if err != nil {
					return err
				}
				path := filepath.Join(out, name)
				if err := atomicfile.Write(path, data); err != nil {
					return withStatus(statusUse, plainPath(err))
				}
				fmt.Fprintln(a.out, path)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&out, "output", "o", ".", "`DIR`: the folder to write to, made where it is missing")
	return c
}
