// Command modules lists what each module adds to a first build of the program, and to
// each of its starts: the processor time of compilers and linkers in an empty build
// cache, and the time and memory of initialisation. docs/reference/modules.md has its table.
//
//	go run ./bench/modules
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const program = "./cmd/opmeter"

// cost is what a module takes.
type cost struct {
	name, version string
	packages      int
	compile       time.Duration // of the processors
	start         time.Duration
	bytes         int64 // allocated before main
}

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "modules:", err)
		os.Exit(1)
	}
}

func run(w io.Writer) error {
	dir, err := os.MkdirTemp("", "modules")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// Modules are fetched before, so that the network is in no figure.
	if err := command(nil, "go", "mod", "download").Run(); err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	of, costs, err := modules()
	if err != nil {
		return err
	}
	bin, wall, err := build(dir, of, costs)
	if err != nil {
		return err
	}
	starts, err := start(bin, of, costs)
	if err != nil {
		return err
	}
	return table(w, costs, wall, starts)
}

// command is a program in the repository; what it says of errors is shown.
func command(env []string, name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	return c
}

// names of what is not a module.
const (
	standard = "standard library"
	linking  = "linking"
)

// modules maps packages to modules, and lists these.
func modules() (of map[string]string, costs map[string]*cost, err error) {
	out, err := command([]string{"CGO_ENABLED=0"}, "go", "list", "-deps", "-json=ImportPath,Standard,Module", program).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	of, costs = map[string]string{}, map[string]*cost{linking: {name: linking}}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Standard   bool
			Module     *struct{ Path, Version string }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return of, costs, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("go list: %w", err)
		}
		c := cost{name: standard}
		if !p.Standard && p.Module != nil {
			c = cost{name: p.Module.Path, version: p.Module.Version}
		}
		if costs[c.name] == nil {
			costs[c.name] = &c
		}
		costs[c.name].packages++
		of[p.ImportPath] = c.name
	}
}

// build compiles everything in an empty cache.
func build(dir string, of map[string]string, costs map[string]*cost) (bin string, wall time.Duration, err error) {
	bin, actions := filepath.Join(dir, "opmeter"), filepath.Join(dir, "actions.json")
	began := time.Now()
	env := []string{"CGO_ENABLED=0", "GOCACHE=" + filepath.Join(dir, "cache")}
	if err := command(env, "go", "build", "-debug-actiongraph="+actions, "-o", bin, program).Run(); err != nil {
		return "", 0, fmt.Errorf("go build: %w", err)
	}
	wall = time.Since(began)
	data, err := os.ReadFile(actions)
	if err != nil {
		return "", 0, err
	}
	var list []struct {
		Mode, Package   string
		CmdUser, CmdSys time.Duration // nanoseconds
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return "", 0, fmt.Errorf("actions of the build: %w", err)
	}
	for _, a := range list {
		name := of[a.Package]
		if a.Mode == "link" {
			name = linking
		}
		if c := costs[name]; c != nil {
			c.compile += a.CmdUser + a.CmdSys
		}
	}
	return bin, wall, nil
}

var traced = regexp.MustCompile(`^init (\S+) @\S+ ms, (\S+) ms clock, (\d+) bytes`)

// start runs the program some times and takes the median of each module's time, which is
// small against what else the machine does. It returns how often.
func start(bin string, of map[string]string, costs map[string]*cost) (int, error) {
	const times = 11
	clock := map[string][]time.Duration{}
	for range times {
		c := exec.Command(bin, "--version")
		c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var out bytes.Buffer
		c.Stderr = &out
		if err := c.Run(); err != nil {
			return 0, fmt.Errorf("%s --version: %w", bin, err)
		}
		sum, size := map[string]time.Duration{}, map[string]int64{}
		for lines := bufio.NewScanner(&out); lines.Scan(); {
			m := traced.FindStringSubmatch(lines.Text())
			if m == nil {
				continue
			}
			name, ok := of[m[1]]
			if !ok {
				name = standard // of the runtime
			}
			ms, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return 0, err
			}
			n, err := strconv.ParseInt(m[3], 10, 64)
			if err != nil {
				return 0, err
			}
			sum[name] += time.Duration(ms * float64(time.Millisecond))
			size[name] += n
		}
		for name, d := range sum {
			clock[name] = append(clock[name], d)
			costs[name].bytes = size[name]
		}
	}
	for name, ds := range clock {
		slices.Sort(ds)
		costs[name].start = ds[len(ds)/2]
	}
	return times, nil
}

// table writes Markdown, the dearest to compile first.
func table(w io.Writer, costs map[string]*cost, wall time.Duration, starts int) error {
	var list []*cost
	sum := cost{name: "all"}
	for _, c := range costs {
		list = append(list, c)
		sum.packages += c.packages
		sum.compile += c.compile
		sum.start += c.start
		sum.bytes += c.bytes
	}
	slices.SortFunc(list, func(a, b *cost) int {
		return cmp.Or(cmp.Compare(b.compile, a.compile), strings.Compare(a.name, b.name))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "First build %.0f s by the clock; starts are medians of %d.\n\n", wall.Seconds(), starts)
	b.WriteString("| module | version | packages | first build, processor s | start, ms | memory at start, KiB |\n| --- | --- | ---: | ---: | ---: | ---: |\n")
	for _, c := range append(list, &sum) {
		fmt.Fprintf(&b, "| %s | %s | %d | %.2f | %.3f | %.1f |\n", c.name, c.version, c.packages, c.compile.Seconds(), float64(c.start)/1e6, float64(c.bytes)/1024)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
