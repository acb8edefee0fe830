package capture

import (
	"slices"

	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// section is a run of records or commands with rising numbers.
type section struct{ lo, hi int }

func (s section) len() int { return s.hi - s.lo }

// sections divides records where the id does not rise, and undoes the wraps of ids with a number
// of bits. expect is the expected number of commands, 0 if unknown. Exchanged neighbours stay in
// one section.
func sections(ids []uint32, bits, expect int) []section {
	if len(ids) == 0 {
		return nil
	}
	var out []section
	lo := 0
	wrap := uint32(0)
	if bits > 0 && bits < 32 && (expect == 0 || expect > 1<<bits) {
		wrap = 1 << bits
	}
	var turns uint32
	high, below := int64(-1), int64(-1) // the highest id of the section, and the one before
	for i := range ids {
		id := int64(ids[i]) + int64(turns)
		switch {
		case id > high:
			below, high = high, id
		case wrap > 0 && high%int64(wrap) > int64(wrap)-536 && ids[i] < 1000:
			turns += wrap
			id += int64(wrap)
			below, high = high, id
		case id > below && id != high && high-id <= 2 && i > lo:
			// It fits into the gap before the last record.
			below = id
		default:
			out = append(out, section{lo, i})
			lo, turns = i, 0
			id = int64(ids[i])
			below, high = -1, id
		}
		ids[i] = uint32(id)
	}
	return append(out, section{lo, len(ids)})
}

// idWidth returns the width of the counter of commands in an engine's records.
func (r *Recording) idWidth(e *Engine) int {
	if l := block.LayoutOf(r.Chip.Name, e.Kind); l != nil {
		return l.IDBits
	}
	return 0
}

func (r *Recording) match(s *Step, c *Core, e *Engine) {
	n := e.Len()
	none := []int32{-1}
	e.Command, e.Issue, e.Class = slices.Repeat(none, n), slices.Repeat(none, n), make([]Class, n)
	e.Record = slices.Repeat(none, e.Program.Len())
	recs := sections(e.ID, r.idWidth(e), max(e.Program.Len(), len(e.Issued)))
	taken := make([]bool, len(recs))
	if e.Program.Len() > 0 && n > 0 {
		r.matchProgram(e, recs, taken)
	}
	if len(e.Issued) > 0 {
		var left []section
		var at []int
		for i, rec := range recs {
			if !taken[i] {
				left, at = append(left, rec), append(at, i)
			}
		}
		e.matchIssued(left, func(k int) {
			if s.Dynamic() || e.Program.Len() == 0 {
				taken[at[k]] = true
			}
		})
	}
	r.classify(e, recs, taken)
}

// matchProgram pairs sections of records with those of the program.
func (r *Recording) matchProgram(e *Engine, recs []section, taken []bool) {
	p := &e.Program
	var cmds []section
	for s := range p.Sections {
		lo, hi := p.bounds(s)
		cmds = append(cmds, section{lo, hi})
	}
	leave := make([]int, p.Len()+1) // number of earlier commands that should have a record
	for i := range p.Len() {
		leave[i+1] = leave[i]
		if !p.System[i] {
			leave[i+1]++
		}
	}
	want := func(s section) int { return leave[s.hi] - leave[s.lo] }
	cost := func(a, b int) int {
		rs, cs := recs[a], cmds[b]
		first, top := slices.Min(e.ID[rs.lo:rs.hi]), slices.Max(e.ID[rs.lo:rs.hi])
		if int(top) >= cs.len() && int(top-first) >= cs.len() {
			return -1
		}
		return unlike(max(want(cs)-rs.len(), 0) + r.contradictions(e, rs, cs))
	}
	pairs := Align(len(recs), len(cmds), cost, func(a int) int { return 2*recs[a].len() + 2 }, func(b int) int { return 2 * want(cmds[b]) })
	for a, b := range pairs {
		if b < 0 {
			continue
		}
		taken[a], e.Matched = true, true
		shift := shiftOf(e.ID[recs[a].lo:recs[a].hi], cmds[b].len())
		for i := recs[a].lo; i < recs[a].hi; i++ {
			k := cmds[b].lo + int(e.ID[i]-shift)
			if k < cmds[b].hi && e.Record[k] < 0 {
				e.Command[i], e.Record[k] = int32(k), int32(i)
			}
		}
	}
	if !e.Matched {
		return
	}
	for k, i := range e.Record {
		if i < 0 && !p.System[k] {
			e.Lost++
		}
	}
}

// shiftOf returns the id of the first command: 0, unless the ids of the section began later.
func shiftOf(ids []uint32, commands int) uint32 {
	if int(slices.Max(ids)) < commands {
		return 0
	}
	return slices.Min(ids)
}

// contradictions estimates from a sample the number of copies whose counters contradict the
// direction of their command.
func (r *Recording) contradictions(e *Engine, rs, cs section) (n int) {
	if e.Kind == command.TIU || e.Program.Commands == nil || e.Kind == command.CDMA {
		return 0
	}
	shift := shiftOf(e.ID[rs.lo:rs.hi], cs.len())
	step := max(1, rs.len()/256)
	for i := rs.lo; i < rs.hi; i += step {
		k := cs.lo + int(e.ID[i]-shift)
		c := e.Program.Command(k)
		if k >= cs.hi || c == nil {
			continue
		}
		from, to := c.Spaces(r.Chip)
		seenFrom, seenTo := e.Ports(i)
		switch {
		case seenTo == command.NoSpace:
		case from == command.NoSpace, (to == command.Local) != (seenTo == command.Local), (from == command.Local) != (seenFrom == command.Local) && seenFrom != command.NoSpace:
			n++
		}
	}
	return n * step
}

// Ports returns by the counters of a copy from where to where it went, [command.NoSpace] if they
// do not tell.
func (e *Engine) Ports(i int) (from, to command.Space) {
	first := func(columns [3][]int64, spaces [3]command.Space) command.Space {
		for k, v := range columns {
			if v != nil && v[i] > 0 {
				return spaces[k]
			}
		}
		return command.NoSpace
	}
	from = first([3][]int64{e.DDRRead, e.LocalRead, e.L2Read}, [3]command.Space{command.DDR, command.Local, command.L2})
	to = first([3][]int64{e.LocalWrite, e.L2Write, e.DDRWrite}, [3]command.Space{command.Local, command.L2, command.DDR})
	return from, to
}

// maxPairs bounds the table of the alignment.
const maxPairs = 4 << 20

// Align pairs two lists in their order at the least cost. cost is below 0 for impossible pairs.
// skipA and skipB are the costs of an element without a partner. The result has the partner of
// each element of the first list, -1 for none.
func Align(na, nb int, cost func(a, b int) int, skipA, skipB func(int) int) []int {
	out := slices.Repeat([]int{-1}, na)
	if na*nb > maxPairs || na == 0 || nb == 0 {
		// No valid record has so many sections: pair equal ones in order.
		b := 0
		for a := 0; a < na && b < nb; a++ {
			if c := cost(a, b); c == 0 {
				out[a] = b
				b++
			}
		}
		return out
	}
	const far, skippedA, skippedB, paired = 1 << 60, 1, 2, 3
	w := nb + 1
	best := make([]int, (na+1)*w)
	how := make([]uint8, len(best))
	for i := len(best) - 2; i >= 0; i-- {
		a, b := i/w, i%w
		best[i] = far
		if a < na {
			best[i], how[i] = best[i+w]+skipA(a), skippedA
		}
		if b < nb {
			if v := best[i+1] + skipB(b); v < best[i] {
				best[i], how[i] = v, skippedB
			}
		}
		if a < na && b < nb {
			if c := cost(a, b); c >= 0 && best[i+w+1]+c <= best[i] {
				best[i], how[i] = best[i+w+1]+c, paired
			}
		}
	}
	for a, b := 0, 0; a < na; {
		switch how[a*w+b] {
		case skippedA:
			a++
		case skippedB:
			b++
		default:
			out[a] = b
			a, b = a+1, b+1
		}
	}
	return out
}

// unlike returns the cost of a pair that lacks n records. Exact matches cost less than partial
// matches that leave as many out.
func unlike(n int) int {
	if n == 0 {
		return 0
	}
	return 2*n + 1
}

// matchIssued pairs the remaining sections with the commands that the firmware issued.
func (e *Engine) matchIssued(recs []section, took func(int)) {
	numbers := make([]uint32, len(e.Issued))
	for i := range e.Issued {
		numbers[i] = e.Issued[i].Number
	}
	cmds := sections(numbers, 16, 0)
	cost := func(a, b int) int {
		if recs[a].len() > cmds[b].len() {
			return -1
		}
		return unlike(cmds[b].len() - recs[a].len())
	}
	pairs := Align(len(recs), len(cmds), cost, func(a int) int { return 2*recs[a].len() + 2 }, func(b int) int { return 2 * cmds[b].len() })
	for a, b := range pairs {
		if b < 0 {
			continue
		}
		took(a)
		// Numbers count from 1, those of BM1690's new form from 0 like ids. Records with other
		// numbers are paired in order.
		at, first := map[uint32]int{}, uint32(1)
		for k := cmds[b].lo; k < cmds[b].hi; k++ {
			at[numbers[k]] = k
			first = min(first, numbers[k])
		}
		for i := recs[a].lo; i < recs[a].hi; i++ {
			k, ok := at[e.ID[i]+first]
			if !ok {
				k = cmds[b].lo + i - recs[a].lo
			}
			e.Issue[i] = int32(k)
		}
	}
}

func (r *Recording) classify(e *Engine, recs []section, taken []bool) {
	longest := 0
	for _, s := range recs {
		longest = max(longest, s.len())
	}
	for a, s := range recs {
		other := Work
		switch {
		case taken[a]:
		case r.Chip == command.BM1690 && (e.Matched || s.len() <= 2 && (longest > 2 || e.Kind == command.SDMA)):
			// Every engine's list begins and ends with messages between cores.
			other = Sync
		case e.Matched || longest >= 8 && s.len()*4 <= longest:
			other = Runtime
		}
		for i := s.lo; i < s.hi; i++ {
			switch k := e.Command[i]; {
			case k >= 0 && e.Program.System[k]:
				e.Class[i] = Sync
			case k < 0:
				e.Class[i] = other
				if x := e.Issue[i]; x >= 0 && other == Work && e.Issued[x].system(e.Kind) {
					e.Class[i] = Sync
				}
			}
		}
	}
}

// system reports whether a command orders the engine itself.
func (s *Issued) system(kind command.Engine) bool {
	if s.Cmd != nil {
		return s.Cmd.Op.System()
	}
	return s.Func == command.SystemType(kind)
}
