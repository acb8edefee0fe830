package command

import "fmt"

// Hazard is a place in memory that one access writes and another reads at a time that
// nothing orders.
type Hazard struct {
	// Writer and Reader are the commands; they are the same for a command that writes
	// over a part of what it reads.
	Writer, Reader *Command
	// Write and Read are the accesses, Equal says that they cover the same bytes.
	Write, Read Access
	Equal       bool
}

// String tells commands and places.
func (h *Hazard) String() string {
	side := func(c *Command, a *Access) string {
		return fmt.Sprintf("%s %d %s %s %s 0x%x+%d", c.Op.Engine, c.ID, c.Name(), a.Operand, a.Space, a.Addr, a.Size)
	}
	if h.Writer == h.Reader {
		return side(h.Writer, &h.Write) + " overlaps its own " + fmt.Sprintf("%s %s 0x%x+%d", h.Read.Operand, h.Read.Space, h.Read.Addr, h.Read.Size)
	}
	return side(h.Writer, &h.Write) + " is written while " + side(h.Reader, &h.Read) + " is read"
}

// Limits of a check: hazards kept, and pairs of commands that are compared.
const (
	maxHazards = 10_000
	maxPairs   = 100_000_000
)

// CheckResult is what a check found.
type CheckResult struct {
	Hazards []Hazard
	// Commands and Pairs count what was compared.
	Commands, Pairs int
	// Cut says that limits ended the check early.
	Cut bool
}

// Check looks for places that a core's engines write and read with nothing between that
// orders it. The tensor engine works off its commands in order, the copy engine its own;
// a command begins when the one of the other engine that it waits for has ended. Inside
// one command, writing where it reads is in place when both begin at the same byte and no
// more is written than read, and a hazard otherwise.
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

// pairGroups cuts both streams where a command closes a group; ids begin anew behind it.
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
	if len(a) != len(b) { // only whole streams can be held against one another
		return [][2][]Command{{tiu, dma}}
	}
	groups := make([][2][]Command, len(a))
	for i := range a {
		groups[i] = [2][]Command{a[i], b[i]}
	}
	return groups
}

func (k *checker) group(tiu, dma []Command) {
	before := prefixDeps(dma) // ids of tensor commands that have ended when a copy begins
	waits := prefixDeps(tiu)
	tensors, copies := k.accesses(tiu), k.accesses(dma)
	for _, side := range [...]struct {
		list []Command
		acc  [][]Access
	}{{tiu, tensors}, {dma, copies}} {
		for i := range side.list {
			k.out.Commands++
			k.inside(&side.list[i], side.acc[i])
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

// prefixDeps is the largest id that a command or one before it waits for.
func prefixDeps(list []Command) []uint32 {
	out := make([]uint32, len(list))
	last := uint32(0)
	for i := range list {
		last = max(last, list[i].Dep)
		out[i] = last
	}
	return out
}

func (k *checker) inside(c *Command, list []Access) {
	for i := range list {
		for j := range list {
			if list[i].Write && !list[j].Write && list[i].Overlaps(&list[j]) && !inPlace(&list[i], &list[j]) {
				k.add(Hazard{Writer: c, Reader: c, Write: list[i], Read: list[j]})
			}
		}
	}
}

func (k *checker) between(w, r *Command, writes, reads []Access) {
	for i := range writes {
		if !writes[i].Write {
			continue
		}
		for j := range reads {
			if !reads[j].Write && writes[i].Overlaps(&reads[j]) {
				k.add(Hazard{Writer: w, Reader: r, Write: writes[i], Read: reads[j], Equal: same(&writes[i], &reads[j])})
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

// inPlace reports whether a result lies on its operand, element on element: a lane that
// is copied to others may be among them, and narrower elements end before they are read.
func inPlace(w, r *Access) bool {
	return w.Space == r.Space && w.Addr == r.Addr && w.Lane == r.Lane && w.Size <= r.Size
}
