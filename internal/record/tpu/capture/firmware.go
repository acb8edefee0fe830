package capture

import (
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// Ticks of the firmware's counter.
const (
	assumedTick = 20e-9
	maxTickNs   = 1000 // beyond, the field holds something else
)

// firmware takes DYN_DATA.
func (r *Recording) firmware(c *Core, data []byte) {
	f := &c.Firmware
	if r.Chip == command.BM1690 && !looksLikeDyn(data) {
		list, rest := block.ParseIssues(data)
		r.Dropped.Add("bytes of the firmware's records that make no record", int64(rest))
		if len(list) > 0 {
			f.Issues = append(f.Issues, list[1:]...)
		}
		return
	}
	list, rest := block.ParseDyn(data)
	r.Dropped.Add("bytes of the firmware's records that make no record", int64(rest))
	if len(list) == 0 {
		return
	}
	f.TickS = assumedTick
	if list[0].Type == block.DynHead {
		if ns := list[0].End; ns > 0 && ns <= maxTickNs {
			f.TickS, f.Valid = float64(ns)*1e-9, true
		}
		list = list[1:]
	}
	f.Records = append(f.Records, list...)
}

// looksLikeDyn reports whether data are 32-byte records: they begin with the head that
// those have.
func looksLikeDyn(data []byte) bool {
	list, rest := block.ParseDyn(data[:min(len(data), 32)])
	return len(list) == 1 && rest == 0 && list[0].Type == block.DynHead
}

// issued finds the commands that the firmware gave to an engine of a core.
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
				s.Func, s.Sub = int(funcOf(s.Cmd)), int(s.Cmd.Sub)
			}
			out = append(out, s)
		}
	}
	for i, x := range f.Issues {
		kind := [8]command.Engine{command.TIU, command.GDMA, command.TIU, command.SDMA, command.CDMA, command.SDMA}[x.Engine()]
		if x.Type() != block.DynNodeSet || x.Engine() == 2 || x.Engine() > 5 || kind != e.Kind {
			continue
		}
		if kind == command.CDMA && int(x.Extra()>>7) != e.Port {
			continue
		}
		out = append(out, Issued{Number: x.ID, Func: int(x.Task()), Sub: int(x.Sub()), At: i})
	}
	return out
}

// noted is the command that the firmware wrote down with a record.
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

// Texts are the texts that the firmware wrote down with a record.
func (f *Firmware) Texts(profile uint32) []string {
	var out []string
	for _, x := range f.Extras[profile] {
		if x.Kind == block.ExtraText && len(x.Data) > 0 {
			out = append(out, string(x.Data))
		}
	}
	return out
}

// funcOf is the code of a command's function.
func funcOf(c *command.Command) uint8 { return uint8(c.Func()) }
