// Package buildinfo returns the version of the running program.
package buildinfo

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// Version returns the module's version as recorded by the build, also if the module is part of
// another program, or "development".
func Version() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return released("")
	}
	for _, m := range b.Deps {
		if m.Path == "github.com/opmeter/opmeter" {
			return released(m.Version)
		}
	}
	return released(b.Main.Version)
}

// released returns a version, or "development" for one that names no commit.
func released(v string) string {
	if v == "(devel)" || strings.HasPrefix(v, "v0.0.0-00010101000000-") {
		v = ""
	}
	return cmp.Or(v, "development")
}
