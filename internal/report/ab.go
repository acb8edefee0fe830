package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/report/gobench"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
)

// ABOptions sets how a comparison of alternatives is shown.
type ABOptions struct {
	Width int // columns of the terminal, 0 for no limit
	Color bool
	// OS, Arch and CPU describe this computer in the benchmark text.
	OS, Arch, CPU string
}

// ABFormats are the formats of a comparison of alternatives.
var ABFormats = []string{"table", "markdown", "json", "bench"}

// abEndings are the endings of their files, the longest first.
var abEndings = [][2]string{{".bench.txt", "bench"}, {".txt", "table"}, {".md", "markdown"}, {".json", "json"}}

// ABFormat is the format of a comparison of alternatives by the ending of a file.
func ABFormat(path string) (string, error) {
	for _, e := range abEndings {
		if strings.HasSuffix(strings.ToLower(path), e[0]) {
			return e[1], nil
		}
	}
	return "", fmt.Errorf("%s: the ending does not name a format of this comparison: use one of .txt .md .json .bench.txt", path)
}

// WriteAB writes a comparison of alternatives in a format of [ABFormats].
func WriteAB(w io.Writer, r *ab.Result, format string, o ABOptions) error {
	var s string
	switch format {
	case "table":
		s = abTable(r, o)
	case "markdown":
		s = abMarkdown(r)
	case "bench":
		s = abBench(r, o)
	case "json":
		b, err := jsonx.MarshalIndent(r)
		if err != nil {
			return err
		}
		s = string(b)
	default:
		return fmt.Errorf("unknown format %q: use one of %s", format, strings.Join(ABFormats, ", "))
	}
	_, err := io.WriteString(w, s)
	return err
}

// abPercent writes a difference with two digits: "0.31 %", "3.1 %", "42 %".
func abPercent(f float64) string {
	v := 100 * math.Abs(f)
	digits := 1
	switch {
	case v < 1:
		digits = 2
	case v >= 20:
		digits = 0
	}
	return words.Fixed(v, digits) + " %"
}

// signed is abPercent with a sign.
func signed(f float64) string {
	if f < 0 {
		return "−" + abPercent(f)
	}
	return "+" + abPercent(f)
}

// Differences beyond these are told as factors.
const farFaster, farSlower = 0.67, 1.5

// ABAnswer is the answer of one comparison in a sentence.
func ABAnswer(r *ab.Result, c *ab.Comparison) string {
	a, b := text.Clean(r.Alternatives[c.A].Name), text.Clean(r.Alternatives[c.B].Name)
	interval := func(low, high float64) string {
		return fmt.Sprintf("(95 %% interval %s to %s)", strings.TrimSuffix(abPercent(low), " %"), abPercent(high))
	}
	factors := func(low, high float64) string {
		return fmt.Sprintf("(95 %% interval %s to %s)", words.Fixed(low, 2), words.Fixed(high, 2))
	}
	switch {
	case c.Verdict == ab.Better && c.Ratio < farFaster:
		return fmt.Sprintf("%s is %s times as fast as %s %s", b, words.Fixed(1/c.Ratio, 2), a, factors(1/c.High, 1/c.Low))
	case c.Verdict == ab.Worse && c.Ratio > farSlower:
		return fmt.Sprintf("%s takes %s times as long as %s %s", b, words.Fixed(c.Ratio, 2), a, factors(c.Low, c.High))
	case c.Verdict == ab.Better:
		return fmt.Sprintf("%s is %s faster than %s %s", b, abPercent(1-c.Ratio), a, interval(1-c.High, 1-c.Low))
	case c.Verdict == ab.Worse:
		return fmt.Sprintf("%s is %s slower than %s %s", b, abPercent(c.Ratio-1), a, interval(c.Low-1, c.High-1))
	case c.Verdict == ab.Equivalent:
		return fmt.Sprintf("%s and %s are equivalent within ±%s (difference %s, 95 %% interval %s to %s)", b, a, abPercent(c.Allowance), signed(c.Ratio-1), signed(c.Low-1), signed(c.High-1))
	}
	return fmt.Sprintf("Undecided: %s may be up to %s faster or %s slower than %s (measured %s)", b, abPercent(max(0, 1-c.Low)), abPercent(max(0, c.High-1)), a, signed(c.Ratio-1))
}

// abAnswers are the first lines: what was found, and what to do if that is too little.
func abAnswers(r *ab.Result) []string {
	var out []string
	for i := range r.Comparisons {
		out = append(out, ABAnswer(r, &r.Comparisons[i]))
	}
	if len(out) == 0 {
		out = append(out, fmt.Sprintf("Undecided: %s of each alternative, and an answer needs %d", processes(len(r.Alternatives[0].Processes)), ab.MinProcesses))
	}
	return out
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return strconv.Itoa(n) + " processes"
}

// ABPlan says before the measurement what the budget can show.
func ABPlan(p ab.Plan, budget time.Duration) string {
	return fmt.Sprintf("a budget of %s shows differences from about %s on: %s of each alternative, %s in each", flagTime(budget), abPercent(p.Detectable), processes(p.Processes), words.Plural(int64(p.Blocks), "block"))
}

// abRow is a line of the table.
func abRow(r *ab.Result, i int) []string {
	m := &r.Alternatives[i]
	row := []string{m.Name, Duration(m.Seconds), "", "", "", strconv.Itoa(len(m.Processes)), strconv.Itoa(blocksOf(m)), strconv.Itoa(m.Disturbed)}
	for _, c := range r.Comparisons {
		if c.B == i {
			row[2] = words.Fixed(c.Ratio, 3)
			row[3] = words.Fixed(c.Low, 3) + " to " + words.Fixed(c.High, 3)
			row[4] = string(c.Verdict)
		}
	}
	if i == 0 {
		row[2] = "1"
	}
	return row
}

var abHeads = []string{"alternative", "time", "ratio", "95 % interval", "verdict", "processes", "blocks", "disturbed"}

// driftNoted is the difference between a ratio and the quotient of its times that is explained.
const driftNoted = 0.02

// abFacts are the sentences below the table.
func abFacts(r *ab.Result) []string {
	stop := map[ab.Stop]string{
		ab.Settled: "settled", ab.BudgetOver: "the budget is used", ab.Cancelled: "stopped: this is what was measured until then", ab.Failed: "a process failed: this is what was measured until then",
	}[r.Stop]
	out := []string{fmt.Sprintf("Measured for %s of %s: %s.", Duration(r.TookS), Duration(r.BudgetS), stop)}
	if r.PausedS >= 0.1 {
		out = append(out, fmt.Sprintf("Waited for %s because other programs used the processors.", Duration(r.PausedS)))
	}
	if r.Repeated > 0 {
		out = append(out, fmt.Sprintf("Measured %s of blocks again because other programs disturbed them.", words.Plural(int64(r.Repeated), "row")))
	}
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		if times := r.Alternatives[c.B].Seconds / r.Alternatives[c.A].Seconds; math.Abs(times/c.Ratio-1) > driftNoted {
			out = append(out, "The computer changed its speed: ratios compare neighbouring blocks and are free of it, the times are not.")
			break
		}
	}
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		a, b := &r.Alternatives[c.A], &r.Alternatives[c.B]
		differ, items := ab.OtherInputs(a, b)
		if !differ {
			continue
		}
		s := fmt.Sprintf("Other inputs: %s takes %s, %s takes %s. Times and ratios are those of an inference", a.Name, strings.Join(a.Inputs, " and "), b.Name, strings.Join(b.Inputs, " and "))
		if items > 0 {
			s += fmt.Sprintf("; the time of an item has the ratio %s (%s to %s)", words.Fixed(c.Ratio/items, 3), words.Fixed(c.Low/items, 3), words.Fixed(c.High/items, 3))
		}
		out = append(out, text.Clean(s+"."))
	}
	var most, hidden float64
	undecided := false
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		most = max(most, c.Detectable)
		if c.Verdict == ab.Undecided {
			undecided, hidden = true, max(hidden, c.Hidden())
		}
	}
	if len(r.Comparisons) > 0 {
		out = append(out, fmt.Sprintf("Smallest difference that this shows in 95 of 100 measurements: %s.", abPercent(most)))
	}
	if n := len(r.Alternatives[0].Processes); len(r.Comparisons) == 0 && r.Stop == ab.BudgetOver {
		need := time.Duration(1.5 * ab.MinProcesses * r.TookS / float64(n) * float64(time.Second))
		out = append(out, fmt.Sprintf("One process of each took %s. Try --budget %s.", Duration(r.TookS/float64(n)), flagTime(roundUp(need))))
	}
	if undecided {
		out = append(out, fmt.Sprintf("A difference of up to %s could still hide. %s", abPercent(hidden), abAdvice(r, most)))
	}
	return out
}

// longestBudget is the longest one in seconds that is worth a try.
const longestBudget = 24 * 3600

// abAdvice says what shows a difference of the margin, where the measurement shows some other one.
func abAdvice(r *ab.Result, detectable float64) string {
	// The spread falls with the root of the time.
	need := max(2*r.BudgetS, r.TookS*square(detectable/r.Margin))
	if !(need <= longestBudget) {
		return "Measure on a quieter machine, or with a larger --margin."
	}
	return fmt.Sprintf("To show one of %s, try --budget %s.", abPercent(r.Margin), flagTime(roundUp(time.Duration(need*float64(time.Second)))))
}

func square(v float64) float64 { return v * v }

// roundUp rounds a time up to what people write.
func roundUp(d time.Duration) time.Duration {
	unit := time.Minute
	if d > 10*time.Hour {
		unit = time.Hour
	}
	return max(unit, d.Truncate(unit)+unit)
}

// flagTime writes a time as people write it behind a flag: "11h" and not "11h0m0s".
func flagTime(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func abTable(r *ab.Result, o ABOptions) string {
	var b strings.Builder
	width := o.Width
	if width <= 0 {
		width = math.MaxInt32
	}
	for _, s := range abAnswers(r) {
		for _, l := range Wrap(s, width) {
			if o.Color {
				l = text.Bold.Render(l)
			}
			b.WriteString(l + "\n")
		}
	}
	rows := [][]string{abHeads}
	for i := range r.Alternatives {
		rows = append(rows, abRow(r, i))
	}
	facts := abFacts(r)
	if tableWidth(rows) > width {
		facts = append(facts, abCounts(r))
		for i := range rows {
			rows[i] = rows[i][:len(abHeads)-abCounted]
		}
	}
	b.WriteString("\n")
	b.WriteString(aligned(rows, width))
	b.WriteString("\n")
	for _, s := range facts {
		for _, l := range Wrap(s, width) {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

// abCounted is the number of columns at the end of the table that count what was measured.
const abCounted = 3

// abCounts is what these columns say, as a sentence for narrow terminals.
func abCounts(r *ab.Result) string {
	var list []string
	for i := range r.Alternatives {
		m := &r.Alternatives[i]
		list = append(list, fmt.Sprintf("%s, %s, %d disturbed", processes(len(m.Processes)), words.Plural(int64(blocksOf(m)), "block"), m.Disturbed))
	}
	if len(slices.Compact(slices.Clone(list))) == 1 {
		return "Of each alternative: " + list[0] + "."
	}
	return "Of the alternatives, in order: " + strings.Join(list, "; ") + "."
}

// blocksOf is the number of blocks of an alternative.
func blocksOf(m *ab.Measured) (n int) {
	for _, p := range m.Processes {
		n += len(p)
	}
	return n
}

// tableWidth is the width of rows in columns.
func tableWidth(rows [][]string) int {
	all := 0
	for k := range rows[0] {
		most := 0
		for _, r := range rows {
			most = max(most, Columns(text.Clean(r[k])))
		}
		all += most + len(gap)
	}
	return all - len(gap)
}

// aligned writes rows in columns, the first to the left and the others to the right. A narrow
// terminal shortens the first.
func aligned(rows [][]string, width int) string {
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for k, cell := range r {
			widths[k] = max(widths[k], Columns(text.Clean(cell)))
		}
	}
	others := 0
	for _, w := range widths[1:] {
		others += w + len(gap)
	}
	const least = 12
	widths[0] = max(min(widths[0], width-others), min(widths[0], least))
	var b strings.Builder
	for _, r := range rows {
		line := Column(text.Clean(r[0]), widths[0])
		for k, cell := range r[1:] {
			line += gap + pad(text.Clean(cell), widths[k+1], false)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func abMarkdown(r *ab.Result) string {
	var b strings.Builder
	for _, s := range abAnswers(r) {
		b.WriteString("**" + text.Markdown(s) + "**\n\n")
	}
	line := func(cells []string) {
		for i, c := range cells {
			cells[i] = text.TableCell(text.Clean(c))
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(slices.Clone(abHeads))
	b.WriteString("| --- |" + strings.Repeat(" ---: |", len(abHeads)-1) + "\n")
	for i := range r.Alternatives {
		line(abRow(r, i))
	}
	b.WriteString("\n")
	for _, s := range abFacts(r) {
		b.WriteString(text.Markdown(s) + "\n")
	}
	return b.String()
}

// abBench writes one line for each process of each alternative, for benchstat.
func abBench(r *ab.Result, o ABOptions) string {
	var b strings.Builder
	for _, c := range [][2]string{{"goos", o.OS}, {"goarch", o.Arch}, {"cpu", o.CPU}} {
		if v := text.Clean(strings.Join(strings.Fields(c[1]), " ")); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", c[0], v)
		}
	}
	b.WriteString("# one line for each process: the median of its block means, since the blocks and inferences of one process are not independent\n")
	b.WriteString("# compare with: benchstat -col /alternative FILE\n\n")
	for i := range r.Alternatives {
		m := &r.Alternatives[i]
		for _, p := range m.Processes {
			fmt.Fprintf(&b, "BenchmarkInference/alternative=%s %d %s ns/op\n", gobench.Name(m.Name), len(p), strconv.FormatFloat(stats.Median(p)*1e9, 'g', 9, 64))
		}
	}
	return b.String()
}
