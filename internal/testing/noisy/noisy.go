// Package noisy simulates a machine that measures versions of a program: a source of blocks with
// known effects and noise, and its clock, so that no test waits.
package noisy

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/opmeter/opmeter/internal/measure/ab"
)

// Machine is a simulated machine. Each process has a speed of its own, the speed of the machine
// drifts, and bursts of other load slow single blocks.
type Machine struct {
	// Seconds is the time of an inference of the first version, Effects the ratios of the versions
	// to it.
	Seconds float64
	Effects []float64
	// Between, Within and Drift are standard deviations of logarithms: of processes, of blocks, and
	// of the steps of a random walk that all versions share.
	Between, Within, Drift float64
	// Burst is the probability that a block takes up to half as long again.
	Burst float64
	// Start and Each are the seconds of starting a process and of a block.
	Start, Each float64

	random  *rand.Rand
	now     time.Time
	speed   float64
	offsets []float64
}

var _ ab.Blocks = (*Machine)(nil)

// New returns a virtual machine with noise that a cloud runner has, for versions with some ratios
// to the first.
func New(seed uint64, effects ...float64) *Machine {
	return &Machine{
		Seconds: 1e-3, Effects: append([]float64{1}, effects...), Between: 0.02, Within: 0.03, Drift: 0.003, Burst: 0.05,
		Start: 0.1, Each: 0.01, random: rand.New(rand.NewPCG(seed, 17)),
	}
}

// Now is the machine's clock.
func (m *Machine) Now() time.Time { return m.now }

func (m *Machine) advance(seconds float64) {
	m.now = m.now.Add(time.Duration(seconds * float64(time.Second)))
}

// Begin implements [ab.Blocks].
func (m *Machine) Begin(ctx context.Context, _ int) error {
	m.offsets = m.offsets[:0]
	for range m.Effects {
		m.offsets = append(m.offsets, m.Between*m.random.NormFloat64())
		m.advance(m.Start)
	}
	return ctx.Err()
}

// Block implements [ab.Blocks].
func (m *Machine) Block(ctx context.Context, _, version int) (ab.Block, error) {
	m.advance(m.Each)
	m.speed += m.Drift * m.random.NormFloat64()
	v := m.speed + math.Log(m.Effects[version]) + m.offsets[version] + m.Within*m.random.NormFloat64()
	if m.random.Float64() < m.Burst {
		v += 0.4 * m.random.Float64()
	}
	return ab.Block{Seconds: m.Seconds * math.Exp(v), Inferences: 10}, ctx.Err()
}

// End implements [ab.Blocks].
func (m *Machine) End(int) {}
