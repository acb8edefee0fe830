package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/gate"
	"github.com/opmeter/opmeter/internal/measure/ab"
	"github.com/opmeter/opmeter/internal/measure/ab/worker"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/report"
)

// thisMachine names this computer in the index.
func thisMachine() string {
	h := machine.NewWatch().End()
	return strings.TrimSpace(h.CPUModel + " " + h.Fingerprint)
}

// measures reports whether the time of a rule is measured: where the user says so, else where the
// rule itself asks for it.
func (g *gateRun) measures(r *gate.Rule) bool {
	if r == nil || g.f.changedMeasures {
		return r != nil && g.f.measure
	}
	return r.Asked()
}

// measureAll times both versions of all jobs that a rule asks for. The level of the intervals is
// corrected for all of them, and the budget is divided evenly.
func (g *gateRun) measureAll(ctx context.Context, all []prepared, res *gate.Result) error {
	list := slices.DeleteFunc(slices.Clone(all), func(p prepared) bool { return !g.measures(p.measured()) })
	if len(list) == 0 {
		return nil
	}
	// The same file takes the same time: only other files are compared.
	res.Tests = 0
	for i := range list {
		if g.comparable(&list[i]) {
			res.Tests++
		}
	}
	left, end := res.Tests, g.budget()
	for i := range list {
		p := &list[i]
		job := &res.Jobs[p.at]
		rule := p.measured()
		switch {
		case p.base.known && p.base.taken == nil:
			job.Figures = append(job.Figures, rule.Without(gate.New, ""))
		case p.base.taken == p.fresh:
			job.Notes = append(job.Notes, "the model file is that of the base: its time is not measured")
		case !g.comparable(p):
			why := "the model of the base is not in the repository, so that it cannot be measured on this machine"
			job.Figures = append(job.Figures, rule.Without(gate.Undecided, why))
		default:
			row, err := g.measure(ctx, p, rule, res.Tests, end/time.Duration(left))
			if ctx.Err() != nil {
				return told(ctx.Err())
			}
			end -= min(end, row.Took)
			left--
			if err != nil {
				row.Row = rule.Without(gate.Undecided, err.Error())
			}
			job.Figures = append(job.Figures, row.Row)
			if row.Base != nil {
				if why := rule.Coarse(*row.Base); why != "" {
					job.Notes = append(job.Notes, why)
				}
			}
		}
	}
	return nil
}

// comparable reports whether both versions of a job can be measured, and differ.
func (g *gateRun) comparable(p *prepared) bool {
	return p.base.file != "" && p.base.taken != p.fresh
}

// budget is the time for all measurements: that of the flag, else that of the policy.
func (g *gateRun) budget() time.Duration {
	if g.f.changedBudget || g.rules.Budget == 0 {
		return g.f.budget
	}
	return g.rules.Budget
}

// timed is a measured figure and how long that took.
type timed struct {
	gate.Row
	Took time.Duration
}

// measure times the two versions of a job.
func (g *gateRun) measure(ctx context.Context, p *prepared, rule *gate.Rule, tests int, budget time.Duration) (timed, error) {
	self, err := os.Executable()
	if err != nil {
		return timed{}, err
	}
	versions := []ab.Alternative{{Name: "base"}, {Name: "new"}}
	for i, file := range []string{p.base.file, p.path} {
		versions[i].Command = append([]string{self, workerVerb, file}, p.workerArgs(g.f.threads)...)
	}
	source := &worker.Processes{Alternatives: versions, CPUs: machine.PickCPUs(g.f.threads)}
	show, stop := g.a.progress()
	defer stop()
	t := gate.Timing{
		Rule: rule, Budget: budget, Processes: g.rules.Processes, Tests: tests, Quiet: machine.NewOthers().Wait,
		Planned: func(plan ab.Plan) {
			if g.a.tty {
				fmt.Fprint(g.a.err, "\r\x1b[K")
			}
			fmt.Fprintf(g.a.err, "opmeter: %s: a budget of %s shows changes from about %.1f %% on\n", p.name, report.Duration(budget.Seconds()), 100*plan.Detectable)
		},
	}
	if show != nil {
		t.Progress = func(done float64, processes int) {
			show(fmt.Sprintf("measuring %s, process %d", p.name, processes+1), done)
		}
	}
	row, res, err := t.Measure(ctx, versions, source)
	out := timed{Row: row}
	if res != nil {
		out.Took = time.Duration(res.TookS * float64(time.Second))
	}
	return out, err
}

// workerArgs are the flags of a worker for the shapes of a job.
func (j *gateJob) workerArgs(threads int) []string {
	out := []string{fmt.Sprintf("--threads=%d", threads)}
	for _, s := range j.m.shapes {
		out = append(out, "--shape="+s)
	}
	for _, d := range j.m.dims {
		out = append(out, "--dim="+d)
	}
	if j.m.batch > 0 {
		out = append(out, fmt.Sprintf("--batch=%d", j.m.batch))
	}
	return out
}
