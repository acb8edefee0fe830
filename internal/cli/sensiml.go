package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/base/units"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/sensiml"
)

// hertz are the units of frequencies that may stand without one.
var hertz = slices.Concat(units.Hertz, []units.Unit{{Suffix: "", Factor: 1}})

// sensimlFlags say which pack is read, and how.
type sensimlFlags struct {
	deviceFlags
	port, exec, pack    string
	runs                int
	compat, keep, debug bool
	clock, rate         string
	format              string
	files               []string
}

// sensimlFormats are those of a result, by the endings of their files.
var sensimlFormats = map[string]string{".json": "json", ".yaml": "yaml", ".yml": "yaml", ".csv": "csv", ".txt": "table", profile.Extension: "profile"}

func newDeviceSensiml(a *app) *cobra.Command {
	var f sensimlFlags
	c := &cobra.Command{
		Use:   "sensiml",
		Short: "Measure a SensiML Knowledge Pack: generators, sensors, classifier",
		Long: `Read the output of a Knowledge Pack that was built with debug and profile. Show the time of each
feature generator and sensor. The flag --compat prints what the vendor's ProfileParser prints.`,
		Example: `  opmeter device sensiml --port COM3 --model-json model.json --clock 64MHz
  opmeter device sensiml --exec ./pack --model-json model.json -o pack.csv
  opmeter device sensiml --port file:a.log --model-json model.json --compat`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("format") || len(f.files) == 0 {
				f.format = cmp.Or(f.format, map[bool]string{false: "table", true: "yaml"}[f.compat])
			}
			// Of a recording everything is wanted.
			if recorded := f.port == "-" || strings.HasPrefix(f.port, "file:"); recorded && !f.compat && !c.Flags().Changed("runs") {
				f.runs = -1
			}
			return a.sensiml(c.Context(), &f)
		},
	}
	c.Flags().StringVar(&f.port, "port", "", "`PORT`: /dev/ttyACM0, COM3, tcp:HOST:PORT, file:PATH, -")
	c.Flags().StringVar(&f.exec, "exec", "", "`COMMAND`: run a pack for this computer instead")
	c.Flags().StringVar(&f.pack, "model-json", "", "`FILE`: the pack's model.json; without it slots are numbered")
	wholeVar(c, &f.runs, "runs", sensiml.DefaultMessages, 1, most, "inferences of each model; with --compat lines", "")
	f.addDiscard(c)
	c.Flags().StringVar(&f.clock, "clock", "", "`HERTZ`: the processor's clock, such as 64MHz, for times")
	c.Flags().StringVar(&f.rate, "sample-rate", "", "`HERTZ`: of the sensors, for the load between windows")
	f.addSpeed(c)
	c.Flags().BoolVar(&f.compat, "compat", false, "the results of the vendor's parser, mistakes included")
	c.Flags().BoolVar(&f.keep, "keep-all", false, "keep figures that lie far outside the others")
	c.Flags().StringVar(&f.format, "format", "", "`NAME`: table, json, yaml or csv on standard output")
	c.Flags().StringArrayVarP(&f.files, "output", "o", nil, "`FILE`: .json, .yaml, .csv, .txt, or .opmeter for a profile")
	f.addRecord(c)
	f.addTimeout(c, sensiml.DefaultTimeout)
	f.addReconnect(c)
	c.Flags().BoolVar(&f.debug, "debug", false, "tell of what is not read")
	return c
}

// options checks the flags, before anything is opened.
func (f *sensimlFlags) options(a *app) (o sensiml.Options, err error) {
	switch {
	case f.port == "" && f.exec == "":
		return o, useError("name the device with --port, or a program with --exec")
	case f.port != "" && f.exec != "":
		return o, useError("--port goes without --exec")
	case f.compat && f.pack == "":
		return o, useError("--compat needs --model-json")
	}
	if f.exec != "" {
		f.port = "exec:" + f.exec
	}
	if _, err := port.Parse(f.port); err != nil {
		return o, useError("--port: %w", err)
	}
	formats := []string{f.format}
	for _, path := range f.files {
		name := sensimlFormats[strings.ToLower(filepath.Ext(path))]
		if name == "" {
			return o, useError("-o %s: use a file name that ends in .json, .yaml, .csv, .txt or %s", path, profile.Extension)
		}
		formats = append(formats, name)
		if err := writable(path, f.pack); err != nil {
			return o, err
		}
	}
	if f.format != "" && !slices.Contains([]string{"table", "json", "yaml", "csv"}, f.format) {
		return o, useError("--format %q: use one of table, json, yaml, csv", f.format)
	}
	if f.compat && slices.ContainsFunc(formats, func(s string) bool { return s != "" && s != "json" && s != "yaml" }) {
		return o, useError("--compat needs --format json or yaml, the formats of the vendor's parser")
	}
	o = sensiml.Options{
		Port: f.port, Stdin: a.in, Messages: f.runs, Speed: f.speed, Compat: f.compat, Timeout: f.timeout, Reconnect: f.reconnect,
		Rules: sensiml.Rules{Warmup: f.discard, KeepAll: f.keep},
	}
	if f.debug {
		o.Debug = a.err
	}
	for flag, x := range map[string]struct {
		text string
		to   *float64
	}{"clock": {f.clock, &o.ClockHz}, "sample-rate": {f.rate, &o.SampleRate}} {
		if x.text == "" {
			continue
		}
		if *x.to, err = quantity(flag, x.text, "a frequency such as 64MHz or 100Hz", hertz); err != nil {
			return o, err
		}
	}
	if f.pack != "" {
		if o.Pack, err = sensiml.OpenPack(f.pack); err != nil {
			status := statusInput
			if errors.Is(err, fs.ErrNotExist) {
				status = statusUse
			}
			return o, withStatus(status, plainPath(err))
		}
	}
	return o, nil
}

// sensiml measures a pack. Figures are shown also where the run ended in an error.
func (a *app) sensiml(ctx context.Context, f *sensimlFlags) (err error) {
	o, err := f.options(a)
	if err != nil {
		return err
	}
	if f.record != "" {
		w, err := newRecording("--record", f.record)
		if err != nil {
			return err
		}
		o.Record = w
		defer func() { err = errors.Join(err, w.Close()) }()
	}
	if a.tty {
		m := a.meter()
		defer m.stop()
		m.show("listening", 0)
		o.Progress = func(g sensiml.Progress) {
			m.remark(plural(g.Runs, "inference"))
			m.show("measuring", min(1, float64(g.Runs)/float64(max(g.Want, 1))))
		}
		defer func() { o.Progress = nil }()
	}
	p, err := sensiml.NewProfileParser(o)
	if err != nil {
		return withStatus(statusInput, err)
	}
	failed := p.Run(ctx)
	if f.compat && (failed == nil || p.Metrics()["RunCount"] != int64(0)) || p.Result().Runs > 0 {
		if err := a.sensimlResult(p, f); err != nil {
			return err
		}
		if errors.Is(failed, context.Canceled) {
			return nil
		}
	}
	return told(failed)
}

// sensimlResult shows a result and writes its files.
func (a *app) sensimlResult(p *sensiml.ProfileParser, f *sensimlFlags) error {
	write := func(w io.Writer, format string) error {
		switch {
		case f.compat && format == "json":
			_, err := fmt.Fprintf(w, "%s", p.JSON())
			return err
		case f.compat:
			_, err := w.Write(p.YAML())
			return err
		case format == "json":
			return p.Result().WriteJSON(w)
		case format == "yaml":
			return p.Result().WriteYAML(w)
		case format == "csv":
			return p.Result().WriteCSV(w)
		}
		return p.Result().WriteTable(w)
	}
	var wrote []string
	for _, path := range f.files {
		format := sensimlFormats[strings.ToLower(filepath.Ext(path))]
		if format == "profile" {
			names, err := writeProfiles(path, p.Result().Profiles(profile.Measured))
			wrote = append(wrote, names...)
			if err != nil {
				return withStatus(statusUse, plainPath(err))
			}
			continue
		}
		var b bytes.Buffer
		err := write(&b, format)
		if err == nil {
			err = atomicfile.Write(path, b.Bytes())
		}
		if err != nil {
			return withStatus(statusUse, plainPath(err))
		}
		wrote = append(wrote, path)
	}
	a.sayWrote(wrote, f.format == "")
	if f.format == "" {
		return nil
	}
	return write(a.out, f.format)
}

// writeProfiles saves a profile a model; of several each has the model's number in its name.
func writeProfiles(path string, list []*profile.Profile) (wrote []string, err error) {
	for i, p := range list {
		name := path
		if len(list) > 1 {
			ext := filepath.Ext(path)
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), i, ext)
		}
		p.Created = time.Now().UTC().Format(time.RFC3339)
		if err := profile.Write(name, p); err != nil {
			return wrote, err
		}
		wrote = append(wrote, name)
	}
	return wrote, nil
}
