package advise

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/shellword"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

// command is the command of a rule for this model.
func (f *Facts) command(r *Rule) string { return f.render(r.Command) }

// render replaces the words of a command.
func (f *Facts) render(s string) string {
	name, ext := filepath.Base(f.Path), "onnx"
	if f.Profile.Model.Format == "tflite" {
		ext = "tflite"
	}
	name = strings.TrimSuffix(name, filepath.Ext(name))
	var inputs, on []string
	for _, o := range f.Options {
		inputs = append(inputs, shellword.Quote(o))
	}
	on = inputs
	if f.Profile.Target.Kind == profile.TargetSimulator {
		on = append([]string{"--on", shellword.Quote(f.Profile.Target.ID)}, on...)
	} else if n := f.threadsOf(); n > 1 && !strings.Contains(s, "--threads") {
		on = append(append([]string(nil), on...), "--threads", strconv.Itoa(n))
	}
	var out []string
	for _, w := range strings.Fields(s) {
		switch {
		case w == "MODEL":
			out = append(out, shellword.Quote(f.Path))
		case w == "ON":
			out = append(out, on...)
		case w == "INPUTS":
			out = append(out, inputs...)
		case strings.HasPrefix(w, "NAME"):
			out = append(out, shellword.Quote(strings.Replace(strings.Replace(w, "NAME", name, 1), "EXT", ext, 1)))
		default:
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + " %" }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func duration(s float64) string { return report.Duration(s) }

func bytes(n int64) string { return report.Bytes(n) }
