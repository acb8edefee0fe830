//go:build (darwin || linux || windows) && (amd64 || arm64 || (linux && riscv64))

package litert

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/opmeter/opmeter/internal/external"
)

// library is an open LiteRT library.
type library struct {
	api   *api
	path  string
	about external.About
	has   int // accelerators that are there
}

// Open opens a library by its path. Errors are an [external.Error].
func Open(path string) (external.Library, error) {
	a, err := load(path)
	if err != nil {
		return nil, err
	}
	l := &library{api: a, path: path}
	if err := l.find(); err != nil {
		return nil, err
	}
	return l, nil
}

// find lists the available accelerators: all of them register with an environment.
func (l *library) find() error {
	env, err := l.environment(onCPU | onGPU | onNPU)
	if err != nil {
		return err
	}
	defer l.api.free(l.api.destroyEnvironment, env)
	var names []string
	for _, a := range l.api.accelerators(env) {
		l.has |= a.hardware
		names = append(names, a.name)
	}
	l.about = external.About{
		Engine: "litert", Title: "LiteRT", Version: packaged(l.path), Formats: []string{"tflite"}, Options: options,
		Gives: []string{"latency_s", "calls", "samples"},
	}
	if len(names) > 0 {
		l.about.Build = "accelerators " + strings.Join(names, ", ")
	}
	for _, a := range accelerators {
		if l.has&a.bit != 0 {
			l.about.Providers = append(l.about.Providers, a.name)
		}
	}
	return nil
}

// About describes the library.
func (l *library) About() external.About { return l.about }

// packaged returns the version of the Python package that contains the library. The library
// itself has no version function, but an installed package has a dist-info folder beside its own.
func packaged(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	folder := filepath.Dir(real)
	entries, err := os.ReadDir(filepath.Dir(folder))
	if err != nil {
		return ""
	}
	version := ""
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), ".dist-info")
		if !ok {
			continue
		}
		name, v, ok := strings.Cut(stem, "-")
		if !ok || name != filepath.Base(folder) && !strings.HasPrefix(name, filepath.Base(folder)+"_") {
			continue // of another package; nightly builds have one ending more
		}
		if version != "" && version != v {
			return "" // two of them: the library may be of either
		}
		version = v
	}
	return version
}
