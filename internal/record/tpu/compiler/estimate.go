package compiler

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// Estimate is what the compiler expects of each command. Times are cycles of the tensor
// engine; those of later subnets come after the latest end before.
type Estimate struct {
	// Items are columns, in the order of the file.
	DMA []bool
	// Layer is the line of the operation in final.mlir, -1 where the name has none.
	Layer []int64
	// Op and Func are the names of the operation and of the command, as places in Names.
	Op, Func []int32
	Names    []string
	// BD and GDMA are the ids of the command and of the one that it waits for.
	BD, GDMA []uint32
	// Start and Cycles of the command.
	Start, Cycles []int64
	// Dir is the direction of copies, -1 for none, Bytes what they move.
	Dir   []int8
	Bytes []int64
	// Table numbers the table of each item: one for each subnet.
	Table []int32
	// Tables is the number of tables.
	Tables int32
	// Total is the sum of the tables' cycles.
	Total int64
	// Moved holds the bytes of the summaries by direction: DDR to local, local to DDR,
	// DDR to DDR, local to local. Summaries counts them.
	Moved     [4]int64
	Summaries int
	// FLOPs and RuntimeS add up the lines with the model's operations; 0 where none
	// is there.
	FLOPs    int64
	RuntimeS float64
	// Bad counts items that could not be read, Dropped those beyond the bound.
	Bad, Dropped int64

	at map[string]int32
}

// name is the place of a text in Names.
func (e *Estimate) name(b []byte) int32 {
	if i, ok := e.at[string(b)]; ok {
		return i
	}
	if e.at == nil {
		e.at = map[string]int32{}
	}
	if len(e.Names) >= maxTypes {
		return 0
	}
	i := int32(len(e.Names))
	e.at[string(b)] = i
	e.Names = append(e.Names, strings.ToValidUTF8(string(b), "\uFFFD"))
	return i
}

// Len is the number of items.
func (e *Estimate) Len() int { return len(e.DMA) }

// IsEstimate reports whether a text that begins so is an estimate.
func IsEstimate(head []byte) bool {
	return bytes.Contains(head, []byte("ENGINE_BD")) && bytes.Contains(head, []byte("ENGINE_GDMA"))
}

// ReadEstimate reads an estimate. The error is the reader's; what came before is kept.
func ReadEstimate(r io.Reader) (*Estimate, error) {
	p := estimateParser{e: &Estimate{}}
	err := lines(r, p.line)
	p.close()
	return p.e, err
}

type estimateParser struct {
	e       *Estimate
	inside  bool
	base    int64 // cycles before the present table
	latest  int64 // end of the present table
	counted bool  // the present table has stated its total
	open    bool
}

func (p *estimateParser) line(b []byte) {
	e := p.e
	b = bytes.TrimSpace(b)
	switch {
	case bytes.HasPrefix(b, []byte("ENGINE_BD")):
		p.close()
		p.inside, p.open, p.counted = true, true, false
		e.Tables++
	case p.inside && bytes.HasPrefix(b, []byte("----")):
		p.inside = false
	case p.inside:
		for word := range bytes.FieldsSeq(b) {
			p.item(word)
		}
	case bytes.HasPrefix(b, []byte("TCYC")):
		if _, v, ok := bytes.Cut(b, []byte(":")); ok {
			p.total(bytes.TrimSpace(v))
		}
	case bytes.HasPrefix(b, []byte("API_END")):
		if v, _, ok := bytes.Cut(bytes.TrimPrefix(b, []byte("API_END total_cycle:")), []byte("|")); ok {
			p.total(v)
		}
	case bytes.HasPrefix(b, []byte("GDMA SUMMARY")):
		p.summary(b)
	case bytes.HasPrefix(b, []byte("flops:")):
		p.flops(b)
	}
}

func (p *estimateParser) total(v []byte) {
	if n, ok := integer(v); ok && n > 0 && !p.counted && n < 1<<53 {
		p.counted = true
		p.latest = max(p.latest, n)
	}
}

// close ends a table: the next one begins behind it.
func (p *estimateParser) close() {
	if !p.open {
		return
	}
	p.e.Total += p.latest
	p.base += p.latest
	p.latest, p.open = 0, false
}

// summary reads |dr[0] S2L:2150032|dr[1] L2S:...
func (p *estimateParser) summary(b []byte) {
	p.e.Summaries++
	for i, name := range []string{"S2L:", "L2S:", "S2S:", "L2L:"} {
		if at := bytes.Index(b, []byte(name)); at >= 0 {
			if n, ok := integer(b[at+len(name):]); ok && n >= 0 {
				p.e.Moved[i] += n
			}
		}
	}
}

// flops reads flops: F, runtime: X ms, ComputationAbility: Y T.
func (p *estimateParser) flops(b []byte) {
	for part := range strings.SplitSeq(string(b), ",") {
		key, v, _ := strings.Cut(part, ":")
		v = strings.TrimSpace(v)
		switch strings.TrimSpace(key) {
		case "flops":
			if n, err := strconv.ParseInt(v, 10, 64); err == nil && n > 0 && p.e.FLOPs < 1<<61 {
				p.e.FLOPs += min(n, 1<<61)
			}
		case "runtime":
			if x, err := strconv.ParseFloat(strings.TrimSuffix(v, "ms"), 64); err == nil && x > 0 && x < 1e12 {
				p.e.RuntimeS += x / 1e3
			}
		}
	}
}

// item reads NAME_ID|FUNCTION|s:|b:|g:|e:|t:, of copies also |dr:|sz:|bw:.
func (p *estimateParser) item(word []byte) {
	e := p.e
	if e.Len() >= maxCommands {
		e.Dropped++
		return
	}
	name, rest, ok1 := bytes.Cut(word, []byte("|"))
	fn, rest, ok2 := bytes.Cut(rest, []byte("|"))
	if !ok1 || !ok2 {
		e.Bad++
		return
	}
	layer := int64(-1)
	if at := bytes.LastIndexByte(name, '_'); at >= 0 {
		if v, ok := integer(name[at+1:]); ok && len(name)-at-1 == digits(name[at+1:]) {
			layer, name = v, name[:at]
		}
	}
	x := itemFields{end: -1, dir: -1}
	if !x.read(rest) || x.start < 0 || x.cycles < 0 {
		e.Bad++
		return
	}
	e.DMA = append(e.DMA, x.dir >= 0 || bytes.HasPrefix(fn, []byte("GDMA")))
	e.Layer = append(e.Layer, layer)
	e.Op, e.Func = append(e.Op, e.name(name)), append(e.Func, e.name(fn))
	e.BD, e.GDMA = append(e.BD, clip32(x.bd)), append(e.GDMA, clip32(x.gdma))
	e.Start, e.Cycles = append(e.Start, p.base+x.start), append(e.Cycles, x.cycles)
	e.Dir, e.Bytes = append(e.Dir, int8(min(x.dir, 127))), append(e.Bytes, max(x.size, 0))
	e.Table = append(e.Table, e.Tables-1)
	p.latest = max(p.latest, x.end+1, x.start+x.cycles)
}

// itemFields are the numbers of an item.
type itemFields struct{ start, end, cycles, bd, gdma, dir, size int64 }

// read takes key:value fields between bars; it reports whether start and duration are
// among them.
func (x *itemFields) read(b []byte) bool {
	have := 0
	for len(b) > 0 {
		colon := bytes.IndexByte(b, ':')
		if colon < 0 {
			break
		}
		key := b[:colon]
		v, ok := integer(b[colon+1:])
		end := bytes.IndexByte(b, '|')
		if end < 0 {
			end = len(b) - 1
		}
		if end > colon && ok && v <= 1<<53 {
			switch {
			case len(key) == 1:
				switch key[0] {
				case 's':
					x.start = v
					have |= 1
				case 'e':
					x.end = v
				case 't':
					x.cycles = v
					have |= 2
				case 'b':
					x.bd = v
				case 'g':
					x.gdma = v
				}
			case string(key) == "dr":
				x.dir = v
			case string(key) == "sz":
				x.size = v
			}
		}
		b = b[end+1:]
	}
	return have == 3
}

// digits is how many digits b begins with.
func digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}
