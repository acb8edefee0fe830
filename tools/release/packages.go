package main

import (
	"fmt"
	"regexp"
)

// platforms are the systems with packages for pip and npm, by their names there. The tags of
// wheels name the oldest system: that of Go's runtime for macOS, and glibc 2.17 for the libraries
// that opmeter-engine opens.
var platforms = []struct {
	system  string
	tags    []string // of the wheel
	os, cpu string   // of the npm package
}{
	{"linux/amd64", []string{"manylinux_2_17_x86_64", "manylinux2014_x86_64"}, "linux", "x64"},
	{"linux/arm64", []string{"manylinux_2_17_aarch64", "manylinux2014_aarch64"}, "linux", "arm64"},
	{"darwin/arm64", []string{"macosx_12_0_arm64"}, "darwin", "arm64"},
	{"darwin/amd64", []string{"macosx_12_0_x86_64"}, "darwin", "x64"},
	{"windows/amd64", []string{"win_amd64"}, "win32", "x64"},
}

var (
	described = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+)(?:-([0-9]+)-g([0-9a-f]+))?(-dirty)?$`)
	commit    = regexp.MustCompile(`^([0-9a-f]{7,40})(-dirty)?$`)
)

// versions turns what git describe says into the version of a wheel (PEP 440) and of an npm package
// (semver). A commit after a tag sorts behind the tag in both.
func versions(describe string) (wheel, npm string, err error) {
	if m := commit.FindStringSubmatch(describe); m != nil {
		suffix := m[1] + dotted(m[2])
		return "0.0.0.dev0+g" + suffix, "0.0.0-dev.g" + suffix, nil
	}
	m := described.FindStringSubmatch(describe)
	if m == nil {
		return "", "", fmt.Errorf("version %q: expected a tag such as v1.2.3, or what git describe says", describe)
	}
	wheel, npm = m[1], m[1]
	if m[2] != "" {
		// In semver, only build metadata does not sort before the version, and that does not count.
		wheel += ".post" + m[2] + "+g" + m[3] + dotted(m[4])
		npm += "+" + m[2] + ".g" + m[3] + dotted(m[4])
	} else if m[4] != "" {
		wheel, npm = wheel+"+dirty", npm+"+dirty"
	}
	return wheel, npm, nil
}

// dotted is the suffix of a changed working tree as a part of a version.
func dotted(dirty string) string {
	if dirty == "" {
		return ""
	}
	return ".dirty"
}
