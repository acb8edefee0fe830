package find

import (
	"github.com/opmeter/opmeter/internal/external"
)

// HelperName is the name of the program that opens the libraries of external engines.
const HelperName = "opmeter-engine"

// HelperVariable is the environment variable that names the program.
const HelperVariable = "OPMETER_ENGINE"

// Helper finds the program that opens libraries: by the variable, beside the running program
// (also with links resolved), or in PATH. An error is an [external.Error] of one line.
func (e *Env) Helper() (string, error) {
	name := HelperName
	if e.OS == "windows" {
		name += ".exe"
	}
	const get = "go install github.com/opmeter/opmeter/cmd/opmeter-engine@latest"
	if path := e.Getenv(HelperVariable); path != "" {
		path = e.abs(path)
		if e.Files.Kind(path) == kindFolder {
			path = e.join(path, name)
		}
		switch e.Files.Kind(path) {
		case kindProgram:
			return path, nil
		case kindNone:
			return "", external.Errorf(external.NoHelper, "%s=%s: no such program: name %s with it, or unset it", HelperVariable, path, name)
		}
		return "", external.Errorf(external.NoHelper, "%s=%s is not an executable program: name %s with it, or unset it", HelperVariable, path, name)
	}
	var dirs []string
	if e.Program != "" {
		dirs = append(dirs, e.dir(e.Program), e.dir(e.Files.Real(e.Program)))
	}
	for _, dir := range append(dirs, e.list("PATH")...) {
		if path := e.join(dir, name); e.Files.Kind(path) == kindProgram {
			return path, nil
		}
	}
	return "", external.Errorf(external.NoHelper, "%s is absent, the program that opens other engines: put it beside opmeter (%s), or name it with %s=/path/to/%s",
		name, get, HelperVariable, name)
}
