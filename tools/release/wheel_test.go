package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// everywhere is a release for all systems whose programs are short texts.
func everywhere(t *testing.T) *release {
	t.Helper()
	t.Chdir(filepath.Join("..", ".."))
	r := &release{version: "v1.2.3", when: time.Unix(1_760_000_000, 0).UTC(), systems: systems, built: map[string][]byte{}}
	for _, s := range systems {
		for _, c := range commands {
			r.built[s+" "+c] = []byte(c + " for " + s)
		}
	}
	return r
}

// Each platform has a wheel with the modules and the programs, and one with the program for agents.
// Each has a RECORD of all its files and names the other one. Two runs give the same bytes.
func TestWheels(t *testing.T) {
	r := everywhere(t)
	files, err := wheels(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := wheels(r)
	if err != nil || len(files) != 3*len(platforms) {
		t.Fatalf("%d wheels: %v", len(files), err)
	}
	for i, f := range files {
		p := platforms[i/3]
		base, relation, modules := "opmeter-1.2.3", "Requires-Dist: opmeter-mcp==1.2.3; extra == 'mcp'\nProvides-Extra: server\nRequires-Dist: opmeter-server==1.2.3; extra == 'server'\n", []string{"opmeter/__init__.py", "opmeter/_flags.py", "opmeter/py.typed", "opmeter/compat/sensiml.py"}
		programs := []string{"opmeter", "opmeter-engine"}
		if i%3 > 0 {
			extra := []string{"mcp", "server"}[i%3-1]
			base, relation, modules, programs = "opmeter_"+extra+"-1.2.3", "Requires-Dist: opmeter==1.2.3\n", nil, []string{"opmeter-" + extra}
		}
		if !bytes.Equal(f.data, again[i].data) {
			t.Errorf("%s: two runs differ", f.name)
		}
		if want := base + "-py3-none-" + strings.Join(p.tags, ".") + ".whl"; f.name != want {
			t.Errorf("name %s, want %s", f.name, want)
		}
		z, err := zip.NewReader(bytes.NewReader(f.data), int64(len(f.data)))
		if err != nil {
			t.Fatal(err)
		}
		content := map[string][]byte{}
		var scripts []string
		for _, m := range z.File {
			r, err := m.Open()
			if err != nil {
				t.Fatal(err)
			}
			if content[m.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
			script, run := strings.CutPrefix(m.Name, base+".data/scripts/")
			if run != (m.Mode().Perm() == 0o755) {
				t.Errorf("%s: mode %v", m.Name, m.Mode())
			}
			if run {
				scripts = append(scripts, strings.TrimSuffix(script, ".exe"))
			}
		}
		if !slices.Equal(scripts, programs) {
			t.Errorf("%s: programs %q, want %q", f.name, scripts, programs)
		}
		if about := string(content[base+".dist-info/METADATA"]); !strings.Contains(about, relation) || !strings.Contains(about, "\nName: "+strings.ReplaceAll(base, "_", "-")[:len(base)-len("-1.2.3")]+"\n") {
			t.Errorf("%s: no %q in %q", f.name, relation, about)
		}
		for _, want := range append(modules, base+".dist-info/METADATA", base+".dist-info/licenses/LICENSE") {
			if _, ok := content[want]; !ok {
				t.Errorf("%s: %s is missing", f.name, want)
			}
		}
		about := string(content[base+".dist-info/WHEEL"])
		for _, tag := range p.tags {
			if !strings.Contains(about, "Tag: py3-none-"+tag+"\n") {
				t.Errorf("%s: no tag %s in %q", f.name, tag, about)
			}
		}
		record := base + ".dist-info/RECORD"
		rows, err := csv.NewReader(bytes.NewReader(content[record])).ReadAll()
		if err != nil || len(rows) != len(content) || z.File[len(z.File)-1].Name != record {
			t.Fatalf("%s: %d rows for %d files: %v", f.name, len(rows), len(content), err)
		}
		for _, row := range rows {
			data := content[row[0]]
			sum := sha256.Sum256(data)
			want := []string{row[0], "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:]), fmt.Sprint(len(data))}
			if row[0] == record {
				want = []string{record, "", ""}
			}
			if !slices.Equal(row, want) {
				t.Errorf("%s: %q, want %q", f.name, row, want)
			}
		}
	}
}

// The main package depends on one for each platform, which only that platform installs.
func TestNPM(t *testing.T) {
	r := everywhere(t)
	files, err := npm(r)
	if err != nil || len(files) != len(platforms)+1 {
		t.Fatalf("%d packages: %v", len(files), err)
	}
	read := func(f entry) (m manifest, names []string) {
		z, err := gzip.NewReader(bytes.NewReader(f.data))
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return m, names
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, h.Name)
			if h.Name == "package/package.json" {
				if err := json.NewDecoder(r).Decode(&m); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	main, names := read(files[len(platforms)])
	if main.Name != "opmeter" || main.Bin["opmeter"] != "bin/opmeter.js" || !slices.Contains(names, "package/bin/opmeter.js") {
		t.Errorf("%+v with %q", main, names)
	}
	for i, p := range platforms {
		m, names := read(files[i])
		if m.Name != "@opmeter/"+p.os+"-"+p.cpu || main.Optional[m.Name] != "1.2.3" || !slices.Equal(m.OS, []string{p.os}) || !slices.Equal(m.CPU, []string{p.cpu}) {
			t.Errorf("%+v", m)
		}
		if want := "package/bin/" + programName("opmeter", p.system); !slices.Contains(names, want) {
			t.Errorf("%s: no %s in %q", files[i].name, want, names)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ describe, wheel, npm string }{
		{"v1.2.3", "1.2.3", "1.2.3"},
		{"1.2.3", "1.2.3", "1.2.3"},
		{"v1.2.3-dirty", "1.2.3+dirty", "1.2.3+dirty"},
		{"v1.2.3-4-gabcdef0", "1.2.3.post4+gabcdef0", "1.2.3+4.gabcdef0"},
		{"v1.2.3-4-gabcdef0-dirty", "1.2.3.post4+gabcdef0.dirty", "1.2.3+4.gabcdef0.dirty"},
		{"0123456", "0.0.0.dev0+g0123456", "0.0.0-dev.g0123456"},
		{"0123456-dirty", "0.0.0.dev0+g0123456.dirty", "0.0.0-dev.g0123456.dirty"},
	} {
		wheel, npm, err := versions(c.describe)
		if err != nil || wheel != c.wheel || npm != c.npm {
			t.Errorf("%s: %s %s %v, want %s %s", c.describe, wheel, npm, err, c.wheel, c.npm)
		}
	}
	for _, bad := range []string{"", "one", "v1.2", "1.2.3/x"} {
		if _, _, err := versions(bad); err == nil {
			t.Errorf("%q is a version", bad)
		}
	}
}
