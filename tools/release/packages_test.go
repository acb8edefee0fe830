package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/internal/testing/material"
)

// made is a release of programs that are only texts.
func made(t *testing.T) *release {
	t.Helper()
	r := &release{
		version: "v1.2.3", commit: "0123abcd", when: time.Unix(1_760_000_000, 0).UTC(),
		systems: []string{"linux/amd64", "darwin/arm64", "windows/amd64"}, built: map[string][]byte{},
		documents: []entry{{name: "LICENSE", data: []byte("Apache")}, {name: "CHANGELOG.md", data: []byte("changes")}, {name: "examples/net.yaml", data: []byte("layers")}, {name: "man/man1/opmeter.1", data: []byte(".TH")}, {name: "completions/opmeter.bash", data: []byte("complete")}},
	}
	for _, s := range r.systems {
		for _, c := range commands {
			r.built[s+" "+c] = []byte(c + " for " + s)
		}
	}
	var err error
	if r.files, err = archives(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// unar lists the members of an ar archive by name.
func unar(t *testing.T, data []byte) (names []string, members map[string][]byte) {
	t.Helper()
	data, ok := bytes.CutPrefix(data, []byte("!<arch>\n"))
	members = map[string][]byte{}
	for ok && len(data) > 0 {
		if len(data) < 60 || string(data[58:60]) != "`\n" {
			t.Fatalf("bad head of a member %.60q", data)
		}
		name := strings.TrimSpace(string(data[:16]))
		size, err := strconv.Atoi(strings.TrimSpace(string(data[48:58])))
		if err != nil || size > len(data)-60 {
			t.Fatalf("%s: size %q: %v", name, data[48:58], err)
		}
		names = append(names, name)
		members[name] = data[60 : 60+size]
		data = data[60+size+size%2:]
	}
	return names, members
}

// untar lists the files of a compressed archive by name; folders have no content.
func untar(t *testing.T, data []byte) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if above := strings.TrimSuffix(h.Name, "/"); above != "." {
			if _, ok := files[filepath.Dir(above)+"/"]; !ok && filepath.Dir(above) != "." {
				if _, ok := files["./"+filepath.Dir(above)+"/"]; !ok {
					t.Errorf("%s comes before its folder", h.Name)
				}
			}
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(b)
	}
}

// A Debian package has its three members, what describes it, the right sums, and the files where
// Debian looks for them. dpkg-deb agrees where it is installed.
func TestDebianPackage(t *testing.T) {
	t.Parallel()
	r := made(t)
	files, err := debs(r)
	if err != nil || len(files) != 1 || files[0].name != "opmeter_1.2.3_amd64.deb" {
		t.Fatalf("%v, %v", files, err)
	}
	again, err := debs(r)
	if err != nil || !bytes.Equal(files[0].data, again[0].data) {
		t.Errorf("two packages of the same files differ: %v", err)
	}
	names, members := unar(t, files[0].data)
	if want := []string{"debian-binary", "control.tar.gz", "data.tar.gz"}; !slices.Equal(names, want) || string(members["debian-binary"]) != "2.0\n" {
		t.Errorf("members %q, want %q", names, want)
	}
	about, data := untar(t, members["control.tar.gz"]), untar(t, members["data.tar.gz"])
	for _, want := range []string{"Package: opmeter\n", "Version: 1.2.3\n", "Architecture: amd64\n", "Depends: libc6\n"} {
		if !strings.Contains(about["./control"], want) {
			t.Errorf("control lacks %q:\n%s", want, about["./control"])
		}
	}
	for _, name := range []string{"./usr/bin/opmeter", "./usr/share/man/man1/opmeter.1.gz", "./usr/share/bash-completion/completions/opmeter", "./usr/share/doc/opmeter/copyright", "./usr/share/doc/opmeter/changelog.gz", "./usr/share/doc/opmeter/examples/net.yaml"} {
		content, ok := data[name]
		if line := fmt.Sprintf("%x  %s\n", md5.Sum([]byte(content)), name[2:]); !ok || !strings.Contains(about["./md5sums"], line) {
			t.Errorf("%s is missing, or its sum is", name)
		}
	}
	tool, err := exec.LookPath("dpkg-deb")
	if err != nil {
		if material.Required() {
			t.Fatal("dpkg-deb is missing")
		}
		t.Skip("no dpkg-deb")
	}
	path := filepath.Join(t.TempDir(), files[0].name)
	if err := os.WriteFile(path, files[0].data, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "--field", path, "Package", "Version").CombinedOutput(); err != nil || string(out) != "Package: opmeter\nVersion: 1.2.3\n" {
		t.Errorf("dpkg-deb: %v: %s", err, out)
	}
	root := t.TempDir()
	if out, err := exec.Command(tool, "--extract", path, root).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v: %s", err, out)
	}
	if i, err := os.Stat(filepath.Join(root, "usr/bin/opmeter")); err != nil || i.Mode().Perm() != 0o755 {
		t.Errorf("the program: %v, %v", i, err)
	}
}

// Each program is static, or has tags of its own: lintian reports those that no override names.
func TestOverrides(t *testing.T) {
	t.Parallel()
	var programs []entry
	for _, c := range commands {
		programs = append(programs, entry{name: c})
	}
	files := new(release).policy(programs)
	at := slices.IndexFunc(files, func(f entry) bool { return strings.Contains(f.name, "lintian") })
	want := `opmeter: statically-linked-binary [usr/bin/opmeter]
opmeter: hardening-no-relro [usr/bin/opmeter-engine]
opmeter: hardening-no-pie [usr/bin/opmeter-engine]
opmeter: statically-linked-binary [usr/bin/opmeter-mcp]
opmeter: statically-linked-binary [usr/bin/opmeter-server]
`
	if at < 0 || string(files[at].data) != want {
		t.Errorf("file %d of %v, want:\n%s", at, files, want)
	}
}

func TestDebianVersions(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]string{"v1.2.3": "1.2.3", "v1.2.3-rc1": "1.2.3+rc1", "v1.2.3-4-gabcdef0": "1.2.3+4+gabcdef0", "abcdef0": "0~abcdef0", "264ec3a": "0~264ec3a", "1234567-dirty": "0~1234567+dirty"} {
		if got := debVersion(v); got != want {
			t.Errorf("%s: %s, want %s", v, got, want)
		}
	}
}

// Formula and manifest name the archives that were made, with their sums, and nothing else.
func TestManifests(t *testing.T) {
	t.Parallel()
	r := made(t)
	ruby, err := formula(r)
	if err != nil {
		t.Fatal(err)
	}
	text := string(ruby[0].data)
	for _, name := range []string{"opmeter-v1.2.3-linux-amd64.tar.gz", "opmeter-v1.2.3-darwin-arm64.tar.gz"} {
		f, ok := r.packed(name)
		if want := "releases/download/v1.2.3/" + name + "\"\n      sha256 \"" + sum(f) + "\"\n"; !ok || !strings.Contains(text, want) {
			t.Errorf("formula lacks %q", want)
		}
	}
	if n := strings.Count(text, "sha256"); n != 2 || !strings.Contains(text, `version "1.2.3"`) {
		t.Errorf("formula has %d archives, want 2:\n%s", n, text)
	}
	// Every block has its end.
	open := strings.Count(text, " do\n") + strings.Count(text, "  def ") + strings.Count(text, "class ")
	if ends := strings.Count(text, "end\n"); ends != open {
		t.Errorf("formula: %d blocks, %d ends", open, ends)
	}
	parse(t, ruby[0].data)
	files, err := scoop(r)
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Version      string
		Architecture map[string]struct {
			URL, Hash string
			Dir       string `json:"extract_dir"`
		}
		Bin []string
	}
	if err := json.Unmarshal(files[0].data, &m); err != nil {
		t.Fatal(err)
	}
	f, _ := r.packed("opmeter-v1.2.3-windows-amd64.zip")
	if a := m.Architecture["64bit"]; m.Version != "1.2.3" || a.Hash != sum(f) || !strings.HasSuffix(a.URL, "/v1.2.3/"+f.name) || a.Dir != "opmeter-v1.2.3-windows-amd64" || len(m.Bin) != len(commands) {
		t.Errorf("manifest %+v", m)
	}
	r.files = nil
	for name, pack := range map[string]func(*release) ([]entry, error){"formula": formula, "scoop": scoop} {
		if files, err := pack(r); err != nil || files != nil {
			t.Errorf("%s of no archives: %v, %v", name, files, err)
		}
	}
}

// parse has Ruby parse a formula, if it is installed.
func parse(t *testing.T, formula []byte) {
	t.Helper()
	if _, err := exec.LookPath("ruby"); err != nil {
		return
	}
	c := exec.Command("ruby", "-c")
	c.Stdin = bytes.NewReader(formula)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("formula: %v: %s", err, out)
	}
}

// The bill of materials lists the modules that a program itself records, each once.
func TestSBOM(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: "v1.2.3", systems: []string{"linux/amd64"}, built: map[string][]byte{}}
	for _, c := range commands {
		r.built["linux/amd64 "+c] = program
	}
	files, err := sbom(r)
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		BOMFormat, SpecVersion, SerialNumber string
		Components                           []struct{ Name, Version, PURL string }
		Dependencies                         []struct{ DependsOn []string }
	}
	if err := json.Unmarshal(files[0].data, &b); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range b.Components {
		names = append(names, c.Name)
		if c.Version == "" || c.PURL != "pkg:golang/"+strings.ToLower(c.Name)+"@"+c.Version {
			t.Errorf("component %+v", c)
		}
	}
	if b.BOMFormat != "CycloneDX" || b.SpecVersion != "1.6" || len(b.SerialNumber) != len("urn:uuid:")+36 {
		t.Errorf("%+v", b)
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) || !slices.Contains(names, "github.com/spf13/cobra") || !slices.Contains(names, "stdlib") || !slices.Equal(names, b.Dependencies[0].DependsOn) {
		t.Errorf("components %q", names)
	}
}

// Workflows name no action by a branch, so that the same files run on the day of a release.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if _, action, ok := strings.Cut(line, "uses: "); ok && !strings.Contains(action, "@v") && strings.TrimSpace(action) != "./" {
				t.Errorf("%s: %s has no version", name, strings.TrimSpace(action))
			}
		}
		if !strings.Contains(string(data), "\npermissions:\n") {
			t.Errorf("%s: no permissions, so that the default ones hold", name)
		}
	}
}

// TestManifestsNamePrograms installs every program that archives contain.
func TestManifestsNamePrograms(t *testing.T) {
	t.Parallel()
	r := made(t)
	for _, c := range []struct {
		write func(*release) ([]entry, error)
		end   string
	}{{formula, `"`}, {scoop, `.exe"`}} {
		files, err := c.write(r)
		if err != nil || len(files) != 1 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, name := range commands {
			if want := `"` + name + c.end; !strings.Contains(string(files[0].data), want) {
				t.Errorf("%s does not install %s", files[0].name, want)
			}
		}
	}
}
