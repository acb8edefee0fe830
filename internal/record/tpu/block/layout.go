package block

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// Engine is a unit whose monitor writes records. SDMA has the records of GDMA.
type Engine = command.Engine

// The engines.
const (
	TIU  = command.TIU
	GDMA = command.GDMA
	SDMA = command.SDMA
	CDMA = command.CDMA
)

// Field is a part of a record: Width bits of a 32-bit word from bit Shift on.
type Field struct {
	Name               string
	Word, Shift, Width int
}

// Layout is the record of one engine's monitor. Its fields cover the whole record.
type Layout struct {
	Size   int // bytes
	Fields []Field
	IDBits int // width of the counter of commands

	at map[string]int
}

// Names of fields that records of several chips have.
const (
	Start     = "start"
	End       = "end"
	ID        = "inst_id"
	Thread    = "thread"
	LoadLow   = "load_low"  // the lower 16 bits of the number of cycles of useful work
	LoadHigh  = "load_high" // the other bits of it
	Conflicts = "bank_conflicts"
)

// of parses a layout, the words of a record in order: a name for a whole word, or parts
// "name:width" joined by a plus sign, from the lowest bit on.
func of(text string) *Layout {
	l := &Layout{at: map[string]int{}}
	for w, word := range strings.Fields(text) {
		shift := 0
		for part := range strings.SplitSeq(word, "+") {
			name, width := part, 32
			if n, bits, ok := strings.Cut(part, ":"); ok {
				name = n
				_, _ = fmt.Sscan(bits, &width)
			}
			l.at[name] = len(l.Fields)
			l.Fields = append(l.Fields, Field{name, w, shift, width})
			if name == ID {
				l.IDBits = width
			}
			shift += width
		}
		l.Size += 4
	}
	return l
}

// pairs lists the fields for the end and the start of channels.
func pairs(channels string) string {
	var b strings.Builder
	for c := range strings.FieldsSeq(channels) {
		fmt.Fprintf(&b, " %s_end %s_start", c, c)
	}
	return b.String()
}

func each(prefix, suffix, names string) string {
	var b strings.Builder
	for c := range strings.FieldsSeq(names) {
		b.WriteString(" " + prefix + c + suffix)
	}
	return b.String()
}

// layouts are the records of the engines of a chip, parsed when the first is asked for.
var layouts = sync.OnceValue(func() map[string][4]*Layout {
	tiuWide := of("start end inst_id:16+load_low:16 load_high reads read_stall writes reserved")
	tiuBM1690 := of("start end inst_id thread:1+bank_conflicts:31")
	tiuCV184X := of("inst_id:20+reserved:12 thread:1+bank_conflicts:31 start end")

	gdmaBM1684 := of("start end inst_id:16+reserved:16 d0_aw d0_wr d0_ar d1_aw d1_wr d1_ar local_aw local_wr local_ar" +
		each("", "_valid", "d0_wr d0_rd d1_wr d1_rd local_wr local_rd") + each("", "_stall", "d0_wr d0_rd d1_wr d1_rd local_wr local_rd") +
		pairs("d0_aw d0_ar d0_wr d0_rd d1_aw d1_ar d1_wr d1_rd") + " reserved1 reserved2" + pairs("local_ar local_wr local_rd"))

	shared := "start end inst_id:20+reserved:12 d0_aw d0_wr d0_ar d1_aw d1_wr d1_ar local_aw local_wr local_ar l2_aw l2_wr l2_ar reserved1" +
		each("", "_valid", "d0_wr d0_rd d1_wr d1_rd local_wr local_rd l2_wr l2_rd") + each("", "_stall", "d0_wr d0_rd d1_wr d1_rd local_wr local_rd l2_wr l2_rd") +
		pairs("d0_aw d0_ar d0_wr d0_rd d1_aw d1_ar d1_wr d1_rd")
	gdmaBM1684X := of(shared)
	gdmaBM1688 := of(shared + pairs("local_aw local_ar local_wr local_rd l2_aw l2_ar l2_wr l2_rd"))

	gdmaBM1690 := of("start end inst_id thread:1+read_latency:19+response_latency:12 local_stall axi_wr axi_ar axi_aw axi_wr_stall axi_rd_stall" +
		" local_wr local_ar axi_wr_valid axi_rd_valid local_wr_valid local_rd_valid")

	cdmaBM1690 := of("start end inst_id:24+thread:1+reserved:7 reserved1 axi_aw axi_wr axi_ar reserved2 axi_wr_valid axi_wr_stall axi_rd_valid axi_rd_stall" +
		" ati_valid ati_stall ari_valid ari_stall ati_fifo_stall replay" + each("", "_start", "b") + each("", "_end", "b") +
		" ar_start ar_end aw_start aw_end rd_start rd_end wr_start wr_end ati_start ati_end ari_start ari_end")

	return map[string][4]*Layout{
		"BM1684":  {tiuWide, gdmaBM1684, gdmaBM1684},
		"BM1684X": {tiuWide, gdmaBM1684X, gdmaBM1684X},
		"BM1688":  {tiuWide, gdmaBM1688, gdmaBM1688},
		"CV186X":  {tiuWide, gdmaBM1688, gdmaBM1688},
		"CV184X":  {tiuCV184X, gdmaBM1690, gdmaBM1690},
		"BM1690":  {tiuBM1690, gdmaBM1690, gdmaBM1690, cdmaBM1690},
	}
})

// LayoutOf returns the record of an engine of a chip by the chip's name in upper case, nil if
// the chip has no such engine or monitor.
func LayoutOf(chip string, e Engine) *Layout { return layouts()[chip][e] }

// Has reports whether the record has a field.
func (l *Layout) Has(name string) bool { _, ok := l.at[name]; return ok }

// Table contains records as columns.
type Table struct {
	Layout *Layout
	N      int // number of records
	// Columns are the fields in the order of the layout, nil for fields that were not requested.
	Columns [][]uint32
}

// NewTable returns an empty table with the named columns, with all of them for no names. Names
// that the record does not have are ignored.
func (l *Layout) NewTable(names ...string) *Table {
	t := &Table{Layout: l, Columns: make([][]uint32, len(l.Fields))}
	for i, f := range l.Fields {
		if len(names) == 0 || slices.Contains(names, f.Name) {
			t.Columns[i] = []uint32{}
		}
	}
	return t
}

// Column returns a column, nil if it was not requested or the record has no such field.
func (t *Table) Column(name string) []uint32 {
	if i, ok := t.Layout.at[name]; ok {
		return t.Columns[i]
	}
	return nil
}

// Clear empties the columns but not their capacity.
func (t *Table) Clear() {
	t.N = 0
	for i, c := range t.Columns {
		if c != nil {
			t.Columns[i] = c[:0]
		}
	}
}

// Add decodes whole records and returns how many bytes are left over.
func (t *Table) Add(data []byte) (rest int) {
	size := t.Layout.Size
	n := len(data) / size
	for i := range t.Layout.Fields {
		c := t.Columns[i]
		if c == nil {
			continue
		}
		f := &t.Layout.Fields[i]
		mask := uint32(1<<f.Width - 1)
		for at := f.Word * 4; at+4 <= n*size; at += size {
			c = append(c, le.Uint32(data[at:])>>f.Shift&mask)
		}
		t.Columns[i] = c
	}
	t.N += n
	return len(data) - n*size
}

// Append encodes the records. Columns that are absent are written as 0.
func (t *Table) Append(dst []byte) []byte {
	begin := len(dst)
	size := t.Layout.Size
	dst = append(dst, make([]byte, t.N*size)...)
	for i := range t.Layout.Fields {
		f := &t.Layout.Fields[i]
		mask := uint32(1<<f.Width - 1)
		at := begin + f.Word*4
		for _, v := range t.Columns[i] {
			w := dst[at:]
			le.PutUint32(w, le.Uint32(w)|(v&mask)<<f.Shift)
			at += size
		}
	}
	return dst
}

// recordsAtOnce bounds the working memory of [Layout.Each].
const recordsAtOnce = 4096

// Each decodes the records of a block in parts. It reuses the table of f. rest is the number of
// bytes after the last whole record.
func (l *Layout) Each(r io.Reader, f func(t *Table), names ...string) (rest int, err error) {
	t := l.NewTable(names...)
	buf := make([]byte, recordsAtOnce*l.Size)
	for {
		n, err := io.ReadFull(r, buf)
		t.Clear()
		rest = t.Add(buf[:n])
		if t.N > 0 {
			f(t)
		}
		switch err {
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			return rest, nil
		default:
			return rest, err
		}
	}
}
