package ab

import (
	"math"
)

const (
	// leastBlocks and mostBlocks bound the number of block pairs of a process.
	leastBlocks, mostBlocks = 3, 64
	// pilotBlocks is their number in the pilot: enough to tell the spread of blocks from that of
	// processes.
	pilotBlocks = 6
)

// blockLimits are the numbers of block pairs of a process that are possible.
type blockLimits struct{ least, pilot, most int }

func limitsOf(o *Options) blockLimits {
	if o.Single {
		return blockLimits{1, 1, 1}
	}
	return blockLimits{leastBlocks, pilotBlocks, mostBlocks}
}

// costs are the seconds that a round takes: to start and end its processes, and for each block of
// all alternatives.
type costs struct{ start, block float64 }

func (c costs) round(blocks int) float64 { return c.start + float64(blocks)*c.block }

// planned chooses the number of processes, and of blocks in each, that show the smallest effect
// within the seconds that are left after the pilot. tail is the probability of a false alarm of
// each comparison.
func planned(n noise, c costs, left, tail float64, pilot int, limits blockLimits) Plan {
	p := Plan{Between: n.between, Within: n.within, StartS: c.start, BlockS: c.block}
	processes := func(blocks int) int {
		return pilot + max(0, int(min(left/c.round(blocks), math.MaxInt32)))
	}
	least := math.Inf(1)
	for blocks := limits.least; blocks <= limits.most; blocks++ {
		count := processes(blocks)
		if count == pilot && p.Blocks > 0 {
			break
		}
		// More blocks must be worth it: their time is certain, the noise is an estimate.
		width := n.error(count, blocks) * found(tail, max(1, freedom(count)))
		if p.Blocks == 0 || width < 0.995*least {
			least, p.Blocks, p.Processes = width, blocks, count
		}
	}
	p.Detectable = detectable(n.error(p.Processes, p.Blocks), lastTail(tail, schedule(pilot, p.Processes)), p.Processes)
	return p
}
