package main

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// metadata describes a Python package: name, version, summary, what belongs to it, then text.
const metadata = `Metadata-Version: 2.4
Name: %s
Version: %s
Summary: %s
Keywords: profiler,onnx,tflite,microcontroller,neural-network
License-Expression: Apache-2.0
License-File: LICENSE
Classifier: Development Status :: 4 - Beta
Classifier: Intended Audience :: Developers
Classifier: Intended Audience :: Science/Research
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Python :: 3 :: Only
Classifier: Programming Language :: Python :: 3.9
Classifier: Programming Language :: Python :: 3.10
Classifier: Programming Language :: Python :: 3.11
Classifier: Programming Language :: Python :: 3.12
Classifier: Programming Language :: Python :: 3.13
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Topic :: System :: Benchmark
Classifier: Typing :: Typed
Requires-Python: >=3.9
%sDescription-Content-Type: text/markdown

%s`

// extras are programs with Python packages of their own, which an extra of opmeter adds: each would
// be a good part of its download.
var extras = []struct{ extra, program, summary, readme string }{
	{"mcp", agentProgram, "Answers AI agents for opmeter (Model Context Protocol)", `# opmeter-mcp

The program that answers AI agents for ` + "`opmeter mcp`" + `, with the tools of the Model Context Protocol.
` + "`pip install \"opmeter[mcp]\"`" + ` installs both.
`},
	{"server", serverProgram, "Server and workers of opmeter", `# opmeter-server

The program behind ` + "`opmeter serve`, `opmeter worker` and `opmeter push`" + `: a page on which models are dropped,
results of a team, and workers that measure. ` + "`pip install \"opmeter[server]\"`" + ` installs both.
`},
}

// wheels packs the programs of each platform with the Python package, and the extras.
func wheels(r *release) (out []entry, err error) {
	version, _, err := versions(r.version)
	if err != nil {
		return nil, err
	}
	modules, err := pythonModules(filepath.Join("python", "opmeter"))
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	readme, err := os.ReadFile(filepath.Join("python", "README.md"))
	if err != nil {
		return nil, err
	}
	for _, p := range platforms {
		if !slices.Contains(r.systems, p.system) {
			continue
		}
		main := wheelFile{name: "opmeter", summary: "Profile neural-network models, operator by operator", readme: string(readme), modules: modules}
		if main.programs, err = r.programs(p.system, []string{"opmeter", engineProgram}); err != nil {
			return nil, err
		}
		all := make([]wheelFile, 1, 1+len(extras))
		for _, x := range extras {
			main.relations += fmt.Sprintf("Provides-Extra: %s\nRequires-Dist: %s==%s; extra == '%s'\n", x.extra, x.program, version, x.extra)
			w := wheelFile{name: x.program, summary: x.summary, readme: x.readme, relations: "Requires-Dist: opmeter==" + version + "\n"}
			if w.programs, err = r.programs(p.system, []string{x.program}); err != nil {
				return nil, err
			}
			all = append(all, w)
		}
		all[0] = main
		for _, w := range all {
			w.version, w.tags, w.license = version, p.tags, license
			f, err := w.pack(r.when)
			if err != nil {
				return nil, err
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// pythonModules reads the package in a folder, with its name before those of the files.
func pythonModules(folder string) (out []entry, err error) {
	root := filepath.Dir(folder)
	err = filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".py" && d.Name() != "py.typed" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		out = append(out, entry{name: filepath.ToSlash(name), data: data})
		return err
	})
	return out, err
}

// wheelFile is what a wheel is made of.
type wheelFile struct {
	name, version     string
	summary           string
	relations         string // lines of METADATA about extras and other packages
	tags              []string
	modules, programs []entry
	license           []byte
	readme            string
}

// pack makes the wheel: modules, programs, which pip puts beside the interpreter, and what
// describes them. RECORD comes last.
func (w *wheelFile) pack(when time.Time) (entry, error) {
	base := strings.ReplaceAll(w.name, "-", "_") + "-" + w.version
	files := slices.Clone(w.modules)
	for _, p := range w.programs {
		files = append(files, entry{base + ".data/scripts/" + p.name, withVersionType(p.data), true})
	}
	about := "Wheel-Version: 1.0\nGenerator: opmeter\nRoot-Is-Purelib: false\n"
	for _, tag := range w.tags {
		about += "Tag: py3-none-" + tag + "\n"
	}
	info := base + ".dist-info"
	files = append(files,
		entry{name: path.Join(info, "METADATA"), data: fmt.Appendf(nil, metadata, w.name, w.version, w.summary, w.relations, w.readme)},
		entry{name: path.Join(info, "WHEEL"), data: []byte(about)},
		entry{name: path.Join(info, "licenses", "LICENSE"), data: w.license},
	)
	record := path.Join(info, "RECORD")
	var b strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	b.WriteString(record + ",,\n")
	data, err := zipped("", append(files, entry{name: record, data: []byte(b.String())}), when)
	return entry{name: base + "-py3-none-" + strings.Join(w.tags, ".") + ".whl", data: data}, err
}

// withVersionType gives an empty section .gnu.version_r its type. Go's linker leaves that of plain
// data, which auditwheel, the check of manylinux wheels, does not read. Loaders ignore sections.
func withVersionType(program []byte) []byte {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil || f.Class != elf.ELFCLASS64 || f.ByteOrder != binary.LittleEndian {
		return program // a program of another system
	}
	i := slices.IndexFunc(f.Sections, func(s *elf.Section) bool {
		return s.Name == ".gnu.version_r" && s.Type == elf.SHT_PROGBITS && s.Size == 0
	})
	names := slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return s.Name == ".dynstr" })
	if i < 0 || names < 0 {
		return program
	}
	const startOfTable, sizeOfHeader, typeInHeader, linkInHeader = 0x28, 64, 4, 40
	out := slices.Clone(program)
	header := out[binary.LittleEndian.Uint64(out[startOfTable:])+uint64(i)*sizeOfHeader:]
	binary.LittleEndian.PutUint32(header[typeInHeader:], uint32(elf.SHT_GNU_VERNEED))
	binary.LittleEndian.PutUint32(header[linkInHeader:], uint32(names))
	return out
}
