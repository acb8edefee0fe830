package main

import (
	_ "embed"
	"encoding/json"
	"os"
	"slices"
)

// launcher is the program of the npm package: it starts the one of the platform.
//
//go:embed launcher.js
var launcher []byte

// manifest is package.json.
type manifest struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Description  string            `json:"description"`
	License      string            `json:"license"`
	Bin          map[string]string `json:"bin,omitempty"`
	OS           []string          `json:"os,omitempty"`
	CPU          []string          `json:"cpu,omitempty"`
	Engines      map[string]string `json:"engines,omitempty"`
	Optional     map[string]string `json:"optionalDependencies,omitempty"`
	PreferUnzip  bool              `json:"preferUnplugged,omitempty"`
	IncludedOnly []string          `json:"files"`
}

// npm packs the programs of each platform, and the package that depends on them: npm installs the
// one that fits.
func npm(r *release) (out []entry, err error) {
	_, version, err := versions(r.version)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	about := manifest{
		Version: version, Description: "Profile neural-network models, operator by operator", License: "Apache-2.0",
		IncludedOnly: []string{"bin"},
	}
	add := func(m *manifest, file string, files ...entry) error {
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return err
		}
		files = append([]entry{{name: "package.json", data: append(text, '\n')}, {name: "LICENSE", data: license}}, files...)
		data, err := tarball("package", files, r.when)
		out = append(out, entry{name: file + "-" + version + ".tgz", data: data})
		return err
	}
	main := about
	main.Name, main.Bin, main.Optional = "opmeter", map[string]string{"opmeter": "bin/opmeter.js"}, map[string]string{}
	main.Engines = map[string]string{"node": ">=16"}
	for _, p := range platforms {
		if !slices.Contains(r.systems, p.system) {
			continue
		}
		programs, err := r.programs(p.system, carried)
		if err != nil {
			return nil, err
		}
		m := about
		suffix := p.os + "-" + p.cpu
		m.Name, m.OS, m.CPU, m.PreferUnzip = "@opmeter/"+suffix, []string{p.os}, []string{p.cpu}, true
		main.Optional[m.Name] = version
		files := slices.Clone(programs)
		for i := range files {
			files[i].name = "bin/" + files[i].name
		}
		if err := add(&m, "opmeter-"+suffix, files...); err != nil {
			return nil, err
		}
	}
	err = add(&main, "opmeter", entry{"bin/opmeter.js", launcher, true})
	return out, err
}
