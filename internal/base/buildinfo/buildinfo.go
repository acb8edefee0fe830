// Package buildinfo tells which version of the project is running.
package buildinfo

import "runtime/debug"

// Version is the module's version as the build recorded it, also when the module
// is part of another program, or "development".
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
