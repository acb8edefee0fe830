package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
)

// List writes profiles, a line each, as they come, and at its end the reasons for which
// files were refused, alike ones together.
type List struct {
	w       io.Writer
	csv     *csv.Writer
	o       ListOptions
	cols    []listColumn
	n, bad  int
	records int // profiles of records
	reasons map[string]*reason
	lacking []string // headings of the columns without room
}

// ListOptions sets what a list shows.
type ListOptions struct {
	Format   string // one of [ListFormats], "" for a table
	Width    int    // columns of the terminal, 0 for no limit
	Measured bool   // profiles have times; otherwise the column is left out
	Tokens   bool   // profiles have figures of language models; otherwise these columns are left out
	// Files are the models that will come: the widest name is known from them.
	Files []string
	// Formats are those of the profiles, as far as they are known before.
	Formats []string
}

// ListFormats are the formats in which several profiles are a list.
var ListFormats = []string{"table", "csv", "markdown"}

// ListRow is a line of a list: a profile, or why a file has none.
type ListRow struct {
	TargetRow
	Path string // of the model's file
	Err  error
}

// reason is why one or more files were refused.
type reason struct {
	class   string
	count   int
	example string // file of the first
}

// listColumn is a column of a list.
type listColumn struct {
	key, head string
	left      bool
	width     int // in a table, 0 for comma-separated values alone
	keep      int // the lower, the sooner it is left out
	human     func(r *ListRow) string
	raw       func(r *ListRow) string
}

// nameWidth is the room for a model's name, nameLeast what is left of it at least.
const (
	nameWidth = 44
	nameLeast = 24
)

// layerColumns are empty for records that have only figures of language models.
var layerColumns = []string{"layers", "macs", "ram_bytes", "largest_layer"}

// listColumns are all columns of a list but the note, in order.
func listColumns(tokens bool) []listColumn {
	both := func(f func(r *ListRow) string) (human, raw func(r *ListRow) string) { return f, f }
	col := func(key, head string, left bool, width, keep int, human, raw func(r *ListRow) string) listColumn {
		return listColumn{key, head, left, width, keep, human, raw}
	}
	whole := func(key, head string, width, keep int, show func(int64) string, get func(p *profile.Profile) *int64) listColumn {
		return col(key, head, false, width, keep, func(r *ListRow) string {
			if v := get(r.Profile); v != nil {
				return show(*v)
			}
			return ""
		}, func(r *ListRow) string {
			if v := get(r.Profile); v != nil {
				return strconv.FormatInt(*v, 10)
			}
			return ""
		})
	}
	number := func(key, head string, width, keep int, show func(float64) string, get func(p *profile.Profile) (float64, bool)) listColumn {
		cell := func(show func(float64) string) func(r *ListRow) string {
			return func(r *ListRow) string {
				if v, ok := get(r.Profile); ok {
					return show(v)
				}
				return ""
			}
		}
		return col(key, head, false, width, keep, cell(show), cell(PlainNumber))
	}
	size, rawSize := func(r *ListRow) string {
		if n := modelBytes(r.Profile); n != nil {
			return Bytes(*n)
		}
		return ""
	}, func(r *ListRow) string {
		if n := r.Profile.Model.FileBytes; n != nil {
			return strconv.FormatInt(*n, 10)
		}
		return ""
	}
	name, rawName := both(func(r *ListRow) string { return filepath.Base(cmp.Or(r.Path, r.Profile.Model.Name)) })
	target, rawTarget := both(func(r *ListRow) string { return r.Profile.Target.ID })
	format, rawFormat := both(func(r *ListRow) string { return r.Profile.Model.Format })
	largest, rawLargest := both(func(r *ListRow) string { return largestLayer(r.Profile) })
	verdict := func(show func(t *profile.Trust) string) func(r *ListRow) string {
		return func(r *ListRow) string {
			if t := r.Profile.Trust; t != nil {
				return show(t)
			}
			return words.Origin(r.Profile)
		}
	}
	trust, rawTrust := verdict(words.FitCell), verdict(func(t *profile.Trust) string { return string(t.Verdict) })
	fits, rawFits := both(func(r *ListRow) string { return r.Fits() })
	interval := func(i int) func(p *profile.Profile) (float64, bool) {
		return func(p *profile.Profile) (float64, bool) {
			if iv := p.Totals.Latency.Interval(); iv != nil {
				return iv[i], true
			}
			return 0, false
		}
	}
	cols := []listColumn{
		col("model", "model", true, nameWidth, 100, name, rawName),
		col("target", "target", true, 0, 0, target, rawTarget),
		col("format", "format", true, 6, 30, format, rawFormat),
		col("file_bytes", "size", false, 8, 60, size, rawSize),
		whole("layers", "layers", 6, 40, Count, func(p *profile.Profile) *int64 { return p.Totals.Layers }),
		whole("macs", "MACs", 7, 70, Count, func(p *profile.Profile) *int64 { return p.Totals.MACs }),
		whole("params", "params", 7, 50, Count, func(p *profile.Profile) *int64 { return p.Totals.Params }),
		whole("ram_bytes", "RAM", 8, 80, Bytes, func(p *profile.Profile) *int64 { return p.Totals.RAMBytes }),
		whole("flash_bytes", "flash", 0, 0, Bytes, func(p *profile.Profile) *int64 { return p.Totals.FlashBytes }),
		number("latency_s", "latency", 8, 90, Duration, func(p *profile.Profile) (float64, bool) { return p.Totals.Latency.Best() }),
		number("latency_low_s", "", 0, 0, Duration, interval(0)),
		number("latency_high_s", "", 0, 0, Duration, interval(1)),
		number("inferences_per_s", "", 0, 0, PlainNumber, func(p *profile.Profile) (float64, bool) { return p.Totals.Figure("inferences_per_s").Best() }),
		number("loaded_latency_s", "", 0, 0, Duration, func(p *profile.Profile) (float64, bool) { return p.Totals.Figure("loaded_latency_s").Best() }),
		number("response_s", "", 0, 0, Duration, func(p *profile.Profile) (float64, bool) { return p.Totals.Figure("response_s").Best() }),
		col("trust", "quality", true, len("comparing"), 88, trust, rawTrust),
		number("energy_j", "energy", 0, 0, Duration, func(p *profile.Profile) (float64, bool) { return p.Totals.Energy.Best() }),
		col("fits", "fits", true, 0, 0, fits, rawFits),
		col("largest_layer", "largest layer", true, 22, 75, largest, rawLargest),
	}
	for _, c := range tokenColumns {
		if !tokens {
			break
		}
		show := perSecond
		if strings.HasSuffix(c.head, "token") {
			show = Duration
		}
		cols = append(cols, number(c.key, c.head, len(c.head), 95, show, func(p *profile.Profile) (float64, bool) { return p.Totals.Figure(c.key).Best() }))
	}
	return cols
}

// largestLayer names the layer that takes most of the time, or has most of the work where
// no time is known: "#3 CONV_2D 12.3 %".
func largestLayer(p *profile.Profile) string {
	best, most, sum := (*profile.Layer)(nil), 0.0, 0.0
	for _, key := range []string{"share", "macs"} {
		for i := range p.Layers {
			v, ok := p.Layers[i].Figure(key).Best()
			if !ok {
				continue
			}
			if sum += v; v > most {
				best, most = &p.Layers[i], v
			}
		}
		if best != nil {
			if key == "share" {
				sum = 1
			}
			return fmt.Sprintf("#%d %s %s", best.Index, best.OpText(), Percent(most/sum))
		}
	}
	return ""
}

// NewList starts a list.
func NewList(w io.Writer, o ListOptions) *List {
	m := &List{w: w, o: o, reasons: map[string]*reason{}, cols: listColumns(o.Tokens)}
	if o.Format == "csv" {
		m.csv = csv.NewWriter(w)
		return m
	}
	bare := o.Tokens && !o.Measured
	m.cols = slices.DeleteFunc(m.cols, func(c listColumn) bool {
		return c.width == 0 || (c.key == "latency_s" || c.key == "trust") && !o.Measured || bare && slices.Contains(layerColumns, c.key)
	})
	if i := slices.IndexFunc(m.cols, func(c listColumn) bool { return c.key == "largest_layer" }); i >= 0 {
		m.cols[i].head = "most MACs in"
		if o.Measured {
			m.cols[i].head = "slowest layer"
		}
	}
	m.cols[0].width = len("model")
	for _, f := range o.Files {
		m.cols[0].width = min(nameWidth, max(m.cols[0].width, text.Width(text.Clean(filepath.Base(f)))))
	}
	for i := range m.cols {
		for _, f := range o.Formats {
			if m.cols[i].key == "format" {
				m.cols[i].width = min(16, max(m.cols[i].width, len(f)))
			}
		}
	}
	if o.Width <= 0 || o.Format == "markdown" {
		return m
	}
	for m.width() > o.Width && len(m.cols) > 2 {
		if over := m.width() - o.Width; m.cols[0].width-over >= nameLeast {
			m.cols[0].width -= over
			break
		}
		least := 0
		for i, c := range m.cols {
			if c.keep < m.cols[least].keep {
				least = i
			}
		}
		m.lacking = append(m.lacking, m.cols[least].head)
		m.cols = slices.Delete(m.cols, least, least+1)
	}
	return m
}

// width is that of the columns of the table.
func (m *List) width() int {
	total := -len(gap)
	for _, c := range m.cols {
		total += c.width + len(gap)
	}
	return total
}

// Add writes the line of a profile, or why it is absent.
func (m *List) Add(r ListRow) error {
	if m.n++; m.n == 1 {
		if err := m.heading(); err != nil {
			return err
		}
	}
	if r.Profile != nil && r.Profile.Target.Kind == profile.TargetImport {
		m.records++
	}
	cells := make([]string, len(m.cols))
	var note string
	if r.Profile != nil && r.Err == nil {
		for i, c := range m.cols {
			cells[i] = c.human(&r)
			if m.csv != nil {
				cells[i] = c.raw(&r)
			}
		}
		note = r.listNote()
	} else {
		m.bad++
		cells[0] = filepath.Base(r.Path)
		why := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(r.Err.Error(), r.Path), ": "))
		m.note(why, cells[0])
		note = "refused: " + why
	}
	switch {
	case m.csv != nil:
		for i, c := range m.cols {
			if c.left {
				cells[i] = text.Cell(cells[i])
			}
		}
		return m.csv.Write(append(cells, text.Cell(note)))
	case m.o.Format == "markdown":
		return m.markdown(append(cells, note))
	}
	return m.print(cells, text.Clean(note))
}

// listNote says what a profile lacks, and whether its target holds the model.
func (r *ListRow) listNote() string {
	if r.Profile.Target.Kind == profile.TargetSimulator {
		return r.note()
	}
	notes := words.Blanks(r.Profile)
	if len(r.Profile.Incomplete) > 0 {
		notes = append(notes, words.Incomplete(r.Profile))
	}
	if s := words.Assumed(&r.Profile.Model); s != "" {
		notes = append(notes, "open dimensions taken as 1: "+s)
	}
	if s := otherTokens(r.Profile); s != "" {
		notes = append(notes, s)
	}
	return strings.Join(notes, ", ")
}

// heading writes the names of the columns.
func (m *List) heading() error {
	var cells []string
	for _, c := range m.cols {
		if m.csv != nil {
			cells = append(cells, c.key)
		} else {
			cells = append(cells, c.head)
		}
	}
	switch {
	case m.csv != nil:
		return m.csv.Write(append(cells, noteKey))
	case m.o.Format == "markdown":
		if err := m.markdown(append(cells, noteKey)); err != nil {
			return err
		}
		var b strings.Builder
		for _, c := range m.cols {
			b.WriteString(map[bool]string{true: "| --- ", false: "| ---: "}[c.left])
		}
		_, err := io.WriteString(m.w, b.String()+"| --- |\n")
		return err
	}
	return m.print(cells, noteKey)
}

func (m *List) markdown(cells []string) error {
	var b strings.Builder
	for _, c := range cells {
		b.WriteString("| " + escape(c) + " ")
	}
	_, err := io.WriteString(m.w, b.String()+"|\n")
	return err
}

// print writes a line of the table, with the note behind it, or below where the
// terminal has no room for it.
func (m *List) print(cells []string, note string) error {
	const most = 3 // lines of a note
	parts := make([]string, len(cells))
	for i, c := range m.cols {
		parts[i] = pad(shorten(text.Clean(cells[i]), c.width), c.width, c.left)
	}
	line := strings.Join(parts, gap)
	var below []string
	switch room := m.o.Width - m.width() - len(gap); {
	case note == "":
	case m.o.Width <= 0 || text.Width(note) <= room:
		line += gap + note
	case note == noteKey: // the heading of what follows below
	default:
		below = wrap(note, m.o.Width-2*len(gap))
		if len(below) > most {
			below = append(below[:most-1], clip(strings.Join(below[most-1:], " "), m.o.Width-2*len(gap)))
		}
	}
	var b strings.Builder
	b.WriteString(clip(strings.TrimRight(line, " "), m.o.Width) + "\n")
	for _, l := range below {
		b.WriteString(gap + gap + clip(l, m.o.Width-2*len(gap)) + "\n")
	}
	_, err := io.WriteString(m.w, b.String())
	return err
}

// What differs between files that are refused for one reason.
var (
	quotedText = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)
	hexText    = lazyregexp.New(`\b(?:0x[0-9a-f]+|[0-9a-f]{2}(?: [0-9a-f]{2})+)\b`)
	numberText = lazyregexp.New(`-?\d+(?:[x.]\d+)*`)
)

// reasonClass takes names and figures out of an error's text, so that alike
// errors fall together.
func reasonClass(why string) string {
	why, _, _ = strings.Cut(why, "\n")
	why = quotedText.ReplaceAllString(why, `"…"`)
	why = hexText.ReplaceAllString(why, "…")
	why = numberText.ReplaceAllString(why, "N")
	// The place in the file comes first and differs every time.
	if place, what, ok := strings.Cut(why, " at byte N: "); ok && !strings.Contains(place, " ") {
		why = what
	}
	return text.Clean(why)
}

// note counts a refusal under its reason.
func (m *List) note(text, file string) {
	class := reasonClass(text)
	r := m.reasons[class]
	if r == nil {
		r = &reason{class: class, example: file}
		m.reasons[class] = r
	}
	r.count++
}

// clip cuts a line to a width, 0 for no limit.
func clip(l string, width int) string {
	if width <= 0 || text.Width(l) <= width {
		return l
	}
	r := []rune(l)
	n := min(len(r), width-1)
	for text.Width(string(r[:n])) > width-1 {
		n--
	}
	return string(r[:n]) + "…"
}

// reasonRows bounds the table of reasons.
const reasonRows = 20

// Close ends the list.
func (m *List) Close() error {
	switch {
	case m.csv != nil:
		m.csv.Flush()
		return m.csv.Error()
	case m.o.Format == "markdown":
		return nil
	}
	var b strings.Builder
	what := "model"
	if m.records > 0 && m.records == m.n {
		what = "profile" // several may be of one model
	}
	b.WriteString(words.Plural(int64(m.n), what))
	if m.bad > 0 {
		fmt.Fprintf(&b, ", %d refused:\n\n%5s  %s  reason", m.bad, "count", pad("example", m.cols[0].width, true))
		list := slices.SortedFunc(maps.Values(m.reasons), func(x, y *reason) int {
			return cmp.Or(cmp.Compare(y.count, x.count), cmp.Compare(x.class, y.class))
		})
		for i, r := range list {
			if i == reasonRows && len(list) > reasonRows+1 {
				fmt.Fprintf(&b, "\n%5s  and %d more reasons", "", len(list)-i)
				break
			}
			name := pad(shorten(text.Clean(r.example), m.cols[0].width), m.cols[0].width, true)
			b.WriteString("\n" + clip(fmt.Sprintf("%5d  %s  %s", r.count, name, r.class), m.o.Width))
		}
	}
	b.WriteByte('\n')
	if len(m.lacking) > 0 && m.n > m.bad {
		b.WriteString(strings.Join(wrap(noRoom(m.lacking), m.o.Width), "\n") + "\n")
	}
	_, err := io.WriteString(m.w, b.String())
	return err
}

// modelBytes is the size of the model with the external data that its file names, missing or not.
func modelBytes(p *profile.Profile) *int64 {
	if p.Model.FileBytes == nil || p.Totals.FlashBytes == nil {
		return cmp.Or(p.Model.FileBytes, p.Totals.FlashBytes)
	}
	return new(max(*p.Model.FileBytes, *p.Totals.FlashBytes))
}
