// Package pprof reads profiles of pprof: those of programs, and those of models that opmeter
// and others write, whose samples are operators.
//
// Source of the format: proto/profile.proto of github.com/google/pprof. Files older than
// it, binary and text, go through that project's library.
package pprof

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	legacy "github.com/google/pprof/profile"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// Format reads pprof's profiles.
func Format() *record.Format {
	return &record.Format{
		Name:  "pprof",
		Title: "pprof profile",
		Files: "profile.proto of go test -cpuprofile, of gperftools and of many others, and the older binary and text forms",
		Gives: []string{"latency_s", "with_callees_s", "samples", "macs", "energy_j", "cpu_cycles", "accelerator_cycles", "weights_bytes", "shapes"},
		Match: Match,
		Read:  record.RunPerFile(read),
	}
}

// Bounds of what is read.
const (
	maxFile    = 512 << 20
	maxLegacy  = 32 << 20
	maxEntries = 4_000_000 // of each table
)

// Match recognises the first fields of a profile, and the heads of older forms.
func Match(f *record.File) record.Sure {
	if isLegacy(f.Head) {
		return record.Likely
	}
	types, rest := 0, 0
	r := protoread.NewReader(f.Head)
	for n := 0; n < 50 && r.Next(); n++ {
		if r.Num() < 1 || r.Num() > 15 {
			return record.No
		}
		switch r.Num() {
		case 1, 11:
			if !fields(r.Message(), 0, 1, 2) {
				return record.No
			}
			types++
		case 2:
			m := r.Message()
			for m.Next() {
				if m.Num() > 3 {
					return record.No
				}
			}
			if m.Err() != nil {
				return record.No
			}
			rest++
		case 3, 4, 5, 6:
			_ = r.Bytes()
			rest++
		default:
			_ = r.Int()
		}
	}
	switch {
	case r.Err() != nil && f.Whole && rest == 0:
		return record.No
	case types > 0 && rest > 0:
		return record.Certain
	case types > 0:
		return record.Maybe
	}
	return record.No
}

// fields reports whether a message has numbers alone, in the given fields.
func fields(m protoread.Reader, _ int, allowed ...int) bool {
	some := false
	for m.Next() {
		ok := false
		for _, n := range allowed {
			ok = ok || m.Num() == n
		}
		if _ = m.Int(); !ok || m.Err() != nil {
			return false
		}
		some = true
	}
	return some && m.Err() == nil
}

// isLegacy tells the older forms: words of a binary profile, or titles of text.
func isLegacy(head []byte) bool {
	for _, s := range []string{"heap profile:", "--- heapz", "--- contention", "--- threadz", "--- growthz", "goroutine profile: total", "threadcreate profile: total"} {
		if bytes.HasPrefix(head, []byte(s)) {
			return true
		}
	}
	// Words: 0, number of words that follow (3 or more), version, period, 0.
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, size := range []int{8, 4} {
			if len(head) < 5*size {
				continue
			}
			word := func(i int) uint64 {
				if size == 8 {
					return order.Uint64(head[i*8:])
				}
				return uint64(order.Uint32(head[i*4:]))
			}
			if word(0) == 0 && word(1) >= 3 && word(1) < 100 && word(2) <= 1 && word(3) > 0 && word(3) < 1e9 && word(4) == 0 {
				return true
			}
		}
	}
	return false
}

func read(_ context.Context, f *record.File) (*runlog.Run, error) {
	data, err := f.Read(maxFile)
	var cut error
	if err != nil {
		if len(data) == 0 || int64(len(data)) > maxFile {
			return nil, err
		}
		cut = err
	}
	if isLegacy(f.Head) {
		if data, err = modern(data); err != nil {
			return nil, err
		}
	}
	d := &decoder{}
	cut = cmp.Or(d.read(data), cut)
	if d.record.Len() == 0 {
		return nil, cmp.Or(cut, errors.New("no samples: want a profile of pprof"))
	}
	run := track.NewRun(f, "pprof")
	p := run.Profile
	d.record.Run(run)
	if d.nanos > 0 {
		p.Created = time.Unix(0, d.nanos).UTC().Format(time.RFC3339)
	}
	d.comments(p)
	if cut != nil {
		run.Lose("the profile ends early: " + cut.Error())
	}
	return run, nil
}

// modern turns the older forms into the current one.
func modern(data []byte) (out []byte, err error) {
	if len(data) > maxLegacy {
		return nil, fmt.Errorf("a profile of an old form may have %d bytes, this one has %d", maxLegacy, len(data))
	}
	defer func() {
		if e := recover(); e != nil {
			out, err = nil, fmt.Errorf("a profile of an old form that makes no sense: %v", e)
		}
	}()
	p, err := legacy.ParseData(data)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := p.WriteUncompressed(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// comments takes what profiles of models say of themselves.
func (d *decoder) comments(p *profile.Profile) {
	for _, n := range d.comment {
		rest, ok := strings.CutPrefix(d.text(n), "per-operator profile of one inference of ")
		if !ok {
			continue
		}
		if i := strings.LastIndex(rest, " on "); i > 0 {
			p.Model.Name, p.Target.ID = track.Clip([]byte(rest[:i])), track.Clip([]byte(rest[i+4:]))
		}
		if d.duration > 0 {
			p.Totals.Latency = profile.Value(profile.Imported, float64(d.duration)/1e9, "")
		}
	}
	if p.Model.Name != "" && p.Settings.Runs != nil && len(d.mappings) > 0 {
		if m := d.mappings[0]; m.file > 0 && p.Target.Kind == "" && strings.HasSuffix(d.text(m.file), ".onnx") {
			p.Model.Path = track.Clip([]byte(d.text(m.file)))
		}
	}
}

// decoder walks a profile twice: first its tables, then its samples.
type decoder struct {
	record    stacks.Record
	strings   [][]byte
	mappings  []mapping
	mapAt     map[uint64]int32
	locations map[uint64]location
	functions map[uint64]function
	comment   []int64
	nanos     int64
	duration  int64
	frames    []stacks.Frame
}

type mapping struct{ file int64 }

type location struct {
	address uint64
	mapping uint64
	lines   []uint64 // functions, the innermost first
}

type function struct {
	name, system, file int64
	line               int64
}

func (d *decoder) text(n int64) string {
	if n < 0 || n >= int64(len(d.strings)) {
		return ""
	}
	return string(d.strings[n])
}

// read walks a profile. The error says where it ends early; what came before is there.
func (d *decoder) read(data []byte) error {
	d.mapAt, d.locations, d.functions = map[uint64]int32{}, map[uint64]location{}, map[uint64]function{}
	type valueType struct{ name, unit int64 }
	var types []valueType
	byDefault := int64(0)
	lost := int64(0)
	r := protoread.NewReader(data)
	for r.Next() {
		switch r.Num() {
		case 1:
			var t valueType
			for m := r.Message(); m.Next(); {
				switch m.Num() {
				case 1:
					t.name = m.Int()
				case 2:
					t.unit = m.Int()
				}
			}
			if len(types) < 32 {
				types = append(types, t)
			}
		case 3:
			if len(d.mappings) < maxEntries {
				d.mapping(r.Message())
			}
		case 4:
			if len(d.locations) < maxEntries {
				d.location(r.Message())
			} else {
				lost++
			}
		case 5:
			if len(d.functions) < maxEntries {
				d.function(r.Message())
			} else {
				lost++
			}
		case 6:
			if len(d.strings) < maxEntries {
				d.strings = append(d.strings, r.Bytes())
			} else {
				lost++
			}
		case 9:
			d.nanos = r.Int()
		case 10:
			d.duration = r.Int()
		case 13:
			for _, n := range r.Ints(nil) {
				if len(d.comment) < 100 {
					d.comment = append(d.comment, n)
				}
			}
		case 14:
			byDefault = r.Int()
		}
	}
	end := r.Err()
	for _, t := range types {
		d.record.Columns = append(d.record.Columns, stacks.Column{Name: track.Clip([]byte(d.text(t.name))), Unit: d.text(t.unit)})
	}
	d.record.Default = d.text(byDefault)
	d.record.Set.Dropped.Add("entries of tables beyond the first 4,000,000", lost)
	r = protoread.NewReader(data)
	for r.Next() {
		if r.Num() == 2 {
			d.sample(r.Message())
		}
	}
	return end
}

func (d *decoder) mapping(m protoread.Reader) {
	var id uint64
	var x mapping
	for m.Next() {
		switch m.Num() {
		case 1:
			id = uint64(m.Int())
		case 5:
			x.file = m.Int()
		}
	}
	d.mapAt[id] = int32(len(d.mappings))
	d.mappings = append(d.mappings, x)
}

func (d *decoder) location(m protoread.Reader) {
	var id uint64
	var l location
	for m.Next() {
		switch m.Num() {
		case 1:
			id = uint64(m.Int())
		case 2:
			l.mapping = uint64(m.Int())
		case 3:
			l.address = uint64(m.Int())
		case 4:
			for line := m.Message(); line.Next(); {
				if line.Num() == 1 && len(l.lines) < 1000 {
					l.lines = append(l.lines, uint64(line.Int()))
				}
			}
		}
	}
	d.locations[id] = l
}

func (d *decoder) function(m protoread.Reader) {
	var id uint64
	var f function
	for m.Next() {
		switch m.Num() {
		case 1:
			id = uint64(m.Int())
		case 2:
			f.name = m.Int()
		case 3:
			f.system = m.Int()
		case 4:
			f.file = m.Int()
		case 5:
			f.line = m.Int()
		}
	}
	d.functions[id] = f
}

// sample takes one sample.
func (d *decoder) sample(m protoread.Reader) {
	var values []int64
	var labels []stacks.Label
	d.frames = d.frames[:0]
	lost := int64(0)
	for m.Next() {
		switch m.Num() {
		case 1:
			for _, id := range m.Ints(nil) {
				l, ok := d.locations[uint64(id)]
				if !ok {
					lost++
					continue
				}
				d.frame(&l)
			}
		case 2:
			values = m.Ints(values)
		case 3:
			if len(labels) < 100 {
				labels = append(labels, d.label(m.Message()))
			}
		}
	}
	if m.Err() != nil {
		d.record.Set.Dropped.Add("samples that are malformed", 1)
		return
	}
	d.record.Set.Dropped.Add("places of samples that are absent", lost)
	d.record.Add(d.frames, values, labels)
}

// frame adds the functions of a place, the innermost first.
func (d *decoder) frame(l *location) {
	library := ""
	if i, ok := d.mapAt[l.mapping]; ok && l.mapping != 0 {
		library = d.text(d.mappings[i].file)
	}
	if len(d.frames) >= stacks.MaxDepth {
		return
	}
	if len(l.lines) == 0 {
		d.frames = append(d.frames, stacks.Frame{Function: stacks.Function{Name: fmt.Sprintf("0x%x", l.address), Library: library}})
		return
	}
	for _, id := range l.lines {
		f := d.functions[id]
		x := stacks.Frame{Function: stacks.Function{Name: cmp.Or(d.text(f.name), d.text(f.system)), File: d.text(f.file), Library: library}}
		if f.line > 0 {
			x.Line = f.line
		}
		kind, rest, ok := strings.Cut(d.text(f.system), ":")
		if ok && rest == x.Name {
			x.Kind = kind
		}
		d.frames = append(d.frames, x)
	}
}

func (d *decoder) label(m protoread.Reader) (l stacks.Label) {
	for m.Next() {
		switch m.Num() {
		case 1:
			l.Key = d.text(m.Int())
		case 2:
			l.Text = d.text(m.Int())
		case 3:
			l.Number, l.IsNumber = m.Int(), true
		case 4:
			l.Unit = d.text(m.Int())
		}
	}
	if l.Text != "" {
		l.IsNumber = false
	} else if l.Unit != "" {
		l.IsNumber = true // a number that is 0 is left out
	}
	return l
}
