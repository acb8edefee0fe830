package work

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
	"github.com/opmeter/opmeter/study"
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
	// Names are all that a value consists of, with commas between.
	Names []string `json:"names,omitzero" doc:"all names that a value consists of, with commas between"`
	// Many says that several values may stand with commas between, each a flag of its own.
	Many  bool  `json:"many,omitzero"`
	Limit Limit `json:"limit"`
	// work says that figures of other values do not compare, so that it is part of the series.
	work bool
}

// Limit says which values an option takes, so that a page can check them before it sends a file.
type Limit struct {
	As      string  `json:"as,omitzero" enum:"text,whole,number,time" doc:"absent for an option with choices"`
	Pattern string  `json:"pattern,omitzero" doc:"regular expression of a whole text; .. and // are in none"`
	Above   float64 `json:"above,omitzero" doc:"a number, or the seconds of a time, is above this"`
	Most    float64 `json:"most,omitzero" doc:"the highest number, or the most seconds of a time"`
	valid   func(string) bool
}

var both = []string{Profile, Compress}

var (
	engineNames    = append([]string{"auto"}, Engines()...)
	structureNames = append(names(study.Structures()), "none")
	precisionNames = append(names(study.Formats()), "none")
)

func names[T ~string](all []T) (out []string) {
	for _, v := range all {
		out = append(out, string(v))
	}
	return out
}

// options are all settings, in the order of the page.
var options = []Option{
	{Name: "on", Label: "Target", Kinds: both, Want: "host, the id of a target such as stm32h743, or device:PORT", Limit: matches(`[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}|device:[A-Za-z0-9:_./-]{1,128}`)},
	{Name: "accelerator", Label: "Accelerator", Kinds: []string{Profile}, At: chip, Want: "mvp, cmsis or none", Choices: []string{"mvp", "cmsis", "none"}, work: true},
	{Name: "engine", Label: "Engine", Kinds: []string{Profile, Compress, Bench}, At: computer, Names: engineNames, Want: "one of " + strings.Join(engineNames, ", ") + "; or two with a comma between", Limit: matches(`[a-z][a-z0-9_.-]{0,40}(,[a-z][a-z0-9_.-]{0,40})?`)},
	{Name: "threads", Label: "Threads", Kinds: []string{Profile, Compress, Bench}, At: computer, Want: "a number from 1 to 1024", work: true, Limit: number(1, 1024)},
	{Name: "batch", Label: "Batch", Kinds: []string{Profile, Import, Compress, Bench}, Want: "a number from 1 to 1048576", work: true, Limit: number(1, 1<<20)},
	{Name: "time", Label: "Time", Kinds: []string{Profile, Compress, Bench}, At: computer, Want: "a time above zero and at most 10m, such as 2s", Limit: span(10 * time.Minute)},
	{Name: "runs", Label: "Runs", Kinds: []string{Profile}, At: computer + " " + board, Want: "a number from 1 to 1000000", Limit: number(1, 1e6)},
	{Name: "streams", Label: "Streams", Kinds: []string{Profile}, At: computer, Want: "a number from 1 to 1024", work: true, Limit: number(1, 1024)},
	{Name: "clock", Label: "Clock", Kinds: []string{Profile, Import}, At: board + " " + chip, Want: "a frequency such as 64MHz", work: true, Limit: matches(`[0-9]{1,12}(\.[0-9]{1,6})?(Hz|kHz|MHz|GHz)?`)},
	{Name: "runtime", Label: "Runtime", Kinds: []string{Profile}, At: chip, Want: "a runtime of the target, such as tflm-cmsis-nn", work: true, Limit: matches(`[a-z][a-z0-9.-]{0,40}`)},
	{Name: "shape", Label: "Shapes", Kinds: []string{Profile, Import, Compress, Bench}, Many: true, Want: "NAME=DIMS, such as image=1x3x224x224", work: true, Limit: matches(`[^\s=,]{1,200}=[0-9]{1,9}(x[0-9]{1,9}){0,15}`)},
	{Name: "dim", Label: "Dimensions", Kinds: []string{Profile, Import, Compress, Bench}, Many: true, Want: "NAME=N, such as batch=8", work: true, Limit: matches(`[^\s=,]{1,200}=[0-9]{1,9}`)},
	{Name: "arch", Label: "Chip", Kinds: []string{Import}, Want: "the name of a chip, such as bm1684x", work: true, Limit: matches(`[A-Za-z0-9][A-Za-z0-9_-]{0,40}`)},
	{Name: "from", Label: "Format", Kinds: []string{Import}, Want: "a format as opmeter import --list prints it", Limit: matches(`[a-z][a-z0-9-]{0,40}`)},
	{Name: "speedup", Label: "Speed-up", Kinds: []string{Compress}, Want: "a number above 1, such as 1.5", Limit: between(1, 1000)},
	{Name: "max-drop", Label: "Loss at most", Kinds: []string{Compress}, Want: "a share such as 1%", Limit: matches(`[0-9]{1,2}(\.[0-9]{1,6})?%|0\.[0-9]{1,6}`)},
	{Name: "sparsity", Label: "Sparsity", Kinds: []string{Compress}, Want: "a share above 0 and up to 1, such as 0.8", Limit: between(0, 1)},
	{Name: "structure", Label: "Structures", Kinds: []string{Compress}, Names: structureNames, Want: "names with commas between, of " + strings.Join(structureNames, ", "), Limit: matches(`[a-z0-9:]{1,20}(,[a-z0-9:]{1,20}){0,9}`)},
	{Name: "precision", Label: "Precisions", Kinds: []string{Compress}, Names: precisionNames, Want: "names with commas between, of " + strings.Join(precisionNames, ", "), Limit: matches(`[a-z0-9]{1,20}(,[a-z0-9]{1,20}){0,9}`)},
	{Name: "levels", Label: "Levels", Kinds: []string{Compress}, Want: "shares with commas between, such as 0.5,0.8", Limit: matches(`(0(\.[0-9]{1,6})?|1(\.0{1,6})?)(,(0(\.[0-9]{1,6})?|1(\.0{1,6})?)){0,19}`)},
	{Name: "plan", Label: "Plan", Kinds: []string{Apply, Bench}, Want: "the name of a plan of the study", Limit: matches(`[^\s/\\-][^/\\]{0,99}`)},
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
	all := []string{value}
	if o.Many {
		all = strings.Split(value, ",")
	}
	return len(all) <= 16 && !slices.ContainsFunc(all, func(v string) bool { return !o.Limit.valid(v) })
}

// unknown returns a part of a value that is none of the names, "" if there is none.
func (o *Option) unknown(value string) string {
	for v := range strings.SplitSeq(value, ",") {
		if o.Names != nil && !slices.Contains(o.Names, v) {
			return v
		}
	}
	return ""
}

func matches(pattern string) Limit {
	re := lazyregexp.New(`^(?:` + pattern + `)$`)
	return Limit{As: "text", Pattern: pattern, valid: func(s string) bool {
		return re.FindString(s) != "" && !strings.Contains(s, "..") && !strings.Contains(s, "//")
	}}
}

func number(low, high int) Limit {
	return Limit{As: "whole", Above: float64(low - 1), Most: float64(high), valid: func(s string) bool {
		n, err := strconv.Atoi(s)
		return err == nil && n >= low && n <= high
	}}
}

func between(low, high float64) Limit {
	return Limit{As: "number", Above: low, Most: high, valid: func(s string) bool {
		v, err := strconv.ParseFloat(s, 64)
		return err == nil && v > low && v <= high
	}}
}

func span(high time.Duration) Limit {
	return Limit{As: "time", Most: high.Seconds(), valid: func(s string) bool {
		d, err := time.ParseDuration(s)
		return err == nil && d > 0 && d <= high
	}}
}
