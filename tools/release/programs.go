package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// systems are those that a release has archives for.
var systems = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "freebsd/amd64"}

const (
	engineProgram = "opmeter-engine"
	agentProgram  = "opmeter-mcp"
	serverProgram = "opmeter-server"
)

var (
	// carried are the programs below cmd that every package contains: the second one opens external
	// engines for the first, the third one answers agents.
	carried = []string{"opmeter", engineProgram, agentProgram}
	// commands are all, for packages that may be larger.
	commands = append(carried[:len(carried):len(carried)], serverProgram)
)

// programs returns programs of a system. It builds each once a release, whatever the number of
// packages that contain it.
func (r *release) programs(system string, commands []string) (files []entry, err error) {
	for _, c := range commands {
		key := system + " " + c
		data, ok := r.built[key]
		if !ok {
			if data, err = r.build(c, system); err != nil {
				return nil, err
			}
			if r.built == nil {
				r.built = map[string][]byte{}
			}
			r.built[key] = data
		}
		files = append(files, entry{programName(c, system), data, true})
	}
	return files, nil
}

func programName(program, system string) string {
	if strings.HasPrefix(system, "windows/") {
		return program + ".exe"
	}
	return program
}

// compilerFlags are those of packages of this module, the last match counts. Without inlining (-l)
// a package is a sixth smaller. Packages that compute, measure, or read large models are compiled
// as usual. maxshapelen shortens the names of generic functions in tables for tracebacks.
var compilerFlags = []struct{ packages, flags string }{
	{"/...", shortNames + " -l"},
	{"/internal/base/...", shortNames},
	{"/internal/compress/loss", shortNames},
	{"/internal/kernel/...", shortNames},
	{"/internal/measure/...", shortNames},
	{"/internal/model/...", shortNames},
	{"/internal/record/textscan", shortNames},
	{"/internal/runtime/...", shortNames},
	{"/profile", shortNames},
	{"/profile/timeline", shortNames},
}

const shortNames = "-d=maxshapelen=16"

// stamp is the variable that holds a program's version, commit and date.
const stamp = module + "/internal/base/buildinfo.stamp"

// build compiles a program without anything of the machine or folder that does it.
func (r *release) build(program, system string) ([]byte, error) {
	goos, arch, ok := strings.Cut(system, "/")
	if !ok {
		return nil, fmt.Errorf("system %q: write it as linux/amd64", system)
	}
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, programName(program, system))
	flags := "-s -w -buildid= -X " + stamp + "=" + strings.Join([]string{r.version, r.commit, r.when.Format(time.DateOnly)}, ",")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + flags, "-o", bin}
	for _, f := range compilerFlags {
		args = append(args, "-gcflags="+module+f.packages+"="+f.flags)
	}
	c := exec.Command("go", append(args, "./cmd/"+program)...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0")
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("build for %s: %w", system, err)
	}
	return os.ReadFile(bin)
}
