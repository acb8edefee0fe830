package block_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// again decodes a block to records and encodes them; ok is false for types that stay
// bytes.
func again(chip string, t block.Type, data []byte) (out []byte, ok bool) {
	engine := map[block.Type]block.Engine{block.MonitorBD: block.TIU, block.MonitorGDMA: block.GDMA, block.MonitorSDMA: block.SDMA, block.MonitorCDMA: block.CDMA}
	switch t {
	case block.Summary:
		s, ok := block.ParseStep(data)
		return s.Append(nil), ok
	case block.Commands:
		s, ok := block.ParseStreams(data, chip == "BM1690")
		return s.Append(nil, chip == "BM1690"), ok
	case block.DynData:
		list, rest := block.ParseDyn(data)
		return block.AppendDyn(nil, list), rest == 0
	case block.DynExtra, block.BMLibExtra:
		list, rest := block.ParseExtras(data)
		return block.AppendExtras(nil, list), rest == 0
	case block.BMLib:
		d, ok := block.ParseDriver(data)
		return d.Append(nil), ok
	}
	if e, is := engine[t]; is {
		if l := block.LayoutOf(chip, e); l != nil && len(data)%l.Size == 0 {
			table := l.NewTable()
			table.Add(data)
			return table.Append(nil), true
		}
	}
	return nil, false
}

// TestSamplesAgain writes every real recording again byte for byte, through records.
func TestSamplesAgain(t *testing.T) {
	dir := material.Path(t, "raw", "bmprofile")
	for _, x := range []struct {
		file, chip string
		blocks     []block.Type // in order, by the material's inventory
	}{
		{"bmprofile_data-1_bm1684x/iter0.profile", "BM1684X", []block.Type{1, 8, 3, 4, 5, 6}},
		{"bmprofile_data-1_bm1688/iter0.profile", "BM1688", []block.Type{1, 8, 3, 4, 5, 6}},
		{"bmprofile_data-1_bm1688_2core/iter0.profile", "BM1688", []block.Type{1, 8, 8, 3, 4, 5, 6, 3, 4, 5}},
		{"bmprofile_data-1_cv184x/iter0.profile", "CV184X", []block.Type{1, 8, 3, 4}},
		{"cdm_profile_data_dev0_bm1690/cdmlib0_0.profile", "BM1690", []block.Type{3, 4, 11, 13, 14, 15}},
	} {
		want, err := os.ReadFile(filepath.Join(dir, x.file))
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		var types []block.Type
		cut, err := block.Scan(bytes.NewReader(want), func(k block.Type, _ int64, p io.Reader) error {
			data, err := io.ReadAll(p)
			types = append(types, k)
			if k < block.DesBD { // streams stay as they are
				out, ok := again(x.chip, k, data)
				if !ok {
					t.Errorf("%s: block of type %d is not what it should be", x.file, k)
				}
				data = out
			}
			got = block.Append(got, k, data)
			return err
		})
		if err != nil || cut != nil {
			t.Errorf("%s: %v, cut %v", x.file, err, cut)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes were written again as %d others", x.file, len(want), len(got))
		}
		if !slices.Equal(types, x.blocks) {
			t.Errorf("%s: blocks are %v, want %v", x.file, types, x.blocks)
		}
	}
}

// TestLayouts checks that each record's fields cover its size, and their places by hand
// for some of each.
func TestLayouts(t *testing.T) {
	for _, x := range []struct {
		chip   string
		engine block.Engine
		size   int
		field  string
		word   int
	}{
		{"BM1684", block.TIU, 32, "writes", 6},
		{"BM1690", block.TIU, 16, "inst_id", 2},
		{"CV184X", block.TIU, 16, "start", 2},
		{"BM1684", block.GDMA, 192, "local_rd_start", 47},
		{"BM1684", block.GDMA, 192, "d0_aw_end", 24},
		{"BM1684", block.GDMA, 192, "local_rd_stall", 23},
		{"BM1684X", block.GDMA, 192, "l2_wr", 13},
		{"BM1684X", block.GDMA, 192, "local_wr_stall", 28},
		{"BM1684X", block.GDMA, 192, "d1_rd_start", 47},
		{"BM1688", block.GDMA, 256, "local_wr", 10},
		{"CV186X", block.GDMA, 256, "l2_rd_start", 63},
		{"BM1690", block.SDMA, 64, "local_wr", 10},
		{"CV184X", block.GDMA, 64, "axi_aw", 7},
		{"BM1690", block.CDMA, 128, "axi_wr", 5},
		{"BM1690", block.CDMA, 128, "ari_end", 31},
	} {
		l := block.LayoutOf(x.chip, x.engine)
		if l == nil || l.Size != x.size {
			t.Errorf("%s engine %d: layout is %v, want %d bytes", x.chip, x.engine, l, x.size)
			continue
		}
		bits, found := 0, false
		for _, f := range l.Fields {
			bits += f.Width
			found = found || f.Name == x.field && f.Word == x.word
		}
		if bits != 8*x.size || !found {
			t.Errorf("%s engine %d: %d bits, %s at word %d: %t", x.chip, x.engine, bits, x.field, x.word, found)
		}
	}
}

// TestEach decodes the columns that are asked for, of more records than fit at once.
func TestEach(t *testing.T) {
	l := block.LayoutOf("BM1688", block.GDMA)
	const n = 9000
	raw := make([]byte, n*l.Size+5)
	for i := range n {
		// reserved bits above the id
		binary.LittleEndian.PutUint32(raw[i*l.Size+8:], uint32(i)|0xABC00000)
		binary.LittleEndian.PutUint32(raw[i*l.Size+4:], uint32(2*i))
	}
	seen := 0
	rest, err := l.Each(bytes.NewReader(raw), func(table *block.Table) {
		id, end := table.Column(block.ID), table.Column(block.End)
		for i := range id {
			if id[i] != uint32(seen) || end[i] != uint32(2*seen) {
				t.Fatalf("record %d has id %d, end %d", seen, id[i], end[i])
			}
			seen++
		}
		if table.Column(block.Start) != nil || table.Column("none") != nil {
			t.Fatal("columns that were not asked for")
		}
	}, block.ID, block.End)
	if seen != n || rest != 5 || err != nil {
		t.Errorf("%d records, %d bytes over, %v", seen, rest, err)
	}
}

// TestCut reports files that end early.
func TestCut(t *testing.T) {
	raw := block.Append(block.Append(nil, block.Summary, make([]byte, 36)), 99, []byte("abcdef"))
	for n, want := range map[int]*block.Cut{
		len(raw): nil, 44: nil, 0: nil, 4: {Want: 8, Have: 4}, 20: {Type: block.Summary, Want: 36, Have: 12},
		50: {Offset: 44, Want: 8, Have: 6}, 54: {Offset: 44, Type: 99, Want: 6, Have: 2},
	} {
		got, err := block.Scan(bytes.NewReader(raw[:n]), func(block.Type, int64, io.Reader) error { return nil })
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%d bytes: %v %s", n, err, diff)
		}
	}
}

// TestDyn decodes the bit fields of records of a real recording.
func TestDyn(t *testing.T) {
	d := block.Dyn{Type: block.DynNodeSet, ID: 0x1000190000100000}
	want := block.Node{GDMA: 1, Engine: block.GDMA, OK: true, Function: 3, Version: 1}
	if diff := cmp.Diff(want, d.Node("BM1684X")); diff != "" {
		t.Error(diff)
	}
	d = block.Dyn{Type: block.DynNodeWait, ID: 0xa10005d}
	if n := d.Node("BM1688"); n.BD != 93 || n.GDMA != 161 {
		t.Errorf("waits for %d and %d, want 93 and 161", n.BD, n.GDMA)
	}
	f := (&block.Dyn{ID: 5 | 1<<32 | 77<<48}).Func()
	if f != (block.Func{Layer: 5, Kind: 1, Group: 77}) {
		t.Errorf("function is %+v", f)
	}
}

// FuzzBlocks reads any bytes as each kind of block: no panic, and what is whole is
// written again as it was.
func FuzzBlocks(f *testing.F) {
	f.Add(block.Append(nil, block.Summary, make([]byte, 36)), uint8(0))
	f.Add(block.Append(nil, block.MonitorGDMA, make([]byte, 256)), uint8(2))
	f.Add(block.Append(nil, block.BMLib, (&block.Driver{Lists: 5, Sends: []block.Send{{API: 1}}}).Append(nil)), uint8(1))
	f.Add(block.Append(nil, block.DynExtra, block.AppendExtras(nil, []block.Extra{{Owner: 1, Data: []byte("x")}})), uint8(3))
	f.Add([]byte{4, 0, 0, 0, 255, 255, 255, 255, 1}, uint8(4))
	chips := []string{"BM1684", "BM1684X", "BM1688", "CV184X", "BM1690"}
	f.Fuzz(func(t *testing.T, data []byte, chip uint8) {
		var got []byte
		cut, err := block.Scan(bytes.NewReader(data), func(k block.Type, n int64, p io.Reader) error {
			b, err := io.ReadAll(p)
			whole := b
			out, ok := again(chips[int(chip)%len(chips)], k, b)
			if k == block.Summary || k == block.BMLib {
				b = b[:min(len(b), len(out))] // what later versions may put behind it is not read
			}
			if ok && !bytes.Equal(out, b) && k != block.Commands {
				t.Fatalf("type %d: %d bytes are written again as others", k, len(b))
			}
			got = block.Append(got, k, whole)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if cut == nil && !bytes.Equal(got, data) {
			t.Fatal("blocks are written again as others")
		}
	})
}
