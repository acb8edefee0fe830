package command_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// The work of commands that no recorded stream has, computed by hand from the vendor's
// formulas: BM1688 has 32 lanes of 16, 8 and 4 units for 8, 16 and 32 bits and a cube of
// 32 channels, BM1684X 64 lanes of 64, 32 and 16.
func TestWork(t *testing.T) {
	t.Parallel()
	type fields map[command.Role]uint64
	result := func(prec command.DType) fields {
		return fields{
			command.Res0N: 1, command.Res0C: 3, command.Res0H: 2, command.Res0W: 5, command.Res0Prec: uint64(prec), command.Opd0Prec: uint64(prec),
			command.Opd1Prec: uint64(prec),
		}
	}
	with := func(f fields, more fields) fields {
		for k, v := range more {
			f[k] = v
		}
		return f
	}
	product := fields{command.Res0C: 10, command.Opd1C: 40, command.Opd1W: 6}
	for _, c := range []struct {
		name      string
		chip      *command.Chip
		kind, sub int
		fields    fields
		want      command.Work
	}{
		// 2*10*40*6; lanes 32, columns 64, inner 8; 32*4*32*2 a cycle.
		{"product NN", command.BM1688, 2, 4, product, command.Work{Alg: 4800, Arch: 2 * 32 * 64 * 8, Cycles: 1, Startup: 81}},
		// Inner 40, columns 6.
		{"product NT", command.BM1688, 2, 5, product, command.Work{Alg: 4800, Arch: 2 * 32 * 32 * 40, Cycles: 1, Startup: 56}},
		// 6 rows, inner 10, 6 columns.
		{"product TT", command.BM1688, 2, 6, product, command.Work{Alg: 720, Arch: 2 * 32 * 32 * 12, Cycles: 1, Startup: 37}},
		// Columns in units of 64 instead of the cube.
		{"product NN", command.BM1690, 2, 4, product, command.Work{Alg: 4800, Arch: 2 * 64 * 64 * 8, Cycles: 1, Startup: 81}},
		// 10*6*2*40; 64 lanes, inner 64.
		{"product NN", command.BM1684X, 2, 4, product, command.Work{Alg: 4800, Arch: 64 * 6 * 128, Startup: 81}},
		// 2*40-1 for 16 bits.
		{
			"product NN 16 bits", command.BM1684X, 2, 4, with(fields{command.Opd0Prec: 1}, product),
			command.Work{Alg: 60 * 79, Arch: 64 * 6 * 127, Startup: 81},
		},
		// Area 10 is 12 with 4 units; 7 operations for 4 terms; 4*32*2 a cycle.
		{
			"taylor", command.BM1688, 9, 13, with(result(command.FP32), fields{command.Opd1N: 4}),
			command.Work{Alg: 210, Arch: 32 * 12 * 7, Cycles: 1},
		},
		{"rsqrt", command.BM1688, 9, 17, result(command.FP32), command.Work{Alg: 900, Arch: 32 * 12 * 30, Cycles: 8, Startup: 14}},
		{
			"rsqrt", command.BM1684X, 9, 17, with(result(command.FP32), fields{command.Opd2NStr: 2}),
			command.Work{Alg: 90, Arch: 64 * 16 * 3, Startup: 14},
		},
		// Rows of 5 are 8 with 8 units; 8*32*2 a cycle.
		{"lin", command.BM1688, 10, 1, result(command.FP16), command.Work{Alg: 60, Arch: 2 * 32 * 2 * 8, Cycles: 1, Startup: 12}},
		// Area 10 is 16.
		{"cmp", command.BM1688, 13, 23, result(command.FP16), command.Work{Alg: 60, Arch: 2 * 32 * 16, Cycles: 1, Startup: 9}},
		// (3-1)*4+2 rows; 16 values of 8 bits at once.
		{
			"vc", command.BM1688, 14, 2, with(result(command.Int8), fields{command.Opd0C: 3, command.Opd0W: 4, command.Opd1W: 2}),
			command.Work{Alg: 150, Arch: 10 * 32 * 16, Cycles: 1},
		},
		{
			"vc", command.BM1684X, 14, 2, with(result(command.Int8), fields{command.Opd0C: 3, command.Opd0W: 4, command.Opd1W: 2}),
			command.Work{Alg: 150, Arch: 10 * 64 * 64},
		},
		{"gather lines", command.BM1688, 6, 17, result(command.FP16), command.Work{Alg: 30, Arch: 32 * 2 * 8, Cycles: 1, Startup: 24}},
		// 4 by 3 packed in an address.
		{
			"gather rectangle", command.BM1688, 6, 2, with(result(command.FP16), fields{command.Opd3Addr: 4<<16 | 3}),
			command.Work{Alg: 3 * 12 * 5, Arch: 32 * 12 * 8, Cycles: 6, Startup: 11},
		},
		{"lar", command.BM1684X, 7, 2, fields{command.Res0C: 3, command.Res0W: 5}, command.Work{Alg: 15, Arch: 64 * 64}},
		{"lar", command.BM1690, 7, 2, fields{command.Res0C: 3, command.Res0W: 5}, command.Work{Arch: 64 * 64}},
		{"division", command.BM1688, 3, 12, result(command.FP32), command.Work{Alg: 150, Arch: 32 * 12 * 5, Cycles: 1, Startup: 11}},
		// Kernels of minimum pooling do not count: 7*1-1 operations.
		{"minimum", command.BM1688, 1, 3, with(result(command.FP16), fields{command.Opd1H: 2, command.Opd1W: 3}), command.Work{
			Alg: 180, Arch: 32 * 16 * 6, Cycles: 1, Startup: 10,
		}},
		{"average", command.BM1688, 1, 1, with(result(command.FP16), fields{command.Opd1H: 2, command.Opd1W: 3}), command.Work{
			Alg: 330, Arch: 32 * 16 * 11, Cycles: 2, Startup: 10,
		}},
		// No channels are padded for 32 bits; 32*4*2 a cycle.
		{"convolution", command.BM1688, 0, 0, with(result(command.FP32), fields{command.Opd0C: 3, command.Opd1H: 1, command.Opd1W: 1}), command.Work{
			Alg: 150, Arch: 32 * 12 * 5, Cycles: 1, Startup: 23,
		}},
		// Left operand transposed: 5 rows, inner 4*2.
		{"product transposed", command.BM1688, 2, 1, fields{
			command.Opd0N: 8, command.Opd0C: 1, command.Opd0W: 5, command.LeftTran: 1, command.Res0C: 3, command.Res0W: 7,
		}, command.Work{Alg: 5 * 21 * 16, Arch: 5 * 32 * 16 * 16, Cycles: 2, Startup: 32}},
	} {
		o := c.chip.Layout(command.TIU, c.kind, false, c.sub)
		if o == nil {
			t.Fatalf("%s: %s has no such command", c.name, c.chip.Name)
		}
		raw := o.Encode(nil)
		for r, v := range c.fields {
			o.Set(raw, r, v)
		}
		o.Set(raw, command.TaskType, uint64(c.kind))
		o.Set(raw, command.TaskSub, uint64(c.sub))
		got, stop := command.DecodeOne(c.chip, command.TIU, raw)
		if stop != nil {
			t.Fatal(stop)
		}
		if w, ok := got.Work(c.chip); !ok || w != c.want {
			t.Errorf("%s on %s: %+v, want %+v", c.name, c.chip.Name, w, c.want)
		}
	}
}
