// Package otlp reads profiles of OpenTelemetry, protocol opentelemetry.proto.profiles
// v1development: tables in one dictionary, one thing that is counted for each
// profile.
//
// Source of the format: opentelemetry/proto/profiles/v1development/profiles.proto of the
// OpenTelemetry project, which says that it may change.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// Format reads OpenTelemetry's profiles.
func Format() *record.Format {
	return &record.Format{
		Name:  "otlp",
		Title: "OpenTelemetry profiles",
		Files: "ProfilesData messages of protocol v1development",
		Gives: []string{"latency_s", "with_callees_s", "samples", "shapes"},
		Match: Match,
		Read:  record.RunPerFile(read),
	}
}

// Bounds of what is read.
const (
	maxFile    = 512 << 20
	maxEntries = 4_000_000 // of each table
)

// Match recognises resources with scopes that have profiles.
func Match(f *record.File) record.Sure {
	profiles, dictionary := 0, false
	r := protoread.NewReader(f.Head)
	for n := 0; n < 50 && r.Next(); n++ {
		switch r.Num() {
		case 1:
			m := r.Message()
			for m.Next() {
				switch m.Num() {
				case 1:
					_ = m.Bytes()
				case 3:
					_ = m.Bytes()
				case 2:
					for s := m.Message(); s.Next(); {
						if s.Num() == 2 && isProfile(s.Message()) {
							profiles++
						}
					}
				default:
					return record.No
				}
			}
			if m.Err() != nil {
				return record.No
			}
		case 2:
			m := r.Message()
			for m.Next() {
				if _ = m.Bytes(); m.Num() > 7 {
					return record.No
				}
			}
			dictionary = m.Err() == nil
		default:
			return record.No
		}
	}
	switch {
	case profiles > 0 && dictionary:
		return record.Certain
	case profiles > 0:
		return record.Likely
	}
	return record.No
}

// isProfile looks for the kind of samples, and for samples.
func isProfile(m protoread.Reader) bool {
	kind, samples := false, 0
	for m.Next() {
		switch m.Num() {
		case 1:
			_ = m.Bytes()
			kind = true
		case 2:
			_ = m.Bytes()
			samples++
		case 3:
			_ = m.Offset()
		}
		if m.Num() > 11 {
			return false
		}
	}
	return m.Err() == nil && kind && samples > 0
}

func read(_ context.Context, f *record.File) (*runlog.Run, error) {
	data, err := f.Read(maxFile)
	if err != nil {
		return nil, err
	}
	return decode(f, data)
}

// decoder walks a file twice: its dictionary stands at the end.
type decoder struct {
	record     stacks.Record
	columns    map[stacks.Column]int
	mappings   []int64 // names of files
	locations  []location
	functions  []function
	strings    [][]byte
	attributes []attribute
	stacks     [][]int64
	service    string
	nanos      uint64
	lost       int64
	frames     []stacks.Frame
}

type location struct {
	mapping int64
	address uint64
	lines   []int64
}

type function struct{ name, system, file, line int64 }

func decode(f *record.File, data []byte) (*runlog.Run, error) {
	d := &decoder{columns: map[stacks.Column]int{}}
	r := protoread.NewReader(data)
	for r.Next() {
		if r.Num() == 2 {
			d.dictionary(r.Message())
		}
	}
	end := r.Err()
	d.profiles(data, d.kind)
	d.profiles(data, d.profile)
	if d.record.Len() == 0 {
		return nil, cmp.Or(end, errors.New("no samples: want ProfilesData of OpenTelemetry"))
	}
	d.record.Set.Dropped.Add("entries of tables beyond the first 4,000,000", d.lost)
	p := &profile.Profile{Model: profile.Model{Name: track.Stem(f.Name), Path: f.Path, Format: "otlp"}}
	p.Settings.Engine = d.service
	if d.nanos > 0 && d.nanos < math.MaxInt64 {
		p.Created = time.Unix(0, int64(d.nanos)).UTC().Format(time.RFC3339)
	}
	run := &runlog.Run{Profile: p}
	d.record.Run(run)
	if end != nil {
		run.Lose("the file ends early: " + end.Error())
	}
	return run, nil
}

// profiles walks the profiles of all resources.
func (d *decoder) profiles(data []byte, take func(protoread.Reader)) {
	for r := protoread.NewReader(data); r.Next(); {
		if r.Num() != 1 {
			continue
		}
		for m := r.Message(); m.Next(); {
			switch m.Num() {
			case 1:
				d.resource(m.Message())
			case 2:
				for s := m.Message(); s.Next(); {
					if s.Num() == 2 {
						take(s.Message())
					}
				}
			}
		}
	}
}

// resource takes the name of the service.
func (d *decoder) resource(m protoread.Reader) {
	for m.Next() {
		if m.Num() != 1 {
			continue
		}
		key, value := "", ""
		for kv := m.Message(); kv.Next(); {
			switch kv.Num() {
			case 1:
				key = kv.Str()
			case 2:
				for v := kv.Message(); v.Next(); {
					if v.Num() == 1 {
						value = track.Clip(v.Bytes())
					}
				}
			}
		}
		if key == "service.name" {
			d.service = value
		}
	}
}

func room[T any](d *decoder, s []T) bool {
	if len(s) < maxEntries {
		return true
	}
	d.lost++
	return false
}

// dictionary takes the tables that all profiles share.
func (d *decoder) dictionary(m protoread.Reader) {
	for m.Next() {
		switch m.Num() {
		case 1:
			file := int64(0)
			for x := m.Message(); x.Next(); {
				if x.Num() == 4 {
					file = x.Int()
				}
			}
			if room(d, d.mappings) {
				d.mappings = append(d.mappings, file)
			}
		case 2:
			if room(d, d.locations) {
				d.locations = append(d.locations, readLocation(m.Message()))
			}
		case 3:
			var f function
			for x := m.Message(); x.Next(); {
				switch x.Num() {
				case 1:
					f.name = x.Int()
				case 2:
					f.system = x.Int()
				case 3:
					f.file = x.Int()
				case 4:
					f.line = x.Int()
				}
			}
			if room(d, d.functions) {
				d.functions = append(d.functions, f)
			}
		case 5:
			if room(d, d.strings) {
				d.strings = append(d.strings, m.Bytes())
			}
		case 6:
			if room(d, d.attributes) {
				d.attributes = append(d.attributes, readAttribute(m.Message()))
			}
		case 7:
			var ids []int64
			for x := m.Message(); x.Next(); {
				if x.Num() == 1 {
					ids = x.Ints(ids)
				}
			}
			if room(d, d.stacks) {
				d.stacks = append(d.stacks, ids)
			}
		}
	}
}

func readLocation(m protoread.Reader) (l location) {
	for m.Next() {
		switch m.Num() {
		case 1:
			l.mapping = m.Int()
		case 2:
			l.address = uint64(m.Int())
		case 3:
			for x := m.Message(); x.Next(); {
				if x.Num() == 1 && len(l.lines) < 1000 {
					l.lines = append(l.lines, x.Int())
				}
			}
		}
	}
	return l
}

// attribute is a label whose key stands in the table of strings.
type attribute struct {
	key int64
	stacks.Label
}

func readAttribute(m protoread.Reader) (l attribute) {
	for m.Next() {
		switch m.Num() {
		case 1:
			l.key = m.Int()
		case 2:
			for v := m.Message(); v.Next(); {
				switch v.Num() {
				case 1:
					l.Text = track.Clip(v.Bytes())
				case 3:
					l.Number, l.IsNumber = v.Int(), true
				}
			}
		}
	}
	return l
}

func (d *decoder) text(n int64) string {
	if n < 0 || n >= int64(len(d.strings)) {
		return ""
	}
	return string(d.strings[n])
}

// valueType reads what a profile counts.
func (d *decoder) valueType(m protoread.Reader) (c stacks.Column) {
	for m.Next() {
		switch m.Num() {
		case 1:
			c.Name = track.Clip([]byte(d.text(m.Int())))
		case 2:
			c.Unit = track.Clip([]byte(d.text(m.Int())))
		}
	}
	return c
}

// kind takes what a profile counts as a column.
func (d *decoder) kind(m protoread.Reader) {
	for m.Next() {
		if m.Num() != 1 {
			continue
		}
		c := d.valueType(m.Message())
		if _, ok := d.columns[c]; !ok && len(d.columns) < 32 {
			d.columns[c] = len(d.record.Columns)
			d.record.Columns = append(d.record.Columns, c)
		}
	}
}

// profile takes the samples of one profile.
func (d *decoder) profile(m protoread.Reader) {
	column := -1
	again := m
	for m.Next() {
		switch m.Num() {
		case 1:
			if n, ok := d.columns[d.valueType(m.Message())]; ok {
				column = n
			}
		case 3:
			for _, f := range m.Doubles(nil) {
				d.nanos = max(d.nanos, math.Float64bits(f))
			}
		}
	}
	if column < 0 {
		d.record.Set.Dropped.Add("profiles that do not say what they count", 1)
		return
	}
	for again.Next() {
		if again.Num() == 2 {
			d.sample(again.Message(), column)
		}
	}
}

func (d *decoder) sample(m protoread.Reader, column int) {
	stack := int64(0)
	var ids, values []int64
	times := int64(0)
	for m.Next() {
		switch m.Num() {
		case 1:
			stack = m.Int()
		case 2:
			ids = m.Ints(ids)
		case 4:
			values = m.Ints(values)
		case 5:
			times += int64(len(m.Bytes()) / 8)
		}
	}
	if m.Err() != nil || stack < 0 || stack >= int64(len(d.stacks)) {
		d.record.Set.Dropped.Add("samples that are malformed", 1)
		return
	}
	sum := int64(0)
	for _, v := range values {
		sum += v
	}
	if len(values) == 0 {
		sum = times // one for each point in time
	}
	d.frames = d.frames[:0]
	for _, id := range d.stacks[stack] {
		if id < 0 || id >= int64(len(d.locations)) {
			d.record.Set.Dropped.Add("places of samples that are absent", 1)
			continue
		}
		d.frame(&d.locations[id])
	}
	var labels []stacks.Label
	for _, id := range ids {
		if id >= 0 && id < int64(len(d.attributes)) && len(labels) < 100 {
			l := d.attributes[id].Label
			l.Key = d.text(d.attributes[id].key)
			labels = append(labels, l)
		}
	}
	all := make([]int64, len(d.record.Columns))
	all[column] = sum
	d.record.Add(d.frames, all, labels)
}

// frame adds the functions of a place, the innermost first.
func (d *decoder) frame(l *location) {
	if len(d.frames) >= stacks.MaxDepth {
		return
	}
	library := ""
	if l.mapping > 0 && l.mapping < int64(len(d.mappings)) {
		library = d.text(d.mappings[l.mapping])
	}
	if len(l.lines) == 0 {
		d.frames = append(d.frames, stacks.Frame{Function: stacks.Function{Name: fmt.Sprintf("0x%x", l.address), Library: library}})
		return
	}
	for _, n := range l.lines {
		var f function
		if n >= 0 && n < int64(len(d.functions)) {
			f = d.functions[n]
		}
		d.frames = append(d.frames, stacks.Frame{Function: stacks.Function{
			Name: cmp.Or(d.text(f.name), d.text(f.system)), File: d.text(f.file), Library: library, Line: max(0, f.line),
		}})
	}
}
