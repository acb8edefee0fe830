package find

import (
	"bytes"
	"strings"
	"testing"
)

func TestHeader(t *testing.T) {
	t.Parallel()
	java := "\xca\xfe\xba\xbe\x00\x00\x00\x34" + strings.Repeat("\x00", 100)
	big := []byte(elfFile(0, 3))
	big[5], big[16], big[17], big[18], big[19] = 2, 0, 3, 0, 22 // s390x stores the other way round
	for _, c := range []struct {
		name, system, arch, data string
		want                     Problem
	}{
		{"elf", "linux", "amd64", linux64, ""},
		{"elf of FreeBSD", "freebsd", "amd64", linux64, ""},
		{"elf, big-endian", "linux", "s390x", string(big), ""},
		{"elf of another processor", "linux", "riscv64", linuxARM, OtherMachine},
		{"elf of 32 bits", "linux", "amd64", strings.Replace(elfFile(62, 3), "\x7fELF\x02", "\x7fELF\x01", 1), OtherMachine},
		{"elf on macOS", "darwin", "arm64", linuxARM, OtherSystem},
		{"program", "linux", "amd64", elfFile(62, 2), NoLibrary},
		{"cut", "linux", "amd64", linux64[:20], NoLibrary},
		{"mach-o", "darwin", "arm64", macARM, ""},
		{"mach-o, program", "darwin", "arm64", machFile(0x0100000c, 2), NoLibrary},
		{"universal", "darwin", "amd64", fatFile(0x01000007, 0x0100000c), ""},
		{"universal, another", "darwin", "arm64", fatFile(0x01000007, 7), OtherMachine},
		{"class of Java", "darwin", "arm64", java, NoLibrary},
		{"dll", "windows", "amd64", windows64, ""},
		{"dll of another processor", "windows", "arm64", windows64, OtherMachine},
		{"exe", "windows", "amd64", peFile(0x8664, 0x22), NoLibrary},
		{"dos", "windows", "amd64", "MZ" + strings.Repeat("\xff", 100), NoLibrary},
		{"text", "linux", "amd64", "version 1 of a pointer to a large file\n", NoLibrary},
		{"nothing", "linux", "amd64", "", NoLibrary},
	} {
		h, err := header(bytes.NewReader([]byte(c.data)))
		got := NoLibrary
		if err == nil {
			got, _ = h.fits(c.system, c.arch)
		}
		if got != c.want {
			t.Errorf("%s: %q (%v), want %q", c.name, got, err, c.want)
		}
	}
}

// Whatever a file holds, its header is judged without a panic, and what is said is one line.
func FuzzHeader(f *testing.F) {
	for _, s := range []string{"", "text\n", linux64, linuxARM, macARM, windows64, fatFile(7, 0x01000007), "\x7fELF"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := header(bytes.NewReader(b))
		if (h == nil) == (err == nil) {
			t.Fatalf("%v and %v", h, err)
		}
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q", err)
			}
			return
		}
		for _, system := range []string{"linux", "darwin", "windows"} {
			if p, what := h.fits(system, "amd64"); (p == "") != (what == "") {
				t.Errorf("%q and %q", p, what)
			}
		}
	})
}

// Whatever a list of engines says, it is parsed or refused, and what was parsed reads the same
// again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"opmeter", "onnxruntime@1.20=/a,b/c,litert", ",=@", "litert=,/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := Parse(s)
		if err != nil {
			return
		}
		var again []string
		for _, x := range list {
			again = append(again, x.String())
		}
		second, err := Parse(strings.Join(again, ","))
		if err != nil || len(second) != len(list) {
			t.Fatalf("%q: %v, then %v (%v)", s, list, second, err)
		}
	})
}
