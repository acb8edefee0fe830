package capture

import (
	"cmp"
	"fmt"
	"math"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

const maxStream = 1 << 31 // bytes

func programOf(chip *command.Chip, list []command.Command, stop *command.Stop) Program {
	p := Program{Commands: list, Stop: stop, Dep: make([]uint32, len(list)), Func: make([]uint8, len(list)), System: make([]bool, len(list))}
	for i := range list {
		c := &list[i]
		p.Dep[i], p.Func[i] = c.Dep, uint8(c.Func())
		p.System[i] = c.Op.System() && c.Op.Type >= 0
		const tableWrite = 12 // writes a table register for the operation that needs it
		if c.Op.Engine == command.TIU && p.Func[i] == tableWrite && chip != command.BM1684 {
			p.System[i] = false
		}
	}
	p.Sections = sectionsOfCommands(chip, list)
	p.unwrapDeps(chip)
	return p
}

// sectionsOfCommands returns where own ids restart. The counter of ids wraps at 2^16 or 2^20.
func sectionsOfCommands(chip *command.Chip, list []command.Command) []int {
	cuts := []int{0}
	if !chip.Own {
		return cuts
	}
	for i := 1; i < len(list); i++ {
		a, b := list[i-1].ID, list[i].ID
		if b <= a && !(b < 1000 && a > 65000 && (a&0xFFFF > 65000 || a&0xFFFFF > 1<<20-1000)) {
			cuts = append(cuts, i)
		}
	}
	return cuts
}

func idBits(chip *command.Chip) int {
	if chip == command.BM1684 {
		return 16
	}
	return 20
}

// unwrapDeps undoes wraps of the ids of the other engine: a command waits for the same command as
// those before it, or for a later one.
func (p *Program) unwrapDeps(chip *command.Chip) {
	wrap := uint32(1) << idBits(chip)
	for s := range p.Sections {
		lo, hi := p.bounds(s)
		var turns, last uint32
		for i := lo; i < hi; i++ {
			d := p.Dep[i]
			if d == 0 || d >= wrap {
				continue
			}
			if d < 1000 && last > wrap-1000 {
				turns += wrap
			}
			last = d
			p.Dep[i] = d + turns
		}
	}
}

// stream decodes the stream of an engine from its file. ok is false without a stream.
func (r *Recording) stream(c *Core, e *Engine) (p Program, ok bool) {
	if !c.HasStreams {
		return p, false
	}
	s := &c.Streams
	from, offset, code := s.TIUBase, s.TIUOffset, 0
	switch e.Kind {
	case command.GDMA:
		from, offset, code = s.GDMABase, s.GDMAOffset, 1
	case command.SDMA:
		from, offset, code = s.SDMABase, s.SDMAOffset, 5
	}
	f := cmp.Or(r.streams[StreamKey{from, c.Index, code}], r.streams[StreamKey{from, -1, code}])
	if f == nil {
		return p, false
	}
	data, err := f.Read(maxStream)
	if err != nil && len(data) == 0 {
		r.Dropped.Add(fmt.Sprintf("command streams that cannot be read (%v)", err), 1)
		return p, false
	}
	r.Files++
	if offset >= uint64(len(data)) {
		r.Dropped.Add(fmt.Sprintf("command streams that begin behind the end of %s", f.Name), 1)
		return p, false
	}
	count := 0
	if r.Chip.Own { // streams of other chips have an end command
		for _, g := range s.Groups {
			n := g[1]
			if e.Kind == command.GDMA {
				n = g[0]
			}
			count = min(count+int(n), math.MaxInt32)
		}
		if count == 0 {
			return p, false
		}
	}
	list, stop := command.Decode(r.Chip, e.Kind, data[offset:], count)
	return programOf(r.Chip, list, stop), true
}

// logKey identifies the commands of one engine in the log.
type logKey struct {
	subnet int32
	core   uint8
	dma    bool
}

// logLines sorts the lines of the log by engine, once.
func (r *Recording) logLines() map[logKey][]int32 {
	if r.byEngine == nil {
		lists := map[logKey]*[]int32{}
		c := &r.Log.Commands
		var last logKey
		var list *[]int32
		for i := range c.Len() {
			if k := (logKey{c.Subnet[i], c.Core[i], c.DMA[i]}); k != last || list == nil {
				if last, list = k, lists[k]; list == nil {
					list = new([]int32)
					lists[k] = list
				}
			}
			*list = append(*list, int32(i))
		}
		r.byEngine = map[logKey][]int32{}
		for k, list := range lists {
			r.byEngine[k] = *list
		}
	}
	return r.byEngine
}

// programs finds the programs of the engines of a core and their lines of the log. The k-th line
// of an engine is its k-th command.
func (r *Recording) programs(s *Step, c *Core) {
	if r.raw || !s.Dynamic() {
		for _, kind := range []command.Engine{command.TIU, command.GDMA, command.SDMA} {
			e := c.Engine(kind)
			if e == nil {
				e = &Engine{Kind: kind}
			}
			if e.Program.Len() == 0 {
				if p, ok := r.stream(c, e); ok {
					e.Program = p
				}
			}
			r.attachLog(s, c, e)
			if c.Engine(kind) == nil && e.Program.Len() > 0 {
				c.Engines = append(c.Engines, e)
			}
		}
	}
	for _, e := range c.Engines {
		e.Issued = r.issued(c, e)
	}
}

// attachLog joins a program with the log. Without a stream, the program comes from the log.
func (r *Recording) attachLog(s *Step, c *Core, e *Engine) {
	// The log numbers cores by their order.
	lines := r.logLines()[logKey{s.Subnet(), uint8(c.Index), e.Kind != command.TIU}]
	if len(lines) == 0 || e.Kind != command.TIU && e.Kind != command.GDMA {
		return
	}
	l := &r.Log.Commands
	p := &e.Program
	if p.Len() == 0 {
		if e.Len() == 0 {
			return
		}
		p.Sections, p.Commands = []int{0}, nil
		r.extend(e, lines)
		p.Lines = lines
		return
	}
	decoded := p.Len()
	n := min(len(lines), decoded)
	for k, i := range lines[:n] {
		if l.Func[i] < 0 || uint8(l.Func[i]) == p.Func[k] {
			p.Agree++
		} else {
			p.Disagree++
		}
	}
	// A log of another model would agree only by chance.
	if p.Disagree*10 <= n {
		p.Lines = lines[:n]
		if p.Stop != nil && len(lines) > decoded && len(p.Sections) == 1 {
			// The log contains the commands after the place where decoding ended.
			r.extend(e, lines[decoded:])
			p.Lines = lines
		}
	}
}

func (r *Recording) extend(e *Engine, lines []int32) {
	l, p := &r.Log.Commands, &e.Program
	system := uint8(command.SystemType(e.Kind))
	for _, i := range lines {
		f := uint8(max(l.Func[i], 0))
		d := l.Dep[i]
		if r.Chip.Tagged {
			d &= 1<<20 - 1
		}
		p.Dep, p.Func, p.System = append(p.Dep, d), append(p.Func, f), append(p.System, f == system)
	}
	p.unwrapDeps(r.Chip)
}

// Command returns the decoded command at a place of the program, nil if it was not decoded.
func (p *Program) Command(k int) *command.Command {
	if k < 0 || k >= len(p.Commands) {
		return nil
	}
	return &p.Commands[k]
}
