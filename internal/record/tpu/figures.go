package tpu

import (
	"math"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/profile"
)

// sums are the figures of a layer or of the whole, over all inferences.
type sums struct {
	tiuBusy, dmaBusy   float64 // seconds, all cores
	tiuStall, dmaStall float64 // seconds
	// seconds of the tensor engine's own count of useful cycles
	useful                            float64
	commands                          int64
	load, store, copied, move, filled int64 // bytes
	l2                                int64
	bursts, burstBytes                int64
	conflicts                         int64
	ops, spent                        float64
	// operations that the engine could have done while busy
	possible                float64
	hasOps, hasUseful       bool
	hasConflicts, hasBursts bool
	hasDMA, hasTIU          bool
	hasTStall, hasDStall    bool
}

// work adds up what engines did.
type work struct {
	r     *capture.Recording
	layer []sums
	total sums
	// Time by layer and inference.
	now             []float64    // of the inference under way
	latency         [][3]float64 // sum, least, most over inferences
	seen            []int64      // inferences in which the layer ran
	busy, shared    float64      // of the inference under way
	walls           []float64
	busyAll, inBoth float64
	wall            float64
	under           bool
}

func (w *work) grow(n int) {
	for len(w.layer) < n {
		w.layer = append(w.layer, sums{})
	}
	for len(w.now) < n {
		w.now = append(w.now, 0)
	}
}

// close ends the inference under way.
func (w *work) close() {
	if !w.under {
		return
	}
	for i, v := range w.now {
		for len(w.latency) <= i {
			w.latency, w.seen = append(w.latency, [3]float64{0, math.Inf(1), 0}), append(w.seen, 0)
		}
		l := &w.latency[i]
		l[0], l[2] = l[0]+v, max(l[2], v)
		if v > 0 {
			l[1] = min(l[1], v)
			w.seen[i]++
		}
		w.now[i] = 0
	}
	w.walls = append(w.walls, w.wall)
	w.busyAll, w.inBoth = w.busyAll+w.busy, w.inBoth+w.shared
	w.busy, w.shared, w.wall, w.under = 0, 0, 0, false
}

// engine adds the records of an engine.
func (w *work) engine(e *capture.Engine, m member) {
	k := w.r.Clock
	chip := w.r.Chip
	for i := range e.Len() {
		if e.Class[i] != capture.Work {
			continue
		}
		var s sums
		s.commands = 1
		d := e.Finish[i] - e.Begin[i]
		if e.Kind == command.TIU {
			w.tensor(&s, e, i, d)
		} else {
			s.hasDMA, s.dmaBusy = true, d
			if e.Stall != nil {
				s.hasDStall = true
				s.dmaStall = float64(e.Stall[i]) / k.DMA
			}
			from, to := direction(e, i, chip)
			n := payload(e, i, from, to)
			switch {
			case from == command.L2 || to == command.L2:
				s.l2 = n
			case from == command.NoSpace:
				s.filled = n
			case from == command.DDR && to == command.Local:
				s.load = n
			case from == command.Local && to == command.DDR:
				s.store = n
			case to == command.DDR:
				s.copied = n
			default:
				s.move = n
			}
			if e.ReadBursts != nil {
				s.hasBursts = true
				s.bursts = e.ReadBursts[i] + e.WriteBursts[i]
				s.burstBytes = n
				if from == command.DDR && to == command.DDR {
					s.burstBytes = 2 * n // read and written
				}
			}
		}
		w.total.add(&s)
		if l := m.layer[i]; l >= 0 {
			w.layer[l].add(&s)
		}
	}
}

// tensor takes a record of the tensor engine.
func (w *work) tensor(s *sums, e *capture.Engine, i int, d float64) {
	k := w.r.Clock
	s.hasTIU, s.tiuBusy = true, d
	if e.Stall != nil {
		s.hasTStall = true
		s.tiuStall = float64(e.Stall[i]) / k.TIU
	}
	if e.Useful != nil {
		s.hasUseful = true
		s.useful = float64(e.Useful[i]) / k.TIU
	}
	if e.Conflicts != nil {
		s.hasConflicts = true
		s.conflicts = e.Conflicts[i]
	}
	c := commandOf(e, i)
	if c == nil {
		return
	}
	if x, ok := c.Work(w.r.Chip); ok && !c.Op.System() {
		s.hasOps = true
		s.ops, s.spent = float64(x.Alg), float64(x.Arch)
		s.possible = d * peakOf(w.r.Chip, k.TIU, c.DType())
	}
}

// commandOf is the decoded command of a record, nil where it is not known.
func commandOf(e *capture.Engine, i int) *command.Command {
	if c := e.Program.Command(int(e.Command[i])); c != nil {
		return c
	}
	if k := e.Issue[i]; k >= 0 {
		return e.Issued[k].Cmd
	}
	return nil
}

// direction is where a copy went from and to: by its command, else by the counters.
func direction(e *capture.Engine, i int, chip *command.Chip) (from, to command.Space) {
	if e.Class[i] == capture.Runtime {
		// The runtime's own commands may have addresses as the memory's controller sees them,
		// without the bits that tell memories apart.
		return e.Ports(i)
	}
	if c := commandOf(e, i); c != nil {
		from, to = c.Spaces(chip)
		if c.Get(command.FillConst) == 1 {
			from = command.NoSpace // a constant of the command itself
		}
		if from != command.NoSpace || to != command.NoSpace {
			return from, to
		}
		if c.Op.System() {
			return command.NoSpace, command.NoSpace
		}
	}
	if k := int(e.Command[i]); k >= 0 && e.Program.System[k] {
		return command.NoSpace, command.NoSpace
	}
	return e.Ports(i)
}

// payload is what a copy moved: what was written at the local port for copies into
// local memory, and what was written to DDR for the others. Without fills, sums of all
// samples agree with the compiler's to the byte.
func payload(e *capture.Engine, i int, from, to command.Space) int64 {
	at := func(v []int64) int64 {
		if v == nil {
			return 0
		}
		return v[i]
	}
	if e.Kind == command.CDMA {
		return at(e.DDRWrite)
	}
	switch to {
	case command.Local, command.Static:
		return at(e.LocalWrite)
	case command.L2:
		if v := at(e.L2Write); v > 0 {
			return v
		}
		return at(e.DDRWrite)
	case command.DDR:
		return at(e.DDRWrite)
	}
	_ = from
	return max(at(e.LocalWrite), at(e.DDRWrite))
}

func (s *sums) add(o *sums) {
	s.tiuBusy, s.dmaBusy = s.tiuBusy+o.tiuBusy, s.dmaBusy+o.dmaBusy
	s.tiuStall, s.dmaStall, s.useful = s.tiuStall+o.tiuStall, s.dmaStall+o.dmaStall, s.useful+o.useful
	s.commands += o.commands
	s.load, s.store, s.copied, s.move, s.filled, s.l2 = s.load+o.load, s.store+o.store, s.copied+o.copied, s.move+o.move, s.filled+o.filled, s.l2+o.l2
	s.bursts, s.burstBytes, s.conflicts = s.bursts+o.bursts, s.burstBytes+o.burstBytes, s.conflicts+o.conflicts
	s.ops, s.spent, s.possible = s.ops+o.ops, s.spent+o.spent, s.possible+o.possible
	s.hasOps, s.hasUseful, s.hasConflicts = s.hasOps || o.hasOps, s.hasUseful || o.hasUseful, s.hasConflicts || o.hasConflicts
	s.hasBursts, s.hasDMA, s.hasTIU = s.hasBursts || o.hasBursts, s.hasDMA || o.hasDMA, s.hasTIU || o.hasTIU
	s.hasTStall, s.hasDStall = s.hasTStall || o.hasTStall, s.hasDStall || o.hasDStall
}

// peakOf is the most operations a second that a core's tensor engine can do with
// elements of a type: lanes x input channels x 4 outputs x 2 x clock; without the cube for
// 32-bit types, lanes x units x 2 x clock. 0 where the chip's widths are not known.
func peakOf(c *command.Chip, hz float64, t command.DType) float64 {
	cube := c.Cube(t)
	switch {
	case cube > 1:
		// 16-bit types of CV184X have half the outputs, too.
		outputs := 4.0
		if c == command.CV184X && cube < c.Cube8 {
			outputs = 2
		}
		return float64(c.Lanes*cube) * outputs * 2 * hz
	case c.EU(t) > 0:
		return float64(c.Lanes*c.EU(t)) * 2 * hz
	}
	return 0
}

// The figures that opmeter's table lacks. Busy times add up those of all engines and
// cores.
var (
	qTIU      = profile.Quantity{Key: "tiu_busy_s", Unit: "s", Head: "TIU busy", Name: "Tensor engine busy", Group: "Engines", Adds: true, Better: -1, Doc: "Time in which tensor engines ran commands of the layer, all cores together."}
	qDMA      = profile.Quantity{Key: "dma_busy_s", Unit: "s", Head: "DMA busy", Name: "Copy engines busy", Group: "Engines", Adds: true, Better: -1, Doc: "Time in which copy engines ran commands of the layer, all engines and cores together."}
	qCommands = profile.Quantity{Key: "commands", Head: "commands", Name: "Commands", Group: "Engines", Adds: true, Whole: true, Doc: "Commands of the layer that were recorded, without those that only order engines."}
	qLostCmds = profile.Quantity{Key: "commands_lost", Head: "lost", Name: "Commands without a record", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Commands of the layer whose records are missing: their time and work are in no figure."}
	qLoad     = profile.Quantity{Key: "load_bytes", Unit: "B", Head: "load", Name: "Loaded from DDR", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Bytes copied from DDR into local memory: what was written at the local port."}
	qStore    = profile.Quantity{Key: "store_bytes", Unit: "B", Head: "store", Name: "Stored to DDR", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Bytes copied from local memory to DDR: what was written to DDR. Constants that copy engines fill in are counted apart."}
	qCopy     = profile.Quantity{Key: "copy_bytes", Unit: "B", Head: "DDR to DDR", Name: "Copied within DDR", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Bytes copied from DDR to DDR, each counted once."}
	qMove     = profile.Quantity{Key: "local_move_bytes", Unit: "B", Head: "local moves", Name: "Moved within local memory", Group: "Engines", Adds: true, Whole: true, Doc: "Bytes that copy engines moved within local memory."}
	qFilled   = profile.Quantity{Key: "fill_bytes", Unit: "B", Head: "filled", Name: "Filled with a constant", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Bytes that copy engines wrote of one constant, such as padding."}
	qL2       = profile.Quantity{Key: "l2_bytes", Unit: "B", Head: "L2", Name: "Copied from or to L2 memory", Group: "Engines", Adds: true, Whole: true, Doc: "Bytes copied from or to the memory that cores share."}
	qRate     = profile.Quantity{Key: "dma_bytes_per_s", Unit: "B/s", Head: "DMA B/s", Name: "Rate of copies", Group: "Engines", Better: 1, Doc: "Bytes copied divided by the time in which copy engines were busy."}
	qOps      = profile.Quantity{Key: "useful_ops", Head: "useful ops", Name: "Useful operations", Group: "Engines", Adds: true, Doc: "Operations that the layer's tensor commands ask for, by the vendor's arithmetic; a multiply-accumulate is two."}
	qSpent    = profile.Quantity{Key: "spent_ops", Head: "spent ops", Name: "Spent operations", Group: "Engines", Adds: true, Better: -1, Doc: "Operations that the tensor engine spends on them, those on padded lanes, channels and areas included."}
	qFill     = profile.Quantity{Key: "ops_fill", Unit: "1", Head: "fill", Name: "Useful part of spent operations", Group: "Engines", Better: 1, Doc: "Useful operations divided by those that the tensor engine spends, 0 to 1."}
	qUse      = profile.Quantity{Key: "tiu_utilisation", Unit: "1", Head: "TIU util.", Name: "Tensor engine's utilisation", Group: "Engines", Better: 1, Doc: "Useful operations divided by what the tensor engine could do at its peak for the element type while it was busy."}
	qUseful   = profile.Quantity{Key: "tiu_useful_s", Unit: "s", Head: "TIU useful", Name: "Tensor engine's useful time", Group: "Engines", Adds: true, Doc: "The tensor engine's own count of cycles with useful work."}
	qTStall   = profile.Quantity{Key: "tiu_stall_s", Unit: "s", Head: "TIU stall", Name: "Tensor engine's stalls", Group: "Engines", Adds: true, Better: -1, Doc: "Time in which the tensor engine waited to read local memory."}
	qDStall   = profile.Quantity{Key: "dma_stall_s", Unit: "s", Head: "DMA stall", Name: "Copy engines' stalls", Group: "Engines", Adds: true, Better: -1, Doc: "Time in which copies waited at the local memory's port, reading and writing added up: it may be more than the engine's time."}
	qConflict = profile.Quantity{Key: "bank_conflicts", Unit: "cycles", Head: "conflicts", Name: "Bank conflicts", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "The tensor engine's own count of conflicts between banks of local memory."}
	qBursts   = profile.Quantity{Key: "bursts", Head: "bursts", Name: "Bursts", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Requests to DDR of copy engines."}
	qBurst    = profile.Quantity{Key: "bytes_per_burst", Unit: "B", Head: "B/burst", Name: "Bytes of a burst", Group: "Engines", Better: 1, Doc: "Bytes copied divided by the number of bursts."}
	qShared   = profile.Quantity{Key: "parallel_s", Unit: "s", Head: "parallel", Name: "Engines in parallel", Group: "Engines", Model: true, Better: 1, Doc: "Time in which two engines or more were busy at once."}
	qFLOPs    = profile.Quantity{Key: "model_flops", Head: "FLOPs", Name: "Operations of the model", Group: "Engines", Model: true, Whole: true, Doc: "Arithmetic operations of the model as its compiler counts them in the source model."}
	qMAC      = profile.Quantity{Key: "peak_utilisation", Unit: "1", Head: "of peak", Name: "Part of the peak", Group: "Engines", Model: true, Better: 1, Doc: "The model's operations divided by what the tensor engines could do at their peak in the time of one inference."}
	qHost     = profile.Quantity{Key: "host_interval_s", Unit: "s", Head: "host", Name: "Interval on the host", Group: "Engines", Model: true, Doc: "Time between the runtime's marks around the subnets on the host, the cost of profiling included. It is not the model's latency."}
	qCommand  = profile.Quantity{Key: "command_number", Head: "number", Name: "Number of the command", Group: "Engines", Doc: "Place of a command in its engine's stream, from 1."}
)

// ordered lists the figures, those that say most first.
var ordered = []profile.Quantity{
	qTIU, qDMA, qLoad, qStore, qCopy, qFilled, qL2, qMove, qRate, qOps, qUse, qFill, qSpent, qCommands, qLostCmds, qBurst, qConflict, qDStall,
	qTStall, qUseful, qBursts, qShared, qMAC, qFLOPs, qHost, qCommand,
}

// set puts the sums of a layer or of the whole into figures, as means over inferences.
func (s *sums) set(n float64, put func(q profile.Quantity, v float64)) {
	if s.commands > 0 {
		put(qCommands, float64(s.commands)/n)
	}
	if s.hasTIU {
		put(qTIU, s.tiuBusy/n)
	}
	if s.hasTStall {
		put(qTStall, s.tiuStall/n)
	}
	if s.hasUseful {
		put(qUseful, s.useful/n)
	}
	if s.hasConflicts {
		put(qConflict, float64(s.conflicts)/n)
	}
	if s.hasOps {
		put(qOps, s.ops/n)
		put(qSpent, s.spent/n)
		if s.spent > 0 {
			put(qFill, s.ops/s.spent)
		}
		if s.possible > 0 {
			put(qUse, s.ops/s.possible)
		}
	}
	if !s.hasDMA {
		return
	}
	put(qDMA, s.dmaBusy/n)
	if s.hasDStall {
		put(qDStall, s.dmaStall/n)
	}
	put(qLoad, float64(s.load)/n)
	put(qStore, float64(s.store)/n)
	put(qCopy, float64(s.copied)/n)
	if s.move > 0 {
		put(qMove, float64(s.move)/n)
	}
	if s.filled > 0 {
		put(qFilled, float64(s.filled)/n)
	}
	if s.l2 > 0 {
		put(qL2, float64(s.l2)/n)
	}
	if all := s.load + s.store + s.copied + s.move + s.filled + s.l2; s.dmaBusy > 0 {
		put(qRate, float64(all)/s.dmaBusy)
	}
	if s.hasBursts {
		put(qBursts, float64(s.bursts)/n)
		if s.bursts > 0 {
			put(qBurst, float64(s.burstBytes)/float64(s.bursts))
		}
	}
}

// fill puts figures into layers and totals.
func (w *work) fill(p *profile.Profile, qs *runlog.Quantities) {
	w.close()
	n := max(1, float64(len(w.walls)))
	slab := slab{}
	for i := range p.Layers {
		l := &p.Layers[i]
		if i < len(w.layer) && w.layer[i].commands > 0 {
			l.Figures = make(map[string]*profile.Metric, 12)
			w.layer[i].set(n, func(q profile.Quantity, v float64) {
				// Layers are many: what most of them have nothing of is left out.
				if v != 0 || q.Key == qTIU.Key || q.Key == qDMA.Key {
					l.Figures[q.Key] = slab.metric(v)
				}
			})
		}
		if i < len(w.latency) && w.seen[i] > 0 {
			l.Latency = overRuns(w.latency[i], n)
			if c := float64(w.seen[i]) / n; c != 1 {
				l.Calls = &c
			}
		}
	}
	w.total.set(n, func(q profile.Quantity, v float64) { qs.SetTotal(&p.Totals, q, v) })
	describe(p, qs)
	if len(w.walls) == 0 {
		return
	}
	wall := [3]float64{0, math.Inf(1), 0}
	for _, v := range w.walls {
		wall = [3]float64{wall[0] + v, min(wall[1], v), max(wall[2], v)}
	}
	p.Totals.Latency = overRuns(wall, n)
	if n > 1 && n <= profile.KeptSamples {
		p.Totals.LatencySamples = w.walls
	}
	qs.SetTotal(&p.Totals, qShared, w.inBoth/n)
	operators := 0.0
	for i := range p.Layers {
		if v, ok := p.Layers[i].Latency.Best(); ok {
			operators += v
		}
	}
	all := wall[0] / n
	operators = min(operators, all) // a rounding of the sum
	p.Reconcile = &profile.Reconcile{WallS: new(all), OperatorsS: new(operators), GapsS: new(all - operators)}
}

// slab makes metrics many at a time.
type slab struct {
	metrics []profile.Metric
	values  []float64
}

func (s *slab) metric(v float64) *profile.Metric {
	const many = 4096
	if len(s.metrics) == 0 {
		s.metrics, s.values = make([]profile.Metric, many), make([]float64, many)
	}
	m := &s.metrics[0]
	s.values[0] = v
	*m = profile.Metric{Kind: profile.Imported, Median: &s.values[0]}
	s.metrics, s.values = s.metrics[1:], s.values[1:]
	return m
}

// describe adds the descriptions of the figures that layers have.
func describe(p *profile.Profile, qs *runlog.Quantities) {
	have := map[string]bool{}
	for i := range p.Layers {
		for k := range p.Layers[i].Figures {
			have[k] = true
		}
	}
	var scratch profile.Totals
	for _, q := range ordered {
		if have[q.Key] {
			qs.SetTotal(&scratch, q, 0)
		}
	}
}

// overRuns is a time over several inferences: the value of one, else the mean with the
// extremes.
func overRuns(v [3]float64, n float64) *profile.Metric {
	if n == 1 {
		return profile.Value(profile.Imported, v[0], "")
	}
	mean := v[0] / n
	return &profile.Metric{Kind: profile.Imported, N: new(int64(n)), Mean: new(mean), Min: new(min(v[1], mean)), Max: new(max(v[2], mean)), Method: "mean over the inferences recorded"}
}

// step adds a step: what ran on the chip, or on the computer.
func (w *work) step(s *capture.Step, members map[*capture.Engine]member, host int32) {
	w.under = true
	if host >= 0 {
		w.now[host] += s.Length
		w.wall += s.Length
		w.busy += s.Length
		return
	}
	var streams []stream
	begin, end := math.Inf(1), math.Inf(-1)
	for _, c := range s.Cores {
		for _, e := range c.Engines {
			m := members[e]
			x := stream{begin: e.Begin, finish: e.Finish, layer: m.layer}
			for i := range e.Len() {
				if e.Class[i] == capture.Work {
					x.keep = append(x.keep, int32(i))
				}
				// Messages before the first command order the launch; those after it, and the
				// ends, are part of the program's time.
				if e.Class[i] == capture.Work {
					begin = min(begin, e.Begin[i])
				}
				if e.Class[i] == capture.Work || e.Class[i] == capture.Sync && e.Command[i] >= 0 {
					end = max(end, e.Finish[i])
				}
			}
			if len(x.keep) > 0 {
				sortByBegin(&x)
				streams = append(streams, x)
			}
		}
	}
	if len(streams) == 0 {
		return
	}
	busy, shared := divide(streams, func(l int32, d float64) {
		if l >= 0 {
			w.now[l] += d
		}
	})
	w.busy, w.shared = w.busy+busy, w.shared+shared
	w.wall += end - begin
}

// hostTimed reports whether a step's time is the host's.
func hostTimed(s *capture.Step) bool {
	return s.HasInfo && s.Info.Kind != block.OnTPU
}
