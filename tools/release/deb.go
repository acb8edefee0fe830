package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// debs packs the programs of each Linux system for dpkg.
func debs(r *release) (out []entry, err error) {
	for _, system := range r.systems {
		arch, ok := strings.CutPrefix(system, "linux/")
		if !ok {
			continue
		}
		programs, err := r.programs(system, commands)
		if err != nil {
			return nil, err
		}
		files, err := r.installed(programs)
		if err != nil {
			return nil, err
		}
		data, err := deb(debVersion(r.version), arch, files, r.when)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name: "opmeter_" + debVersion(r.version) + "_" + arch + ".deb", data: data})
	}
	return out, nil
}

// debVersion is a version as dpkg compares it. It begins with a digit and has no hyphen, which
// would begin a revision of the package. A commit without a tag comes before all versions.
func debVersion(v string) string {
	v = strings.NewReplacer("-", "+", "_", "+").Replace(strings.TrimPrefix(v, "v"))
	if number, _, _ := strings.Cut(v, "."); number == "" || strings.Trim(number, "0123456789") != "" || number == v {
		return "0~" + v
	}
	return v
}

// installed places the files of an archive as Debian's policy asks for.
func (r *release) installed(programs []entry) (files []entry, err error) {
	for _, p := range programs {
		files = append(files, entry{"usr/bin/" + p.name, p.data, true})
	}
	places := map[string]string{
		"completions/opmeter.bash": "usr/share/bash-completion/completions/opmeter",
		"completions/opmeter.zsh":  "usr/share/zsh/vendor-completions/_opmeter",
		"completions/opmeter.fish": "usr/share/fish/vendor_completions.d/opmeter.fish",
		"README.md":                "usr/share/doc/opmeter/README.md",
		"CHANGELOG.md":             "usr/share/doc/opmeter/CHANGELOG.md.gz",
	}
	for _, d := range append(r.policy(programs), r.documents...) {
		to := places[d.name]
		if strings.HasPrefix(d.name, "usr/") {
			to = d.name
		}
		if page, ok := strings.CutPrefix(d.name, "man/"); ok {
			to = "usr/share/man/" + page + ".gz"
		}
		if strings.HasPrefix(d.name, "examples/") {
			to = "usr/share/doc/opmeter/" + d.name
		}
		if to == "" {
			continue
		}
		if path.Ext(to) == ".gz" {
			var b bytes.Buffer
			if err := zip9(&b, d.data); err != nil {
				return nil, err
			}
			d.data = b.Bytes()
		}
		files = append(files, entry{name: to, data: d.data})
	}
	slices.SortFunc(files, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// linked is the program that links the C library, to load engines. The others are static.
const linked = engineProgram

// module is the address of the project.
const module = "github.com/opmeter/opmeter"

// maintainer is whom packages name.
const maintainer = "The opmeter developers <opmeter@users.noreply.github.com>"

// policy returns the files that Debian's policy asks for. Programs of Go are static or without
// the hardening of C compilers, which lintian would report.
func (r *release) policy(programs []entry) []entry {
	var overrides strings.Builder
	for _, p := range programs {
		tags := []string{"statically-linked-binary"}
		if p.name == linked {
			tags = []string{"hardening-no-relro", "hardening-no-pie"}
		}
		for _, tag := range tags {
			fmt.Fprintf(&overrides, "opmeter: %s [usr/bin/%s]\n", tag, p.name)
		}
	}
	return []entry{
		{name: "usr/share/doc/opmeter/copyright", data: fmt.Appendf(nil, `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: opmeter
Source: https://%s

Files: *
Copyright: %d The opmeter developers
License: Apache-2.0
 On Debian systems, the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
`, module, r.when.Year())},
		{name: "usr/share/doc/opmeter/changelog.gz", data: fmt.Appendf(nil, `opmeter (%s) unstable; urgency=medium

  * CHANGELOG.md.gz lists the changes of this version.

 -- %s  %s
`, debVersion(r.version), maintainer, r.when.Format(time.RFC1123Z))},
		{name: "usr/share/lintian/overrides/opmeter", data: []byte(overrides.String())},
	}
}

func zip9(b *bytes.Buffer, data []byte) error {
	z, err := gzip.NewWriterLevel(b, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = z.Write(data)
	return errors.Join(err, z.Close())
}

// deb packs files as a package: an ar archive of its format, of what describes it and of the files.
// The second program calls libraries of C, the first one needs nothing.
func deb(version, arch string, files []entry, when time.Time) ([]byte, error) {
	size, sums := 0, ""
	for _, f := range files {
		size += (len(f.data) + 1023) / 1024
		sums += fmt.Sprintf("%x  %s\n", md5.Sum(f.data), f.name)
	}
	control := fmt.Sprintf(`Package: opmeter
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Depends: libc6
Section: science
Priority: optional
Homepage: https://%s
Description: profiler for neural-network models
 opmeter shows where a TensorFlow Lite or ONNX model spends time, memory and
 energy, operator by operator, and how reliable each figure is. It measures on
 this computer or a connected board, and estimates for microcontrollers.
`, version, arch, maintainer, size, module)
	about, err := debTar([]entry{{name: "control", data: []byte(control)}, {name: "md5sums", data: []byte(sums)}}, when)
	if err != nil {
		return nil, err
	}
	data, err := debTar(files, when)
	if err != nil {
		return nil, err
	}
	return ar([]entry{{name: "debian-binary", data: []byte("2.0\n")}, {name: "control.tar.gz", data: about}, {name: "data.tar.gz", data: data}}, when), nil
}

// debTar packs files with the folders above them, as root's.
func debTar(files []entry, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	made := map[string]bool{}
	var folder func(string) error
	folder = func(name string) error {
		if made[name] {
			return nil
		}
		made[name] = true
		if name != "." {
			if err := folder(path.Dir(name)); err != nil {
				return err
			}
			name = "./" + name
		}
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: when, Uname: "root", Gname: "root", Format: tar.FormatGNU})
	}
	for _, f := range files {
		if err := folder(path.Dir(f.name)); err != nil {
			return nil, err
		}
		h := &tar.Header{Name: "./" + f.name, Mode: mode(f), Size: int64(len(f.data)), ModTime: when, Uname: "root", Gname: "root", Format: tar.FormatGNU}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	var z bytes.Buffer
	err := zip9(&z, b.Bytes())
	return z.Bytes(), err
}

// ar packs files in the common format of ar, with even places.
func ar(files []entry, when time.Time) []byte {
	b := bytes.NewBufferString("!<arch>\n")
	for _, f := range files {
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.name, when.Unix(), 0, 0, 0o100644, len(f.data))
		b.Write(f.data)
		if len(f.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
