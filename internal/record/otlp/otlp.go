// Package otlp reads profiles of OpenTelemetry, protocol opentelemetry.proto.profiles
// v1development. A dictionary holds the tables of all profiles; each profile counts one quantity.
//
// Source of the format: opentelemetry/proto/profiles/v1development/profiles.proto of the
// OpenTelemetry project, which may change.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/stacks"
	"github.com/opmeter/opmeter/internal/record/track"
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

// Limits of a file.
const (
	maxFile = 512 << 20
)

// Match recognises resources with scopes that contain profiles.
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

// isProfile reports whether a message has a sample type and samples.
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

// decoder reads the dictionary, which is at the end of a file, then the profiles.
type decoder struct {
	*stacks.Tables
	columns    map[stacks.Column]int
	attributes []attribute
	stacks     [][]int64
	service    string
	nanos      uint64
}

func decode(f *record.File, data []byte) (*runlog.Run, error) {
	d := &decoder{Tables: stacks.NewTables(false), columns: map[stacks.Column]int{}}
	r := protoread.NewReader(data)
	for m := range r.Messages(2) {
		d.dictionary(m)
	}
	end := r.Scan() // the error at which the file ends early
	d.profiles(data, d.kind)
	d.profiles(data, d.profile)
	if d.Len() == 0 {
		return nil, cmp.Or(end, errors.New("no samples: want ProfilesData of OpenTelemetry"))
	}
	d.Skipped()
	run := track.NewRun(f, "otlp")
	p := run.Profile
	p.Settings.Engine = d.service
	if d.nanos > 0 && d.nanos < math.MaxInt64 {
		p.Created = time.Unix(0, int64(d.nanos)).UTC().Format(time.RFC3339)
	}
	d.Run(run)
	if end != nil {
		run.Lose("the file ends early: " + end.Error())
	}
	return run, nil
}

// profiles calls take with the profiles of all resources.
func (d *decoder) profiles(data []byte, take func(protoread.Reader)) {
	for m := range protoread.NewReader(data).Messages(1) {
		for resource := range m.Messages(1) {
			d.resource(resource)
		}
		for scope := range m.Messages(2) {
			for p := range scope.Messages(2) {
				take(p)
			}
		}
	}
}

// resource reads the name of the service.
func (d *decoder) resource(m protoread.Reader) {
	for kv := range m.Messages(1) {
		var key string
		var value, text []byte
		_ = kv.Scan(1, &key, 2, &value)
		v := protoread.NewReader(value)
		if _ = v.Scan(1, &text); key == "service.name" {
			d.service = track.Clip(text)
		}
	}
}

// dictionary reads the tables that all profiles share.
func (d *decoder) dictionary(m protoread.Reader) {
	for s := m; s.Next(); {
		if s.Num() == 5 {
			d.AddString(s.Bytes())
		}
	}
	_ = m.Scan(1, d.AddMapping, 2, d.AddLocation, 3, d.AddFunction, 6, func(m protoread.Reader) {
		if !d.Full(len(d.attributes)) {
			d.attributes = append(d.attributes, readAttribute(m))
		}
	}, 7, func(m protoread.Reader) {
		var ids []int64
		if _ = m.Scan(1, &ids); !d.Full(len(d.stacks)) {
			d.stacks = append(d.stacks, ids)
		}
	})
}

// attribute is a label whose key is the number of a string.
type attribute struct {
	key int64
	stacks.Label
}

func readAttribute(m protoread.Reader) (l attribute) {
	var value, text []byte
	number := int64(math.MinInt64)
	_ = m.Scan(1, &l.key, 2, &value)
	v := protoread.NewReader(value)
	_ = v.Scan(1, &text, 3, &number)
	l.Text = track.Clip(text)
	if number != math.MinInt64 {
		l.Number, l.IsNumber = number, true
	}
	return l
}

// valueType reads the name and unit of the counts of a profile.
func (d *decoder) valueType(m protoread.Reader) stacks.Column {
	var name, unit int64
	_ = m.Scan(1, &name, 2, &unit)
	return stacks.Column{Name: track.Clip([]byte(d.Text(name))), Unit: track.Clip([]byte(d.Text(unit)))}
}

// kind adds a column for the counts of a profile.
func (d *decoder) kind(m protoread.Reader) {
	for t := range m.Messages(1) {
		c := d.valueType(t)
		if _, ok := d.columns[c]; !ok && len(d.columns) < 32 {
			d.columns[c] = len(d.Columns)
			d.Columns = append(d.Columns, c)
		}
	}
}

// profile reads the samples of one profile.
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
		d.Set.Dropped.Add("profiles that do not say what they count", 1)
		return
	}
	for s := range again.Messages(2) {
		d.sample(s, column)
	}
}

func (d *decoder) sample(m protoread.Reader, column int) {
	var stack, times, sum int64
	var ids, values []int64
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
		d.Set.Dropped.Add("samples that are malformed", 1)
		return
	}
	for _, v := range values {
		sum += v
	}
	if len(values) == 0 {
		sum = times // 1 for each point in time
	}
	var labels []stacks.Label
	for _, id := range ids {
		if id >= 0 && id < int64(len(d.attributes)) && len(labels) < 100 {
			l := d.attributes[id].Label
			l.Key = d.Text(d.attributes[id].key)
			labels = append(labels, l)
		}
	}
	all := make([]int64, len(d.Columns))
	all[column] = sum
	d.AddSample(d.stacks[stack], all, labels)
}
