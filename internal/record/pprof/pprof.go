// Package pprof reads profiles of pprof: those of programs, and those of models that opmeter and
// others write, whose samples are operators.
//
// Source of the format: proto/profile.proto of github.com/google/pprof. That project's library
// reads the older binary and text formats.
package pprof

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	legacy "github.com/google/pprof/profile"

	"github.com/opmeter/opmeter/internal/measure/runlog"
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

// Limits of a file.
const (
	maxFile   = 512 << 20
	maxLegacy = 32 << 20
)

// Match recognises the first fields of a profile, and the beginning of older formats.
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
			if !isValueType(r.Message()) {
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

// isValueType reports whether a message has only numbers, in the fields for name and unit.
func isValueType(m protoread.Reader) bool {
	some := false
	for m.Next() {
		if _ = m.Int(); m.Num() > 2 || m.Err() != nil {
			return false
		}
		some = true
	}
	return some && m.Err() == nil
}

// isLegacy recognises the older formats by a title or the first words of a binary profile.
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
	d := &decoder{Tables: stacks.NewTables(true)}
	cut = cmp.Or(d.read(data), cut)
	if d.Len() == 0 {
		return nil, cmp.Or(cut, errors.New("no samples: want a profile of pprof"))
	}
	run := track.NewRun(f, "pprof")
	p := run.Profile
	d.Run(run)
	if d.nanos > 0 {
		p.Created = time.Unix(0, d.nanos).UTC().Format(time.RFC3339)
	}
	d.comments(p)
	if cut != nil {
		run.Lose("the profile ends early: " + cut.Error())
	}
	return run, nil
}

// modern converts an older format.
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

// comments reads the description that profiles of models have.
func (d *decoder) comments(p *profile.Profile) {
	for _, n := range d.comment {
		rest, ok := strings.CutPrefix(d.Text(n), "per-operator profile of one inference of ")
		if !ok {
			continue
		}
		track.NameOwn(p, track.Clip([]byte(rest)))
		if d.duration > 0 {
			p.Totals.Latency = profile.Value(profile.Imported, float64(d.duration)/1e9, "")
		}
	}
	if file := d.Main(); p.Settings.Runs != nil && strings.HasSuffix(file, ".onnx") {
		p.Model.Path = track.Clip([]byte(file))
	}
}

// decoder reads the tables of a profile first, then its samples.
type decoder struct {
	*stacks.Tables
	comment  []int64
	nanos    int64
	duration int64
}

// read reads a profile. The error says where it ends early; what came before is kept.
func (d *decoder) read(data []byte) error {
	texts := protoread.NewReader(data)
	for texts.Next() {
		if texts.Num() == 6 {
			d.AddString(texts.Bytes())
		}
	}
	var columns [][2]int64 // strings: name and unit
	byDefault := int64(0)
	r := protoread.NewReader(data)
	end := r.Scan(1, func(m protoread.Reader) {
		var c [2]int64
		if _ = m.Scan(1, &c[0], 2, &c[1]); len(columns) < 32 {
			columns = append(columns, c)
		}
	}, 3, d.AddMapping, 4, d.AddLocation, 5, d.AddFunction, 9, &d.nanos, 10, &d.duration, 13, &d.comment, 14, &byDefault)
	d.comment = d.comment[:min(len(d.comment), 100)]
	for _, c := range columns {
		d.Columns = append(d.Columns, stacks.Column{Name: track.Clip([]byte(d.Text(c[0]))), Unit: d.Text(c[1])})
	}
	d.Default = d.Text(byDefault)
	d.Skipped()
	for s := range protoread.NewReader(data).Messages(2) {
		d.sample(s)
	}
	return cmp.Or(texts.Err(), end)
}

// sample reads one sample.
func (d *decoder) sample(m protoread.Reader) {
	var stack, values []int64
	var labels []stacks.Label
	err := m.Scan(1, &stack, 2, &values, 3, func(l protoread.Reader) {
		if len(labels) < 100 {
			labels = append(labels, d.label(l))
		}
	})
	if err != nil {
		d.Set.Dropped.Add("samples that are malformed", 1)
		return
	}
	d.AddSample(stack, values, labels)
}

func (d *decoder) label(m protoread.Reader) (l stacks.Label) {
	var key, text, unit int64
	number := int64(math.MinInt64)
	_ = m.Scan(1, &key, 2, &text, 3, &number, 4, &unit)
	l.Key, l.Text, l.Unit = d.Text(key), d.Text(text), d.Text(unit)
	if number != math.MinInt64 {
		l.Number, l.IsNumber = number, true
	}
	if l.Text != "" {
		l.IsNumber = false
	} else if l.Unit != "" {
		l.IsNumber = true // the format omits zeros
	}
	return l
}
