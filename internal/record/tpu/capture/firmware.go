package capture

import (
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// Ticks of the firmware's counter.
const (
	assumedTick = 20e-9
	maxTickNs   = 1000 // larger values are no ticks
)

// firmware adds DYN_DATA.
func (r *Recording) firmware(c *Core, data []byte) {
	const what = "bytes of the firmware's records that make no record"
	f := &c.Firmware
	list, rest := block.ParseDyn(data)
	hasHead := len(list) > 0 && list[0].Type == block.DynHead
	if r.Chip == command.BM1690 && !hasHead { // the new form
		issues, rest := block.ParseIssues(data)
		r.Dropped.Add(what, int64(rest))
		f.Issues = append(f.Issues, issues[min(1, len(issues)):]...)
		return
	}
	r.Dropped.Add(what, int64(rest))
	if len(list) == 0 {
		return
	}
	f.TickS = assumedTick
	if hasHead {
		if ns := list[0].End; ns > 0 && ns <= maxTickNs {
			f.TickS, f.Valid = float64(ns)*1e-9, true
		}
		list = list[1:]
	}
	f.Records = append(f.Records, list...)
}

// issued returns the commands that the firmware issued to an engine of a core.
func (r *Recording) issued(c *Core, e *Engine) []Issued {
	var out []Issued
	f := &c.Firmware
	var layer *block.Func
	var until uint64
	for i := range f.Records {
		d := &f.Records[i]
		switch d.Type & 0xFF {
		case block.DynFunc:
			x := d.Func()
			layer, until = &x, d.End
		case block.DynNodeSet:
			n := d.Node(r.Chip.Name)
			if !n.OK || n.Engine != e.Kind {
				continue
			}
			s := Issued{Number: n.BD, Dep: n.GDMA, Func: -1, Sub: -1, At: i}
			switch e.Kind {
			case command.GDMA:
				s.Number, s.Dep = n.GDMA, n.BD
			case command.SDMA:
				s.Number = n.SDMA
			}
			if n.Version > 0 || r.Chip == command.BM1684 {
				s.Func, s.Sub = int(n.Function), int(n.Op)
			}
			if layer != nil && (until == 0 || until == 1<<64-1 || d.Begin <= until) {
				s.Layer = layer
			}
			s.Cmd = r.noted(f, d.Profile, e.Kind)
			if s.Cmd != nil {
				s.Func, s.Sub = s.Cmd.Func(), int(s.Cmd.Sub)
			}
			out = append(out, s)
		}
	}
	for i, x := range f.Issues {
		kind, ok := x.Unit()
		if x.Type() != block.DynNodeSet || !ok || kind != e.Kind || kind == command.CDMA && int(x.Extra()>>7) != e.Port {
			continue
		}
		out = append(out, Issued{Number: x.ID, Func: int(x.Task()), Sub: int(x.Sub()), At: i})
	}
	return out
}

// noted returns the command that the firmware added to a record, nil without one.
func (r *Recording) noted(f *Firmware, profile uint32, kind command.Engine) *command.Command {
	for _, x := range f.Extras[profile] {
		if x.Kind != block.ExtraBinary || len(x.Data) < 16 {
			continue
		}
		if c, stop := command.DecodeOne(r.Chip, kind, x.Data); stop == nil {
			return &c
		}
	}
	return nil
}

// Texts returns the texts that the firmware added to a record.
func (f *Firmware) Texts(profile uint32) []string {
	var out []string
	for _, x := range f.Extras[profile] {
		if x.Kind == block.ExtraText && len(x.Data) > 0 {
			out = append(out, string(x.Data))
		}
	}
	return out
}
