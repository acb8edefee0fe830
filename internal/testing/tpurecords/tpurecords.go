// Package tpurecords makes profile directories of Sophgo's tensor processors whose
// truth is known: a program of layers, simulated on two engines that wait for one
// another, written as the runtime and the compiler write it. Only tests, benchmarks and examples
// import it.
package tpurecords

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// Options says what is made. The zero value is a small program of BM1684X.
type Options struct {
	// Chip is the processor, [command.BM1684X] when nil.
	Chip *command.Chip
	// Commands is how many commands each subnet on the chip has, about 60 when 0.
	Commands int
	// LayerSize is how many commands each layer has at least, about five when 0.
	LayerSize int
	// Small makes commands short, so that counters wrap seldom.
	Small bool
	Seed  uint64
	// TIUStart and CopyStart are the counters of the engines when the first command
	// starts. Those of chips with one time base agree when TIUStart is 0.
	TIUStart, CopyStart uint32
	// TIUHz and CopyHz are the clocks that the chip really has, nominal when 0.
	TIUHz, CopyHz float64
	// Lose takes the record of every n-th command away, 0 for none.
	Lose int
	// Swap exchanges every n-th record with its neighbour, 0 for none.
	Swap int
	// Copies adds records of the runtime's copies of inputs and outputs.
	Copies bool
	// NoTIU and NoCopies leave the monitors out.
	NoTIU, NoCopies bool
	// BadTick puts a value that makes no sense where the firmware's tick should be.
	BadTick bool
	// NoLog, NoStream and NoEstimate leave files out.
	NoLog, NoStream, NoEstimate bool
	// Steps are the subnets of the launch, one static one on the chip when nil.
	Steps []Step
}

// Step is one run of a subnet.
type Step struct {
	// Number of the file.
	Number int
	Kind   block.SubnetKind
	Subnet uint32
	// Dynamic lets the firmware issue the commands.
	Dynamic bool
	// Extra is the layer type of the host or a condition.
	Extra uint64
	// HostS is how long the host says that the step took, seconds.
	HostS float64
}

// Command is one command of the truth.
type Command struct {
	DMA   bool
	Layer int
	// Own is its number from 1, Dep that of the other engine's command that it waits for.
	Own, Dep uint32
	// Store is the direction of a copy, Bytes what it moves.
	Store bool
	Bytes int64
	// Start and End are cycles of its engine since the first command.
	Start, End int64
	// Lost is set where no record is written.
	Lost bool
}

// Subnet is the program of a subnet.
type Subnet struct {
	ID       uint32
	Layers   int
	Commands []Command
	// FirstLayer is the number (line) of its first layer.
	FirstLayer int
}

// Directory is what was made.
type Directory struct {
	// Files by name.
	Files map[string][]byte
	// Subnets are the programs of those on the chip, in the order of the steps.
	Subnets []*Subnet
	Options Options
}

// Ratio is the clock of the tensor engine over that of the copies.
func (d *Directory) Ratio() float64 { return d.Options.TIUHz / d.Options.CopyHz }

// Make makes a directory.
func Make(o Options) *Directory {
	if o.Chip == nil {
		o.Chip = command.BM1684X
	}
	if o.Commands == 0 {
		o.Commands = 60
	}
	if o.TIUHz == 0 {
		o.TIUHz = o.Chip.TIUClock
	}
	if o.CopyHz == 0 {
		o.CopyHz = o.Chip.DMAClock
	}
	if o.Steps == nil {
		o.Steps = []Step{{HostS: 0.1}}
	}
	d := &Directory{Files: map[string][]byte{}, Options: o}
	have := map[uint32]*Subnet{}
	line := 10
	for _, s := range o.Steps {
		var sub *Subnet
		if s.Kind == block.OnTPU {
			sub = have[s.Subnet]
			if sub == nil {
				sub = simulate(&d.Options, s.Subnet, line)
				line += sub.Layers + 5
				have[s.Subnet] = sub
				d.Subnets = append(d.Subnets, sub)
			}
		}
		d.step(s, sub)
	}
	if !o.NoLog {
		d.Files["global.profile"] = d.log()
	}
	if !o.NoEstimate {
		d.Files["net_stat.sim"] = d.estimate()
	}
	return d
}

// simulate makes a program: each layer loads, computes and stores, with the loads of
// the next step ahead of the stores.
func simulate(o *Options, id uint32, line int) *Subnet {
	r := rand.New(rand.NewPCG(o.Seed, uint64(id)+1))
	s := &Subnet{ID: id, FirstLayer: line}
	var now [2]float64 // end of the latest command of each engine, seconds
	ends := [2][]float64{}
	hz := [2]float64{o.TIUHz, o.CopyHz}
	add := func(layer int, dma, store bool, dep int) int {
		e := 0
		if dma {
			e = 1
		}
		c := Command{DMA: dma, Layer: layer, Own: uint32(len(ends[e]) + 1), Dep: uint32(dep), Store: store}
		at := now[e]
		if dep > 0 {
			at = max(at, ends[1-e][dep-1])
		}
		// Three to six cycles for the engine to wake up.
		c.Start = int64(math.Ceil(at*hz[e])) + 3 + r.Int64N(4)
		length := 20 + r.Int64N(400)
		if o.Small {
			length = 5 + r.Int64N(30)
		}
		if dma {
			c.Bytes = 64 * (1 + r.Int64N(64))
			length += c.Bytes / 64
		}
		c.End = c.Start + length
		now[e] = float64(c.End) / hz[e]
		ends[e] = append(ends[e], now[e])
		s.Commands = append(s.Commands, c)
		return len(ends[e])
	}
	computed := 0
	load := func() int {
		a := add(s.Layers, true, false, max(0, computed-2))
		if r.IntN(2) == 0 {
			a = add(s.Layers, true, false, max(0, computed-2))
		}
		return a
	}
	// The next loads are issued before the results are stored, so that engines overlap.
	next := load()
	for begin := 0; len(s.Commands) < o.Commands; {
		a, l := next, s.Layers
		for range 1 + r.IntN(3) {
			computed = add(l, false, false, a)
		}
		if len(s.Commands)-begin >= o.LayerSize {
			s.Layers++
			begin = len(s.Commands)
		}
		next = load()
		add(l, true, true, computed)
	}
	s.Layers++
	if o.Lose > 0 {
		for i := range s.Commands {
			s.Commands[i].Lost = (i+1)%o.Lose == 0
		}
	}
	return s
}

// Span is the time from the first command's start to the end of the last one, seconds.
func (s *Subnet) Span(o *Options) float64 {
	least, most := math.Inf(1), 0.0
	for _, c := range s.Commands {
		if c.Lost {
			continue
		}
		hz := o.TIUHz
		if c.DMA {
			hz = o.CopyHz
		}
		least, most = min(least, float64(c.Start)/hz), max(most, float64(c.End)/hz)
	}
	return most - least
}

// Busy is the time of an engine, and of each layer on it.
func (s *Subnet) Busy(o *Options, dma bool) (all float64, layers []float64) {
	layers = make([]float64, s.Layers)
	for _, c := range s.Commands {
		if c.DMA != dma || c.Lost {
			continue
		}
		hz := o.TIUHz
		if c.DMA {
			hz = o.CopyHz
		}
		d := float64(c.End-c.Start) / hz
		all += d
		layers[c.Layer] += d
	}
	return all, layers
}

// Moved is the bytes loaded and stored by each layer, of commands with a record.
func (s *Subnet) Moved() (load, store []int64) {
	load, store = make([]int64, s.Layers), make([]int64, s.Layers)
	for _, c := range s.Commands {
		switch {
		case !c.DMA || c.Lost:
		case c.Store:
			store[c.Layer] += c.Bytes
		default:
			load[c.Layer] += c.Bytes
		}
	}
	return load, store
}

// Lost counts commands without a record, tensor commands and copies.
func (s *Subnet) Lost() (tiu, copies int) {
	for _, c := range s.Commands {
		switch {
		case !c.Lost:
		case c.DMA:
			copies++
		default:
			tiu++
		}
	}
	return tiu, copies
}

// bases are the counters of the engines at time 0.
func (d *Directory) bases() (tiu, dma int64) {
	o := &d.Options
	dma, tiu = int64(o.CopyStart), int64(o.TIUStart)
	if tiu == 0 && o.Chip != command.BM1684 && o.Chip != command.BM1684X {
		tiu = int64(math.Round(float64(dma) * d.Ratio()))
	}
	return tiu, dma
}

// streamBase is the address of a stream.
func streamBase(step Step, engine int) uint64 {
	return 0x1_0000_0000 + uint64(step.Subnet)<<20 + uint64(engine)<<16
}

// step makes the files of a step.
func (d *Directory) step(s Step, sub *Subnet) {
	o := &d.Options
	var out []byte
	begin := uint64(1_700_000_000_000_000 + s.Number*1_000_000)
	info := block.Step{Iteration: uint32(s.Number), Subnet: s.Subnet, Kind: s.Kind, Begin: begin, End: begin + uint64(s.HostS*1e6), Extra: s.Extra}
	if s.Dynamic {
		info.Extra = 1
	}
	out = block.Append(out, block.Summary, info.Append(nil))
	if sub == nil {
		d.Files[fmt.Sprintf("iter%d.profile", s.Number)] = out
		return
	}
	if !s.Dynamic {
		tiu, dma := d.streams(sub)
		counts := [2]uint32{uint32(countOf(sub, true)), uint32(countOf(sub, false))}
		if hasEnds(o.Chip) {
			counts[0], counts[1] = counts[0]+1, counts[1]+1
		}
		st := block.Streams{GDMABase: streamBase(s, 1), TIUBase: streamBase(s, 0), Count: 1, Groups: [][2]uint32{counts}}
		wide := o.Chip == command.BM1690
		if wide {
			st.Groups = nil
		}
		out = block.Append(out, block.Commands, st.Append(nil, wide))
		if !o.NoStream {
			d.Files[fmt.Sprintf("cmd_%x_0_0.dat", st.TIUBase)] = tiu
			d.Files[fmt.Sprintf("cmd_%x_0_1.dat", st.GDMABase)] = dma
		}
	}
	if !o.NoTIU {
		out = block.Append(out, block.MonitorBD, d.tiuRecords(sub).Append(nil))
	}
	if !o.NoCopies {
		out = block.Append(out, block.MonitorGDMA, d.copyRecords(sub).Append(nil))
	}
	if s.Dynamic || o.BadTick {
		records, extras := d.firmware(sub, s.Dynamic)
		out = block.Append(out, block.DynData, block.AppendDyn(nil, records))
		if len(extras) > 0 {
			out = block.Append(out, block.DynExtra, block.AppendExtras(nil, extras))
		}
	}
	d.Files[fmt.Sprintf("iter%d.profile", s.Number)] = out
}

func countOf(s *Subnet, dma bool) (n int) {
	for i := range s.Commands {
		if s.Commands[i].DMA == dma {
			n++
		}
	}
	return n
}

// hasEnds reports whether streams of a chip end with a command of their own.
func hasEnds(c *command.Chip) bool { return c != command.BM1684 }
