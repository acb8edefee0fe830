package gate

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/text"
)

// Formats are the formats of a result.
var Formats = []string{"table", "markdown", "junit", "json", "bmf"}

// endings are the endings of files with their formats; a longer one comes before its suffix.
var endings = [][2]string{{".bmf.json", "bmf"}, {".txt", "table"}, {".md", "markdown"}, {".xml", "junit"}, {".json", "json"}}

// FormatOf is the format of a file by its ending.
func FormatOf(path string) (string, error) {
	low := strings.ToLower(filepath.Base(path))
	for _, e := range endings {
		if strings.HasSuffix(low, e[0]) {
			return e[1], nil
		}
	}
	return "", fmt.Errorf("%s: the ending does not name a format: use one of .txt .md .xml .json .bmf.json", path)
}

// Write writes the result in a format. all shows equal figures in a table, too, and width is that
// of the terminal, 0 for none.
func (r *Result) Write(w io.Writer, format string, all bool, width int) error {
	switch format {
	case "table":
		return r.Text(w, all, width)
	case "markdown":
		return r.markdown(w)
	case "junit":
		return r.junit(w)
	case "json":
		return jsonx.MarshalWrite(w, r)
	case "bmf":
		return r.bmf(w)
	}
	return fmt.Errorf("unknown format %q: use one of %s", format, strings.Join(Formats, ", "))
}

// File writes the result to a file in the format of its ending.
func (r *Result) File(path string) error {
	format, err := FormatOf(path)
	if err != nil {
		return err
	}
	return atomicfile.Stream(path, func(w io.Writer) error { return r.Write(w, format, true, 0) })
}

// markdown writes the result for a pull request: the answer, a table of what changed, and the rest
// folded away.
func (r *Result) markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n\n", text.Markdown(r.Answer()))
	for _, f := range r.facts() {
		fmt.Fprintf(&b, "- %s: %s\n", f[0], text.Markdown(f[1]))
	}
	r.markdownJobs(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// Comment is the result in Markdown without base and policy, for results that were not made by a
// gate: each job has a base of its own.
func (r *Result) Comment() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", text.Markdown(r.Answer()))
	r.markdownJobs(&b)
	return b.String()
}

func (r *Result) markdownJobs(b *strings.Builder) {
	for i := range r.Jobs {
		j := &r.Jobs[i]
		fmt.Fprintf(b, "\n### %s on %s: %s\n\n", text.Markdown(j.Model), text.Markdown(j.Target), outcome(j.Verdict))
		if j.Error != "" {
			fmt.Fprintf(b, "%s\n\n", text.Markdown(j.Error))
		}
		changed, equal := j.split()
		if !j.baseless() {
			markdownTable(b, changed)
		}
		if l := j.layerText(); l != "" {
			fmt.Fprintf(b, "\nLayers: %s\n", text.Markdown(l))
		}
		if len(equal) > 0 {
			fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n", equalFigures(len(equal), len(changed) > 0))
			markdownTable(b, equal)
			b.WriteString("\n</details>\n")
		}
		for _, n := range j.Notes {
			fmt.Fprintf(b, "\nNote: %s\n", text.Markdown(n))
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "\nNote: %s\n", text.Markdown(n))
	}
}

func markdownTable(b *strings.Builder, rows []Row) {
	if len(rows) == 0 {
		return
	}
	b.WriteString("| " + strings.Join(head, " | ") + " |\n| --- | ---: | ---: | ---: | ---: | --- |\n")
	for i := range rows {
		cells := rows[i].cells()
		for k := range cells {
			cells[k] = text.Markdown(cells[k])
		}
		if rows[i].counts() && (rows[i].Verdict == Worse || rows[i].Verdict == Undecided) {
			cells[len(cells)-1] = "**" + cells[len(cells)-1] + "**"
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
}

// Elements of JUnit's XML, as Jenkins, GitLab and others read it.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"timestamp,attr,omitempty"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string      `xml:"classname,attr"`
		Name    string      `xml:"name,attr"`
		Failure *junitFault `xml:"failure"`
		Error   *junitFault `xml:"error"`
		Skipped *junitFault `xml:"skipped"`
		Output  string      `xml:"system-out,omitempty"`
	}
	junitFault struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
	}
)

// junit writes a test case for each figure: worse is a failure, undecided an error, and what is
// optional or ignored is skipped where it would be one of these.
func (r *Result) junit(w io.Writer) error {
	all := junitSuites{Name: "opmeter gate"}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		s := junitSuite{Name: text.Clean(j.Model) + " on " + text.Clean(j.Target), Time: strings.TrimSuffix(r.Created, "Z")}
		for k := range j.Figures {
			f := &j.Figures[k]
			c := junitCase{Class: s.Name, Name: f.Name}
			c.Output = strings.Join(f.cells()[1:], " | ")
			switch fault := (&junitFault{Message: f.Name + " " + f.change() + ": " + f.Word(), Type: string(f.Verdict)}); {
			case f.Verdict != Worse && f.Verdict != Undecided:
			case !f.counts():
				c.Skipped = fault
				s.Skipped++
			case f.Verdict == Worse:
				c.Failure = fault
				s.Failures++
			default:
				c.Error = fault
				s.Errors++
			}
			s.Cases = append(s.Cases, c)
		}
		if j.Removed {
			fault := &junitFault{Message: "the model is gone: " + text.Clean(strings.Join(j.Notes, "; ")), Type: string(Worse)}
			s.Cases = append(s.Cases, junitCase{Class: s.Name, Name: "model", Failure: fault})
			s.Failures++
		}
		if j.Error != "" {
			s.Cases = append(s.Cases, junitCase{Class: s.Name, Name: "model", Error: &junitFault{Message: text.Clean(j.Error), Type: "undecided"}})
			s.Errors++
		}
		s.Tests = len(s.Cases)
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors, all.Skipped+s.Skipped
		all.Suites = append(all.Suites, s)
	}
	b, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(bytes.Join([][]byte{[]byte(strings.TrimSpace(xml.Header)), b, nil}, []byte("\n")))
	return err
}

// bmfMetric is a metric of the Bencher Metric Format.
type bmfMetric struct {
	Value float64  `json:"value"`
	Lower *float64 `json:"lower_value,omitzero"`
	Upper *float64 `json:"upper_value,omitzero"`
}

// bmf writes the new figures in the Bencher Metric Format: benchmark, measure, metric. Its measure
// latency is in nanoseconds; other measures have the units of opmeter.
func (r *Result) bmf(w io.Writer) error {
	out := map[string]map[string]bmfMetric{}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		measures := map[string]bmfMetric{}
		for k := range j.Figures {
			f := &j.Figures[k]
			if f.New == nil {
				continue
			}
			name, scale := strings.ReplaceAll(f.Figure, "_", "-"), 1.0
			if f.Figure == Latency {
				name, scale = "latency", 1e9
			}
			m := bmfMetric{Value: *f.New * scale}
			if f.Base != nil && f.Low != nil && f.High != nil {
				m.Lower, m.Upper = new(*f.Base**f.Low*scale), new(*f.Base**f.High*scale)
			}
			measures[name] = m
		}
		if !j.Removed {
			out[j.Model+" on "+j.Target] = measures
		}
	}
	return jsonx.MarshalWrite(w, out)
}
