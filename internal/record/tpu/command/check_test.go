package command_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// What compilers made has no hazards: the recorded streams, both engines of a core.
func TestCheckStreams(t *testing.T) {
	t.Parallel()
	for i := 0; i+1 < len(streams); i += 2 {
		s, d := streams[i], streams[i+1]
		if s.engine != command.TIU || d.engine != command.GDMA {
			break
		}
		counts := [2]int{}
		if s.chip == command.BM1684X {
			counts = [2]int{s.count, d.count}
		}
		tiu, stop := command.Decode(s.chip, s.engine, stream(t, s.dir, s.file), counts[0])
		if stop != nil {
			t.Fatal(stop)
		}
		dma, stop := command.Decode(d.chip, d.engine, stream(t, d.dir, d.file), counts[1])
		if stop != nil {
			t.Fatal(stop)
		}
		r := command.Check(s.chip, tiu, dma)
		if len(r.Hazards) > 0 || r.Commands != s.count+d.count || r.Pairs == 0 {
			t.Errorf("%s core %d: %d hazards in %d commands and %d pairs", s.dir, s.core, len(r.Hazards), r.Commands, r.Pairs)
		}
		for k := range r.Hazards {
			t.Log(r.Hazards[k].String())
		}
	}
}

// A stream made up to have them: a copy overwrites an operand while it is read, one that
// is ordered by its wait does not, and a command writes over a part of what it reads.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	chip := command.BM1688
	copyTo := func(addr, dep uint64) []byte {
		o := chip.Layout(command.GDMA, 0, false, 0)
		raw := o.Encode(nil)
		for r, v := range map[command.Role]uint64{
			command.NCHWCopy: 1, command.CmdDep: dep, command.SrcNSize: 1, command.SrcCSize: 32, command.SrcHSize: 1, command.SrcWSize: 64,
			command.SrcHStr: 64, command.DstHStr: 64, command.SrcCStr: 64, command.DstCStr: 64, command.SrcWStr: 1, command.DstWStr: 1,
			command.SrcHigh: 0x80, command.DstLow: addr,
		} {
			o.Set(raw, r, v)
		}
		return raw
	}
	add := func(from, to, dep uint64) []byte {
		o := chip.Layout(command.TIU, 3, true, 2)
		raw := o.Encode(nil)
		for r, v := range map[command.Role]uint64{
			command.CmdShort: 1, command.TaskType: 3, command.TaskSub: 2, command.OpdNum: 1, command.CmdDep: dep, command.Res0N: 1, command.Res0C: 32,
			command.Res0H: 1, command.Res0W: 64, command.Res0Addr: to, command.Opd0Addr: from,
		} {
			o.Set(raw, r, v)
		}
		return raw
	}
	tiu, stop := command.Decode(chip, command.TIU, append(add(0, 4096, 1), add(16, 32, 1)...), 2)
	if stop != nil {
		t.Fatal(stop)
	}
	dma, stop := command.Decode(chip, command.GDMA, append(append(copyTo(0, 0), copyTo(32, 0)...), copyTo(0, 1)...), 3)
	if stop != nil {
		t.Fatal(stop)
	}
	var got []string
	r := command.Check(chip, tiu, dma)
	for i := range r.Hazards {
		h := &r.Hazards[i]
		got = append(got, h.Writer.Op.Engine.String()+string(rune('0'+h.Writer.ID))+">"+h.Reader.Op.Engine.String()+string(rune('0'+h.Reader.ID)))
	}
	// tiu1 reads 0 to 63 while gdma2 may write 32 to 95; tiu2 reads 16 to 79 while gdma2
	// and gdma3 may write there, and writes 32 to 95 itself. gdma1 has ended before both.
	want := "tiu2>tiu2 gdma2>tiu1 gdma2>tiu2 gdma3>tiu2"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("have %s, want %s", s, want)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	o, raw := end(t, command.BM1688, command.GDMA, 6, 0)
	o.Set(raw, command.CmdDep, 7)
	list, stop := command.Decode(command.BM1688, command.GDMA, raw, 0)
	if stop != nil {
		t.Fatal(stop)
	}
	var out bytes.Buffer
	if err := command.List(&out, list); err != nil {
		t.Fatal(err)
	}
	want := "1 @0x0 id=1 dep=7 sDMA_sys dma.sys.chain_end cmd_short=1 cmd_type=6 cmd_id_dep=7\n"
	if out.String() != want {
		t.Errorf("have %q\nwant %q", out.String(), want)
	}
}
