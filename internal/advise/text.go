package advise

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

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
		inputs = append(inputs, Quoted(o))
	}
	on = inputs
	if f.Profile.Target.Kind == profile.TargetSimulator {
		on = append([]string{"--on", Quoted(f.Profile.Target.ID)}, on...)
	} else if n := f.threadsOf(); n > 1 && !strings.Contains(s, "--threads") {
		on = append(append([]string(nil), on...), "--threads", strconv.Itoa(n))
	}
	var out []string
	for _, w := range strings.Fields(s) {
		switch {
		case w == "MODEL":
			out = append(out, Quoted(f.Path))
		case w == "ON":
			out = append(out, on...)
		case w == "INPUTS":
			out = append(out, inputs...)
		case strings.HasPrefix(w, "NAME"):
			out = append(out, Quoted(strings.Replace(strings.Replace(w, "NAME", name, 1), "EXT", ext, 1)))
		default:
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

// Quoted quotes an argument for a shell where it needs that.
func Quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
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
