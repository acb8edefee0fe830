package advise

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/internal/report/text"
)

// Formats are the formats of a result.
var Formats = []string{"table", "markdown", "json"}

// quantityNames are the names of the figures that become smaller.
var quantityNames = map[string]string{
	latency: "latency", item: "time per item", firstRun: "time of an inference that needs no preparation", token: "time per new token", flash: "flash", ram: "RAM",
	missing: "layers that cannot run",
}

// show formats a figure of a quantity.
func show(quantity string, v float64) string {
	if quantity == flash || quantity == ram {
		return report.Bytes(int64(v))
	}
	if quantity == missing {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return report.Duration(v)
}

// change formats a ratio as a change: "−62 %".
func change(ratio float64) string { return report.Change(ratio-1, 0) }

// Promise is the expected gain in words: "latency −62 % (−55 to −70 %), 1.00 ms to about 380 µs".
func (a *Advice) Promise() string {
	g := &a.Gain
	if g.Target != "" {
		return "the model runs, on " + g.Target
	}
	band := ""
	if g.Band[0] != g.Band[1] {
		band = fmt.Sprintf(" (%s to %s)", strings.TrimSuffix(change(g.Band[1]), " %"), change(g.Band[0]))
	}
	about := " to about "
	if g.Source == FromFormat || g.Quantity == missing {
		about = " to "
	}
	return fmt.Sprintf("%s %s%s, %s%s%s", quantityNames[g.Quantity], change(g.Ratio), band, show(g.Quantity, g.Before), about, show(g.Quantity, g.Before*g.Ratio))
}

// verdictTexts say what came of trying.
var verdictTexts = map[Verdict]string{
	Kept: "as promised", More: "more than promised", Less: "less than promised, but a gain",
	Lost: "it lost: do not follow this advice here", Open: "undecided: repeat with a larger --budget", Again: "the estimate again, not measured",
}

// Text says what came of trying.
func (t *Tried) Text(quantity string) string {
	if t.Verdict == NotTried {
		return "not measured: " + t.Error
	}
	s := quantityNames[quantity] + " " + change(t.Ratio)
	if quantity != firstRun { // an inference that prepares makes its inputs, too: only the ratio compares
		s += fmt.Sprintf(", %s to %s", show(quantity, t.Before), show(quantity, t.After))
	}
	if t.Processes > 0 {
		s += fmt.Sprintf(" (95 %% CI %s to %s, %d pairs of blocks)", strings.TrimSuffix(change(t.Interval[1]), " %"), change(t.Interval[0]), t.Blocks)
	}
	return s + ": " + verdictTexts[t.Verdict]
}

// where names model, target and run.
func (r *Result) where() string {
	s := r.Model + " on " + r.Target
	if r.Target == "host" {
		s = r.Model + " on this computer"
	}
	if r.Threads > 0 {
		s += fmt.Sprintf(" (%s, %s)", r.Engine, plural(r.Threads, "thread"))
	}
	return s
}

// Answer is the first line.
func (r *Result) Answer() string {
	head := r.where()
	if r.Blocked != "" {
		head = fmt.Sprintf("%s does not run: %s What to do", head, r.Blocked)
	}
	if len(r.Advice) == 0 && r.Blocked != "" {
		return fmt.Sprintf("%s does not run, and no rule has advice: %s", r.where(), r.Blocked)
	}
	if len(r.Advice) == 0 {
		return fmt.Sprintf("No advice for %s: %s.", r.where(), r.silence())
	}
	a := r.Advice[0]
	if a.Gain.Quantity == firstRun {
		latency := "nothing promises a lower latency"
		if open := r.Unchecked(); len(open) > 0 {
			latency = "nothing that was checked promises a lower latency (not checked: " + strings.Join(open, ", ") + ")"
		}
		return fmt.Sprintf("%s: %s. Opening the model takes %s, an inference then %s: open it once, and keep it.", head, latency, show(firstRun, a.Gain.Before), show(firstRun, a.Gain.Before*a.Gain.Ratio))
	}
	s := fmt.Sprintf("%s: %s. Expected: %s.", head, lowerFirst(a.Title), a.Promise())
	if a.Costs != "" {
		s += " It costs " + a.Costs + "."
	}
	return s
}

// Unchecked lists the rules whose figures are not known: they may have advice all the same.
func (r *Result) Unchecked() (codes []string) {
	for _, s := range r.Silent {
		if slices.Contains([]string{noProbe, noModel, noTimes, noEstimate}, s.Reason) {
			codes = append(codes, s.Rule)
		}
	}
	return codes
}

// silence says what the rules without advice found.
func (r *Result) silence() string {
	open := r.Unchecked()
	checked := len(r.Silent) - len(open)
	switch {
	case len(open) == 0 && checked < 2:
		return "no rule that applies here promises a gain"
	case len(open) == 0:
		return fmt.Sprintf("none of the %d rules that apply here promises a gain", checked)
	case checked == 0:
		return fmt.Sprintf("no rule could be checked (%s)", strings.Join(open, ", "))
	}
	return fmt.Sprintf("%s promise no gain. Not checked, for the reasons below: %s", plural(checked, "checked rule"), strings.Join(open, ", "))
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// Write writes a result to people or programs. width is that of the terminal, 0 for none.
func Write(w io.Writer, r *Result, format string, width int) error {
	switch format {
	case "json":
		b, err := jsonx.MarshalIndent(r)
		if err != nil {
			return err
		}
		_, err = w.Write(append(b, '\n'))
		return err
	case "markdown":
		return r.markdown(w)
	}
	return r.table(w, width)
}

// line is a labelled part of an advice.
type line struct{ label, text string }

func (a *Advice) lines() []line {
	out := []line{{"Expect", a.Promise()}}
	if a.Costs != "" {
		out = append(out, line{"Costs", a.Costs})
	}
	out = append(out, line{"Why", a.Reason}, line{"Basis", a.Gain.Basis}, line{"Try", a.Try})
	if a.Caveat != "" {
		out = append(out, line{"Check", a.Caveat})
	}
	if a.Tried != nil {
		out = append(out, line{"Tried", a.Tried.Text(a.Gain.Quantity)})
	}
	return out
}

func (r *Result) table(w io.Writer, width int) error {
	var b strings.Builder
	put := func(indent, s string) {
		for i, l := range report.Wrap(text.Clean(s), max(width-len(indent), 0)) {
			if i > 0 {
				indent = strings.Repeat(" ", len(indent))
			}
			b.WriteString(indent + l + "\n")
		}
	}
	put("", r.Answer())
	for i, a := range r.Advice {
		b.WriteString("\n")
		put(fmt.Sprintf("%d. ", i+1), a.Title+" ["+a.Rule+"]")
		for _, l := range a.lines() {
			if l.label == "Try" { // never broken: it is to be copied
				b.WriteString("   Try     " + text.Clean(l.text) + "\n")
				continue
			}
			put(fmt.Sprintf("   %-8s", l.label), l.text)
		}
	}
	if len(r.Silent) > 0 {
		b.WriteString("\nNo advice from:\n")
		for _, s := range r.Silent {
			put(fmt.Sprintf("   %-16s", s.Rule), s.Reason)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// escaped escapes what Markdown would format.
func escaped(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", "|", `\|`, "[", `\[`).Replace(text.Clean(s))
}

func (r *Result) markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("**" + escaped(r.Answer()) + "**\n")
	for i, a := range r.Advice {
		fmt.Fprintf(&b, "\n%d. **%s** (`%s`)\n", i+1, escaped(a.Title), a.Rule)
		for _, l := range a.lines() {
			if l.label == "Try" {
				fmt.Fprintf(&b, "   - %s: `%s`\n", l.label, strings.ReplaceAll(text.Clean(l.text), "`", ""))
				continue
			}
			fmt.Fprintf(&b, "   - %s: %s\n", l.label, escaped(l.text))
		}
	}
	if len(r.Silent) > 0 {
		b.WriteString("\nNo advice from:\n\n")
		for _, s := range r.Silent {
			fmt.Fprintf(&b, "- `%s`: %s\n", s.Rule, escaped(s.Reason))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
