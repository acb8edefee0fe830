// Package words says in English what a profile holds as codes: states, causes,
// placements, missing parts, options, shapes. Texts for people are made here, when a
// report is written, and nothing ever reads them back.
//
// Texts that come from files and other programs are passed on as they are: package
// text makes them safe for where they are shown.
package words

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// causes says why something is missing or did not run.
var causes = map[profile.CauseCode]string{
	profile.ByOperator:   "unknown operator",
	profile.ByType:       "element type",
	profile.ByLimit:      "a limit is exceeded",
	profile.ByUse:        "use of the operator",
	profile.ByInput:      "an input was not computed",
	profile.ByShape:      "unknown shapes",
	profile.ByData:       "depends on the data",
	profile.ByMemory:     "out of memory",
	profile.ByBodies:     "its subgraph has no figures",
	profile.ByError:      "an error",
	profile.ByCancel:     "stopped early; figures cover the part that ran",
	profile.ByDeadline:   "time limit reached; figures cover the part that ran",
	profile.ByEnd:        "the source ended unexpectedly; figures cover the data received until then",
	profile.ByRecord:     "records were lost",
	profile.ByNoFigures:  "no measurements exist",
	profile.ByResolution: "below the resolution of the profiler",
	profile.ByLoop:       "its loop exceeded the time limit",
	profile.ByWork:       "most of the work did not run, so the model has no latency",
}

// because is the cause's own text, or words for its code; "" for no cause.
func because(c *profile.Cause) string {
	if c == nil {
		return ""
	}
	return cmp.Or(c.Text, causes[c.Code])
}

// State says why the layer has no time of its own, "" where it ran.
func State(l *profile.Layer) string {
	why := because(l.Cause)
	switch l.State {
	case profile.Folded:
		return "computed once at load"
	case profile.Fused:
		return "fused into " + strconv.FormatInt(*l.FusedInto, 10)
	case profile.NotReached:
		if l.Cause != nil && l.Cause.Text != "" {
			return l.Cause.Text
		}
		return "not reached in these runs"
	case profile.Unsupported:
		if l.Cause != nil && l.Cause.Code == profile.ByOperator {
			why = l.Cause.Text // the row names the operator already
		}
		return with("not supported", why)
	case profile.Skipped:
		return cmp.Or(why, causes[profile.ByInput])
	case profile.Failed:
		return with("failed", why)
	case profile.Lost:
		if l.Cause != nil {
			why = l.Cause.Text
		}
		return with("record lost", why)
	case profile.NoEstimate:
		return with("no estimate", why)
	case profile.Ran:
		if l.Cause != nil && l.Cause.Code == profile.ByResolution {
			return why
		}
	}
	return ""
}

func with(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// Placed says in a word or two whether the accelerator takes the layer: "yes", or
// "no" with the cause; "" if absent.
func Placed(l *profile.Layer) string {
	yes, known := l.Accelerated()
	switch {
	case !known:
		return ""
	case yes:
		return "yes"
	case l.Placement.Cause == "":
		return "no"
	}
	return "no: " + string(l.Placement.Cause)
}

// Note says the notes on a layer: why the accelerator does not take it,
// and why it has no time. The brief note leaves out a refusal of which [Placed]
// says enough.
func Note(l *profile.Layer, brief bool) string {
	var parts []string
	if yes, known := l.Accelerated(); known && !yes {
		p := l.Placement
		switch {
		case p.Cause == profile.ByOperator && brief:
		case p.Cause == profile.ByLimit:
			parts = append(parts, with("limit exceeded", p.Text))
		case p.Cause == profile.ByType:
			parts = append(parts, cmp.Or(p.Text, "wrong type"))
		case p.Text != "":
			parts = append(parts, p.Text)
		}
	}
	if s := State(l); s != "" {
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// Incomplete says what a profile lacks, "" for a whole one.
func Incomplete(p *profile.Profile) string {
	parts := make([]string, len(p.Incomplete))
	for i := range p.Incomplete {
		parts[i] = Missing(&p.Incomplete[i])
		if p.Incomplete[i].Cause == profile.ByEnd {
			parts[i] += ": " + reached(p)
		}
	}
	return strings.Join(parts, "; ")
}

// reached says how far a run got that ended without a word.
func reached(p *profile.Profile) string {
	if m := p.Totals.Latency; m != nil && m.N != nil {
		return Plural(*m.N, "measured inference")
	}
	return "nothing was measured yet"
}

// Missing says what is missing and why.
func Missing(m *profile.Missing) string {
	why := cmp.Or(causes[m.Cause], string(m.Cause))
	switch {
	case m.Cause == profile.ByRecord && m.Want != nil && m.Got == nil:
		why = Plural(*m.Want, "record") + " lost"
	case m.Got != nil && m.Want != nil:
		why += fmt.Sprintf(" (%d of %d)", *m.Got, *m.Want)
	}
	if n := int64(len(m.Layers)); n > 0 {
		why = "without " + Plural(n, "layer") + ": " + why
	}
	return with(why, m.Text)
}

// Blanks counts the layers whose figures are missing, a text for each reason:
// "2 not supported".
func Blanks(p *profile.Profile) []string {
	n := map[profile.State]int64{}
	for i := range p.Layers {
		n[p.Layers[i].State]++
	}
	var out []string
	for _, x := range []struct {
		n    int64
		what string
	}{
		{n[profile.Unsupported], "not supported"},
		{n[profile.Skipped] + n[profile.Failed], "not run"},
		{n[profile.Lost], "lost"},
		{n[profile.NoEstimate], "without an estimate"},
	} {
		if x.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return out
}

// Without says which layers a time of the whole model leaves out: "without 2 layers
// that did not run", "" for none.
func Without(p *profile.Profile) string {
	var idle, lost, unknown int64
	for i := range p.Layers {
		switch s := p.Layers[i].State; {
		case p.Layers[i].Constant: // no work of an inference
		case s.Idle():
			idle++
		case s == profile.Lost:
			lost++
		case s == profile.NoEstimate:
			unknown++
		}
	}
	if p.Target.Kind == profile.TargetSimulator {
		idle, unknown = 0, unknown+idle // nothing ran there
	}
	var parts []string
	for _, x := range []struct {
		n    int64
		what string
	}{{idle, "that did not run"}, {lost, "with lost records"}, {unknown, "without an estimate"}} {
		if x.n > 0 {
			parts = append(parts, Plural(x.n, "layer")+" "+x.what)
		}
	}
	if parts == nil {
		return ""
	}
	return "without " + strings.Join(parts, " and ")
}

// Plural is "1 layer" or "2 layers".
func Plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}

// Pairs lists options as "padding:same".
func Pairs(options []profile.Option) []string {
	out := make([]string, len(options))
	for i, o := range options {
		out[i] = o.Key + ":" + o.Value
	}
	return out
}

// Options is a layer's options on one line: "padding:same stride:2x2".
func Options(l *profile.Layer) string { return strings.Join(Pairs(l.Options), " ") }

// Shape is "1x3x32x32", "scalar", or "?" where not even the rank is known.
func Shape(d []int64) string {
	return profile.ShapeText(d)
}

// Taken says of an input with open dimensions what the file declares and what was
// taken for it: "?x3x?x? as 1x3x1x1". Of others it is [Shape].
func Taken(t *profile.Tensor) string {
	if s := t.DeclaredText(); s != "" {
		return s + " as " + Shape(t.Shape)
	}
	return Shape(t.Shape)
}

// uses says what the model uses the elements of an input for.
var uses = map[profile.InputUse]string{
	profile.UseShape:    "a shape",
	profile.UseBounds:   "slice bounds",
	profile.UsePaddings: "paddings",
	profile.UseAxes:     "axes",
	profile.UseIndices:  "indices",
	profile.UseMask:     "a mask",
	profile.UseLength:   "a length",
	profile.UseCount:    "a count",
	profile.UseChoice:   "a value that the model requires",
}

// Made says how the elements of an input were made for what they are used for: "1 (a
// mask)", "" for inputs of other elements.
func Made(t *profile.Tensor) string {
	m := t.Made
	if m == nil {
		return ""
	}
	what := cmp.Or(uses[m.Use], string(m.Use))
	switch {
	case m.Fill != nil:
		return fmt.Sprintf("%d (%s)", *m.Fill, what)
	case m.Below != nil:
		return fmt.Sprintf("0 to %d (%s)", *m.Below-1, what)
	case len(m.Values) > 0:
		return fmt.Sprintf("%s (%s)", Dims(m.Values, ","), what)
	}
	return what
}

// Assumed says that dimensions of inputs were taken as 1 because nobody gave them:
// "x ?x3x?x? as 1x3x1x1", "" where none was. A batch of 1 alone is not worth words.
func Assumed(m *profile.Model) string {
	var parts []string
	more := 0
	for i := range m.Inputs {
		t := &m.Inputs[i]
		if len(t.Assumed) == 0 || m.Format == "tflite" && len(t.Assumed) == 1 && t.Assumed[0] == 0 {
			continue
		}
		if len(parts) == 2 {
			more++
			continue
		}
		parts = append(parts, t.Name+" "+Taken(t))
	}
	if more > 0 {
		parts = append(parts, Plural(int64(more), "more input"))
	}
	return strings.Join(parts, ", ")
}

// Dims joins dimensions; "?" stands for those that are not known.
func Dims(d []int64, sep string) string {
	s := make([]string, len(d))
	for i, v := range d {
		s[i] = strconv.FormatInt(v, 10)
		if v < 0 {
			s[i] = "?"
		}
	}
	return strings.Join(s, sep)
}
