package command

import "fmt"

// Hazard is a place in memory that one access writes and another reads without a defined order.
type Hazard struct {
	Writer, Reader *Command // equal for a command that overwrites a part of its operand
	Write, Read    Access
	Equal          bool // both accesses have the same bytes
}

// String describes commands and places.
func (h *Hazard) String() string {
	side := func(c *Command, a *Access) string {
		return fmt.Sprintf("%s %d %s %s %s 0x%x+%d", c.Op.Engine, c.ID, c.Name(), a.Operand, a.Space, a.Addr, a.Size)
	}
	if h.Writer == h.Reader {
		return side(h.Writer, &h.Write) + " overlaps its own " + fmt.Sprintf("%s %s 0x%x+%d", h.Read.Operand, h.Read.Space, h.Read.Addr, h.Read.Size)
	}
	return side(h.Writer, &h.Write) + " is written while " + side(h.Reader, &h.Read) + " is read"
}

// Limits of a check.
const (
	maxHazards = 10_000      // in the result
	maxPairs   = 100_000_000 // of commands
)

// CheckResult is the result of a check.
type CheckResult struct {
	Hazards         []Hazard
	Commands, Pairs int  // numbers of checked commands and of compared pairs
	Cut             bool // limits ended the check early
}

// Check looks for places that a core's engines write and read without a defined order. Each engine
// executes its commands in order. A command begins when the command of the other engine that it
// waits for has ended. A command may write to its own operand if both begin at the same byte and
// the result is not larger. Otherwise that is a hazard, too.
func Check(chip *Chip, tiu, dma []Command) CheckResult {
	k := checker{chip: chip}
	for _, group := range pairGroups(tiu, dma) {
		k.group(group[0], group[1])
	}
	return k.out
}

type checker struct {
	chip *Chip
	out  CheckResult
}

// pairGroups divides both streams where a command closes a group. Ids restart there.
func pairGroups(tiu, dma []Command) [][2][]Command {
	cut := func(list []Command) [][]Command {
		var groups [][]Command
		from := 0
		for i := range list {
			if list[i].Ends() || i == len(list)-1 {
				groups = append(groups, list[from:i+1])
				from = i + 1
			}
		}
		return groups
	}
	a, b := cut(tiu), cut(dma)
	if len(a) != len(b) { // only whole streams are comparable
		return [][2][]Command{{tiu, dma}}
	}
	groups := make([][2][]Command, len(a))
	for i := range a {
		groups[i] = [2][]Command{a[i], b[i]}
	}
	return groups
}

func (k *checker) group(tiu, dma []Command) {
	before := prefixDeps(dma) // last tensor command that has ended when a copy begins
	waits := prefixDeps(tiu)
	tensors, copies := k.accesses(tiu), k.accesses(dma)
	for _, side := range [...]struct {
		list []Command
		acc  [][]Access
	}{{tiu, tensors}, {dma, copies}} {
		for i := range side.list {
			k.out.Commands++
			k.between(&side.list[i], &side.list[i], side.acc[i], side.acc[i])
		}
	}
	first := 0
	for i := range tiu {
		for first < len(dma) && dma[first].ID <= waits[i] {
			first++
		}
		for j := first; j < len(dma) && before[j] < tiu[i].ID; j++ {
			if k.out.Pairs++; k.out.Pairs > maxPairs || k.out.Cut {
				k.out.Cut = true
				return
			}
			k.between(&tiu[i], &dma[j], tensors[i], copies[j])
			k.between(&dma[j], &tiu[i], copies[j], tensors[i])
		}
	}
}

func (k *checker) accesses(list []Command) [][]Access {
	out := make([][]Access, len(list))
	for i := range list {
		out[i] = list[i].Accesses(k.chip, nil)
	}
	return out
}

// prefixDeps returns the largest id that each command or one before it waits for.
func prefixDeps(list []Command) []uint32 {
	out := make([]uint32, len(list))
	last := uint32(0)
	for i := range list {
		last = max(last, list[i].Dep)
		out[i] = last
	}
	return out
}

// between adds the overlaps of the results of w with the operands of r.
func (k *checker) between(w, r *Command, writes, reads []Access) {
	for i := range writes {
		for j := range reads {
			a, b := &writes[i], &reads[j]
			if a.Write && !b.Write && a.Overlaps(b) && (w != r || !inPlace(a, b)) {
				k.add(Hazard{Writer: w, Reader: r, Write: *a, Read: *b, Equal: w != r && same(a, b)})
			}
		}
	}
}

func (k *checker) add(h Hazard) {
	if len(k.out.Hazards) == maxHazards {
		k.out.Cut = true
		return
	}
	k.out.Hazards = append(k.out.Hazards, h)
}

func same(a, b *Access) bool {
	return a.Space == b.Space && a.Addr == b.Addr && a.Size == b.Size && (a.Space != Local || a.Lane == b.Lane && a.Lanes == b.Lanes)
}

// inPlace reports whether a result overwrites its operand element by element. The lanes may differ
// in number, and the elements of the result may be smaller.
func inPlace(w, r *Access) bool {
	return w.Space == r.Space && w.Addr == r.Addr && w.Lane == r.Lane && w.Size <= r.Size
}
