package work

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Places where a job takes its figures from.
const (
	computer = "computer" // a worker measures
	board    = "board"    // a board of a worker measures
	chip     = "chip"     // figures are estimates
)

// devicePrefix begins the target of a board.
const devicePrefix = "device:"

// place says where the figures of a job come from.
func place(options map[string]string) (string, error) {
	on, accelerator := options["on"], options["accelerator"]
	switch {
	case on != "" && accelerator != "":
		return "", errors.New("options on and accelerator: an accelerator stands for a target, so give one of both")
	case strings.HasPrefix(on, devicePrefix):
		return board, nil
	case on == "" && accelerator == "" || on == "host":
		return computer, nil
	}
	return chip, nil
}

// Option is a setting of a job, passed to opmeter as the flag of its name. The page shows these, and
// the server checks them. No value may name a file of the machine that works.
type Option struct {
	Name  string   `json:"name"`
	Label string   `json:"label" doc:"its name on the page"`
	Want  string   `json:"want" doc:"what a value looks like"`
	Kinds []string `json:"kinds" doc:"kinds of jobs that know it"`
	At    string   `json:"at,omitzero" doc:"the only place that it is for: computer, board or chip; several with spaces between"`
	// Choices are all values.
	Choices []string `json:"choices,omitzero"`
	// Many says that several values may stand with commas between, each a flag of its own.
	Many bool `json:"many,omitzero"`
	// work says that figures of other values do not compare, so that it is part of the series.
	work  bool
	valid func(string) bool
}

var both = []string{Profile, Compress}

// options are all settings, in the order of the page.
var options = []Option{
	{Name: "on", Label: "Target", Kinds: both, Want: "host, the id of a target such as stm32h743, or device:PORT", valid: matches(`[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}|device:[A-Za-z0-9:_./-]{1,128}`)},
	{Name: "accelerator", Label: "Accelerator", Kinds: []string{Profile}, At: chip, Want: "mvp, cmsis or none", Choices: []string{"mvp", "cmsis", "none"}, work: true},
	{Name: "engine", Label: "Engine", Kinds: []string{Profile, Compress, Bench}, At: computer, Want: "names as opmeter engines lists them, such as opmeter or onnxruntime", valid: matches(`[a-z][a-z0-9_.-]{0,40}(,[a-z][a-z0-9_.-]{0,40})?`)},
	{Name: "threads", Label: "Threads", Kinds: []string{Profile, Compress, Bench}, At: computer, Want: "a number from 1 to 1024", work: true, valid: number(1, 1024)},
	{Name: "batch", Label: "Batch", Kinds: []string{Profile, Import, Compress, Bench}, Want: "a number from 1 to 1048576", work: true, valid: number(1, 1<<20)},
	{Name: "time", Label: "Time", Kinds: []string{Profile, Compress, Bench}, At: computer, Want: "a time above zero and at most 10m, such as 2s", valid: span(10 * time.Minute)},
	{Name: "runs", Label: "Runs", Kinds: []string{Profile}, At: computer + " " + board, Want: "a number from 1 to 1000000", valid: number(1, 1e6)},
	{Name: "streams", Label: "Streams", Kinds: []string{Profile}, At: computer, Want: "a number from 1 to 1024", work: true, valid: number(1, 1024)},
	{Name: "clock", Label: "Clock", Kinds: []string{Profile, Import}, At: board + " " + chip, Want: "a frequency such as 64MHz", work: true, valid: matches(`[0-9]{1,12}(\.[0-9]{1,6})?(Hz|kHz|MHz|GHz)?`)},
	{Name: "runtime", Label: "Runtime", Kinds: []string{Profile}, At: chip, Want: "a runtime of the target, such as tflm-cmsis-nn", work: true, valid: matches(`[a-z][a-z0-9.-]{0,40}`)},
	{Name: "shape", Label: "Shapes", Kinds: []string{Profile, Import, Compress, Bench}, Many: true, Want: "NAME=DIMS, such as image=1x3x224x224", work: true, valid: matches(`[^\s=,]{1,200}=[0-9]{1,9}(x[0-9]{1,9}){0,15}`)},
	{Name: "dim", Label: "Dimensions", Kinds: []string{Profile, Import, Compress, Bench}, Many: true, Want: "NAME=N, such as batch=8", work: true, valid: matches(`[^\s=,]{1,200}=[0-9]{1,9}`)},
	{Name: "arch", Label: "Chip", Kinds: []string{Import}, Want: "the name of a chip, such as bm1684x", work: true, valid: matches(`[A-Za-z0-9][A-Za-z0-9_-]{0,40}`)},
	{Name: "from", Label: "Format", Kinds: []string{Import}, Want: "a format as opmeter import --list prints it", valid: matches(`[a-z][a-z0-9-]{0,40}`)},
	{Name: "speedup", Label: "Speed-up", Kinds: []string{Compress}, Want: "a number above 1, such as 1.5", valid: between(1, 1000)},
	{Name: "max-drop", Label: "Loss at most", Kinds: []string{Compress}, Want: "a share such as 1%", valid: matches(`[0-9]{1,2}(\.[0-9]{1,6})?%|0\.[0-9]{1,6}`)},
	{Name: "sparsity", Label: "Sparsity", Kinds: []string{Compress}, Want: "a share above 0 and up to 1, such as 0.8", valid: between(0, 1)},
	{Name: "structure", Label: "Structures", Kinds: []string{Compress}, Want: "names with commas between, such as unstructured,filter; or none", valid: matches(`[a-z0-9:]{1,20}(,[a-z0-9:]{1,20}){0,9}`)},
	{Name: "precision", Label: "Precisions", Kinds: []string{Compress}, Want: "names with commas between, such as int8,w4; or none", valid: matches(`[a-z0-9]{1,20}(,[a-z0-9]{1,20}){0,9}`)},
	{Name: "levels", Label: "Levels", Kinds: []string{Compress}, Want: "shares with commas between, such as 0.5,0.8", valid: matches(`[01](\.[0-9]{1,6})?(,[01](\.[0-9]{1,6})?){0,19}`)},
	{Name: "plan", Label: "Plan", Kinds: []string{Apply, Bench}, Want: "the name of a plan of the study", valid: matches(`[^\s/\\-][^/\\]{0,99}`)},
}

// Options lists the options of jobs.
func Options() []Option { return options }

// find returns an option that a kind of job knows, nil if it knows none of that name.
func find(name, kind string) *Option {
	i := slices.IndexFunc(options, func(o Option) bool { return o.Name == name && slices.Contains(o.Kinds, kind) })
	if i < 0 {
		return nil
	}
	return &options[i]
}

// namesOf lists the names of the options of a kind of job.
func namesOf(kind string) (out []string) {
	for _, o := range options {
		if slices.Contains(o.Kinds, kind) {
			out = append(out, o.Name)
		}
	}
	return out
}

// fits reports whether an option is for a place, "" for a job that runs no model.
func (o *Option) fits(at string) bool {
	return o.At == "" || at == "" || slices.Contains(strings.Fields(o.At), at)
}

// check reports whether a value may be passed on.
func (o *Option) check(value string) bool {
	if o.Choices != nil {
		return slices.Contains(o.Choices, value)
	}
	if !o.Many {
		return o.valid(value)
	}
	all := strings.Split(value, ",")
	return len(all) <= 16 && !slices.ContainsFunc(all, func(v string) bool { return !o.valid(v) })
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

func between(low, high float64) func(string) bool {
	return func(s string) bool { v, err := strconv.ParseFloat(s, 64); return err == nil && v > low && v <= high }
}

func span(high time.Duration) func(string) bool {
	return func(s string) bool { d, err := time.ParseDuration(s); return err == nil && d > 0 && d <= high }
}
