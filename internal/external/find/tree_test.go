package find

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
)

// tree is a made-up file system: contents of files by their path. A content that begins with
// "-> " is a link; a path that ends with a separator is an empty folder.
type tree struct {
	sep   string
	files map[string]string
	deny  string // a file that may not be read
}

type opened struct{ *bytes.Reader }

func (opened) Close() error { return nil }

// follow leads through links, of folders, too.
func (f *tree) follow(name string) string {
	for range 20 {
		changed := false
		for link, to := range f.files {
			target, ok := strings.CutPrefix(to, "-> ")
			if ok && (name == link || strings.HasPrefix(name, link+f.sep)) {
				name, changed = target+name[len(link):], true
				break
			}
		}
		if !changed {
			return name
		}
	}
	return name
}

func (f *tree) Real(name string) string { return f.follow(name) }

func (f *tree) List(dir string) []string {
	dir = strings.TrimSuffix(f.follow(dir), f.sep) + f.sep
	names := map[string]bool{}
	for path := range f.files {
		if rest, ok := strings.CutPrefix(path, dir); ok && rest != "" {
			name, _, _ := strings.Cut(rest, f.sep)
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (f *tree) Kind(name string) Kind {
	name = f.follow(name)
	if content, ok := f.files[name]; ok {
		if strings.HasPrefix(content, "#!") {
			return kindProgram
		}
		return kindFile
	}
	if _, ok := f.files[name+f.sep]; ok || len(f.List(name)) > 0 {
		return kindFolder
	}
	return kindNone
}

func (f *tree) Open(name string) (File, error) {
	name = f.follow(name)
	content, ok := f.files[name]
	switch {
	case !ok:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case name == f.deny:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return opened{bytes.NewReader([]byte(content))}, nil
}

// computer is a made-up one.
func computer(system, arch, dir, home string, variables map[string]string, files map[string]string) *Env {
	sep := "/"
	if system == "windows" {
		sep = `\`
	}
	return &Env{OS: system, Arch: arch, Dir: dir, Home: home, Getenv: func(n string) string { return variables[n] }, Files: &tree{sep: sep, files: files}}
}

// Headers of libraries, written by the formats' own definitions.

func elfFile(machine, kind uint16) string {
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(b[16:], kind)
	binary.LittleEndian.PutUint16(b[18:], machine)
	return string(b)
}

func machFile(cpu, kind uint32) string {
	b := make([]byte, 32)
	for i, v := range []uint32{0xfeedfacf, cpu, 0, kind} {
		binary.LittleEndian.PutUint32(b[4*i:], v)
	}
	return string(b)
}

func fatFile(cpus ...uint32) string {
	b := make([]byte, 8+20*len(cpus))
	binary.BigEndian.PutUint32(b, 0xcafebabe)
	binary.BigEndian.PutUint32(b[4:], uint32(len(cpus)))
	for i, c := range cpus {
		binary.BigEndian.PutUint32(b[8+20*i:], c)
	}
	return string(b)
}

func peFile(machine, flags uint16) string {
	b := make([]byte, 0x80+24)
	copy(b, "MZ")
	binary.LittleEndian.PutUint32(b[60:], 0x80)
	copy(b[0x80:], "PE\x00\x00")
	binary.LittleEndian.PutUint16(b[0x84:], machine)
	binary.LittleEndian.PutUint16(b[0x80+22:], flags)
	return string(b)
}

var (
	linux64   = elfFile(62, 3)
	linuxARM  = elfFile(183, 3)
	macARM    = machFile(0x0100000c, 6)
	windows64 = peFile(0x8664, 0x2022)
)

// short puts what was found in a line each.
func short(list []Found) []string {
	out := []string{}
	for _, f := range list {
		s := f.Engine + " " + f.Version + " " + string(f.Where) + " " + f.Path
		if f.Package != "" {
			s += " of " + f.Package
		}
		if f.Problem != "" {
			s += " !" + string(f.Problem)
		}
		out = append(out, s)
	}
	return out
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
