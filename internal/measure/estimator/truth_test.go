package estimator

import (
	"math/rand/v2"
)

// truth is a fake engine on a fake machine: step times are known, and disturbances are injected.
type truth struct {
	steps []float64 // nanoseconds at full speed
	gap   float64   // nanoseconds between steps, in all
	// jitter is the relative standard deviation of a step's own time.
	jitter float64
	// resolution is that of the clock in nanoseconds, 0 for a perfect one.
	resolution float64
	// preempt is the rate of preemptions per second of work, each of lost nanoseconds on average;
	// seen is the fraction that the system reports.
	preempt, lost, seen float64
	// burst multiplies the rate of preemptions during the given fraction of the time, in
	// stretches of about stretch inferences.
	burst, part float64
	stretch     int
	// drift is the relative slowdown over the whole run; slow is the factor of a second speed,
	// which the machine has for half of the time in stretches of about stretch inferences.
	drift, slow float64
	random      *rand.Rand
}

// run returns inferences in chronological order, and the speed of the machine during each.
func (t *truth) run(n int) (runs []Inference, speeds []float64) {
	bursting, slowed := false, false
	for i := range n {
		if t.stretch > 0 && t.random.Float64() < 1/float64(t.stretch) {
			bursting = t.random.Float64() < t.part
			slowed = t.random.Float64() < 0.5
		}
		speed := 1 / (1 + t.drift*float64(i)/float64(n))
		if t.slow > 0 && slowed {
			speed /= t.slow
		}
		rate := t.preempt
		if bursting {
			rate *= t.burst
		}
		runs = append(runs, t.one(speed, rate))
		speeds = append(speeds, speed)
	}
	return runs, speeds
}

func (t *truth) one(speed, rate float64) Inference {
	r := Inference{Steps: make([]int64, len(t.steps))}
	now := 0.0
	clock := func() int64 {
		if t.resolution > 0 {
			return int64(float64(int64((now+t.random.Float64()*0)/t.resolution)) * t.resolution)
		}
		return int64(now)
	}
	now += t.random.Float64() * t.resolution // phase of the clock
	start := clock()
	for i, s := range t.steps {
		before := clock()
		took := s / speed * max(0.1, 1+t.jitter*t.random.NormFloat64())
		now += took
		for p := rate * took / 1e9; p > 0; p-- {
			if t.random.Float64() < p {
				now += t.lost * t.random.ExpFloat64()
				r.Disturbed = r.Disturbed || t.random.Float64() < t.seen
			}
		}
		r.Steps[i] = clock() - before
		now += t.gap / float64(len(t.steps)) / speed
	}
	r.Wall = clock() - start
	return r
}
