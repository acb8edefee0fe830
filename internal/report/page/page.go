package page

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"html"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"

	"github.com/opmeter/opmeter/internal/jsonx"
	"github.com/opmeter/opmeter/profile"
)

//go:embed dist/page.js
var script string

//go:embed dist/page.css
var style string

// column says where a slice of figures stands in the binary part.
type column struct {
	Path   []any  `json:"path"`
	Type   string `json:"type"`
	Offset int64  `json:"offset"`
	Length int    `json:"length"`
}

type document struct {
	Profile *profile.Profile `json:"profile"`
	Columns []column         `json:"columns"`
	Version string           `json:"version,omitzero"`
}

// Write writes the page. version is that of the program.
func Write(w io.Writer, p *profile.Profile, version string) error {
	if err := p.Validate(); err != nil {
		return err
	}
	light, c := split(p)
	text, err := jsonx.Marshal(&document{Profile: light, Columns: c.refs, Version: version})
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	sum := sha256.Sum256([]byte(script))
	fmt.Fprintf(out, head, base64.StdEncoding.EncodeToString(sum[:]), html.EscapeString(p.Model.Name), style)
	if err := part(out, "document", func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return err
	}
	if err := part(out, "columns", c.write); err != nil {
		return err
	}
	fmt.Fprintf(out, "<script>%s</script>\n</body>\n</html>\n", script)
	return out.Flush()
}

const head = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-%s'; style-src 'unsafe-inline'; img-src data: blob:; form-action 'none'; base-uri 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s · opmeter</title>
<style>%s</style>
</head>
<body>
<div id="app"><noscript>This page needs JavaScript.</noscript></div>
`

// part writes gzipped data in base64 into an element that the browser does not run.
func part(w *bufio.Writer, name string, write func(io.Writer) error) error {
	fmt.Fprintf(w, `<script type="application/octet-stream" data-part="%s">`, name)
	b := base64.NewEncoder(base64.StdEncoding, w)
	z, err := gzip.NewWriterLevel(b, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := write(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := b.Close(); err != nil {
		return err
	}
	_, err = w.WriteString("</script>\n")
	return err
}

// columns gathers the slices of a profile that go into the binary part.
type columns struct {
	refs []column
	put  []func(io.Writer) error
	size int64
}

func add[T int32 | int64 | float64](c *columns, kind string, v *[]T, path ...any) {
	if *v == nil {
		return
	}
	values := *v
	*v = nil
	width := int64(4)
	if kind == "f64" {
		width = 8
	}
	c.refs = append(c.refs, column{path, kind, c.size, len(values)})
	size := (int64(len(values))*width + 7) &^ 7
	c.size += size
	c.put = append(c.put, func(w io.Writer) error {
		buf := make([]byte, 0, 1<<15)
		for _, x := range values {
			switch kind {
			case "f64":
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(float64(x)))
			case "f32":
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(float32(x)))
			default:
				buf = binary.LittleEndian.AppendUint32(buf, uint32(x))
			}
			if len(buf) >= 1<<15-8 {
				if _, err := w.Write(buf); err != nil {
					return err
				}
				buf = buf[:0]
			}
		}
		if int64(len(values))*width%8 != 0 {
			buf = append(buf, 0, 0, 0, 0)
		}
		_, err := w.Write(buf)
		return err
	})
}

func (c *columns) write(w io.Writer) error {
	for _, put := range c.put {
		if err := put(w); err != nil {
			return err
		}
	}
	return nil
}

// split returns a copy of p without its long columns, and these.
func split(p *profile.Profile) (*profile.Profile, *columns) {
	c := &columns{refs: []column{}}
	q := *p
	add(c, "f32", &q.Totals.LatencySamples, "totals", "latency_samples_s")
	q.Layers = append([]profile.Layer{}, p.Layers...)
	for i := range q.Layers {
		add(c, "f32", &q.Layers[i].Samples, "layers", i, "samples_s")
	}
	if p.Timeline == nil {
		return &q, c
	}
	t := *p.Timeline
	q.Timeline = &t
	t.Lanes = append([]profile.Lane{}, t.Lanes...)
	for i := range t.Lanes {
		l, at := &t.Lanes[i], []any{"timeline", "lanes", i}
		add(c, "f64", &l.Starts, append(at, "starts_s")...)
		add(c, "f32", &l.Durations, append(at, "durations_s")...)
		add(c, "i32", &l.Layers, append(at, "layers")...)
		add(c, "i32", &l.Labels, append(at, "labels")...)
		add(c, "i32", &l.Types, append(at, "types")...)
		add(c, "i32", &l.Iterations, append(at, "iterations")...)
		add(c, "i32", &l.Subnets, append(at, "subnets")...)
		add(c, "i32", &l.Directions, append(at, "directions")...)
		add(c, "f32", &l.Stalls, append(at, "stalls_s")...)
		add(c, "f64", &l.Bytes, append(at, "moved_bytes")...)
		add(c, "f32", &l.Utilisation, append(at, "utilisation")...)
	}
	t.Counters = append([]profile.Counter(nil), t.Counters...)
	for i := range t.Counters {
		k, at := &t.Counters[i], []any{"timeline", "counters", i}
		add(c, "f64", &k.Times, append(at, "times_s")...)
		add(c, "f64", &k.Values, append(at, "values")...)
	}
	t.Memories = append([]profile.MemorySpace(nil), t.Memories...)
	for i := range t.Memories {
		m, at := &t.Memories[i], []any{"timeline", "memories", i}
		add(c, "f64", &m.Starts, append(at, "starts_s")...)
		add(c, "f64", &m.Ends, append(at, "ends_s")...)
		add(c, "f64", &m.Addresses, append(at, "address_bytes")...)
		add(c, "f64", &m.Sizes, append(at, "size_bytes")...)
		add(c, "i32", &m.Writes, append(at, "writes")...)
		add(c, "i32", &m.Layers, append(at, "layers")...)
	}
	return &q, c
}
