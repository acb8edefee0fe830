package pytorch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
)

// joined says which iterations of the ranks are one step. The step takes as long as its slowest
// rank, since the others wait for it.
type joined struct {
	run *run
	// walls are those of the slowest rank in each step, then [track.NoWall] for all other
	// iterations. to is the new number of an iteration.
	walls []int64
	to    []int32
	rank  []int // of each new number
	mean  []float64
	// steps is the number of steps that all ranks recorded; 0 means that the ranks recorded
	// different ones, and that walls are those of the slowest rank.
	steps int
	// left is the number of steps that only some ranks recorded.
	left int
}

// stepName is the name of the step that an iteration is.
func (p *part) stepName(iteration int32) string {
	if n := p.run.number[iteration]; n >= 0 {
		return p.steps[n].name
	}
	return ""
}

// join joins the iterations of several ranks, nil for one rank. The slices get the new numbers.
func (r *run) join(walls []int64) *joined {
	if len(r.parts) < 2 {
		return nil
	}
	j := &joined{run: r, to: make([]int32, len(walls))}
	for i := range j.to {
		j.to[i] = -1
	}
	by := map[string][]int32{} // iterations of a step, one for each rank
	var names []string
	for _, p := range r.parts {
		for i := p.first; i < p.end; i++ {
			n := p.stepName(i)
			if by[n] == nil {
				names = append(names, n)
			}
			if k := len(by[n]); k == 0 || by[n][k-1] < p.first { // a step counts once in its rank
				by[n] = append(by[n], i)
			}
		}
	}
	j.left = len(names)
	names = slices.DeleteFunc(names, func(n string) bool { return len(by[n]) != len(r.parts) })
	j.steps, j.left = len(names), j.left-len(names)
	slowest := r.means(j, by, names, walls)
	take := func(i int32) {
		j.to[i] = int32(len(j.walls))
		j.walls = append(j.walls, walls[i])
	}
	for _, n := range names {
		take(slices.MaxFunc(by[n], func(a, b int32) int { return int(min(max(walls[a]-walls[b], -1), 1)) }))
	}
	if p := r.parts[slowest]; j.steps == 0 {
		for i := p.first; i < p.end; i++ {
			take(i)
		}
	}
	j.renumber()
	return j
}

// means computes the mean step of each rank over the steps that all of them recorded, without the
// first one where more follow. It returns the index of the slowest rank.
func (r *run) means(j *joined, by map[string][]int32, names []string, walls []int64) (slowest int) {
	counted := map[int32]bool{}
	for k, n := range names {
		for _, i := range by[n] {
			counted[i] = k > 0 || len(names) == 1
		}
	}
	for k, p := range r.parts {
		sum, n := 0.0, 0
		for i := p.first; i < p.end; i++ {
			if counted[i] || j.steps == 0 {
				sum += float64(walls[i]) / 1e9
				n++
			}
		}
		j.mean = append(j.mean, sum/float64(max(n, 1)))
		if j.mean[k] > j.mean[slowest] {
			slowest = k
		}
	}
	return slowest
}

// renumber gives the iterations that no figure is of the numbers after the others.
func (j *joined) renumber() {
	r := j.run
	for i, n := range j.to {
		if n < 0 {
			j.to[i] = int32(len(j.walls))
			j.walls = append(j.walls, track.NoWall)
		}
	}
	number := make([]int32, len(r.number))
	j.rank = make([]int, len(r.number))
	for k, p := range r.parts {
		for i := p.first; i < p.end; i++ {
			number[j.to[i]], j.rank[j.to[i]] = r.number[i], k
		}
		for _, s := range p.slices() {
			if s.Iteration >= 0 {
				s.Iteration = j.to[s.Iteration]
			}
		}
	}
	r.number = number
}

// maxRanks limits the ranks with figures of their own.
const maxRanks = 64

// figures sets the figures of the ranks: the mean step and work on the device of each, those of
// all, and how far the slowest is from the mean.
func (j *joined) figures(out *runlog.Run, dev []deviceCall) {
	if j == nil {
		return
	}
	r, p := j.run, out.Profile
	qs := runlog.Quantities{}
	set := func(key, unit, name, doc string, v float64) {
		qs.SetTotal(&p.Totals, profile.Quantity{Key: key, Unit: unit, Name: name, Group: "Ranks", Better: -1, Model: true, Doc: doc}, v)
	}
	device := make([]float64, len(r.parts))
	for _, c := range dev {
		if c.iteration >= 0 {
			device[j.rank[c.iteration]] += float64(c.dur) / 1e9
		}
	}
	mean, slowest := 0.0, 0
	for k, v := range j.mean {
		if mean += v / float64(len(j.mean)); v > j.mean[slowest] {
			slowest = k
		}
	}
	set("ranks_mean_s", "s", "Step, mean of the ranks", "Mean length of a step over all ranks.", mean)
	set("ranks_slowest_s", "s", "Step of the slowest rank", "Mean length of a step of the rank that is slowest on average.", j.mean[slowest])
	if mean > 0 {
		set("ranks_imbalance", "1", "Imbalance of the ranks", "Step of the slowest rank divided by the mean of the ranks: 1 is balanced.", j.mean[slowest]/mean)
	}
	for k, x := range r.parts[:min(len(r.parts), maxRanks)] {
		set(fmt.Sprintf("rank_%d_s", x.rank), "s", fmt.Sprintf("Step of rank %d", x.rank), "Mean length of a step of this rank.", j.mean[k])
		if n := x.end - x.first; len(dev) > 0 && n > 0 {
			set(fmt.Sprintf("rank_%d_device_s", x.rank), "s", fmt.Sprintf("Device work of rank %d", x.rank), "Work on the device in a step of this rank, of all streams, added up.", device[k]/float64(n))
		}
	}
	p.Quantities = append(p.Quantities, qs.List...)
	if m := p.Totals.Latency; m != nil {
		m.Method = "slowest rank of each step"
	}
	if j.steps == 0 {
		out.Found("pytorch.steps", profile.Warning, "The %d ranks recorded different steps, so they cannot be joined: latency and layers are those of rank %d, the slowest.", len(r.parts), r.parts[slowest].rank)
		return
	}
	if j.left > 0 {
		out.Found("pytorch.unequal_steps", profile.Warning, "Steps that only some of the ranks recorded: %d. They are left out of the times; the %d steps of all ranks count.", j.left, j.steps)
	}
	out.Found("pytorch.ranks", profile.Info, "The run has %d ranks. A step takes as long as its slowest rank, and latency and layers are of that rank. On average rank %d is slowest with %s; the mean of the ranks is %s.",
		len(r.parts), r.parts[slowest].rank, milliseconds(j.mean[slowest]), milliseconds(mean))
}

// maxNamed limits the missing ranks that a finding names.
const maxNamed = 10

// absent adds a finding about the ranks of the world that have no file.
func absent(out *runlog.Run, parts []*part) {
	have := map[int64]bool{}
	for _, p := range parts {
		have[p.rank] = true
	}
	world := parts[0].world
	missing := world - int64(len(have))
	if world < 2 || missing <= 0 {
		return
	}
	var named []string
	for k := int64(0); k < world && len(named) < maxNamed; k++ {
		if !have[k] {
			named = append(named, fmt.Sprint(k))
		}
	}
	more := ""
	if missing > int64(len(named)) {
		more = " and others"
	}
	out.Found("pytorch.missing_ranks", profile.Warning, "Ranks without a file: %d of %d (%s%s). A slower one among them would make each step longer. Add their files.", missing, world, strings.Join(named, ", "), more)
}

func milliseconds(s float64) string { return fmt.Sprintf("%.4g ms", s*1e3) }

// ranksName is the name of a run by the common beginning of its files' names.
func ranksName(parts []*part) string {
	name := draft.Stem(parts[0].file)
	for _, p := range parts[1:] {
		other := draft.Stem(p.file)
		n := 0
		for n < min(len(name), len(other)) && name[n] == other[n] {
			n++
		}
		name = name[:n]
	}
	name = strings.TrimRight(name, "0123456789._- ")
	if name == "" {
		name = "trace"
	}
	return fmt.Sprintf("%s, %d ranks", strings.ToValidUTF8(name, ""), len(parts))
}
