package command_test

import (
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/reginfo"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// The streams of the recorded directories: chip, folder, file, engine, core and how many
// commands they are known to hold.
var streams = []struct {
	chip   *command.Chip
	dir    string
	file   string
	engine command.Engine
	core   int
	count  int
}{
	{command.BM1684X, "bmprofile_data-1_bm1684x", "cmd_12425c000_0_0.dat", command.TIU, 0, 93},
	{command.BM1684X, "bmprofile_data-1_bm1684x", "cmd_12425e000_0_1.dat", command.GDMA, 0, 161},
	{command.BM1688, "bmprofile_data-1_bm1688", "cmd_12406e000_0_0.dat", command.TIU, 0, 137},
	{command.BM1688, "bmprofile_data-1_bm1688", "cmd_124071000_0_1.dat", command.GDMA, 0, 167},
	{command.BM1688, "bmprofile_data-1_bm1688_2core", "cmd_125ada000_0_0.dat", command.TIU, 0, 257},
	{command.BM1688, "bmprofile_data-1_bm1688_2core", "cmd_125ade000_0_1.dat", command.GDMA, 0, 158},
	{command.BM1688, "bmprofile_data-1_bm1688_2core", "cmd_125ae2000_1_0.dat", command.TIU, 1, 48},
	{command.BM1688, "bmprofile_data-1_bm1688_2core", "cmd_125ae3000_1_1.dat", command.GDMA, 1, 34},
	{command.CV184X, "bmprofile_data-1_cv184x", "cmd_8564d000_0_0.dat", command.TIU, 0, 116},
	{command.CV184X, "bmprofile_data-1_cv184x", "cmd_8564f000_0_1.dat", command.GDMA, 0, 225},
	{command.BM1690, "cdm_profile_data_dev0_bm1690", "13", command.TIU, 0, 81},
	{command.BM1690, "cdm_profile_data_dev0_bm1690", "14", command.GDMA, 0, 161},
	{command.BM1690, "cdm_profile_data_dev0_bm1690", "15", command.SDMA, 0, 1},
}

// stream reads a stream of commands: a file, or the block of a type of BM1690's record.
func stream(t *testing.T, dir, file string) []byte {
	t.Helper()
	kind, err := strconv.Atoi(file)
	if err != nil {
		data, err := os.ReadFile(material.Path(t, "raw", "bmprofile", dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	data, err := os.ReadFile(material.Path(t, "raw", "bmprofile", dir, "cdmlib0_0.profile"))
	if err != nil {
		t.Fatal(err)
	}
	for len(data) > 8 {
		size := binary.LittleEndian.Uint32(data[4:])
		if binary.LittleEndian.Uint32(data) == uint32(kind) {
			return data[8 : 8+size]
		}
		data = data[8+size:]
	}
	t.Fatalf("no block %d", kind)
	return nil
}

func TestStreams(t *testing.T) {
	t.Parallel()
	for _, s := range streams {
		t.Run(s.dir+"/"+s.file, func(t *testing.T) {
			t.Parallel()
			count := 0
			if s.chip == command.BM1684X {
				count = s.count
			}
			data := stream(t, s.dir, s.file)
			list, stop := command.Decode(s.chip, s.engine, data, count)
			if stop != nil || len(list) != s.count {
				t.Fatalf("%d commands, want %d: %v", len(list), s.count, stop)
			}
			for i := range list {
				if s.chip == command.BM1684X && int(list[i].ID) != i+1 {
					t.Errorf("command %d has id %d", i+1, list[i].ID)
				}
			}
			if s.chip != command.BM1684X {
				compare(t, s.chip, s.engine, s.core, s.dir, list)
			}
			reencode(t, s.chip, s.engine, data, list)
		})
	}
}

// reencode writes each command's fields into an empty command: the bits must be those of
// the stream.
func reencode(t *testing.T, chip *command.Chip, e command.Engine, data []byte, list []command.Command) {
	t.Helper()
	var b command.Builder
	b.Reset(chip, e)
	for i := range list {
		c := &list[i]
		values := make([]uint64, len(c.Op.Fields))
		for k := range values {
			values[k] = c.Field(k)
		}
		b.Append(c.Op, values)
	}
	got := b.Bytes()
	if len(got) > len(data) || string(got) != string(data[:len(got)]) {
		t.Errorf("encoded again: not the same bytes")
	}
	for _, v := range data[min(len(got), len(data)):] {
		if v != 0 {
			t.Errorf("bytes behind the last command are not padding")
			break
		}
	}
}

// compare holds decoded commands against the dump that the vendor's converter made.
func compare(t *testing.T, chip *command.Chip, e command.Engine, core int, dir string, list []command.Command) {
	t.Helper()
	name := "tdmaRegInfo_"
	if e == command.TIU {
		name = "tiuRegInfo_"
	}
	f, err := os.Open(material.Path(t, "raw", "bmprofile", "reference_output", dir, name+strconv.Itoa(core)+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	blocks, err := reginfo.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i := range blocks {
		b := &blocks[i]
		engine, _ := b.Int("Engine Id")
		if kind, _ := b.Get("Function Type"); b.Kind == reginfo.Chip || kind == "unknown" || (e == command.SDMA) != (engine == 3) {
			continue
		}
		id, _ := b.Int("Cmd Id")
		if id < 1 || int(id) > len(list) {
			t.Fatalf("line %d: command %d of %d", b.Line, id, len(list))
		}
		c := &list[id-1]
		seen++
		fields(t, b, c)
		if e == command.TIU {
			work(t, chip, b, c)
		} else {
			copies(t, chip, b, c)
		}
	}
	if seen == 0 {
		t.Error("no command was compared")
	}
}

// fields compares every field that the dump has of a command.
func fields(t *testing.T, b *reginfo.Block, c *command.Command) {
	t.Helper()
	prefix, values := "", map[string]uint64{}
	if b.Kind == reginfo.TIU {
		prefix = "des_"
	}
	for i, f := range c.Op.Fields {
		values[f.Name] = c.Field(i)
	}
	n := 0
	for _, e := range b.Entries {
		want, ok := values[strings.TrimPrefix(e.Key, prefix)]
		if !ok || !strings.HasPrefix(e.Key, prefix) || strings.TrimSpace(e.Value) == "" {
			continue
		}
		n++
		if e.Value != strconv.FormatUint(want, 10) {
			t.Errorf("line %d: %s %s is %d, want %s", b.Line, c.Op.Name, e.Key, want, e.Value)
		}
	}
	if n < 5 {
		t.Errorf("line %d: %s: only %d fields compared", b.Line, c.Op.Name, n)
	}
}

// work compares what follows from a tensor command.
func work(t *testing.T, chip *command.Chip, b *reginfo.Block, c *command.Command) {
	t.Helper()
	w, ok := c.Work(chip)
	cycles, _ := b.Int("Asic Cycle")
	got := map[string]string{
		"Function Name": c.Name(), "Function Type": c.Op.Name,
		"Alg Ops": fmt.Sprint(w.Alg), "uArch Ops": fmt.Sprint(w.Arch), "Alg Cycle": fmt.Sprint(w.Cycles),
		"uArch Rate":          fmt.Sprintf("%.1f%%", 100*float64(w.Alg)/float64(w.Arch)),
		"Initial Cycle Ratio": fmt.Sprintf("%.1f%%", 100*float64(w.Startup)/float64(cycles)),
		"Bank Conflict Ratio": fmt.Sprintf("%.1f%%", 100*float64(w.Conflict)/float64(cycles)),
	}
	if chip == command.BM1690 { // constants there
		got["Initial Cycle Ratio"], got["Bank Conflict Ratio"] = "0.0%", "0.0%"
	}
	for key, v := range got {
		if want, _ := b.Get(key); !ok || v != want {
			t.Errorf("line %d: %s %s: %s is %q, want %q", b.Line, c.Op.Name, c.Name(), key, v, want)
		}
	}
}

// copies compares what follows from a copy.
func copies(t *testing.T, chip *command.Chip, b *reginfo.Block, c *command.Command) {
	t.Helper()
	from, to := c.Spaces(chip)
	got := map[string]string{"from_addr": from.String(), "to_addr": to.String(), "Data Type": c.DType().String()}
	if c.Op.System() {
		delete(got, "from_addr") // the vendor's tools make up places of commands that move nothing
		delete(got, "to_addr")
	}
	for key, v := range got {
		if want, _ := b.Get(key); v != want && want != "None" && want != "-" {
			t.Errorf("line %d: %s: %s is %q, want %q", b.Line, c.Op.Name, key, v, want)
		}
	}
}

// The work of BM1684X's tensor commands against the vendor's table of instructions.
func TestInstructions(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join(material.Path(t, "raw", "bmprofile", "reference_output", "bmprofile_data-1_bm1684x"), "instruction.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	lists := map[string][]command.Command{}
	for _, s := range streams[:2] {
		list, stop := command.Decode(s.chip, s.engine, stream(t, s.dir, s.file), s.count)
		if stop != nil {
			t.Fatal(stop)
		}
		lists[s.engine.String()] = list
	}
	seen := 0
	for i, row := range rows[1:] {
		cell := func(name string) string { return row[column[name]] }
		engine, id, _ := strings.Cut(strings.ToLower(cell("Inst ID")), "-")
		n, err := strconv.Atoi(id)
		if err != nil {
			continue
		}
		c := &lists[engine][n]
		if c.Name() != cell("Inst Function") {
			t.Errorf("row %d: %s, want %s", i+2, c.Name(), cell("Inst Function"))
		}
		if engine != "tiu" {
			continue
		}
		seen++
		w, ok := c.Work(command.BM1684X)
		if alg, arch := fmt.Sprint(w.Alg), fmt.Sprint(w.Arch); !ok || alg != cell("Alg Ops") || arch != cell("uArch Ops") {
			t.Errorf("row %d: %s: %s of %s operations, want %s of %s", i+2, c.Name(), alg, arch, cell("Alg Ops"), cell("uArch Ops"))
		}
	}
	if seen < 90 {
		t.Errorf("%d tensor commands compared, want at least 90", seen)
	}
}
