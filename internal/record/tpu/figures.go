package tpu

import (
	"cmp"
	"math"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/profile"
)

// figure is an index of [quantities] and of [sums].
type figure int

// The figures, the most informative first. The last two have no quantity: operations that the
// tensor engine could have done while it was busy, and bytes of bursts.
const (
	qTIU, qDMA, qLoad, qStore figure = 4 * iota, 4*iota + 1, 4*iota + 2, 4*iota + 3
	qCopy, qFilled, qL2, qMove
	qRate, qOps, qUse, qFill
	qSpent, qCommands, qLostCmds, qBurst
	qConflict, qDStall, qTStall, qUseful
	qBursts, qShared, qMAC, qFLOPs
	qHost, qCommand, sPossible, sBurstBytes

	figureCount = 4 * iota
)

// sums contains the figures of a layer or of the model, over all inferences.
type sums struct {
	v     [figureCount]float64
	known [figureCount]bool
}

// add adds a value, which makes the figure known.
func (s *sums) add(f figure, v float64) {
	s.v[f] += v
	s.known[f] = true
}

func (s *sums) addAll(o *sums) {
	for f := range s.v {
		s.v[f] += o.v[f]
		s.known[f] = s.known[f] || o.known[f]
	}
}

// addCopy adds a copy of n bytes between two memories.
func (s *sums) addCopy(from, to command.Space, n int64) {
	for _, f := range []figure{qLoad, qStore, qCopy} {
		s.known[f] = true
	}
	f := qMove
	switch {
	case from == command.L2 || to == command.L2:
		f = qL2
	case from == command.NoSpace:
		f = qFilled
	case from == command.DDR && to == command.Local:
		f = qLoad
	case from == command.Local && to == command.DDR:
		f = qStore
	case to == command.DDR:
		f = qCopy
	}
	if n > 0 {
		s.add(f, float64(n))
	}
}

type work struct {
	r     *capture.Recording
	layer []sums
	total sums
	// Time by layer and inference.
	now          []float64    // of the current inference
	latency      [][3]float64 // sum, least, most over inferences
	seen         []int64      // inferences in which the layer ran
	walls        []float64
	inBoth       float64
	wall, shared float64 // of the current inference
	open         bool    // an inference has begun
}

func (w *work) grow(n int) {
	if more := n - len(w.layer); more > 0 {
		w.layer = append(w.layer, make([]sums, more)...)
		w.now = append(w.now, make([]float64, more)...)
	}
}

func (w *work) close() {
	if !w.open {
		return
	}
	for i, v := range w.now {
		if len(w.latency) <= i {
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
	w.inBoth += w.shared
	w.shared, w.wall, w.open = 0, 0, false
}

func (w *work) engine(e *capture.Engine, m member) {
	k := w.r.Clock
	for i := range e.Len() {
		if e.Class[i] != capture.Work {
			continue
		}
		var s sums
		s.add(qCommands, 1)
		d := e.Finish[i] - e.Begin[i]
		if e.Kind == command.TIU {
			w.tensor(&s, e, i, d)
		} else {
			s.add(qDMA, d)
			if e.Stall != nil {
				s.add(qDStall, float64(e.Stall[i])/k.DMA)
			}
			from, to := direction(e, i, w.r.Chip)
			n := payload(e, i, to)
			s.addCopy(from, to, n)
			if e.ReadBursts != nil {
				s.add(qBursts, float64(e.ReadBursts[i]+e.WriteBursts[i]))
				if from == command.DDR && to == command.DDR {
					n *= 2 // read and written
				}
				s.add(sBurstBytes, float64(n))
			}
		}
		w.total.addAll(&s)
		if l := m.layer[i]; l >= 0 {
			w.layer[l].addAll(&s)
		}
	}
}

func (w *work) tensor(s *sums, e *capture.Engine, i int, d float64) {
	k := w.r.Clock
	s.add(qTIU, d)
	if e.Stall != nil {
		s.add(qTStall, float64(e.Stall[i])/k.TIU)
	}
	if e.Useful != nil {
		s.add(qUseful, float64(e.Useful[i])/k.TIU)
	}
	if e.Conflicts != nil {
		s.add(qConflict, float64(e.Conflicts[i]))
	}
	c := commandOf(e, i)
	if c == nil || c.Op.System() {
		return
	}
	if x, ok := c.Work(w.r.Chip); ok {
		s.add(qOps, float64(x.Alg))
		s.add(qSpent, float64(x.Arch))
		s.add(sPossible, d*peakOf(w.r.Chip, k.TIU, c.DType()))
	}
}

// commandOf returns the decoded command of a record, nil if it is unknown.
func commandOf(e *capture.Engine, i int) *command.Command {
	if c := e.Program.Command(int(e.Command[i])); c != nil {
		return c
	}
	if k := e.Issue[i]; k >= 0 {
		return e.Issued[k].Cmd
	}
	return nil
}

// direction returns the memories of a copy by its command, else by the counters.
func direction(e *capture.Engine, i int, chip *command.Chip) (from, to command.Space) {
	if e.Class[i] == capture.Runtime {
		// The runtime's own commands may contain addresses of the memory controller, without the
		// bits of the memory.
		return e.Ports(i)
	}
	if c := commandOf(e, i); c != nil {
		from, to = c.Spaces(chip)
		if c.Get(command.FillConst) == 1 {
			from = command.NoSpace // a constant of the command itself
		}
		if from != command.NoSpace || to != command.NoSpace || c.Op.System() {
			return from, to
		}
	}
	if k := int(e.Command[i]); k >= 0 && e.Program.System[k] {
		return command.NoSpace, command.NoSpace
	}
	return e.Ports(i)
}

// payload returns the bytes that a copy moved: the bytes written at the local port for copies
// into local memory, and the bytes written to DDR for others. Without fills, the sums of all
// samples agree with the compiler's sums.
func payload(e *capture.Engine, i int, to command.Space) int64 {
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
		return cmp.Or(at(e.L2Write), at(e.DDRWrite))
	case command.DDR:
		return at(e.DDRWrite)
	}
	return max(at(e.LocalWrite), at(e.DDRWrite))
}

// peakOf returns the most operations per second of a core's tensor engine for an element type:
// lanes × input channels × 4 outputs × 2 × clock, and for 32-bit types, which do not use the
// cube, lanes × units × 2 × clock. It is 0 if the chip's widths are unknown.
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

// quantities are the quantities that opmeter's table lacks. Busy times are sums over all engines
// and cores.
var quantities = [...]profile.Quantity{
	qTIU:      {Key: "tiu_busy_s", Unit: "s", Head: "TIU busy", Name: "Tensor engine busy", Group: "Engines", Adds: true, Better: -1, Doc: "Time in which tensor engines ran commands of the layer, all cores together."},
	qDMA:      {Key: "dma_busy_s", Unit: "s", Head: "DMA busy", Name: "Copy engines busy", Group: "Engines", Adds: true, Better: -1, Doc: "Time in which copy engines ran commands of the layer, all engines and cores together."},
	qLoad:     {Key: "load_bytes", Unit: "B", Head: "load", Name: "Loaded from DDR", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Bytes copied from DDR into local memory: what was written at the local port."},
	qStore:    {Key: "store_bytes", Unit: "B", Head: "store", Name: "Stored to DDR", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Bytes copied from local memory to DDR: what was written to DDR. Constants that copy engines fill in are counted apart."},
	qCopy:     {Key: "copy_bytes", Unit: "B", Head: "DDR to DDR", Name: "Copied within DDR", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Bytes copied from DDR to DDR, each counted once."},
	qFilled:   {Key: "fill_bytes", Unit: "B", Head: "filled", Name: "Filled with a constant", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Bytes that copy engines wrote of one constant, such as padding."},
	qL2:       {Key: "l2_bytes", Unit: "B", Head: "L2", Name: "Copied from or to L2 memory", Group: "Engines", Adds: true, Whole: true, Doc: "Bytes copied from or to the memory that cores share."},
	qMove:     {Key: "local_move_bytes", Unit: "B", Head: "local moves", Name: "Moved within local memory", Group: "Engines", Adds: true, Whole: true, Doc: "Bytes that copy engines moved within local memory."},
	qRate:     {Key: "dma_bytes_per_s", Unit: "B/s", Head: "DMA B/s", Name: "Rate of copies", Group: "Engines", Better: 1, Doc: "Bytes copied divided by the time in which copy engines were busy."},
	qOps:      {Key: "useful_ops", Head: "useful ops", Name: "Useful operations", Group: "Engines", Adds: true, Doc: "Operations that the layer's tensor commands ask for, by the vendor's arithmetic; a multiply-accumulate is two."},
	qUse:      {Key: "tiu_utilisation", Unit: "1", Head: "TIU util.", Name: "Tensor engine's utilisation", Group: "Engines", Better: 1, Doc: "Useful operations divided by what the tensor engine could do at its peak for the element type while it was busy."},
	qFill:     {Key: "ops_fill", Unit: "1", Head: "fill", Name: "Useful part of spent operations", Group: "Engines", Better: 1, Doc: "Useful operations divided by those that the tensor engine spends, 0 to 1."},
	qSpent:    {Key: "spent_ops", Head: "spent ops", Name: "Spent operations", Group: "Engines", Adds: true, Better: -1, Doc: "Operations that the tensor engine spends on them, those on padded lanes, channels and areas included."},
	qCommands: {Key: "commands", Head: "commands", Name: "Commands", Group: "Engines", Adds: true, Whole: true, Doc: "Commands of the layer that were recorded, without those that only order engines."},
	qLostCmds: {Key: "commands_lost", Head: "lost", Name: "Commands without a record", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Commands of the layer whose records are missing: their time and work are in no figure."},
	qBurst:    {Key: "bytes_per_burst", Unit: "B", Head: "B/burst", Name: "Bytes of a burst", Group: "Engines", Better: 1, Doc: "Bytes copied divided by the number of bursts."},
	qConflict: {Key: "bank_conflicts", Unit: "cycles", Head: "conflicts", Name: "Bank conflicts", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "The tensor engine's own count of conflicts between banks of local memory."},
	qDStall:   {Key: "dma_stall_s", Unit: "s", Head: "DMA stall", Name: "Copy engines' stalls", Group: "Engines", Adds: true, Better: -1, Doc: "Time in which copies waited at the local memory's port, reading and writing added up: it may be more than the engine's time."},
	qTStall:   {Key: "tiu_stall_s", Unit: "s", Head: "TIU stall", Name: "Tensor engine's stalls", Group: "Engines", Adds: true, Better: -1, Doc: "Time in which the tensor engine waited to read local memory."},
	qUseful:   {Key: "tiu_useful_s", Unit: "s", Head: "TIU useful", Name: "Tensor engine's useful time", Group: "Engines", Adds: true, Doc: "The tensor engine's own count of cycles with useful work."},
	qBursts:   {Key: "bursts", Head: "bursts", Name: "Bursts", Group: "Engines", Adds: true, Whole: true, Better: -1, Doc: "Requests to DDR of copy engines."},
	qShared:   {Key: "parallel_s", Unit: "s", Head: "parallel", Name: "Engines in parallel", Group: "Engines", Model: true, Better: 1, Doc: "Time in which two engines or more were busy at once."},
	qMAC:      {Key: "peak_utilisation", Unit: "1", Head: "of peak", Name: "Part of the peak", Group: "Engines", Model: true, Better: 1, Doc: "The model's operations divided by what the tensor engines could do at their peak in the time of one inference."},
	qFLOPs:    {Key: "model_flops", Head: "FLOPs", Name: "Operations of the model", Group: "Engines", Model: true, Whole: true, Doc: "Arithmetic operations of the model as its compiler counts them in the source model."},
	qHost:     {Key: "host_interval_s", Unit: "s", Head: "host", Name: "Interval on the host", Group: "Engines", Model: true, Doc: "Time between the runtime's marks around the subnets on the host, the cost of profiling included. It is not the model's latency."},
	qCommand:  {Key: "command_number", Head: "number", Name: "Number of the command", Group: "Engines", Doc: "Place of a command in its engine's stream, from 1."},
}

// ratios are the figures that divide sums by another sum.
var ratios = []struct {
	q, by figure
	of    []figure
}{
	{qFill, qSpent, []figure{qOps}},
	{qUse, sPossible, []figure{qOps}},
	{qRate, qDMA, []figure{qLoad, qStore, qCopy, qMove, qFilled, qL2}},
	{qBurst, qBursts, []figure{sBurstBytes}},
}

// set calls put with the figures of a layer or of the model, as means over n inferences.
func (s *sums) set(n float64, put func(f figure, v float64)) {
	for i := range quantities {
		f := figure(i)
		optional := f == qCommands || f == qMove || f == qFilled || f == qL2
		if s.known[f] && (s.v[f] > 0 || !optional) {
			put(f, s.v[f]/n)
		}
	}
	for _, x := range ratios {
		total := 0.0
		for _, f := range x.of {
			total += s.v[f]
		}
		if by := s.v[x.by]; by > 0 {
			put(x.q, total/by)
		}
	}
}

func (w *work) fill(p *profile.Profile, qs *runlog.Quantities) {
	w.close()
	n := max(1, float64(len(w.walls)))
	slab := slab{}
	var have [figureCount]bool
	for i := range p.Layers {
		l := &p.Layers[i]
		if i < len(w.layer) && w.layer[i].v[qCommands] > 0 {
			l.Figures = make(map[string]*profile.Metric, 12)
			w.layer[i].set(n, func(f figure, v float64) {
				// Figures that are 0 for most layers are left out: profiles may have many layers.
				if v != 0 || f == qTIU || f == qDMA {
					l.Figures[quantities[f].Key] = slab.metric(v)
					have[f] = true
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
	w.total.set(n, func(f figure, v float64) { qs.SetTotal(&p.Totals, quantities[f], v) })
	for f, q := range quantities {
		if have[f] {
			qs.SetTotal(&profile.Totals{}, q, 0) // adds its description
		}
	}
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
	qs.SetTotal(&p.Totals, quantities[qShared], w.inBoth/n)
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

// slab allocates metrics many at a time.
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

// overRuns returns a time over n inferences: the value of one, else the mean with the extremes.
func overRuns(v [3]float64, n float64) *profile.Metric {
	if n == 1 {
		return profile.Value(profile.Imported, v[0], "")
	}
	mean := v[0] / n
	return &profile.Metric{Kind: profile.Imported, N: new(int64(n)), Mean: new(mean), Min: new(min(v[1], mean)), Max: new(max(v[2], mean)), Method: "mean over the inferences recorded"}
}

// step adds a step that ran on the chip, or on the host as a layer.
func (w *work) step(s *capture.Step, members map[*capture.Engine]member, host int32) {
	w.open = true
	if host >= 0 {
		w.now[host] += s.Length
		w.wall += s.Length
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
					begin = min(begin, e.Begin[i])
				}
				// Messages before the first command belong to the launch. Those after it, and the
				// ends, belong to the program.
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
	_, shared := divide(streams, func(l int32, d float64) {
		if l >= 0 {
			w.now[l] += d
		}
	})
	w.shared += shared
	w.wall += end - begin
}

// hostTimed reports whether the time of a step comes from the host.
func hostTimed(s *capture.Step) bool { return s.HasInfo && s.Info.Kind != block.OnTPU }
