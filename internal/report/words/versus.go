package words

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
	"github.com/opmeter/opmeter/profile/compare"
)

// versusLimits say in short why figures do not compare.
var versusLimits = map[compare.NoteCode]string{
	compare.OtherMachine: "other machines", compare.OtherShapes: "other input shapes",
	compare.OtherBatch: "other batch sizes", compare.ColdRun: "one is a single inference without warm-up", compare.UnknownThreads: "the number of threads of one is unknown",
	compare.NotWhole: "a profile is incomplete", compare.OtherInputs: "other input data",
}

// VersusWhyNot says why figures of a group of run k do not compare, "" where they do.
func VersusWhyNot(t *compare.Table, k int, topic compare.Topic) string {
	code := t.Runs[k].WhyNot[topic]
	if code == compare.OtherKind {
		return fmt.Sprintf("%s against %s", VersusSource(&t.Runs[k]), VersusSource(&t.Runs[0]))
	}
	return cmp.Or(versusLimits[code], string(code))
}

// VersusApart says of each run whose figures do not compare with those of the first run why.
func VersusApart(t *compare.Table) (out []string) {
	for k := range t.Runs {
		if why := VersusWhyNot(t, k, t.Topic); k > 0 && why != "" {
			out = append(out, fmt.Sprintf("%s does not compare with %s: %s", t.Runs[k].Name, t.Runs[0].Name, why))
		}
	}
	return out
}

// VersusTopic names a group of figures.
func VersusTopic(t compare.Topic) string {
	if t == compare.Time {
		return "times"
	}
	return string(t)
}

// VersusNote describes a limit of the comparison and the runs that it applies to. Which groups of
// figures do not compare follows.
func VersusNote(t *compare.Table, n *compare.Note) string {
	s := versusNote(t, n)
	var topics []string
	for _, topic := range compare.Limited(n.Code) {
		if slices.ContainsFunc(t.Whole, func(r compare.Row) bool { return r.Topic == topic }) {
			topics = append(topics, VersusTopic(topic))
		}
	}
	if len(topics) == 0 {
		return s
	}
	list := topics[0]
	if last := len(topics) - 1; last > 0 {
		list = strings.Join(topics[:last], ", ") + " and " + topics[last]
	}
	verb := " do"
	if len(topics) == 1 && topics[0] != VersusTopic(compare.Time) {
		verb = " does"
	}
	return s + " " + strings.ToUpper(list[:1]) + list[1:] + verb + " not compare."
}

func versusNote(t *compare.Table, n *compare.Note) string {
	var names []string
	for _, k := range n.Runs {
		if k >= 0 && k < len(t.Runs) {
			names = append(names, t.Runs[k].Name)
		}
	}
	who, first := strings.Join(names, ", "), t.Runs[0].Name
	switch n.Code {
	case compare.OtherModel:
		return fmt.Sprintf("%s: another model file than %s.", who, first)
	case compare.OtherName:
		return fmt.Sprintf("%s: perhaps another model than %s, because its name differs and a file is unknown; operators were matched by graph, name and order.", who, first)
	case compare.OtherNodes:
		return fmt.Sprintf("%s: another model structure than %s; operators were matched by graph, name and order.", who, first)
	case compare.OtherThreads:
		return fmt.Sprintf("%s: another thread count than %s.", who, first)
	case compare.OtherBatch:
		return fmt.Sprintf("%s: another batch size than %s.", who, first)
	case compare.OtherShapes:
		return fmt.Sprintf("%s: other input shapes than %s.", who, first)
	case compare.OtherInputs:
		return fmt.Sprintf("%s: other input data than %s.", who, first)
	case compare.OtherKind:
		return kinds(t, n.Runs)
	case compare.OtherMachine:
		return fmt.Sprintf("%s: measured on another machine than %s.", who, first)
	case compare.Machines:
		return fmt.Sprintf("%s: the model of %s on another machine; ratios of times compare the machines.", who, first)
	case compare.ColdRun:
		return fmt.Sprintf("%s: a single inference without warm-up stands against warm ones (%s); profile it with more runs.", who, first)
	case compare.UnknownThreads:
		return fmt.Sprintf("%s: either its number of threads or that of %s is unknown.", who, first)
	case compare.Unrelated:
		return fmt.Sprintf("%s and %s: no layers of the models match%s.", who, first, map[bool]string{true: "; rows are kinds of operators"}[t.By == compare.ByOp])
	case compare.NotGood:
		return fmt.Sprintf("%s: measurement quality below good; opmeter report --details on the saved profile says why.", who)
	case compare.TooLarge:
		return tooLarge(t, n)
	case compare.NotWhole:
		return fmt.Sprintf("%s: incomplete profile.", who)
	case compare.OtherResults:
		return otherOutputs(t, n)
	case compare.WideBands:
		return fmt.Sprintf("%s: rows stay undecided where the 90 %% bands of estimates overlap; errors of different layers do not cancel.", who)
	case compare.NoTimes:
		return noTimes(t, n)
	case compare.NoLayers:
		return fmt.Sprintf("%s: no figures per layer; only totals are compared.", who)
	}
	return string(n.Code) + ": " + who
}

// noTimes says of models what would give them times, and of other runs that their time is unknown.
func noTimes(t *compare.Table, n *compare.Note) string {
	var models, others []string
	for _, k := range n.Runs {
		switch {
		case k < 0 || k >= len(t.Runs):
		case t.Runs[k].Source == compare.Counted:
			models = append(models, t.Runs[k].Name)
		default:
			others = append(others, t.Runs[k].Name)
		}
	}
	var parts []string
	if len(models) > 0 {
		parts = append(parts, strings.Join(models, ", ")+": no times; profile it, or use opmeter ab, to compare times.")
	}
	if len(others) > 0 {
		parts = append(parts, strings.Join(others, ", ")+": the time of the whole model is unknown, so that work is compared.")
	}
	return strings.Join(parts, " ")
}

// VersusModels names the models of a comparison: several if they differ.
func VersusModels(t *compare.Table) string {
	var names []string
	for i := range t.Runs {
		if n := t.Runs[i].Model; n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	other := slices.ContainsFunc(t.Notes, func(n compare.Note) bool { return n.Code == compare.OtherModel || n.Code == compare.OtherName })
	if len(names) < 2 || !other {
		return t.Model
	}
	const most = 4
	if n := len(names); n > most {
		names = append(names[:most:most], Plural(int64(n-most), "other"))
	}
	return strings.Join(names, ", ")
}

// tooLarge says why the targets of runs do not run the model, in the words of their findings.
func tooLarge(t *compare.Table, n *compare.Note) string {
	var parts []string
	for _, k := range n.Runs {
		if k < 0 || k >= len(t.Runs) || k >= len(t.Profiles) {
			continue
		}
		for _, f := range t.Profiles[k].Findings {
			if compare.Unfit(f) {
				parts = append(parts, t.Runs[k].Name+": "+f.Text)
			}
		}
	}
	return strings.Join(parts, " ")
}

// kinds says how the figures of the first run and of others came about: by which engine, on or for
// what.
func kinds(t *compare.Table, runs []int) string {
	var parts []string
	for i := range t.Runs {
		if i > 0 && !slices.Contains(runs, i) {
			continue
		}
		r := &t.Runs[i]
		s := r.Name + ": " + VersusSource(r)
		if r.Kind == profile.TargetSimulator || r.Kind == profile.TargetDevice {
			s += map[bool]string{true: " for ", false: " on "}[r.Kind == profile.TargetSimulator] + r.Target
		}
		if r.Engine != "" && r.Engine != r.Name {
			s += " (" + r.Engine + ")"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ") + "."
}

// VersusSource says how the figures of a run came about.
func VersusSource(r *compare.Run) string { return cmp.Or(string(r.Source), Kind(r.Kind)) }

// Kind says how the figures of a kind of target came about.
func Kind(k profile.TargetKind) string {
	switch k {
	case profile.TargetHost, profile.TargetDevice:
		return "measured"
	case profile.TargetImport:
		return "imported"
	case profile.TargetSimulator:
		return "estimated"
	}
	return string(k)
}

// Outputs says how the outputs of a run compare, and by how much they differ.
func Outputs(r *compare.Run) string {
	s := map[profile.DifferenceState]string{
		profile.Equal: "equal", profile.Rounding: "rounding", profile.Differs: "differ", profile.NotComparable: "not compared",
	}[r.Outputs]
	switch d := r.Difference; {
	case d == nil || d.State == profile.Equal || d.State == profile.NotComparable:
	case d.Steps != nil:
		s += ", " + Plural(int64(*d.Steps), "step")
	case d.SNR != nil:
		s += fmt.Sprintf(", %.0f dB", math.Round(*d.SNR)+0) // no -0
	}
	return s
}

// otherOutputs says by how much the outputs of runs differ, or why that is unknown.
func otherOutputs(t *compare.Table, n *compare.Note) string {
	var parts []string
	for _, k := range n.Runs {
		if k < 0 || k >= len(t.Runs) || t.Runs[k].Difference == nil {
			continue
		}
		r := &t.Runs[k]
		d := r.Difference
		switch m := d.Magnitude(); {
		case d.State == profile.NotComparable && d.Cause != nil:
			parts = append(parts, fmt.Sprintf("%s: outputs could not be compared with those of %s (%s)", r.Name, r.With, d.Cause.Text))
		case m != "":
			parts = append(parts, fmt.Sprintf("%s: outputs differ from those of %s by more than rounding (%s)", r.Name, r.With, m))
		default:
			parts = append(parts, fmt.Sprintf("%s: outputs differ from those of %s by more than rounding", r.Name, r.With))
		}
	}
	return strings.Join(parts, "; ") + "."
}

// VersusInterval names an interval of a comparison. What does not say its kind is a confidence
// interval.
func VersusInterval(i compare.Interval) string {
	if i == compare.Band90 {
		return "90 % band"
	}
	return "95 % CI"
}

// VersusMark is the sign of a verdict in a table, "" for none; [VersusLegend] explains it.
func VersusMark(v compare.Verdict) string {
	switch v {
	case compare.Slower, compare.More:
		return "▲"
	case compare.Faster, compare.Less:
		return "▼"
	case compare.Alike:
		return "="
	case compare.Incomparable:
		return ""
	}
	return "?"
}

// VersusRatio writes a ratio with the sign of its verdict: "0.812 ▼". One of counts has as many
// digits as tell it from 1, and no sign if they are equal; one of figures that do not compare
// stands in brackets.
func VersusRatio(r *compare.Ratio) string {
	switch {
	case r.Value == nil:
		return ""
	case r.Verdict == compare.Incomparable:
		return "(" + exactRatio(r) + ")"
	case r.Interval == compare.Exact && r.Verdict == compare.Alike:
		return Ratio(*r.Value)
	}
	return exactRatio(r) + " " + VersusMark(r.Verdict)
}

// exactRatio writes a ratio of counts so that it differs from 1 where the counts do.
func exactRatio(r *compare.Ratio) string {
	s := Ratio(*r.Value)
	if r.Interval != compare.Exact || *r.Value == 1 || s != Ratio(1) {
		return s
	}
	for digits := 3; digits < 15; digits++ {
		if s = Fixed(*r.Value, digits); s != Fixed(1, digits) {
			break
		}
	}
	return s
}

// VersusLegend says what the signs of a table mean. Counts have no chance.
func VersusLegend(t *compare.Table) string {
	s := "▲ slower or more, ▼ faster or less, = within 5 %, (…) does not compare, ? undecided: the interval includes 1 or is unknown"
	if slices.ContainsFunc(t.Runs, func(r compare.Run) bool { return r.Source != compare.Counted }) {
		s += ", or the difference may be chance among so many rows"
	}
	return s
}

// VersusMatch says how the layers of a row differ, "" for the same. A question mark follows where
// it is not certain that they belong together.
func VersusMatch(m compare.Match) string {
	switch {
	case m.Kind != "" && !m.Certain && m.Kind != align.Inserted && m.Kind != align.Removed:
		return string(m.Kind) + "?"
	case m.Kind == align.Same:
		return ""
	}
	return string(m.Kind)
}

// VersusReasons says in what the layers of a row differ from those of the first run, the most
// telling first: "work ×1.25, int8 → float32".
func VersusReasons(rs []compare.Reason) string {
	var parts []string
	for i := range rs {
		parts = append(parts, reason(&rs[i]))
	}
	return strings.Join(parts, ", ")
}

func reason(r *compare.Reason) string {
	switch {
	case r.Code == compare.ByType:
		return r.FirstText + " → " + r.ThisText
	case r.Code == compare.ByPlacement:
		return "on " + r.ThisText + " instead of " + r.FirstText
	case r.First == nil || r.This == nil:
		return string(r.Code) + " " + r.FirstText + " → " + r.ThisText
	case r.Code == compare.ByFusion:
		return fmt.Sprintf("%.0f → %.0f layers", *r.First, *r.This)
	case r.Code == compare.ByThreads:
		return fmt.Sprintf("%.0f → %.0f threads", *r.First, *r.This)
	case *r.First > 0:
		return fmt.Sprintf("%s ×%s", r.Code, Ratio(*r.This / *r.First))
	}
	return string(r.Code)
}

// Ratio writes a ratio with three digits.
func Ratio(v float64) string {
	switch {
	case v >= 99.95:
		return Fixed(v, 0)
	case v >= 9.995:
		return Fixed(v, 1)
	case v >= 0.9995:
		return Fixed(v, 2)
	case v >= 0.09995:
		return Fixed(v, 3)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
