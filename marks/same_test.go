package marks_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/opmeter/opmeter/internal/source/stages"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/marks"
)

// list writes the marks of a stream as texts, without what differs from run to run: times, the
// process, which blocks they stand in. It reads the bytes by docs/reference/marks.md and not with
// the reader of the program.
func list(t *testing.T, data []byte) (marks, names []string, hello []byte) {
	t.Helper()
	var d stages.Decoder
	d.Feed(data, func(b stages.Block) {
		r := b.Body
		number := func() uint64 {
			v, n := binary.Uvarint(r)
			if n <= 0 {
				t.Fatalf("no number in % x", r)
			}
			r = r[n:]
			return v
		}
		switch b.Kind {
		case 1:
			number()
			number()
			for len(r) > 0 && r[0] != 0 {
				head := number()
				s := fmt.Sprintf("%d %d", head&15, head>>4)
				switch head & 15 {
				case 1, 2, 6:
					number()
				case 3, 4, 5:
					number()
					s += fmt.Sprint(" frame ", number())
				case 7:
					v, n := binary.Varint(r)
					r = r[n:]
					s += fmt.Sprint(" counts ", v)
				case 8:
					number()
					s += fmt.Sprintf(" level % x", r[:8])
					r = r[8:]
				case 9:
					s += fmt.Sprint(" model ", number(), " ", number())
				case 10:
					s += fmt.Sprint(" dropped ", number())
				case 11:
					number()
					number()
					continue // the cost of writing is by chance
				case 12, 13:
				default:
					t.Fatalf("mark %s", s)
				}
				marks = append(marks, s)
			}
			if slices.ContainsFunc(r, func(b byte) bool { return b != 0 }) || len(r) > 3 {
				t.Errorf("behind the marks: % x", r)
			}
		case 2:
			hello = append(hello, r[0])
		case 3:
			at, n := number(), number()
			for range n {
				size := number()
				names = append(names, fmt.Sprint(at, " ", string(r[:size])))
				r = r[size:]
				at++
			}
		}
	})
	if cut := d.End(func(stages.Block) {}); cut != 0 || d.Foreign != 0 {
		t.Errorf("%d bytes cut, %d foreign", cut, d.Foreign)
	}
	return marks, names, hello
}

// TestSame: the C functions and the package make the same marks of the same calls.
func TestSame(t *testing.T) {
	if os.Getenv("MARKS_SCRIPT") != "" {
		// In a process of its own, whose names are those of this file alone.
		if err := marks.Open(""); err != nil {
			t.Fatal(err)
		}
		marks.Named("audio")
		script(marks.NewLane(""))
		if err := marks.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("the program of the test is for POSIX")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		material.Skip(t, "cc is missing: install gcc")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "drive")
	if out, err := exec.Command(cc, "-std=c99", "-O1", "-Inative/c", "-o", program, "native/testdata/drive.c", "native/c/opmeter_marks.c", "-pthread").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	read := func(cmd *exec.Cmd) (m, n []string, hello []byte) {
		path := filepath.Join(dir, filepath.Base(cmd.Path)+".marks")
		cmd.Env = append(os.Environ(), "OPMETER_MARKS="+path, "MARKS_SCRIPT=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return list(t, b)
	}
	inC, namesC, helloC := read(exec.Command(program, "script"))
	inGo, namesGo, helloGo := read(exec.Command(self, "-test.run=^TestSame$"))
	if !slices.Equal(inC, inGo) {
		for i := range min(len(inC), len(inGo)) {
			if inC[i] != inGo[i] {
				t.Errorf("mark %d: C %q, Go %q", i, inC[i], inGo[i])
				break
			}
		}
		t.Errorf("%d marks of C, %d of Go", len(inC), len(inGo))
	}
	if !slices.Equal(namesC, namesGo) || len(namesC) != 9 {
		t.Errorf("C %q\nGo %q", namesC, namesGo)
	}
	if string(helloC) != "\x00" || string(helloGo) != "\x01" {
		t.Errorf("hello %v %v", helloC, helloGo)
	}
}
