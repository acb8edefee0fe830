package find

import (
	"fmt"

	"github.com/opmeter/opmeter/internal/external"
)

// HelperName is the name of the program that opens the libraries of external engines.
const HelperName = "opmeter-engine"

// HelperVariable is the environment variable that names the program.
const HelperVariable = "OPMETER_ENGINE"

// Helper finds the program that opens libraries. An error is an [external.Error] of one line.
func (e *Env) Helper() (string, error) {
	path, err := e.Companion(HelperName, HelperVariable, "opens other engines", "packages contain it")
	if err != nil {
		err = external.Errorf(external.NoHelper, "%v", err)
	}
	return path, err
}

// Companion finds a program of the same release: by a variable of the environment, beside the
// running program (also with links resolved), or in PATH. use says what it does, for the error of
// one line.
func (e *Env) Companion(program, variable, use, source string) (string, error) {
	name := program
	if e.OS == "windows" {
		name += ".exe"
	}
	if path := e.Getenv(variable); path != "" {
		path = e.abs(path)
		if e.Files.Kind(path) == kindFolder {
			path = e.join(path, name)
		}
		switch e.Files.Kind(path) {
		case kindProgram:
			return path, nil
		case kindNone:
			return "", fmt.Errorf("%s=%s: no such program: name %s with it, or unset it", variable, path, name)
		}
		return "", fmt.Errorf("%s=%s is not an executable program: name %s with it, or unset it", variable, path, name)
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
	return "", fmt.Errorf("%s is absent, the program that %s: put it beside opmeter (%s; in the source code: go install ./cmd/%s), or name it with %s=/path/to/%s",
		name, use, source, program, variable, name)
}
