// Package sensiml reads recordings of the output of a SensiML Knowledge Pack, with the model.json
// in the same folder if present. The public package sensiml has the parser.
package sensiml

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/sensiml"
)

const maxPack = 64 << 20

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:    "sensiml",
		Title:   "SensiML Knowledge Pack",
		Files:   "recording of the serial port of a profiled pack, with its model.json in the same folder for names",
		Clocked: true,
		Gives:   []string{"latency_s", "cpu_cycles", "samples", "options"},
		Match:   match,
		Read:    read,
	}
}

// pack reports whether the file is a model.json.
func pack(f *record.File) bool { return f.JSONHead("{").Has(`"ModelDescriptions"`) }

func match(f *record.File) record.Sure {
	how := sensiml.Sure(f.Head)
	return max(record.Certain.If(pack(f) || how >= 95), record.Likely.If(how > 0))
}

func readPack(f *record.File) (*sensiml.Pack, error) {
	b, err := f.Read(maxPack)
	if err != nil {
		return nil, err
	}
	return sensiml.ReadPack(bytes.NewReader(b))
}

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	logs := &record.Input{Options: in.Options}
	var packs []*sensiml.Pack
	var errs []error
	for _, f := range in.Files {
		if !pack(f) {
			logs.Files = append(logs.Files, f)
		} else if p, err := readPack(f); err == nil {
			packs = append(packs, p)
		} else {
			errs = append(errs, record.Fault(f, err))
		}
	}
	if n := len(in.Files); len(logs.Files) == 0 && len(errs) == 0 && n > 0 {
		return nil, record.Fault(in.Files[n-1], errors.New("is the model.json of a pack, which has no figures: import a recording that lies in the same folder"))
	}
	var p *sensiml.Pack
	if len(packs) == 1 {
		p = packs[0]
	}
	runs, err := record.EachFile(ctx, logs, func(f *record.File) ([]*runlog.Run, error) { return readLog(f, in, p, len(packs)) })
	return runs, errors.Join(append(errs, err)...)
}

// readLog reads a recording; each of its models is a run.
func readLog(f *record.File, in *record.Input, p *sensiml.Pack, packs int) (runs []*runlog.Run, err error) {
	c := sensiml.NewCollector(p)
	var res *sensiml.Result
	err = f.With(func(r io.Reader) error {
		s := sensiml.NewReader(r)
		for s.Scan() {
			c.Add(s.Message())
		}
		c.End()
		res = c.Result(sensiml.Rules{ClockHz: in.Clocks[""]})
		s.Decoder().To(res)
		if e := s.Err(); e != nil {
			res.Incomplete = fmt.Sprintf("the file could be read up to byte %d: %v", s.Decoder().Bytes(), e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, q := range res.Profiles(profile.Imported) {
		run := &runlog.Run{Profile: q, Missing: q.Incomplete}
		q.Incomplete = nil
		switch {
		case packs == 0:
			run.Found("sensiml.no_pack", profile.Info, "There is no model.json in the folder of the recording: figures are of numbered slots. Put it there for names.")
		case p == nil:
			run.Found("sensiml.packs", profile.Warning, "There are %d model.json files in the folder of the recording, so that none is used: leave the right one there.", packs)
		}
		for why, n := range res.Rejected {
			if why != sensiml.ReasonText {
				run.Lost = append(run.Lost, profile.Loss{Records: new(n), Cause: profile.Cause{Code: profile.ByRecord, Text: "lines left out: " + string(why)}})
			}
		}
		if in.Clocks[""] == 0 && res.Unit == "cycles" && len(q.Layers) > 0 {
			run.Found("sensiml.clock", profile.Warning, "The recording has cycles and does not tell their frequency: name it with --clock, such as --clock 64MHz, for times.")
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		err = record.Fault(f, draft.ErrNothing)
	}
	return runs, err
}
