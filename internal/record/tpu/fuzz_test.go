package tpu_test

import (
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/testing/tpurecords"
)

// FuzzDirectory changes the files of small directories: no panic, and what comes out is
// a profile that is valid (which profiles checks).
func FuzzDirectory(f *testing.F) {
	list := []tpurecords.Options{
		{Commands: 12, TIUStart: 99, Copies: true, CopyStart: 30_000},
		{Commands: 12, Chip: command.BM1684, TIUStart: 99},
		{Commands: 12, Chip: command.BM1688, NoLog: true},
		{Commands: 12, Chip: command.CV184X, BadTick: true},
		{Commands: 12, Chip: command.BM1690, CopyStart: 30_000},
		{Commands: 12, Steps: []tpurecords.Step{{Dynamic: true}, {Number: 2, Kind: block.OnCPU, Subnet: 1, HostS: 1}}},
	}
	names := []string{"iter0.profile", "global.profile", "net_stat.sim", "cmd_100000000_0_0.dat", "cmd_100010000_0_1.dat", "bmlib_0.profile", "cdmlib0_0.profile", "cdma0_1.profile", "tiuRegInfo_0.txt", "tensor_location.json", "final.mlir"}
	made := make([]*tpurecords.Directory, len(list))
	for i, o := range list {
		made[i] = tpurecords.Make(o)
		for k, n := range names {
			if b, ok := made[i].Files[n]; ok {
				f.Add(uint8(i), uint8(k), b)
			}
		}
	}
	f.Add(uint8(0), uint8(8), []byte("__CHIP_ARCH_ARGS__\n\tChip Arch: CV184X\n__TIU_REG_INFO__\n\tFunction Name: a\n\tStart Cycle: 0\n\tEnd Cycle: 5\n"))
	f.Add(uint8(4), uint8(6), made[4].Files["iter0.profile"])
	f.Add(uint8(2), uint8(9), []byte(`[{"file-line": 13, "subnet_id": 0, "core_id": 0, "opcode": "tpu.X", "tiu_dma_id(before)": [0, 0], "tiu_dma_id(after)": [2, 3]}]`))
	f.Fuzz(func(t *testing.T, base, name uint8, data []byte) {
		d := made[int(base)%len(made)]
		m := map[string][]byte{}
		for k, v := range d.Files {
			m[k] = v
		}
		m[names[int(name)%len(names)]] = data
		_, _ = profiles(t, &record.Input{Files: files(m)})
	})
}
