package profile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// texts are profiles as JSON, right and wrong, that fuzzing begins with.
func texts(f *testing.F) [][]byte {
	f.Helper()
	var out [][]byte
	for _, p := range []*Profile{example(), long(), three()} {
		var b bytes.Buffer
		if err := p.Encode(&b); err != nil {
			f.Fatal(err)
		}
		out = append(out, b.Bytes())
	}
	return append(out,
		[]byte("\ufeff"+`{"layers":[],"schema":"opmeter/profile/v1","model":{"name":"m"},"target":{"id":"t","kind":"host"}}`),
		[]byte(`{"schema":"opmeter/profile/v1","layers":[{"index":0,"op":"x","outputs":[{"shape":[1e9]}]}]}`),
		[]byte(`{"schema":"opmeter/profile/v1","layers":[{"index":0,"op":"x","figures":{"x":null},"fused_into":-1}]}`),
		[]byte(begin+`"timeline":{}}`),
		[]byte(begin+`"timeline":{"lanes":[{"name":"a","kind":"layer"},{"name":"b","kind":"layer","starts_s":null,"durations_s":[],"figures":{"k":null}}]}}`),
		[]byte(begin+`"timeline":{"lanes":null,"counters":[{"name":"c"},{"name":"d","times_s":null,"values":null}],"memories":[{"name":"m"}]}}`),
	)
}

// begin is how a profile begins that has the least.
const begin = `{"schema":"opmeter/profile/v1","model":{"name":"m"},"target":{"id":"t","kind":"host"},"settings":{},"totals":{},"layers":[],`

// Lists that are always written may be absent or null in a text: they read as empty.
func TestListsLeftOut(t *testing.T) {
	n := 0
	for _, text := range []string{
		`"timeline":{}}`,
		`"timeline":{"lanes":null}}`,
		`"timeline":{"lanes":[{"name":"a","kind":"layer"},{"name":"b","kind":"layer","starts_s":null,"durations_s":[],"figures":{"moved":null}}],"names":[]},
			"quantities":[{"key":"moved","unit":"B","name":"moved","meaning":"bytes moved"}]}`,
		`"timeline":{"lanes":[],"counters":[{"name":"c"},{"name":"d","times_s":null,"values":null}],"memories":[{"name":"m"}]}}`,
	} {
		p, err := Decode(strings.NewReader(begin + text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for path, c := range p.Timeline.Columns() {
			if c.Required && c.Absent() {
				t.Errorf("%s: %v is absent", text, path)
			}
			n++
		}
		again(t, p)
	}
	if n == 0 {
		t.Error("no column was looked at")
	}
}

// again checks that a profile that was read can be written and read as it is.
func again(t *testing.T, p *Profile) {
	t.Helper()
	b, err := Marshal(p)
	if err != nil {
		t.Fatalf("what was read cannot be written: %v", err)
	}
	q, err := Unmarshal(b)
	if err != nil {
		t.Fatalf("what was written cannot be read: %v", err)
	}
	if d := cmp.Diff(p, q, exact); d != "" {
		t.Fatalf("round trip (-first +second):\n%s", d)
	}
	for _, k := range p.AllQuantities() {
		_, _ = p.Totals.Value(k.Key)
		_, _ = p.Select(func(*Layer) bool { return true }).SumOf(&k)
	}
	_ = p.Rates()
}

func FuzzDecode(f *testing.F) {
	for _, b := range texts(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(bytes.NewReader(b))
		if (err == nil) != (p != nil) {
			t.Fatalf("%v and %v", p, err)
		}
		if err == nil {
			again(t, p)
		}
	})
}

func FuzzUnmarshal(f *testing.F) {
	for _, p := range []*Profile{example(), long()} {
		good, err := Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(good)
		f.Add(good[:60])
		f.Add(good[:len(good)-9])
	}
	start := `{"profile":{"schema":"opmeter/profile/v1","model":{"name":"m"},"target":{"id":"t","kind":"host"},"settings":{},"totals":{"latency_samples_s":[]},"layers":[]},"columns":[`
	text := start + `{"path":["totals","latency_samples_s"],"type":"ns","length":2}]}`
	f.Add(crafted(f, text, 8, uint64(len(text))))
	for _, b := range texts(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Unmarshal(b)
		if (err == nil) != (p != nil) {
			t.Fatalf("%v and %v", p, err)
		}
		if err == nil {
			again(t, p)
		}
	})
}

// FuzzBody puts any text and columns into a file whose checksums are right.
func FuzzBody(f *testing.F) {
	start := `{"profile":{"schema":"opmeter/profile/v1","model":{"name":"m"},"target":{"id":"t","kind":"host"},"settings":{},"totals":{"latency_samples_s":[]},"layers":[]},"columns":[`
	f.Add(start+`{"path":["totals","latency_samples_s"],"type":"ns","length":2}]}`, uint16(8))
	f.Add(start+`{"path":["totals","latency_samples_s"],"type":"i8","length":8}]}`, uint16(8))
	f.Add(start+`]}`, uint16(0))
	f.Fuzz(func(t *testing.T, text string, columns uint16) {
		if p, err := Unmarshal(crafted(t, text, int(columns), uint64(len(text)))); err == nil {
			again(t, p)
		}
	})
}

func FuzzJournal(f *testing.F) {
	text, _ := recorded(f)
	f.Add(text)
	f.Add(text[:len(text)-5])
	lines := bytes.SplitAfter(text, []byte("\n"))
	f.Add(bytes.Join([][]byte{lines[0], lines[1], lines[5], lines[3], lines[9]}, nil))
	f.Add(bytes.Join([][]byte{lines[0], lines[1], []byte(`{"noted":{"quantities":[{"key":"x","name":"x","adds":true}]}}` + "\n"), []byte(`{"measured":{"layer":0,"quantity":"x","values":[-1e150,1e150]}}` + "\n")}, nil))
	f.Add(lines[0])
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := readJournal(bytes.NewReader(b))
		if (err == nil) != (p != nil) {
			t.Fatalf("%v and %v", p, err)
		}
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		again(t, p)
	})
}

func FuzzReadHead(f *testing.F) {
	for _, p := range []*Profile{example(), long()} {
		good, err := Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(good)
		f.Add(good[:200])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &limited{r: bytes.NewReader(b)}
		h, err := readHead(r)
		if (err == nil) != (h != nil) {
			t.Fatalf("%v and %v", h, err)
		}
		if r.n > headerBytes+maxHead {
			t.Fatalf("%d bytes were read", r.n)
		}
		// The checksum keeps most of it from being decoded: once more with a right one.
		if len(b) >= headerBytes {
			if c, err := parseHeader(b); err == nil && headerBytes+c.head <= len(b) {
				_, _ = readHead(bytes.NewReader(rewritten(b, func([]byte) {})))
			}
		}
	})
}
