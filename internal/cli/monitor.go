package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/device"
	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
)

func newDeviceMonitor(a *app) *cobra.Command {
	var (
		m    modelFlags
		r    runFlags
		o    outputFlags
		t    targetFlags
		d    deviceFlags
		port string
		path string
	)
	c := &cobra.Command{
		Use:   "monitor",
		Short: "Show the layers of a device live, then its profile",
		Long: `Show what a device measures while it runs: a bar for each layer, slowest first, until Ctrl-C or
the number of inferences of --runs. The profile of all inferences follows. With --model, layers
have shapes and work, too.`,
		Example: `  opmeter device monitor --port /dev/ttyACM0
  opmeter device monitor --port /dev/ttyACM0 --model model.tflite -o page.html
  opmeter device monitor --port tcp:127.0.0.1:5000 --runs 100`,
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error {
			if port == "" {
				return useError("name the device with --port: opmeter devices lists those connected")
			}
			if err := o.check(); err != nil {
				return err
			}
			opts, err := d.options(a, port, &r, &t, &m)
			if err != nil {
				return err
			}
			if opts.Runs == 0 && opts.Until == 0 {
				opts.Runs = -1
			}
			if path == "" {
				return a.monitor(c.Context(), nil, opts, &d, &o)
			}
			if err := ready(o.files, path); err != nil {
				return err
			}
			return a.withModel(path, func(m *opmeter.Model) error { return a.monitor(c.Context(), m, opts, &d, &o) })
		},
	}
	c.Flags().StringVar(&port, "port", "", "`PORT` of the device, such as /dev/ttyACM0")
	c.Flags().StringVar(&path, "model", "", "`FILE`: the model that runs there")
	wholeVar(c, &r.runs, "runs", 0, 1, most, "number of inferences (default: until Ctrl-C)", "leave it out for no limit")
	c.Flags().StringVar(&t.clock, "clock", "", "`HERTZ`: clock of the device's counter, such as 64MHz")
	d.add(c)
	m.add(c)
	o.add(c)
	return c
}

// monitor shows bars while a device is measured, and what came of it.
func (a *app) monitor(ctx context.Context, m *opmeter.Model, opts device.Options, d *deviceFlags, o *outputFlags) error {
	gone := func() {}
	if a.tty {
		b := newBars(a.err)
		opts.Found = func(protocol string, speed int) { b.title = heard(protocol, speed) }
		opts.Progress, gone = b.show, b.clear
	}
	p, err := a.measured(ctx, m, opts, d.record, o.files)
	gone()
	if p == nil {
		return err
	}
	return errors.Join(a.deliver(p, o), err)
}

// bars are live bars on a terminal.
type bars struct {
	w             io.Writer
	size          func() (width, height int)
	title         string
	lines         int // that are on the screen
	last          time.Time
	start         time.Time
	now           func() time.Time
	width, height int
}

// often is how often bars are drawn at most.
const often = 100 * time.Millisecond

func newBars(w io.Writer) *bars {
	return &bars{w: w, now: time.Now, start: time.Now(), size: func() (int, int) {
		if f, ok := w.(interface{ Fd() uintptr }); ok {
			if width, height, err := term.GetSize(f.Fd()); err == nil {
				return width, height
			}
		}
		return 80, 24
	}}
}

// show draws what is known, unless it has just done so.
func (b *bars) show(g device.Progress) {
	at := b.now()
	if at.Sub(b.last) < often && g.Runs != g.Want {
		return
	}
	b.last = at
	lines := b.draw(&g)
	var s strings.Builder
	b.back(&s)
	for _, l := range lines {
		s.WriteString(l + "\x1b[K\n")
	}
	s.WriteString("\x1b[J")
	b.lines = len(lines)
	fmt.Fprint(b.w, s.String())
}

// back goes to the first line that is on the screen.
func (b *bars) back(s *strings.Builder) {
	if b.lines > 0 {
		fmt.Fprintf(s, "\x1b[%dA\r", b.lines)
	}
}

// clear takes the bars away.
func (b *bars) clear() {
	var s strings.Builder
	b.back(&s)
	s.WriteString("\x1b[J")
	b.lines = 0
	fmt.Fprint(b.w, s.String())
}

// draw makes the lines: what is measured, and a bar for each of the slowest layers.
func (b *bars) draw(g *device.Progress) []string {
	b.width, b.height = b.size()
	width := max(40, min(b.width-1, 100))
	head := fmt.Sprintf("%s  %s", b.title, interval(g))
	if g.Want > 0 {
		head += fmt.Sprintf(", %d wanted", g.Want)
	}
	lines := []string{strings.TrimRight(report.Column(head, width), " ")}
	rows := slices.Clone(g.Layers)
	value := func(y device.LayerProgress) float64 {
		if math.IsNaN(y.Mean) {
			return y.Last
		}
		return y.Mean
	}
	total, most, name := 0.0, 0.0, 8
	for _, y := range rows {
		if v := value(y); v > 0 {
			total += v
			most = max(most, v)
		}
		name = max(name, report.Columns(text.Clean(y.Name)))
	}
	sorting.Stable(rows, func(x, y device.LayerProgress) int {
		a, b := value(x), value(y)
		if math.IsNaN(a) || math.IsNaN(b) {
			return cmp.Compare(b2i(math.IsNaN(a)), b2i(math.IsNaN(b)))
		}
		return cmp.Compare(b, a)
	})
	name = min(name, width/3)
	room := max(1, b.height-3)
	bar := max(0, width-name-24)
	for i, y := range rows {
		if i == room-1 && len(rows) > room {
			lines = append(lines, fmt.Sprintf("and %s more", plural(len(rows)-i, "layer")))
			break
		}
		v := value(y)
		if math.IsNaN(v) {
			lines = append(lines, report.Column(text.Clean(y.Name), name)+"  nothing came of it")
			continue
		}
		n, share := 0, 0.0
		if most > 0 {
			n, share = int(math.Round(float64(bar)*v/most)), 100*v/total
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s  %12s %5.1f %%  %s", report.Column(text.Clean(y.Name), name), amount(g.Quantity, v), share, strings.Repeat("█", n)), " "))
	}
	return lines
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
