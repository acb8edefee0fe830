package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/shellword"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/profile"
)

// maxShownValues is the maximum number of elements of a generated input that are listed.
const maxShownValues = 16

// Fed records how the inputs of a described model were chosen: open dimensions without a given
// size, and elements generated for their use in the model.
func Fed(p *profile.Profile, src []inputs.Source) {
	for k := range p.Model.Inputs {
		if k >= len(src) {
			return
		}
		t, s := &p.Model.Inputs[k], src[k]
		if t.Declared != nil {
			for i, yes := range s.Assumed {
				if yes {
					t.Assumed = append(t.Assumed, int64(i))
				}
			}
		}
		if s.Use == nil {
			continue
		}
		t.Made = &profile.Made{Use: profile.InputUse(s.Use.Kind)}
		switch u := s.Use; {
		case u.Fill != nil:
			t.Made.Fill = new(int64(*u.Fill))
		case u.Below > 0:
			t.Made.Below = new(int64(u.Below))
		case len(u.Values) <= maxShownValues:
			t.Made.Values = dims(u.Values)
		}
	}
}

// Command returns the shell command that repeats the work with the sizes of a hint, quoted for
// pasting; "" for no hint. It keeps the shapes, threads and files that were given, and adds more
// arguments.
func Command(p *profile.Profile, h *inputs.Hint, more ...string) string {
	if h == nil {
		return ""
	}
	path, _, _ := strings.Cut(cmp.Or(p.Model.Path, p.Model.Name), "!")
	verb := "profile"
	if p.Target.Kind == profile.TargetHost && p.Settings.Passes == "" {
		verb = "summary"
	}
	args := []string{"opmeter", verb, shellword.Quote(path)}
	if p.Target.Kind == profile.TargetSimulator && p.Target.ID != "none" {
		args = append(args, "--on", shellword.Quote(p.Target.ID))
	}
	same := h.Order == nil
	var sizes []string
	for _, n := range h.Order {
		sizes = append(sizes, "--dim", shellword.Quote(fmt.Sprintf("%s=%d", n, h.Dims[n])))
	}
	for k, s := range h.Shapes {
		if s != nil && k < len(p.Model.Inputs) {
			t := &p.Model.Inputs[k]
			same = same && slices.Equal(dims(s), t.Shape)
			sizes = append(sizes, "--shape", shellword.Quote(t.Name+"="+profile.ShapeText(dims(s))))
		}
	}
	var given []string
	for k, t := range p.Model.Inputs {
		if t.Declared != nil && len(t.Assumed) == 0 && (k >= len(h.Shapes) || h.Shapes[k] == nil) && p.Settings.Inputs[t.Name].File == "" {
			given = append(given, "--shape", shellword.Quote(t.Name+"="+profile.ShapeText(t.Shape)))
		}
	}
	if same { // only the batch is open, and 1 is the usual batch
		if given != nil {
			return "" // another batch may contradict the shapes that were given
		}
		sizes = []string{"--batch", "8"}
	}
	args = append(append(args, given...), sizes...)
	if n := p.Settings.Threads; n != nil && *n > 1 {
		args = append(args, "--threads", strconv.FormatInt(*n, 10))
	}
	args = append(args, more...)
	for _, t := range p.Model.Inputs {
		if f := p.Settings.Inputs[t.Name].File; f != "" {
			args = append(args, "--input", shellword.Quote(t.Name+"="+f))
		}
	}
	return strings.Join(args, " ")
}

// isHarmless reports whether the open dimensions of an input need no warning: all were given, or
// only the batch is open and a TFLite file stores 1 for it.
func isHarmless(p *profile.Profile, t *profile.Tensor) bool {
	return len(t.Assumed) == 0 || p.Model.Format == "tflite" && len(t.Assumed) == 1 && t.Assumed[0] == 0
}

// maxOpenInputs bounds the inputs that a finding names.
const maxOpenInputs = 4

// Open returns the finding about open dimensions that were set to 1, nil without any. Time,
// operation counts and memory may then belong to a much smaller input than intended. suggest
// returns other sizes; the finding ends with the command that sets them, with more arguments.
func Open(p *profile.Profile, suggest func() *inputs.Hint, more ...string) *profile.Finding {
	var list []string
	left := 0
	for i := range p.Model.Inputs {
		t := &p.Model.Inputs[i]
		switch {
		case isHarmless(p, t):
		case len(list) == maxOpenInputs:
			left++
		default:
			list = append(list, fmt.Sprintf("%s %s as %s", t.Name, t.DeclaredText(), profile.ShapeText(t.Shape)))
		}
	}
	if len(list) == 0 {
		return nil
	}
	text := "Open input dimensions were set to 1: " + strings.Join(list, ", ")
	if left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	text += ". Time, operation counts and memory are for that size."
	if c := Command(p, suggest(), more...); c != "" {
		text += " For another size: " + c
	}
	return &profile.Finding{ID: "model.shapes", Severity: profile.Warning, Text: text}
}
