package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// SweepRow is a point of a sweep. What is not known is nil.
type SweepRow struct {
	Engine     string          `json:"engine,omitzero"` // where one was asked for
	Batch      int             `json:"batch,omitzero"`  // 0 for that of the file
	Threads    int             `json:"threads"`
	Streams    int             `json:"streams"`
	Latency    *profile.Metric `json:"latency_s,omitzero"`   // under load
	Throughput *profile.Metric `json:"items_per_s,omitzero"` // inferences times the batch
	RAMBytes   *int64          `json:"ram_bytes,omitzero"`   // of all streams
	// on the Pareto front of latency and throughput
	Best  bool   `json:"best"`
	Error string `json:"error,omitzero"`
}

// SweepFormats are the formats of a sweep.
var SweepFormats = []string{"table", "csv", "markdown", "json"}

// sweepColumn is a column for people and for programs.
type sweepColumn struct {
	head, key  string
	human, raw func(r *SweepRow) string
}

func sweepColumns(rows []SweepRow) []sweepColumn {
	whole := func(head string, get func(r *SweepRow) int) sweepColumn {
		show := func(r *SweepRow) string { return strconv.Itoa(get(r)) }
		return sweepColumn{head, head, show, show}
	}
	real := func(head, key string, show func(float64) string, get func(r *SweepRow) *float64) sweepColumn {
		cell := func(show func(float64) string) func(r *SweepRow) string {
			return func(r *SweepRow) string {
				if v := get(r); v != nil {
					return show(*v)
				}
				return ""
			}
		}
		return sweepColumn{head, key, cell(show), cell(PlainNumber)}
	}
	latency := func(get func(m *profile.Metric) *float64) func(r *SweepRow) *float64 {
		return func(r *SweepRow) *float64 {
			if r.Latency == nil {
				return nil
			}
			return get(r.Latency)
		}
	}
	rate := func(get func(m *profile.Metric) *float64) func(r *SweepRow) *float64 {
		return func(r *SweepRow) *float64 {
			if r.Throughput == nil {
				return nil
			}
			return get(r.Throughput)
		}
	}
	batch := func(r *SweepRow) string {
		if r.Batch == 0 {
			return "file's"
		}
		return strconv.Itoa(r.Batch)
	}
	out := []sweepColumn{
		{"batch", "batch", batch, func(r *SweepRow) string { return strings.Replace(batch(r), "file's", "", 1) }},
		whole("threads", func(r *SweepRow) int { return r.Threads }),
		whole("streams", func(r *SweepRow) int { return r.Streams }),
		real("latency", "latency_s", Duration, latency(func(m *profile.Metric) *float64 { return m.Median })),
		real("p90", "latency_p90_s", Duration, latency(func(m *profile.Metric) *float64 { return m.P90 })),
		real("p95", "latency_p95_s", Duration, latency(func(m *profile.Metric) *float64 { return m.P95 })),
		real("p99", "latency_p99_s", Duration, latency(func(m *profile.Metric) *float64 { return m.P99 })),
		real("max", "latency_max_s", Duration, latency(func(m *profile.Metric) *float64 { return m.Max })),
		{"runs", "runs", sweepRuns, sweepRuns},
		real("items/s", "items_per_s", perSecond, rate(func(m *profile.Metric) *float64 { return m.Median })),
		real("least", "items_per_s_min", perSecond, rate(func(m *profile.Metric) *float64 { return m.Min })),
		real("most", "items_per_s_max", perSecond, rate(func(m *profile.Metric) *float64 { return m.Max })),
		{"RAM", "ram_bytes", func(r *SweepRow) string {
			if r.RAMBytes == nil {
				return ""
			}
			return Bytes(*r.RAMBytes)
		}, func(r *SweepRow) string {
			if r.RAMBytes == nil {
				return ""
			}
			return strconv.FormatInt(*r.RAMBytes, 10)
		}},
		{"best", "best", func(r *SweepRow) string {
			if r.Best {
				return "*"
			}
			return ""
		}, func(r *SweepRow) string { return strconv.FormatBool(r.Best) }},
	}
	if slices.ContainsFunc(rows, func(r SweepRow) bool { return r.Engine != "" }) {
		show := func(r *SweepRow) string { return r.Engine }
		out = slices.Insert(out, 0, sweepColumn{"engine", "engine", show, show})
	}
	return out
}

func sweepRuns(r *SweepRow) string {
	if r.Latency == nil || r.Latency.N == nil {
		return ""
	}
	return strconv.FormatInt(*r.Latency.N, 10)
}

// Sweep writes the points of a sweep in a format of [SweepFormats]; width is that of the
// terminal, 0 for no limit.
func Sweep(w io.Writer, model string, rows []SweepRow, format string, width int) error {
	switch format {
	case "json":
		return jsonx.MarshalWrite(w, struct {
			Model  string     `json:"model"`
			Points []SweepRow `json:"points"`
		}{model, rows})
	case "csv":
		return sweepCSV(w, rows)
	case "markdown":
		return sweepTable(w, rows, func(cells []string) string {
			for i := range cells {
				cells[i] = escape(cells[i])
			}
			return "| " + strings.Join(cells, " | ") + " |"
		}, true)
	}
	cols := sweepColumns(rows)
	// What does not fit is left out from the least wanted on.
	for _, drop := range []string{"least", "most", "p95", "max", "runs", "RAM", "p99", "p90"} {
		if width > 0 && sweepWidth(cols, rows) > width {
			cols = slices.DeleteFunc(cols, func(c sweepColumn) bool { return c.head == drop })
		}
	}
	return sweepText(w, model, cols, rows, width)
}

func sweepCSV(w io.Writer, rows []SweepRow) error {
	cols := sweepColumns(rows)
	out := csv.NewWriter(w)
	line := make([]string, 0, len(cols)+1)
	for _, c := range cols {
		line = append(line, c.key)
	}
	if err := out.Write(append(line, noteKey)); err != nil {
		return err
	}
	for i := range rows {
		line = line[:0]
		for _, c := range cols {
			line = append(line, c.raw(&rows[i]))
		}
		if err := out.Write(append(line, text.Cell(rows[i].Error))); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// sweepTable writes all columns with a way to join cells.
func sweepTable(w io.Writer, rows []SweepRow, join func([]string) string, rule bool) error {
	cols := sweepColumns(rows)
	var b strings.Builder
	var heads, rules []string
	for _, c := range cols {
		heads, rules = append(heads, c.head), append(rules, "---:")
	}
	b.WriteString(join(append(heads, noteKey)) + "\n")
	if rule {
		b.WriteString("| " + strings.Join(append(rules, "---"), " | ") + " |\n")
	}
	for i := range rows {
		var cells []string
		for _, c := range cols {
			cells = append(cells, c.human(&rows[i]))
		}
		b.WriteString(join(append(cells, rows[i].Error)) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sweepWidths are the widths of columns.
func sweepWidths(cols []sweepColumn, rows []SweepRow) []int {
	out := make([]int, len(cols))
	for i, c := range cols {
		out[i] = len(c.head)
		for k := range rows {
			out[i] = max(out[i], len([]rune(c.human(&rows[k]))))
		}
	}
	return out
}

func sweepWidth(cols []sweepColumn, rows []SweepRow) int {
	n := -len(gap)
	for _, w := range sweepWidths(cols, rows) {
		n += w + len(gap)
	}
	return n
}

// sweepAnswer names the points of the lowest latency and of the highest throughput, "" for a
// single point.
func sweepAnswer(rows []SweepRow) string {
	var quick, many *SweepRow
	known := 0
	for i := range rows {
		r := &rows[i]
		if r.Latency == nil || r.Latency.Median == nil || r.Throughput == nil || r.Throughput.Median == nil {
			continue
		}
		known++
		if quick == nil || *r.Latency.Median < *quick.Latency.Median {
			quick = r
		}
		if many == nil || *r.Throughput.Median > *many.Throughput.Median {
			many = r
		}
	}
	if known < 2 {
		return ""
	}
	at := func(r *SweepRow) string {
		s := fmt.Sprintf("%s, %s", words.Plural(int64(r.Threads), "thread"), words.Plural(int64(r.Streams), "stream"))
		if r.Batch > 0 {
			s = fmt.Sprintf("batch %d, %s", r.Batch, s)
		}
		if r.Engine != "" {
			s = r.Engine + ", " + s
		}
		return text.Clean(s)
	}
	return fmt.Sprintf("Lowest latency %s (%s); highest throughput %s items/s (%s)", Duration(*quick.Latency.Median), at(quick), perSecond(*many.Throughput.Median), at(many))
}

// sweepText writes the table for people.
func sweepText(w io.Writer, model string, cols []sweepColumn, rows []SweepRow, width int) error {
	widths := sweepWidths(cols, rows)
	var b strings.Builder
	line := func(cell func(c *sweepColumn) string, note string) {
		parts := make([]string, len(cols))
		for i := range cols {
			parts[i] = pad(cell(&cols[i]), widths[i], false)
		}
		s := strings.TrimRight(strings.Join(parts, gap), " ")
		if note != "" {
			s += gap + text.Clean(note)
		}
		b.WriteString(clip(s, width) + "\n")
	}
	head := fmt.Sprintf("%s: latency and throughput, %s", text.Clean(model), words.Plural(int64(len(rows)), "point"))
	for _, s := range []string{head, sweepAnswer(rows)} {
		if s != "" {
			b.WriteString(strings.Join(wrap(s, width), "\n") + "\n")
		}
	}
	b.WriteByte('\n')
	line(func(c *sweepColumn) string { return c.head }, "")
	some := false
	for i := range rows {
		some = some || rows[i].Best
		line(func(c *sweepColumn) string { return c.human(&rows[i]) }, rows[i].Error)
	}
	if some {
		b.WriteString("\n" + strings.Join(wrap("* best: no other point has less latency and as much throughput, or more throughput and as little latency. Latency is the median of an inference while all streams run.", width), "\n") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// SweepFile writes a sweep to a file whose ending names one of [SweepFormats].
func SweepFile(path, model string, rows []SweepRow) error {
	name, err := SweepFormat(path)
	if err != nil {
		return err
	}
	return atomicfile.Stream(path, func(w io.Writer) error { return Sweep(w, model, rows, name, 0) })
}

// SweepFormat is the format that a file's ending names.
func SweepFormat(path string) (string, error) {
	name, err := FormatOf(path)
	if err != nil || !slices.Contains(SweepFormats, name) {
		return "", fmt.Errorf("%s: a sweep is written as .txt, .csv, .md or .json", path)
	}
	return name, nil
}
