package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// download is where the files of a release lie.
func (r *release) download(file string) string {
	return "https://" + module + "/releases/download/" + r.version + "/" + file
}

// packed is a file of an earlier packer; ok is false where it was not made.
func (r *release) packed(name string) (f entry, ok bool) {
	i := slices.IndexFunc(r.files, func(f entry) bool { return f.name == name })
	if i < 0 {
		return entry{}, false
	}
	return r.files[i], true
}

func sum(f entry) string { return fmt.Sprintf("%x", sha256.Sum256(f.data)) }

const summary = "Profiler for neural-network models"

// formula writes opmeter.rb for Homebrew, with the archives that were made.
func formula(r *release) ([]entry, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "class Opmeter < Formula\n  desc %q\n  homepage \"https://%s\"\n  version %q\n  license \"Apache-2.0\"\n", summary, module, strings.TrimPrefix(r.version, "v"))
	found := false
	for _, os := range [][2]string{{"macos", "darwin"}, {"linux", "linux"}} {
		var part bytes.Buffer
		for _, cpu := range [][2]string{{"arm", "arm64"}, {"intel", "amd64"}} {
			name := r.archiveName(os[1]+"/"+cpu[1]) + ".tar.gz"
			if f, ok := r.packed(name); ok {
				fmt.Fprintf(&part, "    on_%s do\n      url %q\n      sha256 %q\n    end\n", cpu[0], r.download(name), sum(f))
			}
		}
		if part.Len() > 0 {
			found = true
			fmt.Fprintf(&b, "\n  on_%s do\n%s  end\n", os[0], part.Bytes())
		}
	}
	fmt.Fprintf(&b, `
  def install
    bin.install "%s"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/opmeter.bash" => "opmeter"
    fish_completion.install "completions/opmeter.fish"
    zsh_completion.install "completions/opmeter.zsh" => "_opmeter"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/opmeter version")
  end
end
`, strings.Join(commands, `", "`))
	if !found {
		return nil, nil
	}
	return []entry{{name: "opmeter.rb", data: b.Bytes()}}, nil
}

// indented is a value as JSON for people and version control.
func indented(name string, v any) ([]entry, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return []entry{{name: name, data: append(data, '\n')}}, err
}

// scoop writes opmeter.json for Scoop.
func scoop(r *release) ([]entry, error) {
	name := r.archiveName("windows/amd64")
	f, ok := r.packed(name + ".zip")
	if !ok {
		return nil, nil
	}
	return indented("opmeter.json", map[string]any{
		"version": strings.TrimPrefix(r.version, "v"), "description": summary, "homepage": "https://" + module, "license": "Apache-2.0",
		"architecture": map[string]any{"64bit": map[string]any{"url": r.download(name + ".zip"), "hash": sum(f), "extract_dir": name}},
		"bin":          strings.Fields(strings.Join(commands, ".exe ") + ".exe"),
	})
}

// component is a part of a bill of materials.
type component struct {
	Type       string              `json:"type"`
	Ref        string              `json:"bom-ref"`
	Name       string              `json:"name"`
	Version    string              `json:"version"`
	Licenses   []map[string]any    `json:"licenses,omitempty"`
	PURL       string              `json:"purl,omitempty"`
	Properties []map[string]string `json:"properties,omitempty"`
}

// sbom writes a bill of materials in the format of CycloneDX 1.6: the modules that are in a program
// of the release, as the programs themselves record them.
func sbom(r *release) ([]entry, error) {
	modules := map[string]component{}
	add := func(path, version, hash string) {
		c := component{Type: "library", Ref: path, Name: path, Version: version, PURL: "pkg:golang/" + strings.ToLower(path) + "@" + version}
		if hash != "" {
			c.Properties = []map[string]string{{"name": "go.sum", "value": hash}}
		}
		modules[path] = c
	}
	goVersion := ""
	for _, system := range r.systems {
		programs, err := r.programs(system, commands)
		if err != nil {
			return nil, err
		}
		for _, p := range programs {
			b, err := buildinfo.Read(bytes.NewReader(p.data))
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", p.name, system, err)
			}
			goVersion = strings.TrimPrefix(b.GoVersion, "go")
			for _, m := range b.Deps {
				if m.Replace != nil {
					m = m.Replace
				}
				add(m.Path, m.Version, m.Sum)
			}
		}
	}
	if goVersion == "" {
		return nil, nil
	}
	add("stdlib", goVersion, "")
	list := make([]component, 0, len(modules))
	refs := []string{}
	for _, c := range modules {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	for _, c := range list {
		refs = append(refs, c.Ref)
	}
	main := component{
		Type: "application", Ref: module, Name: "opmeter", Version: r.version, PURL: "pkg:golang/" + module + "@" + r.version,
		Licenses: []map[string]any{{"license": map[string]string{"id": "Apache-2.0"}}},
	}
	return indented("opmeter-"+r.version+".cdx.json", struct {
		Format       string           `json:"bomFormat"`
		Spec         string           `json:"specVersion"`
		Serial       string           `json:"serialNumber"`
		Version      int              `json:"version"`
		Metadata     map[string]any   `json:"metadata"`
		Components   []component      `json:"components"`
		Dependencies []map[string]any `json:"dependencies"`
	}{
		"CycloneDX", "1.6", serial(r.version + " " + r.commit), 1,
		map[string]any{"timestamp": r.when.Format(time.RFC3339), "component": main},
		list,
		[]map[string]any{{"ref": module, "dependsOn": refs}},
	})
}

// serial is a UUID (version 8, of RFC 9562) that follows from a text.
func serial(text string) string {
	b := sha256.Sum256([]byte(text))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
