package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/all"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// damage reads damaged records.
type damage struct {
	n       int
	seed    uint64
	format  string
	records string
}

// Bounds of one record.
const (
	mostTime   = 10 * time.Second
	mostMemory = 1 << 30
	mostBytes  = 16 << 10 // a larger seed is cut
)

// folder is the files of one format in one folder.
type folder struct {
	format *record.Format
	files  []*record.File
	data   [][]byte
}

func (d *damage) run(w io.Writer) error {
	seeds, err := d.seeds()
	if err != nil {
		return err
	}
	failed := 0
	for _, f := range all.Formats() {
		of := seeds[f.Name]
		if d.format != "" && f.Name != d.format || len(of) == 0 {
			continue
		}
		t := trial{r: rand.New(rand.NewPCG(d.seed, 1))}
		at := time.Now()
		for i := range d.n {
			t.one(of[i%len(of)], i)
		}
		fmt.Fprintf(w, "%-16s %9d damaged, %9d profiles, %d failed, slowest %.1f s, heap %d MB, %.0f s\n",
			f.Name, d.n, t.profiles, t.failed, t.slowest.Seconds(), t.peak>>20, time.Since(at).Seconds())
		for _, s := range t.failures {
			fmt.Fprintln(w, "  "+s)
		}
		failed += t.failed
	}
	if failed > 0 {
		return fmt.Errorf("%d failed", failed)
	}
	return nil
}

// seeds finds sound records by format.
func (d *damage) seeds() (map[string][]folder, error) {
	roots := []string{d.records}
	if d.records == "" {
		roots = []string{filepath.Join(material.Dir(), "raw", "traces"), filepath.Join(material.Dir(), "raw", "bmprofile")}
	}
	type key struct {
		f   *record.Format
		dir string
	}
	formats := all.Formats()
	at := map[key]*folder{}
	var order []key
	for _, root := range roots {
		files, _, err := record.Find(root)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			best := record.Surest(formats, f)
			if best == nil || filepath.Base(filepath.Dir(filepath.Dir(f.Path))) == "reference_output" {
				continue
			}
			data, err := cut(f)
			if err != nil {
				return nil, err
			}
			k := key{best, f.Dir}
			if at[k] == nil {
				at[k] = &folder{format: best}
				order = append(order, k)
			}
			at[k].files, at[k].data = append(at[k].files, f), append(at[k].data, data)
		}
	}
	out := map[string][]folder{}
	for _, k := range order {
		out[k.f.Name] = append(out[k.f.Name], *at[k])
	}
	if len(out) == 0 {
		return nil, &fs.PathError{Op: "read", Path: roots[0], Err: errors.New("holds no records")}
	}
	return out, nil
}

func cut(f *record.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, mostBytes))
	if len(b) > 0 {
		return b, nil // of a file that was cut itself
	}
	return b, err
}

// trial reads one damaged record after the other.
type trial struct {
	r        *rand.Rand
	profiles int
	slowest  time.Duration
	peak     uint64
	failed   int
	failures []string
	kinds    map[string]bool
}

// one damages a few files of a folder and reads them.
func (t *trial) one(f folder, i int) {
	// Of a folder with many files of one run each, one is enough.
	files, data := f.files, f.data
	if len(files) > 8 {
		k := t.r.IntN(len(files))
		files, data = files[k:k+1], data[k:k+1]
	}
	in := &record.Input{}
	hit := t.r.IntN(len(files))
	for k := range files {
		// Most cases are short, so that a million can be read.
		b := data[k]
		b = b[:min(len(b), mostBytes>>t.r.IntN(6))]
		if k == hit || t.r.IntN(4) == 0 {
			b = t.change(b)
		}
		x := record.Bytes(files[k].Path, b)
		x.Name, x.Dir = files[k].Name, files[k].Dir
		in.Files = append(in.Files, x)
	}
	at := time.Now()
	if err := t.read(f.format, in); err != nil {
		t.fail(files[hit].Path, i, err)
	}
	took := time.Since(at)
	t.slowest = max(t.slowest, took)
	if i%256 == 0 || took > time.Second {
		m := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(m)
		t.peak = max(t.peak, m[0].Value.Uint64())
		if m[0].Value.Uint64() > mostMemory {
			runtime.GC()
			metrics.Read(m)
			if v := m[0].Value.Uint64(); v > mostMemory {
				t.fail(files[hit].Path, i, fmt.Errorf("%d MB", v>>20))
			}
		}
	}
	if took > mostTime {
		t.fail(files[hit].Path, i, fmt.Errorf("took %v", took))
	}
}

// read reads files and checks what comes out.
func (t *trial) read(f *record.Format, in *record.Input) (err error) {
	defer func() {
		if e := recover(); e != nil {
			err = fmt.Errorf("panic: %v at %s", e, frame(debug.Stack()))
		}
	}()
	for _, x := range in.Files {
		f.Match(x)
	}
	runs, _ := f.Read(context.Background(), in)
	for _, r := range runs {
		p, err := source.Collect(context.Background(), r, source.Options{})
		if err != nil {
			return err
		}
		if err := p.Validate(); err != nil {
			return err
		}
		t.profiles++
	}
	return nil
}

// frame is the first line of the project in a stack behind the panic.
func frame(stack []byte) string {
	_, after, _ := bytes.Cut(stack, []byte("\npanic("))
	for line := range bytes.Lines(after) {
		if i := bytes.Index(line, []byte("/internal/")); i >= 0 && line[0] == '\t' {
			return string(bytes.TrimSpace(line[i+1:]))
		}
	}
	return "an unknown place"
}

// fail keeps the first failures; those of one kind are told once.
func (t *trial) fail(file string, i int, err error) {
	t.failed++
	kind := err.Error()
	if k := strings.IndexAny(kind, "[\""); k > 0 {
		kind = kind[:k]
	}
	if t.kinds[kind] || len(t.failures) >= 20 {
		return
	}
	if t.kinds == nil {
		t.kinds = map[string]bool{}
	}
	t.kinds[kind] = true
	t.failures = append(t.failures, fmt.Sprintf("%s %d: %.200v", filepath.Base(file), i, err))
}

// change damages bytes: flipped ones, a cut end, a piece that is gone, there twice or from
// elsewhere, a number of an odd size.
func (t *trial) change(b []byte) []byte {
	b = bytes.Clone(b)
	for range 1 + t.r.IntN(4) {
		if len(b) == 0 {
			return b
		}
		at := t.r.IntN(len(b))
		n := min(len(b)-at, 1+t.r.IntN(64))
		switch t.r.IntN(8) {
		case 0:
			b[at] ^= 1 << t.r.IntN(8)
		case 1:
			b[at] = byte(t.r.IntN(256))
		case 2:
			b = b[:at]
		case 3:
			b = append(b[:at], b[at+n:]...)
		case 4:
			b = append(b[:at:at], append(bytes.Clone(b[at:at+n]), b[at:]...)...)
		case 5:
			from := t.r.IntN(len(b))
			copy(b[at:at+n], b[from:])
		case 6:
			for k := at; k < min(len(b), at+[]int{2, 4, 8}[t.r.IntN(3)]); k++ {
				b[k] = []byte{0, 0xff, 0x7f, 0x80}[t.r.IntN(4)]
			}
		case 7: // a number in a text becomes a large, negative or broken one
			for k := at; k < len(b); k++ {
				if b[k] >= '0' && b[k] <= '9' {
					odd := []string{"-1", "99999999999999999999", "1e308", "0", "18446744073709551615", "-", "4294967296", "nan"}[t.r.IntN(8)]
					b = append(b[:k:k], append([]byte(odd), b[k+1:]...)...)
					break
				}
			}
		}
	}
	return b
}
