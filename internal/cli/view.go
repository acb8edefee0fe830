package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

// newView is the page of [newSummary] in the browser.
func newView(a *app) *cobra.Command {
	var (
		m modelFlags
		o outputFlags
	)
	c := &cobra.Command{
		Use:   "view MODEL",
		Short: "Show a model in the browser without measuring it",
		Long: `Show a model in the browser without measuring it: graph, attributes, tensors with shapes, types
and quantisation, operations, weights and memory. The page is one file and loads nothing from the
network. Without a display, write it with -o. opmeter summary prints the same data.`,
		Example: `  opmeter view model.onnx
  opmeter view model.tflite -o page.html
  opmeter view model.onnx --shape input=1x3x320x320 -o page.html`,
		Args: one("a model file"),
		RunE: func(c *cobra.Command, args []string) error {
			for _, f := range o.files {
				if format, err := report.FormatOf(f); err != nil || format != "html" {
					return useError("-o %s: view writes a page: use a name that ends in .html, or opmeter summary for other formats", f)
				}
			}
			in, err := m.inputs()
			if err != nil {
				return err
			}
			if len(o.files) == 0 {
				if isFolder(args[0]) {
					return useError("%s is a folder: name one model, or write pages with -o", args[0])
				}
				if !o.open {
					return useError("--open=false: name the page with -o page.html")
				}
				if !(desktop{runtime.GOOS, a.width > 0, os.Getenv}).present() {
					// A file that is wrong is what to mend first.
					m, err := opmeter.Open(args[0])
					if err != nil {
						return withStatus(statusInput, err)
					}
					_ = m.Close()
					return useError("no browser can be opened here: write the page with -o page.html")
				}
				dir, err := os.MkdirTemp("", "opmeter-view-")
				if err != nil {
					return withStatus(statusUse, fmt.Errorf("a folder for the page: %w: write it with -o page.html", err))
				}
				o.files = []string{filepath.Join(dir, fileName(baseName(args[0]))+".html")}
			}
			if err := o.check(); err != nil {
				return err
			}
			return a.each(c.Context(), args, &o, []runner{onHost(count(in))}, false)
		},
	}
	m.add(c)
	m.addIterations(c)
	a.addSignature(c)
	c.Flags().StringArrayVarP(&o.files, "output", "o", nil, "`FILE`: write the page instead of a temporary file")
	c.Flags().BoolVar(&o.open, "open", true, "open the page in the browser (--open=false: do not)")
	return c
}

// count is a profiler that runs nothing.
func count(in opmeter.Inputs) profiler {
	return func(_ context.Context, m *opmeter.Model, _ bounds) (*profile.Profile, error) {
		return opmeter.Count(m, in)
	}
}
