package find

import (
	"strings"

	"github.com/opmeter/opmeter/internal/base/port"
	"github.com/opmeter/opmeter/internal/external"
)

// command finds the program that a command line starts. A command line that needs a shell is left
// to the shell.
func (e *Env) command(eng *Engine, line string) (Found, error) {
	f := Found{Engine: eng.Name, Command: line, Where: Named}
	name, _, err := port.Program(line)
	if err != nil {
		return Found{}, external.Errorf(external.NotFound, "%s=%s: %v", eng.Name, line, err)
	}
	if name == "" {
		return f, nil
	}
	another := ", or name another with --engine " + eng.Name + "=PROGRAM"
	places := []string{e.abs(name)}
	if !strings.ContainsAny(name, "/"+e.sep()) {
		places = nil
		for _, dir := range e.list("PATH") {
			places = append(places, e.join(dir, name))
		}
	}
	if e.OS == "windows" && !strings.Contains(e.base(name), ".") {
		for i, p := range places {
			places[i] = p + ".exe"
		}
	}
	there, kind := "", kindNone
	for _, p := range places {
		k := e.Files.Kind(p)
		if k == kindProgram {
			f.Path = p
			return f, nil
		}
		if kind == kindNone {
			there, kind = p, k
		}
	}
	switch {
	case kind == kindFolder:
		return Found{}, external.Errorf(external.NotLibrary, "%s is a folder and no program: name a program in it with --engine %s=PROGRAM", there, eng.Name)
	case kind != kindNone:
		return Found{}, external.Errorf(external.NotLibrary, "%s may not be executed: chmod +x it%s", there, another)
	case len(places) > 0 && strings.ContainsAny(name, "/"+e.sep()):
		return Found{}, external.Errorf(external.NotFound, "%s: no such program: check the path%s", name, another)
	case e.Files.Kind(e.abs(name)) == kindProgram:
		return Found{}, external.Errorf(external.NotFound, "%s is not in PATH: the one in this folder is .%s%s", name, e.sep(), name)
	}
	return Found{}, external.Errorf(external.NotFound, "%s: no such program in PATH: write where it is%s", name, another)
}
