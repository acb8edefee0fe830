package peaks

import (
	"context"
	"time"

	"github.com/opmeter/opmeter/internal/base/workers"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/measure/machine/rates"
)

// Bounds of the buffer of [Reading].
const (
	leastReading = 1 << 20
	mostReading  = 512 << 20
	// readingSlices is the minimum number of slices: other programs slow some of them down.
	readingSlices = 16
)

// Reading measures how fast the threads of a pool read a buffer of some bytes again and again, with
// less of it where the computer has little memory. What part of a cache that several virtual
// machines share is theirs, only such a measurement shows. The error is the context's if it ended
// first.
func Reading(ctx context.Context, pool *workers.Pool, bytes int64) (rates.Rate, error) {
	bytes = min(max(bytes, leastReading), mostReading)
	for n := machine.MemoryBytes(); bytes > leastReading && (n != nil && *n < 8*bytes || !spare(bytes)); {
		bytes /= 2
	}
	p := Probe{o: Options{Pool: pool, Usage: machine.ProcessUsage()}, now: time.Now}
	const block = 2 << 20 // of a work item
	bytes = (bytes + block - 1) / block * block
	x := &part{round: memoryRound(pool, buffer(bytes), true), amount: float64(bytes)}
	for x.slices < readingSlices || !x.settled() && x.slices < 2*readingSlices {
		if err := ctx.Err(); err != nil {
			return rates.Rate{}, err
		}
		p.slice(x)
	}
	return x.rate(), nil
}
