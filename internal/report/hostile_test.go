package report

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/opmeter/opmeter/internal/base/jsonx"
	"github.com/opmeter/opmeter/internal/report/text"
	"github.com/opmeter/opmeter/profile"
)

// evil are texts that some program would obey.
var evil = append([]string{
	`=HYPERLINK("http://example.invalid","click")`, "+cmd|' /C calc'!A0", "@SUM(1+1)*cmd", "-1+1", "＝1+1", "=1+1\t", "\t=1+1", "\r=1+1", " =1+1", "'=1+1",
	"<script>alert(1)</script>", `<img src=x onerror="alert(1)">`, "</textarea><b>", "<!-- ", "--> ", "]]>", "&#60;b&#62;", "<a href='javascript:1'>",
	"[a](javascript:alert(1))", "![a](http://example.invalid/x.png)", "http://example.invalid/", "www.example.invalid", "a@example.invalid", "```", "# h", "|---|",
	"\x1b[31mred\x1b[0m", "\x1b]8;;http://example.invalid\x1b\\link\x1b]8;;\x1b\\", "\x1b]0;title\a", "\u009b31m", "\x9b", "\x90q", "a\bb", "\x7f",
	"\u202eexe.gpj", "\u2066\u2067\u2068\u2069", "\u200f\u061c", "a\u200bb", "\u200d\u2060\ufeff", "\u3164\u115f\ufe0f\U000e0041",
	"line\nfeed", "a\r\nb", "tab\tbed", "\v\f", "\u2028\u2029\u0085", "\x00", "\ufffe\uffff", "\xff\xfe\x80", "\xc0\xaf", "\xed\xa0\x80",
	`"`, `""`, "'", "`", ",", ";", "a;=1+1", `\`, `\x41`, "{{.}}", "${x}", "%s%n", "_x0041_", "_x000D_", "null", "~", "- a", "a: b", "*", "é́́́", "日本語", "🙂",
	strings.Repeat("x", 10000), strings.Repeat("\x01", 10000), strings.Repeat("\u202e", 10000), strings.Repeat("日", 10000), strings.Repeat("<b>", 4000),
}, hostile...)

// anyText draws a bad text, a pair of them, or anything.
func anyText() *rapid.Generator[string] {
	one := rapid.SampledFrom(evil)
	return rapid.OneOf(one, rapid.Custom(func(t *rapid.T) string { return one.Draw(t, "a") + one.Draw(t, "b") }), rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
}

// hostileProfile draws a profile with such texts wherever one stands.
func hostileProfile(t *rapid.T) *profile.Profile {
	// Some texts must not be empty.
	s := func() string { return cmp.Or(anyText().Draw(t, "text"), "x") }
	p := sparseProfile()
	p.Layers = p.Layers[:6]
	m := &p.Model
	m.Name, m.Path, m.Format, m.Producer, m.Description, m.Warnings = s(), s(), s(), s(), s(), []string{s()}
	m.Inputs = []profile.Tensor{{Name: s(), DType: s(), Shape: []int64{1, 2}}}
	m.Outputs = []profile.Tensor{{Name: s(), DType: "float32"}}
	p.Target.ID, p.Target.Engine, p.Target.Accelerator = s(), s(), s()
	p.Settings.InputKind, p.Settings.KernelSet, p.Settings.Version = s(), s(), s()
	p.Host.CPUModel, p.Host.OS, p.Host.Governor = s(), s(), s()
	p.Incomplete = []profile.Missing{{Cause: profile.ByError, Text: s()}}
	p.Totals.Latency.Method = s()
	p.Phases.Warmup.Reason = s()
	for i := range p.Findings {
		p.Findings[i].Text = s()
	}
	for range rapid.IntRange(1, 4).Draw(t, "layers") {
		l := product(s(), 1e-4, 0.1, 8, 16)
		l.Index, l.Name, l.Domain, l.Scope, l.Kernel = int64(len(p.Layers)), s(), s(), s(), s()
		l.Options, l.Placement = []profile.Option{{Key: s(), Value: s()}}, &profile.Placement{On: s(), Text: s()}
		if len(p.Layers) > 6 && rapid.Bool().Draw(t, "unsupported") { // one has run in any case
			l.State, l.Cause = profile.Unsupported, &profile.Cause{Code: profile.ByOperator, Text: s()}
		}
		p.Quantities = append(p.Quantities, profile.Quantity{Key: fmt.Sprintf("foreign_%d", len(p.Layers)), Unit: s(), Head: s(), Name: s(), Doc: s()})
		l.Figures = map[string]*profile.Metric{p.Quantities[len(p.Quantities)-1].Key: profile.Value(profile.Imported, 1.5, "")}
		l.Provenance = &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Name: s(), Op: s()}}}
		l.Inputs[0].Name, l.Inputs[1].DType, l.Outputs[0].Name = s(), s(), s()
		if rapid.Bool().Draw(t, "capable") {
			l.Op = "MatMul"
		}
		p.Layers = append(p.Layers, l)
	}
	return p
}

// lossless formats keep every text as it is, for programs. What they must do
// instead of showing is to give the text back.
var lossless = map[string]func(t *rapid.T, b []byte, p *profile.Profile){
	"json": func(t *rapid.T, b []byte, p *profile.Profile) {
		q, err := profile.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("json: %v", err)
		}
		if got, want := q.Layers[6].Name, strings.ToValidUTF8(p.Layers[6].Name, "\ufffd"); got != want && utf8.ValidString(p.Layers[6].Name) {
			t.Errorf("json: name %q, want %q", got, want)
		}
	},
	"mltk-json": func(t *rapid.T, b []byte, p *profile.Profile) {
		var q struct {
			Summary struct {
				Name string `json:"name"`
			} `json:"summary"`
		}
		if err := jsonx.Unmarshal(b, &q); err != nil {
			t.Fatalf("mltk-json: %v", err)
		}
		if got, want := q.Summary.Name, p.Model.Name; got != want && utf8.ValidString(want) {
			t.Errorf("mltk-json: name %q, want %q", got, want)
		}
	},
	"yaml": func(t *rapid.T, b []byte, p *profile.Profile) {
		var q struct {
			Layers []struct {
				Name string `yaml:"name"`
			} `yaml:"layers"`
		}
		if err := yaml.Unmarshal(b, &q); err != nil {
			t.Fatalf("yaml: %v", err)
		}
		if got, want := q.Layers[6].Name, p.Layers[6].Name; got != want && utf8.ValidString(want) {
			t.Errorf("yaml: name %q, want %q", got, want)
		}
	},
}

// checks are what single formats must not let through, beside what no format may.
var checks = map[string]func(t *rapid.T, b []byte){
	"table":         func(t *rapid.T, b []byte) { wellSet(t, string(b)) },
	"markdown":      func(t *rapid.T, b []byte) { noMarkup(t, string(b)) },
	"csv":           func(t *rapid.T, b []byte) { noFormulas(t, b, nil) },
	"neural-engine": func(t *rapid.T, b []byte) { noFormulas(t, b, neuralEngineFormula) },
	"xlsx":          stringsOnly,
	"onnx":          func(t *rapid.T, b []byte) { checkNotes(t, b) },
}

// wellSet demands that the cells of the table's rows begin where the headings do.
func wellSet(t *rapid.T, s string) {
	_, rest, _ := strings.Cut(s, "\n\n")
	rows, _, _ := strings.Cut(rest, "\n\n")
	lines := strings.Split(strings.TrimSuffix(rows, "\n"), "\n")
	head := lines[0]
	at := strings.Index(head, "operator")
	for _, l := range lines[1:] {
		col, ok := 0, false
		for i, r := range l {
			if col == at {
				ok = i > 0 && l[i-1] == ' '
				break
			}
			col += text.Width(string(r))
		}
		if !ok {
			t.Errorf("table: no cell begins under %q: %.80q", "operator", l)
		}
	}
}

// Links, images, tags, entities other than ours, and bare addresses.
var markup = regexp.MustCompile(`(^|[^\\])(\\\\)*(\]\(|<[a-zA-Z/!]|://|` + "`" + `)|(^|[^\\a-zA-Z])www\.|&[^agl]`)

func noMarkup(t *rapid.T, s string) {
	if at := markup.FindStringIndex(s); at != nil {
		t.Errorf("markdown: %.60q", s[at[0]:])
	}
	// Every line of a table has as many cells as its heading.
	cells := 0
	for _, l := range strings.Split(s, "\n") {
		if !strings.HasPrefix(l, "|") {
			cells = 0
			continue
		}
		n := len(regexp.MustCompile(`(^|[^\\])(\\\\)*\|`).FindAllString(l, -1))
		if cells != 0 && n != cells {
			t.Errorf("markdown: a row of %d cells below one of %d: %.80q", n, cells, l)
		}
		cells = n
	}
}

// neuralEngineFormula is what that format means as formulas.
var neuralEngineFormula = regexp.MustCompile(`^=(IF\(VALUE\(N\d+\)=90%,B\d+,IF\(VALUE\(N\d+\)=80%,C\d+,IF\(VALUE\(N\d+\)=70%,D\d+,E\d+\)\)\)|[MP]\d+/[OP]\d+|SUM\(P\d+:P\d+\)|P\d+(\+P\d+)*)$`)

func noFormulas(t *rapid.T, b []byte, ours *regexp.Regexp) {
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatalf("csv: %v", err)
	}
	number := regexp.MustCompile(`^-?[0-9.e+-]+$`)
	for _, row := range rows {
		for _, c := range row {
			s := strings.TrimLeft(c, " ")
			if s != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(s)[0]) && (ours == nil || !ours.MatchString(c)) && !number.MatchString(c) {
				t.Errorf("csv has a formula: %.60q", c)
			}
			// A semicolon parts cells in some countries.
			for _, part := range strings.Split(c, ";")[1:] {
				if ours != nil && part != "" && strings.ContainsRune("=+-@", rune(part[0])) {
					t.Errorf("a list has a formula: %.60q", c)
				}
			}
		}
	}
}

// stringsOnly demands of a workbook that it is well-formed, that no formula holds
// a foreign word, and that there is no link.
func stringsOnly(t *rapid.T, b []byte) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("xlsx: %v", err)
	}
	formula := regexp.MustCompile(`^([A-Z0-9$:(),/*+=<>"!%.^_ -]|Layers|layer_time_s)*$`)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(r)
		inside := ""
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("xlsx: %s: %v", f.Name, err)
			}
			switch x := tok.(type) {
			case xml.StartElement:
				inside = x.Name.Local
				if inside == "hyperlink" || inside == "ddeLink" {
					t.Errorf("xlsx: %s has a link", f.Name)
				}
			case xml.EndElement:
				inside = ""
			case xml.CharData:
				if inside == "f" && !formula.Match(x) {
					t.Errorf("xlsx: formula %.80q", x)
				}
				if n := utf8.RuneCount(x); inside == "t" && n > excelize.TotalCellChars {
					t.Errorf("xlsx: text of %d characters", n)
				}
				if strings.ContainsFunc(string(x), obeyed) {
					t.Errorf("xlsx: %s: %.60q", f.Name, x)
				}
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// obeyed are characters that a terminal or page follows instead of showing.
func obeyed(r rune) bool {
	return r != '\n' && r != '\r' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point))
}

// TestHostileTexts writes profiles full of bad texts in every format. Formats that
// come later are checked for what no format may let through.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	_, of := profiled(t)
	for _, f := range formats() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				p := hostileProfile(t)
				if f.name == "onnx" {
					of(p)
				}
				var b bytes.Buffer
				if err := Write(&b, p, f.name, Options{}); err != nil {
					t.Fatal(err)
				}
				if check := checks[f.name]; check != nil {
					check(t, b.Bytes())
				}
				if !f.text {
					return
				}
				if !utf8.Valid(b.Bytes()) {
					t.Error("not UTF-8")
				}
				if check := lossless[f.name]; check != nil {
					check(t, b.Bytes(), p)
					bad := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
					if f.name == "yaml" {
						// Its library leaves tabs and changes of direction as they are.
						bad = func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }
					}
					if i := strings.IndexFunc(b.String(), bad); i >= 0 {
						t.Errorf("lets %.40q through", b.String()[i:])
					}
					return
				}
				if i := strings.IndexFunc(b.String(), obeyed); i >= 0 {
					t.Errorf("lets %.40q through", b.String()[i:])
				}
			})
		})
	}
}

// TestHostileWorkbook has LibreOffice open a workbook and a table with every bad
// text: all of them are texts there, too, and as they were written.
func TestHostileWorkbook(t *testing.T) {
	t.Parallel()
	p := fixed()
	for _, s := range evil {
		l := product("Gemm", 1e-4, 0.1, 8, 16)
		l.Index, l.Name, l.Options = int64(len(p.Layers)), s, []profile.Option{{Key: s, Value: s}}
		l.State, l.Cause = profile.Unsupported, &profile.Cause{Code: profile.ByOperator, Text: s}
		p.Layers = append(p.Layers, l)
	}
	p.Model.Name = evil[0]
	in, out := t.TempDir(), t.TempDir()
	path := filepath.Join(in, "p.xlsx")
	if err := File(path, p, Options{}); err != nil {
		t.Fatal(err)
	}
	soffice(t, "xlsx", out, nil, path)
	f := open(t, filepath.Join(out, "p.xlsx"))
	rows, err := f.GetRows("Layers", excelize.Options{RawCellValue: true})
	if err != nil {
		t.Fatal(err)
	}
	name := -1
	for i, h := range rows[0] {
		if h == "name" {
			name = i
		}
	}
	for i, s := range evil {
		row := len(fixed().Layers) + i + 2
		cell, err := excelize.CoordinatesToCellName(name+1, row)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := raw(t, f, "Layers", cell), text.Clean(s); got != want {
			t.Errorf("%s is %.60q, want %.60q", cell, got, want)
		}
		if formula, err := f.GetCellFormula("Layers", cell); err != nil || formula != "" {
			t.Errorf("%s has the formula %q (%v)", cell, formula, err)
		}
	}
}
