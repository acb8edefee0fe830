package reginfo_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record/tpu/reginfo"
	"github.com/opmeter/opmeter/internal/testing/material"
)

const dump = "__CHIP_ARCH_ARGS__\n\tChip Arch: A2\n\tTIU Frequency(MHz): 900\n__TIU_REG_INFO__\n\tCmd Id: 7\n\tuArch Rate: 93.8%\n" +
	"sAR:\n\tdes_res0_n: 1\n\tMsg Id: 0\n__TDMA_REG_INFO__\n\tfuncName:  \n\tlayer_ID: \n\tsrc_shape: (1, 2)(FP32)\n"

func write(blocks []reginfo.Block) string {
	var out []byte
	for i := range blocks {
		out = blocks[i].Append(out)
	}
	return string(out)
}

func TestRead(t *testing.T) {
	t.Parallel()
	r := reginfo.NewReader(strings.NewReader("stray\n" + strings.ReplaceAll(dump, "\n", "\r\n")))
	var all []reginfo.Block
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, *b)
	}
	if len(all) != 3 || r.Skipped() != 1 {
		t.Fatalf("have %d blocks and %d lines without meaning, want 3 and 1", len(all), r.Skipped())
	}
	if v, ok := all[1].Int("Cmd Id"); !ok || v != 7 {
		t.Errorf("Cmd Id: %d, %t", v, ok)
	}
	if v, ok := all[1].Float("uArch Rate"); !ok || v != 93.8 {
		t.Errorf("uArch Rate: %g, %t", v, ok)
	}
	if all[1].Part != "sAR" || all[1].PartAt != 2 {
		t.Errorf("part %q at %d, want sAR at 2", all[1].Part, all[1].PartAt)
	}
	if got := write(all); got != dump {
		t.Errorf("written again:\n%q\nwant\n%q", got, dump)
	}
}

func TestNoDump(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a: b\n", "____\n"} {
		if _, err := reginfo.ReadAll(strings.NewReader(text)); !errors.Is(err, reginfo.ErrFormat) {
			t.Errorf("%q: %v, want ErrFormat", text, err)
		}
	}
}

// Dumps of the vendor's converter are the same bytes when they are written again.
func TestRewrite(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(material.Path(t, "raw", "bmprofile", "reference_output"), "*", "t*RegInfo_*.txt"))
	if err != nil || len(files) < 12 {
		t.Fatalf("%d dumps, %v", len(files), err)
	}
	for _, name := range files {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all, err := reginfo.ReadAll(bytes.NewReader(want))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := write(all); got != string(want) {
			t.Errorf("%s: not the same bytes: %d, want %d", name, len(got), len(want))
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(dump))
	f.Add([]byte("__A__\n:\n\t: \nb:\nc:\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := reginfo.ReadAll(bytes.NewReader(data))
		if err != nil && !errors.Is(err, reginfo.ErrFormat) {
			t.Fatal(err)
		}
		// What was read is read again from what is written of it.
		again, _ := reginfo.ReadAll(strings.NewReader(write(all)))
		if len(again) != len(all) {
			t.Fatalf("%d blocks, %d of what was written", len(all), len(again))
		}
		for i := range all {
			if len(again[i].Entries) != len(all[i].Entries) || again[i].Kind != all[i].Kind {
				t.Fatalf("block %d: %v, again %v", i, all[i], again[i])
			}
		}
	})
}
