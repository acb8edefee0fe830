package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/base/columnar"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// maxPage bounds what a page has beside its data, in bytes as they stand there.
const maxPage = 350_000

func TestBundle(t *testing.T) {
	t.Parallel()
	packed, err := pack()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(packed) + len(starter) + len(style) + len(head); n > maxPage {
		t.Errorf("page without data has %d bytes, want at most %d", n, maxPage)
	}
	for _, s := range []string{"</script", "<script"} {
		if strings.Contains(strings.ToLower(script), s) {
			t.Errorf("the script contains %q, which ends its element or changes how it is read", s)
		}
	}
	if strings.Contains(strings.ToLower(style), "</style") {
		t.Error("the style contains its own end")
	}
	// What these name would be loaded from somewhere, or leave the page.
	for _, s := range []string{"XMLHttpRequest", "WebSocket(", "sendBeacon", "importScripts", "eval("} {
		if strings.Contains(script, s) {
			t.Errorf("the script contains %q", s)
		}
	}
	for _, s := range []string{"@import", "url(http", "url(//"} {
		if strings.Contains(style, s) {
			t.Errorf("the style contains %q", s)
		}
	}
}

// element finds the data elements of a page.
var element = regexp.MustCompile(`<script type="application/octet-stream" data-part="([a-z]+)">([^<]*)</script>`)

// decoded is a page's data as the browser reads them.
type decoded struct {
	text     []byte
	columns  []byte
	script   string
	elements int
}

func decode(t *testing.T, page []byte) decoded {
	t.Helper()
	parts := map[string][]byte{}
	d := decoded{}
	for _, m := range element.FindAllSubmatch(page, -1) {
		b, err := base64.StdEncoding.DecodeString(string(m[2]))
		if err != nil {
			t.Fatalf("an element of part %s: %v", m[1], err)
		}
		if len(b) > pieceBytes {
			t.Errorf("an element has %d bytes, want at most %d", len(b), pieceBytes)
		}
		parts[string(m[1])] = append(parts[string(m[1])], b...)
		if string(m[1]) != "script" {
			d.elements++
		}
	}
	unzip := func(b []byte) []byte {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	d.text, d.columns, d.script = unzip(parts["document"]), unzip(parts["columns"]), string(unzip(parts["script"]))
	return d
}

// join puts the columns back into the document, as JSON values.
func (d decoded) join(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(d.text, &doc); err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, c := range doc["columns"].([]any) {
		ref := c.(map[string]any)
		n, code := int(ref["length"].(float64)), columnar.Code(ref["type"].(string))
		first, _ := ref["first"].(float64)
		last := int64(first)
		values := make([]any, n)
		for i := range values {
			b := d.columns[at:]
			var v float64
			switch code {
			case columnar.F64:
				v = math.Float64frombits(binary.LittleEndian.Uint64(b))
			case columnar.F32:
				v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
			case columnar.I32:
				v = float64(int32(binary.LittleEndian.Uint32(b)))
			case columnar.I16:
				v = float64(int16(binary.LittleEndian.Uint16(b)))
			case columnar.I8:
				v = float64(int8(b[0]))
			case columnar.I64:
				v = float64(int64(binary.LittleEndian.Uint64(b)))
			case columnar.NS:
				last += int64(int32(binary.LittleEndian.Uint32(b)))
				v = float64(last) / 1e9
			default:
				t.Fatalf("code %q", code)
			}
			values[i] = v
			at += code.Width()
		}
		path := ref["path"].([]any)
		var to any = doc
		for _, k := range path[:len(path)-1] {
			if i, ok := k.(float64); ok {
				to = to.([]any)[int(i)]
			} else {
				to = to.(map[string]any)[k.(string)]
			}
		}
		key := path[len(path)-1].(string)
		if old, ok := to.(map[string]any)[key]; ok && len(old.([]any)) > 0 {
			t.Errorf("column %v stands in the text too", path)
		}
		to.(map[string]any)[key] = values
	}
	if at != len(d.columns) {
		t.Errorf("%d bytes of columns, the list names %d", len(d.columns), at)
	}
	return doc
}

func small() *profile.Profile {
	return &profile.Profile{
		Schema:     profile.SchemaV1,
		Model:      profile.Model{Name: "m"},
		Target:     profile.Target{ID: "host", Kind: profile.TargetHost},
		Totals:     profile.Totals{LatencySamples: []float64{0.5, 0.25}},
		Quantities: []profile.Quantity{{Key: "bank_conflicts", Name: "Bank conflicts", Whole: true}},
		Layers: []profile.Layer{
			{Index: 0, Op: "CONV_2D", State: profile.Ran, Samples: []float64{0.125, 0.25}},
			{Index: 1, Op: "ADD", State: profile.Ran, Figures: map[string]*profile.Metric{"bank_conflicts": profile.Value(profile.Measured, 3, "")}},
		},
		Timeline: &timeline.Timeline{
			Names: []string{"a"},
			Lanes: []timeline.Lane{
				{
					Name: "clock of nanoseconds", Kind: timeline.Layer,
					Starts: []float64{1.000000001, 1.5, 3}, Durations: []float64{0.25, 0.5, 0},
					Layers: []int32{0, 1, -1}, Labels: []int32{-1, -1, 0}, Bytes: []int64{1 << 40, -1, 0},
					Figures: map[string][]float64{"bank_conflicts": {3, -1, 1 << 40}, "wait_s": {0.1, 1e-9, 0}},
				},
				{Name: "finer", Kind: timeline.Engine, Starts: []float64{1e-10, 3e-10}, Durations: []float64{0, 0}, Iterations: []int32{200, 40000}},
				{Name: "far apart", Kind: timeline.Engine, Starts: []float64{0, 5}, Durations: []float64{0, 0}, Iterations: []int32{200, 400}},
				{Name: "empty", Kind: timeline.Host, Starts: []float64{}, Durations: []float64{}},
			},
			Counters: []timeline.Counter{{Name: "c", Times: []float64{0, 1e-9}, Values: []float64{1.5, -2}}},
			Memories: []timeline.Memory{{
				Name: "local", Starts: []float64{0}, Ends: []float64{0.5}, Addresses: []int64{1 << 33}, Sizes: []int64{64}, Writes: []int32{1}, Layers: []int32{1},
			}},
		},
	}
}

// The figures of small are such that every code holds them without loss.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	p := small()
	var page bytes.Buffer
	if err := Write(&page, p, "v1", Answers{}); err != nil {
		t.Fatal(err)
	}
	doc := decode(t, page.Bytes()).join(t)
	if doc["version"] != "v1" {
		t.Errorf("version %v", doc["version"])
	}
	var text bytes.Buffer
	if err := p.Encode(&text); err != nil {
		t.Fatal(err)
	}
	var want any
	if err := json.Unmarshal(text.Bytes(), &want); err != nil {
		t.Fatal(err)
	}
	if got := doc["profile"]; !reflect.DeepEqual(got, want) {
		t.Errorf("page holds\n%v\nwant\n%v", got, want)
	}
	codes := map[string]bool{}
	for _, c := range doc["columns"].([]any) {
		codes[c.(map[string]any)["type"].(string)] = true
	}
	for _, c := range []columnar.Code{columnar.F64, columnar.F32, columnar.I64, columnar.I16, columnar.I8, columnar.NS} {
		if !codes[string(c)] {
			t.Errorf("code %s is not tried", c)
		}
	}
	if n := len(doc["quantities"].([]any)); n != len(p.AllQuantities()) {
		t.Errorf("%d quantities, want %d", n, len(p.AllQuantities()))
	}
	if p.Layers[0].Samples == nil || p.Timeline.Lanes[0].Starts == nil {
		t.Error("writing took the columns out of the profile")
	}
}

func TestWriteInvalid(t *testing.T) {
	t.Parallel()
	if err := Write(io.Discard, &profile.Profile{}, "", Answers{}); err == nil {
		t.Error("a profile that is not valid was written")
	}
}

// Data that do not shrink fill several elements.
func TestElements(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	p := small()
	starts := make([]float64, 1_500_000)
	for i := range starts {
		starts[i] = float64(i) + r.Float64()
	}
	p.Timeline.Lanes = []timeline.Lane{{Name: "l", Kind: timeline.Layer, Starts: starts, Durations: make([]float64, len(starts))}}
	p.Timeline.Memories, p.Timeline.Counters = nil, nil
	var page bytes.Buffer
	if err := Write(&page, p, "", Answers{}); err != nil {
		t.Fatal(err)
	}
	d := decode(t, page.Bytes())
	if d.elements < 3 {
		t.Errorf("%d elements, want 3 or more", d.elements)
	}
	lane := d.join(t)["profile"].(map[string]any)["timeline"].(map[string]any)["lanes"].([]any)[0].(map[string]any)
	got := lane["starts_s"].([]any)
	for i := range starts {
		if got[i] != starts[i] {
			t.Fatalf("start %d is %v, want %v", i, got[i], starts[i])
		}
	}
}

var hostile = []string{
	`</script><script>alert(1)</script>`,
	`<img src=x onerror=alert(1)>`,
	`</title><svg onload=alert(1)>`,
	`"><!--`,
	`javascript:alert(1)//`,
	strings.Repeat("<b>", 3334),
	"a\u202Egnp.exe\u2066",
	"\x00\x01\x1b[31m\u007f\u0085\u2028",
	"not \xff UTF-8",
	"{{constructor}} ${x} `",
}

// Names come from files of other programs: they must not become markup.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	for i, name := range hostile {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			p := small()
			p.Model.Name, p.Model.Description, p.Target.Description = name, name, name
			p.Layers[0].Name, p.Layers[0].Op, p.Timeline.Names[0] = name, name, name
			p.Findings = []profile.Finding{{ID: "x", Severity: profile.Info, Text: name}}
			var page bytes.Buffer
			if err := Write(&page, p, name, Answers{}); err != nil {
				t.Fatal(err)
			}
			frame := strings.Replace(element.ReplaceAllString(page.String(), ""), starter, "", 1)
			frame = strings.Replace(frame, style, "", 1)
			from, to := strings.Index(frame, "<title>")+len("<title>"), strings.Index(frame, "</title>")
			title := frame[from:to]
			if strings.ContainsAny(title, "<>\"") {
				t.Errorf("title %q", title)
			}
			for _, r := range title {
				if r < ' ' || r == 0x7f || r == 0x85 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
					t.Errorf("title %q holds %U", title, r)
				}
			}
			if len([]rune(title)) > 600 {
				t.Errorf("title has %d characters", len([]rune(title)))
			}
			if rest := frame[:from] + frame[to:]; strings.Contains(rest, "alert") || strings.Count(rest, "<script") != 1 || strings.Contains(rest, "onerror") {
				t.Errorf("the name stands in the markup:\n%s", rest)
			}
			d := decode(t, page.Bytes())
			want := strings.ToValidUTF8(name, "\uFFFD")
			if got := d.join(t)["profile"].(map[string]any)["layers"].([]any)[0].(map[string]any)["name"]; got != want {
				t.Errorf("layer is named %q, want %q", got, want)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a b": "a b", "a\u202Eb\x00": "ab", strings.Repeat("ä", 101): strings.Repeat("ä", 99) + "…"} {
		if got := title(in); got != want {
			t.Errorf("title(%q) = %q, want %q", in, got, want)
		}
	}
}

// The policy must name the scripts as they run.
func TestPolicy(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	if err := Write(&page, small(), "", Answers{}); err != nil {
		t.Fatal(err)
	}
	s := page.String()
	if got := decode(t, page.Bytes()).script; got != script {
		t.Errorf("the packed script has %d bytes, want %d", len(got), len(script))
	}
	if !strings.Contains(s, "default-src 'none'; script-src 'sha256-"+hash(starter)+"' 'sha256-"+hash(script)+"';") || strings.Contains(s, "'unsafe-eval'") || strings.Contains(s, "connect-src") {
		t.Error("the policy allows more than the two scripts, or less")
	}
	if strings.Contains(s, " src=") || strings.Contains(s, "<link") {
		t.Error("the page loads something")
	}
}

// TestSmallModel: the page of a small model, with the samples and the timeline that a profile keeps
// by default, takes at most 0.6 MB.
func TestSmallModel(t *testing.T) {
	t.Parallel()
	const layers, inferences = 20, 16
	random := rand.New(rand.NewPCG(1, 2))
	p := &profile.Profile{
		Schema: profile.SchemaV1, Model: profile.Model{Name: "small"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost},
		Timeline: &timeline.Timeline{Method: "sample"},
	}
	samples := func() []float64 {
		out := make([]float64, profile.KeptSamples)
		for i := range out {
			out[i] = 1e-5 * (1 + random.Float64())
		}
		return out
	}
	lane := timeline.Lane{Name: "operators", Kind: timeline.Layer}
	for i := range layers {
		s := samples()
		p.Layers = append(p.Layers, profile.Layer{
			Index: int64(i), Op: "Conv", Name: fmt.Sprintf("model/block_%d/convolution", i), State: profile.Ran,
			Latency: profile.Summarize(profile.Measured, s, "division"), Samples: s,
		})
	}
	p.Totals.LatencySamples = samples()
	for n := range inferences {
		for i := range layers {
			lane.Starts, lane.Durations = append(lane.Starts, float64(n)+1e-5*float64(i)), append(lane.Durations, 9e-6*random.Float64())
			lane.Layers, lane.Iterations = append(lane.Layers, int32(i)), append(lane.Iterations, int32(n))
		}
	}
	p.Timeline.Lanes = []timeline.Lane{lane}
	var b bytes.Buffer
	if err := Write(&b, p, "", Answers{}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 600_000 {
		t.Errorf("page of %d bytes, want at most 600000", b.Len())
	}
}
