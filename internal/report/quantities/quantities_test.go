// Package quantities proves that a new figure is one entry of the table of
// quantities: it stands in a test binary of its own, because what is registered there
// stays.
package quantities

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/report"
	"github.com/opmeter/opmeter/profile"
)

// TestNewQuantities registers one quantity, lets a profile declare another, and
// looks for both in every report that has columns, in the JSON and in the page. The
// schema and the page's types are tested in package profile, which makes them.
func TestNewQuantities(t *testing.T) {
	t.Parallel()
	wait := profile.Quantity{Key: "bus_wait_s", Unit: "s", Head: "bus wait", Name: "Wait for the bus", Doc: "Time in which nothing but the bus moved.", Adds: true, Better: -1}
	misses := profile.Quantity{Key: "tag_misses", Head: "misses", Name: "Tag misses", Doc: "Lines that were not where they were looked for.", Adds: true, Whole: true, Better: -1}
	warmth := profile.Quantity{Key: "warmth_c", Unit: "°C", Name: "Warmth", Doc: "Of the chip."}
	if err := profile.Register(wait); err != nil {
		t.Fatal(err)
	}
	layer := func(i int64, op string, waits, missed, degrees float64) profile.Layer {
		return profile.Layer{Index: i, Op: op, State: profile.Ran, Latency: profile.Value(profile.Imported, 1e-3, ""), Figures: map[string]*profile.Metric{
			wait.Key: profile.Value(profile.Imported, waits, ""), misses.Key: profile.Value(profile.Imported, missed, ""), warmth.Key: profile.Value(profile.Imported, degrees, ""),
		}}
	}
	p := &profile.Profile{
		Schema: profile.SchemaV1, Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "t", Kind: profile.TargetImport}, Quantities: []profile.Quantity{misses, warmth},
		Layers: []profile.Layer{layer(0, "CONV", 25e-6, 7_000_000, 41.5), layer(1, "ADD", 5e-6, 9, 42)},
		Totals: profile.Totals{Latency: profile.Value(profile.Imported, 2e-3, ""), Figures: map[string]*profile.Metric{misses.Key: profile.Value(profile.Imported, 7_000_009, "")}},
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	write := func(format string, o report.Options) string {
		var b bytes.Buffer
		if err := report.Write(&b, p, format, o); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		return b.String()
	}
	for _, tt := range []struct {
		format string
		o      report.Options
		want   []string
	}{
		{"table", report.Options{}, []string{"bus wait", "25.0 µs", "misses", "7.00 M", "Warmth", "41.5 °C"}},
		{"table", report.Options{By: "op"}, []string{"bus wait", "25.0 µs", "misses"}},
		{"table", report.Options{Width: 60}, []string{"bus wait"}},
		{"markdown", report.Options{}, []string{"| bus wait |", "25.0 µs", "| misses |", "| Warmth |", "41.5 °C"}},
		{"bench", report.Options{}, []string{
			"Unit bus-wait-s/op better=lower\n", "Unit tag-misses/op better=lower\n", "layer=0:CONV 1 1000000 ns/op 0.000025 bus-wait-s/op 7000000 tag-misses/op 41.5 warmth-c\n", "layer=all 1 2000000 ns/op 7000009 tag-misses/op\n",
		}},
		{"json", report.Options{}, []string{`"bus_wait_s":`, `"tag_misses":`, `"warmth_c":`}},
		{"yaml", report.Options{}, []string{"bus_wait_s:", "tag_misses:", "warmth_c:"}},
		{"trace", report.Options{}, []string{`"bus_wait_s":2.5e-05`, `"tag_misses":7000000`}},
	} {
		got := write(tt.format, tt.o)
		for _, s := range tt.want {
			if !strings.Contains(got, s) {
				t.Errorf("%s %+v: no %q in\n%s", tt.format, tt.o, s, got)
			}
		}
	}
	if got := write("table", report.Options{By: "op"}); strings.Contains(got, "Warmth") {
		t.Errorf("what does not add up is listed with groups:\n%s", got)
	}
	for _, o := range []report.Options{{Sort: "tag_misses"}, {Sort: misses.Key, By: "op"}} {
		if got := write("csv", o); strings.Index(got, "CONV") > strings.Index(got, "ADD") {
			t.Errorf("%+v: not sorted, most first:\n%s", o, got)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(write("csv", report.Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]string{}
	for i, key := range rows[0] {
		cells[key] = rows[1][i]
	}
	for key, want := range map[string]string{wait.Key: "2.5e-05", misses.Key: "7000000", warmth.Key: "41.5"} {
		if cells[key] != want {
			t.Errorf("csv: %s is %q, want %q", key, cells[key], want)
		}
	}
	page(t, write("html", report.Options{}), wait, misses, warmth)
	workbook(t, write("xlsx", report.Options{}), wait, misses, warmth)
}

// page looks for the figures in a page's data, and for what the page makes its columns
// of: the list of quantities.
func page(t *testing.T, html string, want ...profile.Quantity) {
	t.Helper()
	var packed []byte
	for _, m := range regexp.MustCompile(`data-part="document">([^<]*)</script>`).FindAllStringSubmatch(html, -1) {
		b, err := base64.StdEncoding.DecodeString(m[1])
		if err != nil {
			t.Fatal(err)
		}
		packed = append(packed, b...)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Quantities []profile.Quantity `json:"quantities"`
		Profile    struct {
			Layers []struct {
				Figures map[string]any `json:"figures"`
			} `json:"layers"`
		} `json:"profile"`
	}
	if err := json.NewDecoder(z).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	for _, q := range want {
		if !slices.ContainsFunc(doc.Quantities, func(have profile.Quantity) bool { return cmp.Equal(have, q) }) {
			t.Errorf("page: %s is not among its quantities", q.Key)
		}
		if len(doc.Profile.Layers) == 0 || doc.Profile.Layers[0].Figures[q.Key] == nil {
			t.Errorf("page: no %s of the first layer", q.Key)
		}
	}
}

// workbook looks for the columns, their meaning, their sums and the total.
func workbook(t *testing.T, data string, wait, misses, warmth profile.Quantity) {
	t.Helper()
	f, err := excelize.OpenReader(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	holds := func(sheet string, cells ...string) {
		t.Helper()
		rows, err := f.GetRows(sheet, excelize.Options{RawCellValue: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			line := "|" + strings.Join(r, "|") + "|"
			ok := true
			for _, c := range cells {
				ok = ok && strings.Contains(line, "|"+c+"|")
			}
			if ok {
				return
			}
		}
		t.Errorf("%s has no row with %q: %q", sheet, cells, rows)
	}
	holds("Layers", wait.Key, misses.Key, warmth.Key)
	holds("Layers", "CONV", "7000000", "41.5")
	holds("By operator", wait.Key, misses.Key)
	holds("By operator", "all", "7000009")
	holds("Columns", "Layers", wait.Key, wait.Doc+" Unit: s.")
	holds("Columns", "Layers", misses.Key, misses.Doc)
	holds("Columns", "Layers", warmth.Key, warmth.Doc+" Unit: °C.")
	holds("Summary", misses.Name, "7000009")
}
