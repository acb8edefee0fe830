package compat_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compat"
	"github.com/opmeter/opmeter/internal/testing/material"
)

// sample reads a recorded directory.
func sample(t *testing.T, dir string, tiu, dma float64) *compat.Input {
	t.Helper()
	files, _, err := record.Find(material.Path(t, "raw", "bmprofile", dir))
	if err != nil {
		t.Fatal(err)
	}
	in := &record.Input{Files: files}
	if tiu != 0 {
		in.Clocks = map[string]float64{"tiu": tiu, "dma": dma}
	}
	c, err := compat.Read(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The directories of chips whose output the newer converter makes.
var perfAI = []struct {
	dir, reference string
	chip           *command.Chip
	tiu, dma       float64 // clocks, 0 for the nominal ones
}{
	{"bmprofile_data-1_bm1688", "", command.BM1688, 0, 0},
	{"bmprofile_data-1_bm1688_2core", "", command.BM1688, 0, 0},
	{"bmprofile_data-1_cv184x", "", command.CV184X, 0, 0},
	{"bmprofile_data-1_cv184x", "bmprofile_data-1_cv184x_ability0.5", command.CV184X, 500e6, 500e6},
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
			in := sample(t, s.dir, s.tiu, s.dma)
			if in.Chip != s.chip {
				t.Errorf("chip %s, want %s", in.Chip.Name, s.chip.Name)
			}
			files, err := compat.Write(in)
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
				if strings.HasSuffix(w.Name(), ".xlsx") {
					sameBook(t, got[w.Name()], want)
					continue
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
	files, err := compat.Write(sample(t, dir, 0, 0))
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
		want := read(t, filepath.Join(root, w.Name()))
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

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Cells of the document that are left out: its explanations of columns.
func explains(sheet, text string, row, column int) bool {
	switch {
	case strings.HasPrefix(sheet, "TIU_"):
		return row >= 4 && row <= 9 && column >= 15 && column <= 17
	case sheet == "Engine Summary":
		return row > 8 && column <= 2
	}
	return text == "搬运量太少" || strings.HasPrefix(text, "*")
}

// sameBook compares the cells of two workbooks.
func sameBook(t *testing.T, got, want []byte) {
	t.Helper()
	g, err := excelize.OpenReader(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	w, err := excelize.OpenReader(bytes.NewReader(want))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprint(g.GetSheetList()), fmt.Sprint(w.GetSheetList()); a != b {
		t.Errorf("sheets %s, want %s", a, b)
	}
	cells := 0
	for _, sheet := range w.GetSheetList() {
		a, _ := g.GetRows(sheet, excelize.Options{RawCellValue: true})
		b, err := w.GetRows(sheet, excelize.Options{RawCellValue: true})
		if err != nil {
			t.Fatal(err)
		}
		shown := 0
		for i := range b {
			for j, v := range b[i] {
				cells++
				have := ""
				if i < len(a) && j < len(a[i]) {
					have = a[i][j]
				}
				if have == v || sameNumber(have, v) || explains(sheet, v, i+1, j+1) || shown > 6 {
					continue
				}
				shown++
				name, _ := excelize.CoordinatesToCellName(j+1, i+1)
				t.Errorf("%s %s is %q, want %q", sheet, name, have, v)
			}
		}
		if len(a) > len(b) {
			t.Errorf("%s has %d rows, want %d", sheet, len(a), len(b))
		}
	}
	if cells < 10_000 {
		t.Errorf("only %d cells were compared", cells)
	}
}

// sameNumber compares numbers of workbooks: some writers keep 16 digits.
func sameNumber(a, b string) bool {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	return errA == nil && errB == nil && math.Abs(x-y) <= 1e-15*math.Abs(y)
}
