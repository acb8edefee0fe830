package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/feed"
	"github.com/opmeter/opmeter/profile"
)

// fewValues is how many elements of a made input are told.
const fewValues = 16

// Fed notes how the inputs of a described model came about: open dimensions that
// nobody gave, and elements that were made for what they are used for.
func Fed(p *profile.Profile, src []feed.Source) {
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
func Command(p *profile.Profile, h *feed.Hint) string {
	if h == nil {
		return ""
	}
	path, _, _ := strings.Cut(cmp.Or(p.Model.Path, p.Model.Name), "!")
	args := []string{"opmeter", "profile", quoted(path)}
	if p.Target.Kind == profile.TargetSimulator && p.Target.ID != "none" {
		args = append(args, "--on", quoted(p.Target.ID))
	}
	for _, n := range h.Order {
		args = append(args, "--dim", quoted(fmt.Sprintf("%s=%d", n, h.Dims[n])))
	}
	for k, s := range h.Shapes {
		if s != nil && k < len(p.Model.Inputs) {
			args = append(args, "--shape", quoted(p.Model.Inputs[k].Name+"="+profile.ShapeText(dims(s))))
		}
	}
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

// Open is the finding about open dimensions for which 1 was taken, nil where there
// are none, with the command that gives those of a hint. A batch of 1 for which the file itself keeps a 1 is a remark, everything else
// a warning: latency, work and memory may be those of a much smaller input than the
// one that is meant.
func Open(p *profile.Profile, h *feed.Hint) *profile.Finding {
	const most = 4 // inputs that are named
	var list []string
	severity := profile.Info
	left := 0
	for i := range p.Model.Inputs {
		t := &p.Model.Inputs[i]
		if len(t.Assumed) == 0 {
			continue
		}
		if p.Model.Format != "tflite" || slices.ContainsFunc(t.Assumed, func(d int64) bool { return d > 0 }) {
			severity = profile.Warning
		}
		if len(list) == most {
			left++
			continue
		}
		list = append(list, fmt.Sprintf("%s %s as %s", t.Name, t.DeclaredText(), profile.ShapeText(t.Shape)))
	}
	if len(list) == 0 {
		return nil
	}
	text := "The file leaves dimensions of inputs open, and 1 was taken for them: " + strings.Join(list, ", ")
	if left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	text += "."
	if severity == profile.Info {
		text = strings.Replace(text, "dimensions of inputs open, and 1 was taken for them", "the batch open, and keeps a 1 in its place", 1)
	} else {
		text += " Time, work and memory are those of that size."
	}
	if c := Command(p, h); c != "" && severity != profile.Info {
		text += " For another: " + c
	}
	return &profile.Finding{ID: "model.shapes", Severity: severity, Text: text}
}
