package estimator

import (
	"cmp"
	"math"
	"slices"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/base/stats"
)

// Inference holds the times of one inference, in nanoseconds.
type Inference struct {
	// Steps is the time of each step; steps that the slice lacks took no time.
	Steps []int64
	// Wall is the time of the inference, including the gaps between steps.
	Wall int64
	// Disturbed says that the system reported a disturbance during the inference, such as a
	// preemption.
	Disturbed bool
}

// MinUndisturbed is the number of undisturbed inferences from which on disturbed ones are left
// out.
const MinUndisturbed = 10

// Share is the fraction of an inference that a step takes.
type Share struct {
	Part float64
	// Low and High enclose the part of a repeated measurement with 95 % probability, NaN if there
	// are too few inferences.
	Low, High float64
}

// Breakdown says how an inference divides into its steps.
type Breakdown struct {
	// Used is the number of inferences that the parts were computed from, Disturbed the number of
	// those left out.
	Used, Disturbed int
	// Steps and Gaps add up to 1.
	Steps []Share
	Gaps  Share
	// Overlap is the sum of the steps as a multiple of the inference where steps ran at the same
	// time, else 1.
	Overlap float64
}

// Shares computes the parts of the given number of steps from inferences in chronological order.
// Consecutive undisturbed inferences form blocks. Each block gives the parts of the half of them
// whose durations are closest together, as ratios of sums: a change of the machine's speed
// cancels, and steps near the resolution of the clock are not rounded to it. The part is the
// median over the blocks.
func Shares(steps int, runs []Inference) Breakdown {
	b := Breakdown{Steps: make([]Share, steps), Overlap: 1}
	all := len(runs)
	runs = undisturbed(runs)
	b.Used, b.Disturbed = len(runs), all-len(runs)
	blocks := blockParts(steps, runs)
	if interrupted(runs) {
		blocks = stepParts(steps, runs)
	}
	if len(blocks) == 0 { // no inference took a step of the clock
		b.Gaps.Part = 1
		return b
	}
	total := b.centre(blocks)
	if total == 0 { // in each block other steps took all of the time
		total = b.centre([][]float64{parts(steps, runs)})
	}
	for i := range b.Steps {
		b.Steps[i].scale(total)
	}
	b.Gaps.scale(total)
	b.Overlap = overlap(runs)
	return b
}

// overlap returns the median of the sum of the steps over the duration, at least 1.
func overlap(runs []Inference) float64 {
	var ratios []float64
	for _, r := range runs {
		inside := int64(0)
		for _, t := range r.Steps {
			inside += t
		}
		if r.Wall > 0 {
			ratios = append(ratios, float64(inside)/float64(r.Wall))
		}
	}
	if len(ratios) == 0 {
		return 1
	}
	return max(1, stats.Median(ratios))
}

// centre sets each part to the median over the blocks and returns their sum.
func (b *Breakdown) centre(blocks [][]float64) (total float64) {
	column := make([]float64, len(blocks))
	for i := range len(b.Steps) + 1 {
		for k := range blocks {
			column[k] = blocks[k][i]
		}
		s := centre(column)
		total += s.Part
		if i < len(b.Steps) {
			b.Steps[i] = s
		} else {
			b.Gaps = s
		}
	}
	return total
}

func (s *Share) scale(total float64) {
	if total > 0 {
		s.Part, s.Low, s.High = s.Part/total, s.Low/total, s.High/total
	}
}

// undisturbed leaves out disturbed inferences if enough others remain.
func undisturbed(runs []Inference) []Inference {
	out := make([]Inference, 0, len(runs))
	for _, r := range runs {
		if !r.Disturbed {
			out = append(out, r)
		}
	}
	if len(out) < min(MinUndisturbed, len(runs)) {
		return runs
	}
	return out
}

// Walls returns the durations in seconds of the inferences that [Shares] uses.
func Walls(runs []Inference) []float64 {
	runs = undisturbed(runs)
	out := make([]float64, len(runs))
	for i, r := range runs {
		out[i] = float64(r.Wall) / 1e9
	}
	return out
}

// leastBlock is the number of inferences of a block from which on half of them can be left out,
// and fewBlocks the number of blocks from which on they have so many.
const leastBlock, fewBlocks = 4, 5

// blockParts returns for each block the parts of its steps, and last that of the gaps.
func blockParts(steps int, runs []Inference) [][]float64 {
	n := len(runs)
	b := n
	if n >= leastBlock*fewBlocks {
		b = min(n/leastBlock, stats.MostBlocks)
	}
	var out [][]float64
	for i := range b {
		if p := parts(steps, densestHalf(runs[i*n/b:(i+1)*n/b])); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// Limits of the search for disturbances that the system did not report.
const (
	// longInference is the duration in nanoseconds from which on most inferences can be hit: beside
	// other programs Linux lets a program run for about 3 ms at a time.
	longInference = 1e6
	// hidden is by which factor the median inference exceeds the sum of the undisturbed times of its
	// parts if most inferences are hit, each in other steps. Independent variations of the steps by
	// 3 % give 1.03.
	hidden = 1.05
	// stepRuns is the least number of inferences that undisturbed times of steps are taken from, and
	// densePart the part of them that is closest together.
	stepRuns  = 12
	densePart = 3
)

// interrupted reports whether about every inference was disturbed, each in other steps.
func interrupted(runs []Inference) bool {
	if len(runs) < stepRuns {
		return false
	}
	walls := make([]float64, len(runs))
	steps := 0
	for i, r := range runs {
		walls[i] = float64(r.Wall)
		steps = max(steps, len(r.Steps))
	}
	slices.Sort(walls)
	if stats.Quantile(walls, 0.5) < longInference {
		return false
	}
	return stats.Quantile(walls, 0.5) > hidden*stats.Sum(stepTimes(steps, runs))
}

// stepTimes returns the undisturbed time of each step, and last that of the gaps: the mean of the
// times that are closest together.
func stepTimes(steps int, runs []Inference) []float64 {
	out := make([]float64, steps+1)
	column := make([]float64, len(runs))
	for i := range out {
		for k, r := range runs {
			column[k] = r.at(i, steps)
		}
		slices.Sort(column)
		from, to := densest(len(column), max(1, len(column)/densePart), func(i int) float64 { return column[i] })
		out[i] = stats.Mean(column[from:to])
	}
	return out
}

// at returns the time of a step, or behind the last one that of the gaps.
func (r *Inference) at(i, steps int) float64 {
	if i < steps {
		if i < len(r.Steps) {
			return float64(r.Steps[i])
		}
		return 0
	}
	gaps := float64(r.Wall)
	for _, t := range r.Steps {
		gaps -= float64(t)
	}
	return max(0, gaps)
}

// stepParts is [blockParts] for inferences of which about every one was disturbed: the parts
// are those of the undisturbed times of the steps, each of which most disturbances missed.
func stepParts(steps int, runs []Inference) [][]float64 {
	n := len(runs)
	b := max(1, min(n/stepRuns, stats.MostBlocks))
	var out [][]float64
	for i := range b {
		p := stepTimes(steps, runs[i*n/b:(i+1)*n/b])
		total := stats.Sum(p)
		if !(total > 0) {
			continue
		}
		for k := range p {
			p[k] /= total
		}
		out = append(out, p)
	}
	return out
}

// densestHalf returns the half of the inferences whose durations are closest together, all below
// four. Disturbances that the system did not report scatter; up to half of the inferences may have
// them.
func densestHalf(runs []Inference) []Inference {
	s := slices.Clone(runs)
	sorting.Stable(s, func(a, b Inference) int { return cmp.Compare(a.Wall, b.Wall) })
	from, to := densest(len(s), len(s)-2*(len(s)/4), func(i int) float64 { return float64(s[i].Wall) })
	return s[from:to]
}

// densest returns the bounds of the k of n ascending values that span the least; of several, those
// nearest to the middle.
func densest(n, k int, at func(i int) float64) (from, to int) {
	best, off := math.Inf(1), 0
	for i := 0; i+k <= n; i++ {
		span, d := at(i+k-1)-at(i), max(2*i+k-n, n-2*i-k)
		if span < best || span == best && d < off {
			best, off, from = span, d, i
		}
	}
	return from, from + k
}

// parts divides the sums of the steps and of the gaps by that of the walls, nil if it is zero.
func parts(steps int, runs []Inference) []float64 {
	out := make([]float64, steps+1)
	wall, inside := 0.0, 0.0
	for _, r := range runs {
		wall += float64(r.Wall)
		for i, t := range r.Steps {
			out[i] += float64(t)
			inside += float64(t)
		}
	}
	// Steps may exceed the inference by a step of the clock.
	out[steps] = max(0, wall-inside)
	wall = max(wall, inside)
	if !(wall > 0) {
		return nil
	}
	for i := range out {
		out[i] /= wall
	}
	return out
}

// medianSpread is the standard error of a median of normal values relative to that of their mean,
// the square root of pi/2.
const medianSpread = 1.2533

// centre returns the median of the blocks' values and the interval for a repeated measurement.
func centre(values []float64) Share {
	s := Share{Part: stats.Median(values), Low: math.NaN(), High: math.NaN()}
	if r, ok := stats.RepeatedBlocks(values, 0); ok {
		half := medianSpread * (r.High - r.Low) / 2
		s.Low, s.High = max(0, s.Part-half), s.Part+half
	}
	return s
}
