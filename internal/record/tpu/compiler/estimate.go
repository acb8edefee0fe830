package compiler

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// Estimate is the compiler's estimate for each command. Times are cycles of the tensor engine.
// Those of later subnets come after the latest end before.
type Estimate struct {
	Items  []Item   // in the order of the file
	Names  []string // of operations and commands
	Tables int32
	Total  int64 // sum of the tables' cycles
	// Moved contains the bytes of the summaries by direction: DDR to local, local to DDR, DDR to
	// DDR, local to local.
	Moved [4]int64
	// FLOPs and RuntimeS are sums over the lines with the model's operations, 0 without such lines.
	FLOPs    int64
	RuntimeS float64
	// Bad counts unreadable items, Dropped those beyond the bound.
	Bad, Dropped int64

	at map[string]int32
}

// Item is the estimate for one command.
type Item struct {
	DMA           bool
	Dir           int8   // direction of copies, -1 for none
	Op, Func      int32  // names of the operation and of the command in Names
	Table         int32  // one for each subnet
	BD, GDMA      uint32 // id of the command and id of the command that it waits for
	Layer         int64  // line of the operation in final.mlir, -1 if the name has none
	Start, Cycles int64
	Bytes         int64 // of copies
}

// name returns the place of a text in Names.
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

// IsEstimate reports whether the beginning of a text is that of an estimate.
func IsEstimate(head []byte) bool {
	return bytes.Contains(head, []byte("ENGINE_BD")) && bytes.Contains(head, []byte("ENGINE_GDMA"))
}

// ReadEstimate reads an estimate. The error is the reader's. The items before are kept.
func ReadEstimate(r io.Reader) (*Estimate, error) {
	p := estimateParser{e: &Estimate{}}
	err := lines(r, p.line)
	p.close()
	return p.e, err
}

type estimateParser struct {
	e       *Estimate
	inside  bool
	base    int64 // cycles before the current table
	latest  int64 // end of the current table
	counted bool  // the current table has stated its total
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

// close ends a table. The next one begins after it.
func (p *estimateParser) close() {
	if !p.open {
		return
	}
	p.e.Total += p.latest
	p.base += p.latest
	p.latest, p.open = 0, false
}

// summary parses |dr[0] S2L:2150032|dr[1] L2S:...
func (p *estimateParser) summary(b []byte) {
	for i, name := range []string{"S2L:", "L2S:", "S2S:", "L2L:"} {
		if at := bytes.Index(b, []byte(name)); at >= 0 {
			if n, ok := integer(b[at+len(name):]); ok && n >= 0 {
				p.e.Moved[i] += n
			}
		}
	}
}

// flops parses flops: F, runtime: X ms, ComputationAbility: Y T.
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

var itemKeys = []string{"s", "t", "e", "b", "g", "dr", "sz"}

// item parses NAME_ID|FUNCTION|s:|b:|g:|e:|t:, of copies also |dr:|sz:|bw:.
func (p *estimateParser) item(word []byte) {
	e := p.e
	if len(e.Items) >= maxCommands {
		e.Dropped++
		return
	}
	name, rest, ok1 := bytes.Cut(word, []byte("|"))
	fn, rest, ok2 := bytes.Cut(rest, []byte("|"))
	v := [...]int64{0, 0, -1, 0, 0, -1, 0}
	have := values(rest, '|', ':', itemKeys, v[:])
	start, cycles, end, dir := v[0], v[1], v[2], v[5]
	if !ok1 || !ok2 || have&3 != 3 || min(start, cycles) < 0 || max(start, cycles, end, v[6]) > 1<<53 {
		e.Bad++
		return
	}
	layer := int64(-1)
	if at := bytes.LastIndexByte(name, '_'); at >= 0 {
		if v, ok := integer(name[at+1:]); ok && len(name)-at-1 == digits(name[at+1:]) {
			layer, name = v, name[:at]
		}
	}
	e.Items = append(e.Items, Item{
		DMA: dir >= 0 || bytes.HasPrefix(fn, []byte("GDMA")), Dir: int8(min(dir, 127)), Op: e.name(name), Func: e.name(fn), Table: e.Tables - 1,
		BD: clip32(v[3]), GDMA: clip32(v[4]), Layer: layer, Start: p.base + start, Cycles: cycles, Bytes: max(v[6], 0),
	})
	p.latest = max(p.latest, end+1, start+cycles)
}
