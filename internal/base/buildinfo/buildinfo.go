// Package buildinfo returns the version of the running program.
package buildinfo

import "runtime/debug"

// Version returns the module's version as recorded by the build, also if the module is part of
// another program, or "development".
func Version() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "development"
	}
	for _, m := range b.Deps {
		if m.Path == "github.com/opmeter/opmeter" {
			return m.Version
		}
	}
	if b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return "development"
}
