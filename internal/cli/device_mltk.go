package cli

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/device/mltk/flash"
	"github.com/opmeter/opmeter/internal/report/text"
)

// mltkCommand flashes a board of Silicon Labs and measures a model with the MLTK's firmware.
type mltkCommand struct {
	a                         *app
	o                         outputFlags
	d                         deviceFlags
	port, platform, part      string
	accelerator, firmware     string
	commander, serial, imaged string
	runs                      int
}

func newDeviceMLTK(a *app) *cobra.Command {
	x := &mltkCommand{a: a}
	c := &cobra.Command{
		Use:   "mltk MODEL",
		Short: "Measure on a Silicon Labs board with the MLTK's profiler",
		Long: `Write a model into the flash memory of a Silicon Labs board, where the MLTK profiler firmware expects
it. Then start the board and read its output. Flashing needs the vendor's commander; opmeter downloads
neither commander nor firmware. Without --firmware, the firmware on the board is kept. With -o and a
name that ends in .hex or .bin, only the flash image is written: .hex has the address, .bin does not.`,
		Example: `  opmeter device mltk kws.tflite --port /dev/ttyACM0 --platform brd2601b --firmware mltk_model_profiler-brd2601-mvp.s37
  opmeter device mltk kws.tflite --port /dev/ttyACM0 --runs 5
  opmeter device mltk kws.tflite --platform brd2601b -o kws.hex`,
		Args: one("a model file"),
		RunE: func(c *cobra.Command, args []string) error {
			x.o.files = slices.DeleteFunc(x.o.files, func(f string) bool {
				if e := strings.ToLower(filepath.Ext(f)); e != ".hex" && e != ".bin" {
					return false
				}
				x.imaged = f
				return true
			})
			if x.port == "" && x.imaged == "" {
				return useError("name the board's port with --port (opmeter devices lists those connected), or write the image with -o model.hex")
			}
			if err := x.o.check(); err != nil {
				return err
			}
			if err := ready(x.o.files, args[0]); err != nil {
				return err
			}
			return x.run(c.Context(), args[0])
		},
	}
	fs := c.Flags()
	fs.StringVar(&x.port, "port", "", "`PORT` of the board, such as /dev/ttyACM0")
	fs.StringVar(&x.platform, "platform", "", "`NAME` of the board, such as brd2601b (default: the board is asked)")
	fs.StringVar(&x.part, "part", "", "`NUMBER` of its chip, such as EFR32MG24B310F1536IM48, for other boards")
	fs.StringVar(&x.accelerator, "accelerator", "", "`NAME`: mvp or none, to be checked against the firmware's")
	fs.StringVar(&x.firmware, "firmware", "", "`FILE`: firmware to flash before, .s37, .hex or .bin")
	fs.StringVar(&x.commander, "commander", "", "`PATH` of the vendor's commander (default: looked for)")
	fs.StringVar(&x.serial, "serialno", "", "`NUMBER` of the debug probe where several boards are connected")
	wholeVar(c, &x.runs, "runs", 1, 1, most, "inferences, one a start of the board", "each starts the board once")
	x.d.addOf(c)
	x.o.add(c)
	return c
}

func (x *mltkCommand) run(ctx context.Context, path string) error {
	path, err := findModel(path)
	if err != nil {
		return err
	}
	model, err := flatbuffer(path)
	if err != nil {
		return withStatus(statusInput, err)
	}
	if x.imaged != "" {
		return x.write(model)
	}
	tool := &flash.Commander{Path: x.commander, Serial: x.serial}
	if tool.Path == "" {
		if tool.Path, err = flash.Find(); err != nil {
			return withStatus(statusSource, err)
		}
	}
	part, err := x.chip(ctx, tool)
	if err != nil {
		return withStatus(statusSource, err)
	}
	image, err := x.image(model, part)
	if err != nil {
		return err
	}
	if err := x.program(ctx, tool, part, image); err != nil {
		return withStatus(statusSource, err)
	}
	return x.a.withModel(path, func(m *opmeter.Model) error { return x.measure(ctx, m, tool, part) })
}

// chip is the part that was named, or that the board has.
func (x *mltkCommand) chip(ctx context.Context, tool *flash.Commander) (flash.Part, error) {
	if x.part != "" {
		p, err := flash.ParsePart(x.part)
		if err != nil {
			return p, useError("--part %v", err)
		}
		return p, nil
	}
	if x.platform != "" {
		if p, ok := flash.Platform(x.platform); ok {
			return p, nil
		}
	}
	if tool == nil {
		return flash.Part{}, useError("--platform %q is not known: name the chip with --part, such as EFR32MG24B310F1536IM48", x.platform)
	}
	return tool.Info(ctx)
}

// image is what is written for the model, checked against the firmware that is to be flashed.
func (x *mltkCommand) image(model []byte, part flash.Part) (flash.Image, error) {
	i, err := flash.NewImage(model, part)
	if err != nil {
		return i, withStatus(statusInput, err)
	}
	if x.firmware == "" {
		return i, nil
	}
	b, err := readAtMost(x.firmware, 64<<20)
	if err != nil {
		return i, withStatus(statusInput, err)
	}
	segments, err := flash.Segments(x.firmware, b, part)
	if err == nil {
		err = i.Check(segments, part)
	}
	if err != nil {
		return i, withStatus(statusInput, fmt.Errorf("%s: %w", x.firmware, err))
	}
	return i, nil
}

// write writes the image for whoever flashes by hand.
func (x *mltkCommand) write(model []byte) error {
	part, err := x.chip(context.Background(), nil)
	if err != nil {
		return err
	}
	i, err := x.image(model, part)
	if err != nil {
		return err
	}
	data := i.Data
	if strings.EqualFold(filepath.Ext(x.imaged), ".hex") {
		data = i.Hex()
	}
	if err := atomicfile.Write(x.imaged, data); err != nil {
		return withStatus(statusUse, plainPath(err))
	}
	fmt.Fprintf(x.a.out, "%s: %d bytes for address 0x%08X of %s.\nFlash the firmware, then this file, and start the board; read it with\n  opmeter profile MODEL --on device:PORT\n", text.Clean(x.imaged), len(i.Data), i.Address, part.Number)
	return nil
}

// program flashes firmware and model, and leaves the board halted.
func (x *mltkCommand) program(ctx context.Context, tool *flash.Commander, part flash.Part, i flash.Image) error {
	step := func(what string, do func() error) error {
		if x.a.tty {
			l := x.a.meter()
			defer l.stop()
			l.show(what, 0)
		}
		return do()
	}
	if x.firmware != "" {
		if err := step("flashing the firmware", func() error { return tool.Firmware(ctx, part, x.firmware) }); err != nil {
			return err
		}
	}
	return step("flashing the model", func() error { return tool.Model(ctx, part, i) })
}

func (x *mltkCommand) measure(ctx context.Context, m *opmeter.Model, tool *flash.Commander, part flash.Part) error {
	opts, err := x.d.options(x.a, x.port, &runFlags{runs: x.runs}, &targetFlags{}, &modelFlags{})
	if err != nil {
		return err
	}
	opts.Protocol = "mltk"
	// The search for the least memory takes a while, without a word.
	opts.Timeout = max(opts.Timeout, 90*time.Second)
	opts.Restart = func(ctx context.Context) error { return tool.Reset(ctx, part) }
	p, err := x.a.measured(ctx, m, opts, x.d.record, x.o.files)
	if p == nil {
		return err
	}
	if want := strings.ToLower(x.accelerator); want != "" && want != strings.ToLower(p.Target.Accelerator) && (want != "none" || p.Target.Accelerator != "") {
		err = errors.Join(err, withStatus(statusSource, fmt.Errorf("--accelerator %s: the board's firmware was built for %q", want, p.Target.Accelerator)))
	}
	return errors.Join(x.a.deliver(p, &x.o), err)
}

// flatbuffer is the model's file itself, or that in an archive of the MLTK.
func flatbuffer(name string) ([]byte, error) {
	const limit = 64 << 20
	b, err := readAtMost(name, limit)
	if err != nil || !bytes.HasPrefix(b, []byte("PK\x03\x04")) {
		if err == nil && (len(b) < 8 || string(b[4:8]) != "TFL3") {
			err = fmt.Errorf("%s: is not a .tflite model", name)
		}
		return b, err
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	i := slices.IndexFunc(z.File, func(f *zip.File) bool {
		return strings.HasSuffix(f.Name, ".tflite") && !strings.Contains(path.Base(f.Name), ".float32.")
	})
	if i < 0 {
		return nil, fmt.Errorf("%s: no quantised .tflite model inside", name)
	}
	r, err := z.File[i].Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = r.Close() }()
	b, err = io.ReadAll(io.LimitReader(r, limit))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", name, z.File[i].Name, err)
	}
	return b, nil
}

func readAtMost(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, plainPath(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, plainPath(err)
	case int64(len(b)) > limit:
		return nil, fmt.Errorf("%s: has more than %d bytes", name, limit)
	}
	return b, nil
}
