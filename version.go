package opmeter

import "runtime/debug"

// version is the module's version as the build recorded it.
func version() string {
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
