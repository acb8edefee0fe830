package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/profile"
)

// fewValues is how many elements of a made input are told.
const fewValues = 16

// Fed notes how the inputs of a described model came about: open dimensions that
// nobody gave, and elements that were made for what they are used for.
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
		case len(u.Values) <= fewValues:
			t.Made.Values = dims(u.Values)
		}
	}
}

// Command is the command that profiles the model with the sizes of a hint, ready to
// be pasted into a shell; "" for no hint.
func Command(p *profile.Profile, h *inputs.Hint) string {
	if h == nil {
		return ""
	}
	path, _, _ := strings.Cut(cmp.Or(p.Model.Path, p.Model.Name), "!")
	args := []string{"opmeter", "profile", quoted(path)}
	if p.Target.Kind == profile.TargetSimulator && p.Target.ID != "none" {
		args = append(args, "--on", quoted(p.Target.ID))
	}
	same := h.Order == nil
	var sizes []string
	for _, n := range h.Order {
		sizes = append(sizes, "--dim", quoted(fmt.Sprintf("%s=%d", n, h.Dims[n])))
	}
	for k, s := range h.Shapes {
		if s != nil && k < len(p.Model.Inputs) {
			t := &p.Model.Inputs[k]
			same = same && slices.Equal(dims(s), t.Shape)
			sizes = append(sizes, "--shape", quoted(t.Name+"="+profile.ShapeText(dims(s))))
		}
	}
	if same { // a batch is all that is open, and one is what most mean
		sizes = []string{"--batch", "8"}
	}
	args = append(args, sizes...)
	for _, t := range p.Model.Inputs {
		if f := p.Settings.Inputs[t.Name].File; f != "" {
			args = append(args, "--input", quoted(t.Name+"="+f))
		}
	}
	return strings.Join(args, " ")
}

// quoted makes one word of a shell of a text.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// stands reports whether the open dimensions of an input are no matter for a warning:
// nobody left any to chance, or it is the batch alone and the file keeps a 1 for it.
func stands(p *profile.Profile, t *profile.Tensor) bool {
	return len(t.Assumed) == 0 || p.Model.Format == "tflite" && len(t.Assumed) == 1 && t.Assumed[0] == 0
}

// mostOpen bounds the inputs that a finding names.
const mostOpen = 4

// Open is the finding about open dimensions for which 1 was taken, nil where there are
// none. Time, work and memory may be those of a much smaller input than the one that is
// meant. Suggest is asked for other sizes: the command that gives them stands behind.
func Open(p *profile.Profile, suggest func() *inputs.Hint) *profile.Finding {
	var list []string
	left := 0
	for i := range p.Model.Inputs {
		t := &p.Model.Inputs[i]
		switch {
		case stands(p, t):
		case len(list) == mostOpen:
			left++
		default:
			list = append(list, fmt.Sprintf("%s %s as %s", t.Name, t.DeclaredText(), profile.ShapeText(t.Shape)))
		}
	}
	if len(list) == 0 {
		return nil
	}
	text := "The file leaves dimensions of inputs open, and 1 was taken for them: " + strings.Join(list, ", ")
	if left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	text += ". Time, work and memory are those of that size."
	if c := Command(p, suggest()); c != "" {
		text += " For another: " + c
	}
	return &profile.Finding{ID: "model.shapes", Severity: profile.Warning, Text: text}
}
