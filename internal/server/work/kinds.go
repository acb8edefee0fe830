// Package work does the jobs of a server: each by the program opmeter as a child process, so that a
// model or a record that breaks it breaks nothing else.
package work

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/server/queue"
)

// kind is a sort of job.
type kind struct {
	// roles are what its files are for, in the order of inputs that name no role. The first ones
	// are needed, as many as needs says.
	roles []string
	needs int
	// runs says that it runs the model somewhere, so that it needs a worker that can.
	runs bool
}

// Kinds of jobs.
const (
	Profile  = "profile"  // measure or estimate a model
	Import   = "import"   // read a record of another tool
	Saved    = "saved"    // take a saved profile or study as it is
	Compress = "compress" // measure what changes of layers gain and cost, and make a plan
	Apply    = "apply"    // write the compressed model of a plan
	Bench    = "bench"    // measure the compressed model against the unchanged one
)

// Roles of files.
const (
	roleModel  = "model"
	roleRecord = "record"
	roleResult = "result"
	roleStudy  = "study"
	rolePlan   = "plan"
	roleData   = "data"
	roleLabels = "labels"
)

var kinds = map[string]kind{
	Profile:  {[]string{roleModel}, 1, true},
	Import:   {[]string{roleRecord, roleModel}, 1, false},
	Saved:    {[]string{roleResult}, 1, false},
	Compress: {[]string{roleModel, roleStudy, roleData, roleLabels}, 1, true},
	Apply:    {[]string{roleModel, roleStudy, rolePlan}, 2, false},
	Bench:    {[]string{roleModel, roleStudy}, 2, true},
}

// Kinds lists the kinds of jobs.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// inputs returns the files of a job by role.
func (k *kind) inputs(j *queue.Job) (map[string]queue.Input, error) {
	out := map[string]queue.Input{}
	if len(j.Inputs) == 0 || len(j.Inputs) > len(k.roles) {
		return nil, fmt.Errorf("%d inputs: a job of kind %s takes %d to %d", len(j.Inputs), j.Kind, k.needs, len(k.roles))
	}
	for i, in := range j.Inputs {
		role := in.As
		if role == "" {
			role = k.roles[i]
		}
		if _, twice := out[role]; twice || !slices.Contains(k.roles, role) {
			return nil, fmt.Errorf("input %s is %q: a job of kind %s takes one of each: %s", clip(in.Name), clip(role), j.Kind, strings.Join(k.roles, ", "))
		}
		out[role] = in
	}
	for _, role := range k.roles[:k.needs] {
		if _, ok := out[role]; !ok {
			return nil, fmt.Errorf("a job of kind %s needs a %s among its inputs", j.Kind, role)
		}
	}
	return out, nil
}

// Model returns the model that a job is of, false if it has none.
func Model(j *queue.Job) (queue.Input, bool) {
	k := kinds[j.Kind]
	all, err := k.inputs(j)
	in, ok := all[roleModel]
	return in, ok && err == nil
}

// Check refuses a job that cannot be done, and fills in what workers it needs.
func Check(j *queue.Job) error {
	k, ok := kinds[j.Kind]
	if !ok {
		return fmt.Errorf("kind %q: expected %s", clip(j.Kind), strings.Join(Kinds(), ", "))
	}
	if _, err := k.inputs(j); err != nil {
		return err
	}
	at, err := place(j.Options)
	if err != nil {
		return err
	}
	if !k.runs {
		at = ""
	}
	if at == board && j.Kind != Profile {
		return fmt.Errorf("option on %q: a job of kind %s measures on computers and estimates for chips", clip(j.Options["on"]), j.Kind)
	}
	for name, value := range j.Options {
		o := find(name, j.Kind)
		switch {
		case o == nil:
			return fmt.Errorf("option %q: a job of kind %s knows %s", clip(name), j.Kind, orNone(namesOf(j.Kind)))
		case !o.fits(at):
			return fmt.Errorf("option %s: it is for %s, and the job is for %s: leave it out", name, o.At, at)
		case !o.check(value):
			return fmt.Errorf("option %s %q: expected %s", name, clip(value), o.Want)
		case o.unknown(value) != "":
			return fmt.Errorf("option %s %q: no such name: expected %s", name, clip(o.unknown(value)), strings.Join(o.Names, ", "))
		}
	}
	j.Needs = queue.Needs{Target: "file"}
	if k.runs && at != chip {
		j.Needs.Target = "host"
		if at == board {
			j.Needs.Target, j.Needs.Board = "board", strings.TrimPrefix(j.Options["on"], devicePrefix)
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

// flags are the options of a job as flags of opmeter.
func flags(j *queue.Job) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(j.Options)) {
		values := []string{j.Options[name]}
		if o := find(name, j.Kind); o != nil && o.Many {
			values = strings.Split(values[0], ",")
		}
		for _, v := range values {
			out = append(out, "--"+name+"="+v)
		}
	}
	return out
}

// Endings of results.
const (
	profileEnding = ".opmeter"
	studyEnding   = ".study"
)

// plan is how a job is done: a study that is taken as it is first, runs of opmeter, and the files
// that they leave.
type plan struct {
	copy   string // the study that the result goes on with, "" for none
	steps  [][]string
	result string // the profile or study
	output string // another file: a compressed model, "" for none
}

// planOf says how to do a job whose files are these, by role. The folder takes the result.
func planOf(j *queue.Job, file map[string]string, made string) plan {
	p := plan{result: filepath.Join(made, "result"+profileEnding)}
	model := file[roleModel]
	switch j.Kind {
	case Compress, Apply, Bench:
		p.result, p.copy = filepath.Join(made, "result"+studyEnding), file[roleStudy]
	case Saved:
		if strings.EqualFold(filepath.Ext(file[roleResult]), studyEnding) {
			p.result, p.copy = filepath.Join(made, "result"+studyEnding), file[roleResult]
			return p
		}
	}
	study := "--study=" + p.result
	switch j.Kind {
	case Profile:
		p.steps = [][]string{append(append([]string{"profile", model}, flags(j)...), "--output="+p.result)}
	case Import:
		step := []string{"import", file[roleRecord]}
		if model != "" {
			step = append(step, "--model="+model)
		}
		p.steps = [][]string{append(append(step, flags(j)...), "--output="+p.result)}
	case Saved:
		p.steps = [][]string{{"report", file[roleResult], "--output=" + p.result}}
	case Compress:
		step := append([]string{"compress", model, study}, flags(j)...)
		for _, role := range []string{roleData, roleLabels} {
			if file[role] != "" {
				step = append(step, "--"+role+"="+file[role])
			}
		}
		p.steps = [][]string{step}
	case Apply:
		if f := file[rolePlan]; f != "" {
			p.steps = append(p.steps, []string{"compress", "import", model, f, study})
		}
		end := filepath.Ext(model)
		p.output = filepath.Join(made, strings.TrimSuffix(filepath.Base(model), end)+"-compressed"+end)
		p.steps = append(p.steps, append([]string{"compress", "apply", model, study, "--output=" + p.output}, flags(j)...))
	case Bench:
		p.steps = [][]string{append([]string{"compress", "bench", model, study}, flags(j)...)}
	}
	return p
}
