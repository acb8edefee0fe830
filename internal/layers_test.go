// Package internal holds a test alone: the order of layers, which every import follows.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/opmeter/opmeter"

// layers lists the folders from the bottom to the top. A package may import packages of its own
// layer and of layers before it. The longest matching folder counts; "." is the root package.
var layers = [][]string{
	{"internal/base"},                // files, JSON, locks, ports, threads: nothing about models
	{"internal/model"},               // a model file as graphs of nodes over values
	{"internal/kernel"},              // SIMD and plain kernels over slices
	{"internal/runtime"},             // operators, plan, memory, engine: no result formats
	{"profile", "marks", "firmware"}, // the result; the marker library; the device agent's source
	{"study", "sensiml"},             // other public formats
	{"internal/model/weights"},       // the weight matrices of a model, as studies name them
	{"internal/runtime/describe"},    // a planned model as a profile without timings
	{"internal/source"},              // what every source of a profile shares
	{"internal/measure"},             // source: this computer; statistics, machine state
	{"internal/estimate"},            // source: hardware that is absent
	{"internal/record"},              // source: profiles and traces of other tools
	{"internal/external"},            // source: other engines in a child process
	{"internal/device"},              // source: boards
	{"internal/compress"},            // predictions of pruning and quantisation
	{"internal/report", "docs"},      // output formats
	{"internal/gate"},                // decides whether a change makes a model worse
	{"internal/advise"},              // rules: what to change about a model, and what that gains
	{"internal/bridge"},              // what the public packages share
	{"engine"},                       // public API: engines that run models
	{"."},                            // public API: models, measurements, estimates
	{"target"},                       // public API: hardware to estimate for
	{"compress", "device", "record"}, // public API by topic
	{"internal/program"},             // opmeter as a child process of servers
	{"internal/cli"},                 // one file a verb
	{"internal/mcp"},                 // tools for AI agents: opmeter-mcp alone links them
	{"internal/server"},              // jobs, results and pages: opmeter-server alone links them
	{"cmd"},                          // main packages of the product
	{"internal/testing"},             // what only tests use
	{"examples", "bench", "tools"},   // programs for developers
}

// users names the folders that may import a module that only some code should depend on.
var users = map[string][]string{
	"github.com/ebitengine/purego":         {"internal/external"}, // opmeter itself stays static
	"github.com/spf13/cobra":               {"internal/cli"},
	"github.com/spf13/pflag":               {"internal/cli"},
	"github.com/modelcontextprotocol":      {"internal/mcp"},
	"github.com/google/jsonschema-go":      {"internal/mcp"},
	"github.com/clipperhouse/displaywidth": {"internal/report/text"},
	"github.com/go-json-experiment/":       {"internal/base/jsonx"},
	"go.bug.st/serial":                     {"internal/base/port"},
	"github.com/klauspost/cpuid/v2":        {"internal/measure/machine"},
	"golang.org/x/sys/cpu":                 {"internal/kernel/simd"},
	"go.yaml.in/yaml/v4":                   {"internal/model/netspec", "internal/estimate/chip", "internal/compress/sparsify", "internal/device/firmware", "internal/gate"},
}

// testOnly are packages that the product never imports.
var testOnly = []string{"testing", module + "/internal/testing", "pgregory.net/rapid", "github.com/google/go-cmp", "github.com/creack/pty", "github.com/xuri/excelize/v2", "text/template", "html/template"}

func TestLayers(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch rel := filepath.ToSlash(name); {
			case slices.Contains([]string{"../web", "../internal/kernel/gen", "../.git"}, rel), d.Name() == "testdata":
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		found++
		from := path.Dir(strings.TrimPrefix(filepath.ToSlash(name), "../"))
		for _, i := range f.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if why := fault(from, imported); why != "" {
				t.Errorf("%s imports %s: %s", name, imported, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 1000 {
		t.Errorf("%d files checked, expected at least 1000", found)
	}
}

// fault says why a package in a folder must not import another, "" if it may.
func fault(from, imported string) string {
	at, product := level(from), !within(from, "internal/testing", "bench", "tools", "examples")
	if at < 0 {
		return from + " is in no layer: add its folder to the table in internal/layers_test.go"
	}
	if product && within(imported, testOnly...) {
		return "only tests import it"
	}
	for m, dirs := range users {
		if strings.HasPrefix(imported, m) && product && !within(from, dirs...) {
			return "only " + strings.Join(dirs, ", ") + " may import it"
		}
	}
	folder, ours := strings.CutPrefix(imported, module)
	if !ours {
		return ""
	}
	if folder = strings.TrimPrefix(folder, "/"); folder == "" {
		folder = "."
	}
	if level(folder) > at {
		return "it is in a higher layer"
	}
	if within(folder, "internal/mcp", "internal/server") && from == "cmd/opmeter" {
		return "it brings an HTTP server: only cmd/opmeter-mcp and cmd/opmeter-server may link it"
	}
	if rest, ok := strings.CutPrefix(folder, "internal/external/"); ok && rest != "find" &&
		!within(from, "internal/external", "cmd/opmeter-engine", "internal/testing", "bench") {
		return "it loads shared libraries: only cmd/opmeter-engine may link it"
	}
	return ""
}

// level is the index of the layer of a folder, -1 if it is in none.
func level(folder string) int {
	best, at := -1, -1
	for i, l := range layers {
		for _, f := range l {
			if (folder == f || f != "." && within(folder, f)) && len(f) > best {
				best, at = len(f), i
			}
		}
	}
	return at
}

// within reports whether a path is one of several or lies below it.
func within(p string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return p == r || strings.HasPrefix(p, r+"/") })
}

// TestFault makes sure that the check finds what it is for.
func TestFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, imported, want string
	}{
		{"internal/runtime/engine", module + "/internal/model/graph", ""},
		{"internal/model/graph", module + "/internal/runtime/engine", "higher layer"},
		{"internal/kernel", module + "/internal/compress/loss", "higher layer"},
		{"internal/report", module, "higher layer"},
		{"internal/runtime/engine", module + "/profile", "higher layer"},
		{"internal/cli", module, ""},
		{"internal/cli", module + "/internal/external/litert", "shared libraries"},
		{"internal/cli", module + "/internal/mcp", "higher layer"},
		{"cmd/opmeter", module + "/internal/mcp", "HTTP server"},
		{"cmd/opmeter-mcp", module + "/internal/mcp", ""},
		{"cmd/opmeter", module + "/internal/server/work", "HTTP server"},
		{"cmd/opmeter-server", module + "/internal/server", ""},
		{"internal/base/stats", "github.com/spf13/cobra", "only internal/cli"},
		{"internal/model/onnx", "testing", "only tests"},
		{"internal/fresh", "fmt", "no layer"},
		{"fresh", "fmt", "no layer"},
	} {
		got := fault(c.from, c.imported)
		if got == "" != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: %q, want %q", c.from, c.imported, got, c.want)
		}
	}
}
