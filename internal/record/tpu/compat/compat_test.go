package compat_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compat"
	"github.com/opmeter/opmeter/internal/record/tpu/compiler"
	"github.com/opmeter/opmeter/internal/record/tpu/reginfo"
	"github.com/opmeter/opmeter/internal/testing/tpurecords"
)

// words are the bytes of 32-bit words.
func words(v ...uint32) []byte {
	var b []byte
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// record is a record of n words with the ones that are named.
func recordedRun(n int, set map[int]uint32) []byte {
	v := make([]uint32, n)
	for i, w := range set {
		v[i] = w
	}
	return words(v...)
}

// stream decodes commands made of a layout each.
func stream(t testing.TB, chip *command.Chip, e command.Engine, n, kind int, short bool, sub int) []command.Command {
	t.Helper()
	o := chip.Layout(e, kind, short, sub)
	raw := o.Encode(nil)
	o.Set(raw, command.CmdShort, map[bool]uint64{true: 1}[short])
	o.Set(raw, command.TaskType, uint64(kind))
	o.Set(raw, command.TaskSub, uint64(sub))
	list, stop := command.Decode(chip, e, bytes.Repeat(raw, n), n)
	if stop != nil {
		t.Fatal(stop)
	}
	return list
}

// Records of BM1688: the copies between the second and the last number 0 are kept, the
// clocks are put on one axis, and a record of a number without a command is left out.
func TestZeros(t *testing.T) {
	t.Parallel()
	copyAt := func(id, start uint32) []byte {
		return recordedRun(64, map[int]uint32{0: start, 1: start + 75, 2: id, 5: 3200, 9: 3200})
	}
	in := &compat.Input{Chip: command.BM1688, TIUMHz: 900, DMAMHz: 750, Cores: []compat.Core{{
		TIU:         append(recordedRun(8, map[int]uint32{0: 900, 1: 990}), recordedRun(8, map[int]uint32{0: 990, 1: 999, 2: 77})...),
		GDMA:        bytes.Join([][]byte{copyAt(0, 10), copyAt(1, 100), copyAt(0, 750), copyAt(1, 1500), copyAt(0, 2000), copyAt(1, 2500)}, nil),
		TIUCommands: stream(t, command.BM1688, command.TIU, 2, 3, true, 2), GDMACommands: stream(t, command.BM1688, command.GDMA, 3, 0, false, 0),
	}}}
	files, err := compat.Write(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var want []string
		switch f.Name {
		case "tiuRegInfo_0.txt": // 900 cycles at 900 MHz are 1000 ns, the origin
			want = []string{"0 90"}
		case "tdmaRegInfo_0.txt": // 750 cycles at 750 MHz are 1000 ns too
			want = []string{"0 75", "750 825"}
		default:
			continue
		}
		blocks, err := reginfo.ReadAll(bytes.NewReader(f.Data))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range blocks[1:] {
			start, _ := b.Get("Start Cycle")
			end, _ := b.Get("End Cycle")
			got = append(got, start+" "+end)
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%s: commands at %v, want %v", f.Name, got, want)
		}
	}
	if len(files) != 5 {
		t.Errorf("%d files, want 5", len(files))
	}
}

const log = `[bmprofile] net_name=a "net"
[bmprofile] local_layer: layer_id=3 layer_type=Conv2D layer_name=
[bmprofile] tensor_id=1 is_in=1 shape=[1x3x4] dtype=1 is_const=0 nslice=1 hslice=4
[bmprofile] bd cmd_id bd_id=1 gdma_id=1 bd_func=3
[bmprofile] gdma cmd_id bd_id=0 gdma_id=1 gdma_dir=0 gdma_func=0
mtype=1 addr=5 size=3 alloc=1 free=0 desc=a
`

// Whatever the bytes of records and texts are, files are written.
func FuzzWrite(f *testing.F) {
	for i := range command.Chips {
		f.Add(uint8(i), recordedRun(16, map[int]uint32{0: 5, 1: 9}), recordedRun(192, map[int]uint32{0: 7, 1: 8}), []byte(log), []byte("ENGINE_BD ENGINE_GDMA\na_3|AR|b:1|g:1|t:7\n---\nflops: 12, x\n"))
	}
	f.Fuzz(func(t *testing.T, chip uint8, tiu, dma, log, estimate []byte) {
		c := command.Chips[int(chip)%len(command.Chips)]
		core := compat.Core{TIU: tiu, GDMA: dma, SDMA: dma}
		core.TIUCommands, _ = command.Decode(c, command.TIU, tiu, 0)
		core.GDMACommands, _ = command.Decode(c, command.GDMA, dma, 0)
		core.SDMACommands = core.GDMACommands
		in := &compat.Input{
			Chip: c, TIUMHz: 100, DMAMHz: 50, Cores: []compat.Core{core, core}, Embedded: chip > 127, MLIR: strings.Split(string(log), "\n"),
			Places: []compat.Place{{Ordinal: 1, Line: 2, Op: "Load", Local: true, After: [2]int{3, 1 << 20}}, {Ordinal: 2, Before: [2]int{1, 1}, After: [2]int{2, 2}}},
		}
		if c == command.BM1684 || c == command.BM1684X {
			e, err := compiler.ReadEstimate(bytes.NewReader(estimate))
			if err != nil {
				t.Fatal(err)
			}
			in.Classic = &compat.Classic{Log: log, Estimate: e, Firmware: dma}
		}
		for _, f := range compat.Texts(in) {
			if len(f.Data) == 0 {
				t.Fatalf("%s is empty", f.Name)
			}
		}
	})
}

// A directory is read whatever its bytes are.
func FuzzRead(f *testing.F) {
	for _, chip := range []*command.Chip{command.BM1684X, command.BM1688, command.BM1690} {
		d := tpurecords.Make(tpurecords.Options{Chip: chip, Commands: 12, CopyStart: 50_000})
		stream := []byte(nil)
		for name, data := range d.Files {
			if strings.HasPrefix(name, "cmd_") {
				stream = data
			}
		}
		f.Add(d.Files["iter0.profile"], d.Files["global.profile"], d.Files["net_stat.sim"], stream, chip.Name)
	}
	f.Fuzz(func(t *testing.T, iter, log, estimate, stream []byte, chip string) {
		files := []*record.File{
			record.Bytes("d/iter0.profile", iter), record.Bytes("d/global.profile", log), record.Bytes("d/net_stat.sim", estimate),
			record.Bytes("d/cmd_0_0_0.dat", stream), record.Bytes("d/cmd_0_1.dat", stream), record.Bytes("d/tensor_location.json", estimate),
			record.Bytes("d/final.mlir", log), record.Bytes("d/cdmlib0_0.profile", iter),
		}
		in, err := compat.Read(t.Context(), &record.Input{Files: files, Options: record.Options{Arch: chip}})
		if err != nil {
			return
		}
		if len(compat.Texts(in)) == 0 {
			t.Fatal("no file")
		}
	})
}
