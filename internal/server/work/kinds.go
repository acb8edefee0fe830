// Package work does the jobs of a server: each by the program opmeter as a child process, so that a
// model or a record that breaks it breaks nothing else.
package work

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/internal/server/queue"
)

// kind is a sort of job.
type kind struct {
	command string   // of opmeter
	inputs  int      // the most that it takes
	options []string // those of the table that it knows
}

// Kinds of jobs.
const (
	Profile = "profile" // measure or estimate a model
	Import  = "import"  // read a record of another tool
	Saved   = "saved"   // take a saved profile or study as it is
)

var kinds = map[string]kind{
	Profile: {"profile", 1, []string{"on", "engine", "threads", "batch", "time", "runs", "shape", "dim", "streams", "accelerator"}},
	Import:  {"import", 2, []string{"arch", "from", "clock"}},
	Saved:   {"report", 1, nil},
}

// option is a setting of a job, passed to opmeter as a flag of the same name.
type option struct {
	valid func(string) bool
	want  string
}

// options are all settings. No value may name a file of the machine that works.
var options = map[string]option{
	"on":          {matches(`[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}|device:[A-Za-z0-9:_./-]{1,128}`), "host, the id of a target such as stm32h743, or device:PORT"},
	"engine":      {matches(`[a-z][a-z0-9_.-]{0,40}(,[a-z][a-z0-9_.-]{0,40})?`), "names as opmeter engines lists them, such as opmeter or onnxruntime"},
	"threads":     {number(1, 1024), "a number from 1 to 1024"},
	"batch":       {number(1, 1<<20), "a number from 1 to 1048576"},
	"runs":        {number(1, 1e6), "a number from 1 to 1000000"},
	"streams":     {number(1, 1024), "a number from 1 to 1024"},
	"time":        {span(10 * time.Minute), "a time above zero and at most 10m, such as 2s"},
	"shape":       {matches(`[^\s=]{1,200}=[0-9]{1,9}(x[0-9]{1,9}){0,15}`), "NAME=DIMS, such as image=1x3x224x224"},
	"dim":         {matches(`[^\s=]{1,200}=[0-9]{1,9}`), "NAME=N, such as batch=8"},
	"accelerator": {matches(`[A-Za-z0-9][A-Za-z0-9_-]{0,40}`), "the name of an accelerator, such as mvp"},
	"arch":        {matches(`[A-Za-z0-9][A-Za-z0-9_-]{0,40}`), "the name of a chip, such as bm1684x"},
	"from":        {matches(`[a-z][a-z0-9-]{0,40}`), "a format as opmeter import --list prints it"},
	"clock":       {matches(`[0-9]{1,12}(\.[0-9]{1,6})?(Hz|kHz|MHz|GHz)?`), "a frequency such as 64MHz"},
}

func matches(pattern string) func(string) bool {
	re := lazyregexp.New(`^(?:` + pattern + `)$`)
	return func(s string) bool {
		return re.FindString(s) != "" && !strings.Contains(s, "..") && !strings.Contains(s, "//")
	}
}

func number(low, high int) func(string) bool {
	return func(s string) bool { n, err := strconv.Atoi(s); return err == nil && n >= low && n <= high }
}

func span(high time.Duration) func(string) bool {
	return func(s string) bool { d, err := time.ParseDuration(s); return err == nil && d > 0 && d <= high }
}

// Check refuses a job that cannot be done, and fills in what workers it needs.
func Check(j *queue.Job) error {
	k, ok := kinds[j.Kind]
	if !ok {
		return fmt.Errorf("kind %q: expected %s", clip(j.Kind), strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	if len(j.Inputs) == 0 || len(j.Inputs) > k.inputs {
		return fmt.Errorf("%d inputs: a job of kind %s takes 1 to %d", len(j.Inputs), j.Kind, k.inputs)
	}
	for name, value := range j.Options {
		o, ok := options[name]
		switch {
		case !ok || !slices.Contains(k.options, name):
			return fmt.Errorf("option %q: a job of kind %s knows %s", clip(name), j.Kind, orNone(k.options))
		case !o.valid(value):
			return fmt.Errorf("option %s %q: expected %s", name, clip(value), o.want)
		}
	}
	j.Needs = queue.Needs{Target: "file"}
	if j.Kind == Profile {
		j.Needs.Target = "host"
		if port, ok := strings.CutPrefix(j.Options["on"], "device:"); ok {
			j.Needs.Target, j.Needs.Board = "board", port
		}
		if first, _, _ := strings.Cut(j.Options["engine"], ","); first != "" && first != "auto" && first != "opmeter" {
			j.Needs.Engine = first
		}
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "no options"
	}
	return strings.Join(names, ", ")
}

// clip shortens a text from outside for a message.
func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// args are the arguments of opmeter for a job.
func args(j *queue.Job, inputs []string, output string) []string {
	k := kinds[j.Kind]
	out := []string{k.command, inputs[0]}
	if len(inputs) > 1 {
		out = append(out, "--model="+inputs[1])
	}
	for _, name := range slices.Sorted(maps.Keys(j.Options)) {
		out = append(out, "--"+name+"="+j.Options[name])
	}
	return append(out, "--output="+output)
}

// Options lists the options of each kind of job.
func Options() map[string][]string {
	out := map[string][]string{}
	for name, k := range kinds {
		out[name] = append([]string{}, k.options...)
	}
	return out
}
