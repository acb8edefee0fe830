package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The same files give the same bytes, in order, with the commit's time and the modes of
// programs and texts.
func TestArchives(t *testing.T) {
	t.Parallel()
	when := time.Unix(1_760_000_000, 0).UTC()
	files := []entry{{"opmeter", []byte("program"), true}, {name: "man/man1/opmeter.1", data: []byte(".TH")}}
	for name, pack := range map[string]func(string, []entry, time.Time) ([]byte, error){"tar": tarball, "zip": zipped} {
		first, err := pack("opmeter-1", files, when)
		if err != nil {
			t.Fatal(err)
		}
		again, err := pack("opmeter-1", files, when)
		if err != nil || !bytes.Equal(first, again) {
			t.Errorf("%s: two runs differ: %v", name, err)
		}
	}
	data, err := tarball("opmeter-1", files, when)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if !h.ModTime.Equal(when) || h.Uname != "" || h.Uid != 0 {
			t.Errorf("%s: time %v, owner %q %d", h.Name, h.ModTime, h.Uname, h.Uid)
		}
		if want := map[bool]int64{true: 0o755, false: 0o644}[h.Name == "opmeter-1/opmeter"]; h.Mode != want {
			t.Errorf("%s: mode %o, want %o", h.Name, h.Mode, want)
		}
	}
	if want := []string{"opmeter-1/opmeter", "opmeter-1/man/man1/opmeter.1"}; !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	if data, err = zipped("opmeter-1", files, when); err != nil {
		t.Fatal(err)
	}
	a, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil || len(a.File) != 2 || a.File[0].Mode().Perm() != 0o755 || !a.File[0].Modified.Equal(when) {
		t.Errorf("zip: %v, %d files", err, len(a.File))
	}
}

// Every archive has the manual and completions for each shell.
func TestDocuments(t *testing.T) {
	t.Parallel()
	files, err := documents("../..", "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, f := range files {
		have[f.name] = len(f.data) > 0
	}
	for _, want := range []string{"LICENSE", "README.md", "man/man1/opmeter.1", "man/man1/opmeter-profile.1", "man/man1/opmeter-formats.1", "completions/opmeter.bash", "completions/opmeter.fish", "completions/opmeter.zsh", "completions/opmeter.powershell", "examples/resnet8.yaml", "examples/mobilenet_v2.yaml"} {
		if !have[want] {
			t.Errorf("%s is missing or empty", want)
		}
	}
}

// Packages share one build of a system, and the checksums list every file in the order of lines.
func TestProgramsAreBuiltOnce(t *testing.T) {
	t.Parallel()
	r := &release{version: "1.2.3", systems: []string{"windows/amd64", "linux/arm64"}, built: map[string][]byte{}}
	for _, s := range r.systems {
		for _, c := range commands {
			r.built[s+" "+c] = []byte("program")
		}
	}
	files, err := archives(r)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	if want := []string{"opmeter-1.2.3-windows-amd64.zip", "opmeter-1.2.3-linux-arm64.tar.gz"}; !slices.Equal(names, want) {
		t.Errorf("archives %q, want %q", names, want)
	}
	for _, f := range files {
		if has, want := bytes.Contains(unpacked(t, f), []byte("FROM scratch")), strings.Contains(f.name, "linux"); has != want {
			t.Errorf("%s: container file %v, want %v", f.name, has, want)
		}
	}
	if got, want := string(checksums([]entry{{name: "b"}, {name: "a", data: []byte("x")}})), "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  a\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"; got != want {
		t.Errorf("checksums\n%s, want\n%s", got, want)
	}
}

// unpacked is the content of all files of an archive.
func unpacked(t *testing.T, f entry) (all []byte) {
	t.Helper()
	if strings.HasSuffix(f.name, ".zip") {
		a, err := zip.NewReader(bytes.NewReader(f.data), int64(len(f.data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range a.File {
			r, err := m.Open()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b...)
		}
		return all
	}
	z, err := gzip.NewReader(bytes.NewReader(f.data))
	if err != nil {
		t.Fatal(err)
	}
	if all, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return all
}

// A change of the working tree during the build is seen: in a file, a new file, another commit.
func TestSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	do := func(args ...string) {
		t.Helper()
		identity := []string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"}
		if _, err := git(append(identity, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do("init", "-q")
	put("a.go", "package a\n")
	do("add", ".")
	do("commit", "-q", "-m", "one")
	first := sources(dir)
	if again := sources(dir); first == "" || again != first {
		t.Errorf("two looks differ: %q, %q", first, again)
	}
	seen := map[string]string{first: "the commit"}
	for _, c := range []struct {
		what   string
		change func()
	}{
		{"a change", func() { put("a.go", "package b\n") }},
		{"a second change", func() { put("a.go", "package c\n") }},
		{"a new file", func() { put("b.go", "package c\n") }},
		{"another commit", func() { do("add", "."); do("commit", "-q", "-m", "two") }},
	} {
		c.change()
		if other, ok := seen[sources(dir)]; ok {
			t.Errorf("%s looks like %s", c.what, other)
		}
		seen[sources(dir)] = c.what
	}
}

// A pattern that matches no package would give its flags to nothing.
func TestCompilerFlags(t *testing.T) {
	t.Parallel()
	for _, f := range compilerFlags {
		folder := filepath.Join("..", "..", filepath.FromSlash(strings.TrimSuffix(f.packages, "...")))
		if files, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(files) == 0 {
			t.Errorf("%s: no such folder: %v", f.packages, err)
		}
	}
}
