package find

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/external"
)

// Spec selects an engine: NAME[@VERSION][=LIBRARY] or tflm=PROGRAM.
type Spec struct {
	// Engine is the name of an engine, [Native] for opmeter's own.
	Engine string
	// Version is a version prefix, "" for any.
	Version string
	// Library is the path of the library or its folder, "" to search for it; or the command line
	// of a program.
	Library string
}

// String formats the spec as it is written on the command line.
func (s Spec) String() string {
	out := s.Engine
	if s.Version != "" {
		out += "@" + s.Version
	}
	if s.Library != "" {
		out += "=" + s.Library
	}
	return out
}

// mostSpecs limits the engines of one run.
const mostSpecs = 16

// Parse reads a comma-separated list of engines. A comma belongs to the path of a library if the
// text after it is part of a path and not an engine; in a command line also if it has arguments.
// Errors say in one line what was expected.
func Parse(list string) ([]Spec, error) {
	var pieces []string
	for piece := range strings.SplitSeq(list, ",") {
		if n := len(pieces); n > 0 && goesOn(pieces[n-1], piece) && !begins(piece) {
			pieces[n-1] += "," + piece
			continue
		}
		pieces = append(pieces, piece)
	}
	if len(pieces) > mostSpecs {
		return nil, fmt.Errorf("%d engines, %d are the most", len(pieces), mostSpecs)
	}
	var out []Spec
	for _, piece := range pieces {
		s, err := parse(strings.TrimSpace(piece))
		if err != nil {
			return nil, err
		}
		for _, before := range out {
			if before == s {
				return nil, fmt.Errorf("%s is there twice", s)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// goesOn reports whether the text after a comma can belong to the path or command line before it.
func goesOn(before, piece string) bool {
	name, path, ok := strings.Cut(before, "=")
	if eng := known(strings.TrimSpace(name)); ok && eng != nil && eng.Program && strings.Contains(strings.TrimSpace(path), " ") {
		return true
	}
	return ok && strings.ContainsAny(piece, `/\`)
}

// begins reports whether a piece begins with the name of an engine.
func begins(piece string) bool {
	name := strings.TrimSpace(piece)
	if i := strings.IndexAny(name, "@="); i >= 0 {
		name = name[:i]
	}
	return name == Native || known(name) != nil
}

func parse(piece string) (Spec, error) {
	var s Spec
	s.Engine = piece
	rest := ""
	if i := strings.IndexAny(piece, "@="); i >= 0 {
		s.Engine, rest = piece[:i], piece[i:]
	}
	switch {
	case piece == "":
		return s, fmt.Errorf("a name of an engine is missing: use %s", names())
	case s.Engine == Native && rest != "":
		return s, fmt.Errorf("%q: opmeter's own engine has no other version or library", piece)
	case s.Engine == Native:
		return s, nil
	case known(s.Engine) == nil:
		if e := meant(s.Engine); e != "" {
			return s, fmt.Errorf("%q is not an engine: did you mean %s?", s.Engine, e)
		}
		return s, fmt.Errorf("%q is not an engine: use %s", s.Engine, names())
	}
	if known(s.Engine).Program && strings.HasPrefix(rest, "@") {
		return s, fmt.Errorf("%q: %s has no version to choose, name the program: %s=PROGRAM", piece, s.Engine, s.Engine)
	}
	if version, ok := strings.CutPrefix(rest, "@"); ok {
		var library string
		s.Version, library, ok = strings.Cut(version, "=")
		if !isVersion(s.Version) {
			return s, fmt.Errorf("%q: %q is not a version, write it as %s@1.20", piece, s.Version, s.Engine)
		}
		if !ok {
			return s, nil
		}
		rest = "=" + library
	}
	if library, ok := strings.CutPrefix(rest, "="); ok {
		if library == "" && known(s.Engine).Program {
			return s, fmt.Errorf("%q: a program is missing behind the =", piece)
		}
		if library == "" {
			return s, fmt.Errorf("%q: a path of a library is missing behind the =", piece)
		}
		s.Library = library
	}
	return s, nil
}

// meant guesses the intended engine, "" if no name is close.
func meant(name string) string {
	plain := strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(strings.ToLower(name))
	switch plain {
	case "ort", "onnx", "onnxrt":
		return "onnxruntime"
	case "tensorflowlite", "tfl", "tf":
		return "tflite"
	case "ov":
		return "openvino"
	case "tflitemicro", "tensorflowlitemicro", "micro":
		return Micro
	case "aiedgelitert":
		return "litert"
	case "native", "self", "host":
		return Native
	}
	if plain == Native || known(plain) != nil {
		return plain
	}
	return ""
}

// Pick finds the library that the spec selects: see [Env.Pick]. With a path the version is not
// checked here: only the library knows it ([Spec.Accept]).
func (s Spec) Pick(e *Env) (Found, error) {
	if s.Library != "" {
		eng := known(s.Engine)
		if eng == nil {
			return Found{}, external.Errorf(external.NotFound, "%q is not an engine: use %s", s.Engine, names())
		}
		return e.named(eng, s.Library)
	}
	return e.Pick(s.Engine, s.Version)
}

// Accept returns an [external.Error] if the library reports another version than the requested
// one.
func (s Spec) Accept(version string) error {
	if s.Version == "" || hasPrefix(version, s.Version) {
		return nil
	}
	title := s.Engine
	if e := known(s.Engine); e != nil {
		title = e.Title
	}
	if version == "" {
		version = "unknown"
	}
	return external.Errorf(external.NotFound, "%s %s was asked for, the library is of version %s", title, s.Version, version)
}
