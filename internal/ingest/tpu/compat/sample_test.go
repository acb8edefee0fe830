package compat_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/ingest/tpu/command"
	"github.com/opmeter/opmeter/internal/ingest/tpu/compat"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// block is a block of a record file.
type block struct {
	kind uint32
	data []byte
}

func blocks(t *testing.T, name string) []block {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var list []block
	for len(data) >= 8 {
		n := binary.LittleEndian.Uint32(data[4:])
		list = append(list, block{binary.LittleEndian.Uint32(data), data[8 : 8+n]})
		data = data[8+n:]
	}
	return list
}

// sample reads a recorded directory with the least that does.
func sample(t *testing.T, dir string, chip *command.Chip) *compat.Input {
	t.Helper()
	root := material.Path(t, "raw", "bmprofile", dir)
	in := &compat.Input{Chip: chip, TIUMHz: int(chip.TIUClock / 1e6), DMAMHz: int(chip.DMAClock / 1e6)}
	name := "iter0.profile"
	if chip == command.BM1690 {
		name = "cdmlib0_0.profile"
	}
	decode := func(e command.Engine, data []byte, count int) []command.Command {
		list, stop := command.Decode(chip, e, data, count)
		if stop != nil {
			t.Fatal(stop)
		}
		return list
	}
	file := func(core, engine string, e command.Engine) []command.Command {
		names, err := filepath.Glob(filepath.Join(root, "cmd_*_"+core+"_"+engine+".dat"))
		if err != nil || len(names) == 0 {
			return nil
		}
		data, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		if chip == command.BM1684X {
			count = map[command.Engine]int{command.TIU: 93, command.GDMA: 161}[e]
		}
		return decode(e, data, count)
	}
	if chip == command.BM1684X {
		in.Classic = &compat.Classic{Log: read(t, root, "global.profile"), Estimate: read(t, root, "net_stat.sim")}
	}
	for _, b := range blocks(t, filepath.Join(root, name)) {
		last := len(in.Cores) - 1
		switch b.kind {
		case 3:
			core := string(rune('0' + len(in.Cores)))
			in.Cores = append(in.Cores, compat.Core{
				TIU: b.data, TIUCommands: file(core, "0", command.TIU), GDMACommands: file(core, "1", command.GDMA),
			})
		case 4:
			in.Cores[last].GDMA = b.data
		case 5:
			if in.Classic != nil {
				in.Classic.Firmware = b.data
			}
		case 11:
			in.Cores[last].SDMA = b.data
		case 13:
			in.Embedded = true
			in.Cores[last].TIUCommands = decode(command.TIU, b.data, 0)
		case 14:
			in.Cores[last].GDMACommands = decode(command.GDMA, b.data, 0)
		case 15:
			in.Cores[last].SDMACommands = decode(command.SDMA, b.data, 0)
		}
	}
	places(t, root, in)
	return in
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func places(t *testing.T, root string, in *compat.Input) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "tensor_location.json"))
	if err != nil {
		return
	}
	var list []struct {
		Line   int    `json:"file-line"`
		Subnet int    `json:"subnet_id"`
		Core   int    `json:"core_id"`
		Opcode string `json:"opcode"`
		Local  bool   `json:"is_local"`
		Before [2]int `json:"tiu_dma_id(before)"`
		After  [2]int `json:"tiu_dma_id(after)"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for i, p := range list {
		_, op, _ := strings.Cut(p.Opcode, ".")
		in.Places = append(in.Places, compat.Place{
			Ordinal: i + 1, Line: p.Line, Subnet: p.Subnet, Core: p.Core, Op: op, Local: p.Local, Before: p.Before, After: p.After,
		})
	}
	mlir, err := os.ReadFile(filepath.Join(root, "final.mlir"))
	if err != nil {
		t.Fatal(err)
	}
	in.MLIR = strings.Split(string(mlir), "\n")
}

// The directories of chips whose output the newer converter makes.
var perfAI = []struct {
	dir, reference string
	chip           *command.Chip
	tiu, dma       int // clocks, 0 for the nominal ones
}{
	{"bmprofile_data-1_bm1688", "", command.BM1688, 0, 0},
	{"bmprofile_data-1_bm1688_2core", "", command.BM1688, 0, 0},
	{"bmprofile_data-1_cv184x", "", command.CV184X, 0, 0},
	{"bmprofile_data-1_cv184x", "bmprofile_data-1_cv184x_ability0.5", command.CV184X, 500, 500},
	{"cdm_profile_data_dev0_bm1690", "", command.BM1690, 0, 0},
}

func TestPerfAI(t *testing.T) {
	t.Parallel()
	for _, s := range perfAI {
		if s.reference == "" {
			s.reference = s.dir
		}
		t.Run(s.reference, func(t *testing.T) {
			t.Parallel()
			in := sample(t, s.dir, s.chip)
			if s.tiu != 0 {
				in.TIUMHz, in.DMAMHz = s.tiu, s.dma
			}
			files, err := compat.PerfAI(in)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]byte{}
			for _, f := range files {
				got[f.Name] = f.Data
			}
			wanted, err := os.ReadDir(material.Path(t, "raw", "bmprofile", "reference_output", s.reference))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range wanted {
				want, err := os.ReadFile(material.Path(t, "raw", "bmprofile", "reference_output", s.reference, w.Name()))
				if err != nil {
					t.Fatal(err)
				}
				same(t, w.Name(), got[w.Name()], want)
			}
		})
	}
}

// same compares texts line by line.
func same(t *testing.T, name string, got, want []byte) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is missing", name)
		return
	}
	if string(got) == string(want) {
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	if len(g) != len(w) {
		t.Errorf("%s has %d lines, want %d", name, len(g), len(w))
	}
	shown := 0
	for i := 0; i < min(len(g), len(w)) && shown < 5; i++ {
		if g[i] != w[i] {
			shown++
			t.Errorf("%s line %d:\n have %.300q\n want %.300q", name, i+1, cutSame(g[i], w[i]), cutSame(w[i], g[i]))
		}
	}
}

// cutSame leaves out a long beginning that both have.
func cutSame(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	if i > 60 {
		return "..." + a[i-40:]
	}
	return a
}

func TestClassic(t *testing.T) {
	t.Parallel()
	const dir = "bmprofile_data-1_bm1684x"
	files, err := compat.OldStyle(sample(t, dir, command.BM1684X))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]byte{}
	for _, f := range files {
		got[f.Name] = f.Data
	}
	root := material.Path(t, "raw", "bmprofile", "reference_output", dir)
	wanted, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wanted {
		want := read(t, root, w.Name())
		if w.Name() == "summary.csv" {
			// The converter prints a set of names in the order of its hashes, which changes
			// with every run.
			want = []byte(strings.Replace(string(want), "Store,Permute,Load,Concat,Pad", "Permute,Load,Store,Pad,Concat", 1))
		}
		same(t, w.Name(), got[w.Name()], want)
	}
	if len(wanted) != len(files) {
		t.Errorf("%d files, want %d", len(files), len(wanted))
	}
}
