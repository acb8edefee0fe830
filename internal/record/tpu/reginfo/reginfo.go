// Package reginfo reads and writes the text dumps of executed commands of Sophgo's simulators and
// converters: tiuRegInfo_N.txt, tdmaRegInfo_N.txt, cdmaRegInfo_P.txt and cpuInfo_N.txt.
//
// A dump is a list of blocks. A line __NAME__ begins a block. Lines with a tab and "key: value" are
// its entries. A line "name:" without a tab names the following part of the block, the registers of
// the command. The first block is usually __CHIP_ARCH_ARGS__, the constants of the chip. Each other
// block is a command.
package reginfo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// The known kinds of blocks. Others keep their name.
const (
	Chip = "CHIP_ARCH_ARGS"
	TIU  = "TIU_REG_INFO"
	TDMA = "TDMA_REG_INFO"
	CDMA = "CDMA_REG_INFO"
)

const (
	maxLine    = 1 << 16
	maxBlocks  = 1 << 24
	maxEntries = 4096 // of one block
)

// Entry is one line of a block. Keys may occur twice.
type Entry struct{ Key, Value string }

// Block contains the constants of the chip or one command.
type Block struct {
	Kind    string  // the name between the underscores
	Entries []Entry // in the order of the file
	Part    string  // name of the entries from PartAt on, "" without such a line
	PartAt  int
	Line    int // first line of the block, counted from 1
}

// Get returns the value of the first entry with a key.
func (b *Block) Get(key string) (string, bool) {
	i := slices.IndexFunc(b.Entries, func(e Entry) bool { return e.Key == key })
	if i < 0 {
		return "", false
	}
	return b.Entries[i].Value, true
}

// Int returns the value of a key as an integer. ok is false for other values.
func (b *Block) Int(key string) (n int64, ok bool) {
	v, _ := b.Get(key)
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	return n, err == nil
}

// Float returns the value of a key as a number, which may have a percent sign.
func (b *Block) Float(key string) (f float64, ok bool) {
	v, _ := b.Get(key)
	f, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), "%"), 64)
	return f, err == nil
}

// Add appends an entry.
func (b *Block) Add(key, value string) { b.Entries = append(b.Entries, Entry{key, value}) }

// ErrFormat means that a text is not a dump.
var ErrFormat = errors.New("no block of registers: want a line like __TIU_REG_INFO__")

// Reader reads a dump block by block.
type Reader struct {
	in      *bufio.Reader
	line    int
	next    *Block // its first line was read already
	blocks  int
	skipped int
	err     error
}

// NewReader returns a reader of the dump in r.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(r, maxLine)} }

// Skipped counts lines that belong to no block or are not entries.
func (r *Reader) Skipped() int { return r.skipped }

// Next returns the next block, io.EOF after the last one and ErrFormat for a text without blocks.
func (r *Reader) Next() (*Block, error) {
	b := r.next
	r.next = nil
	for r.err == nil {
		var line string
		if line, r.err = r.readLine(); r.err != nil {
			break
		}
		if kind, ok := marker(line); ok {
			if r.blocks++; r.blocks > maxBlocks {
				r.err = fmt.Errorf("line %d: more than %d blocks", r.line, maxBlocks)
				break
			}
			if r.next = (&Block{Kind: kind, Line: r.line}); b != nil {
				return b, nil
			}
			b, r.next = r.next, nil
		} else if !b.take(line) {
			r.skipped++
		}
	}
	if b != nil {
		return b, nil
	}
	if errors.Is(r.err, io.EOF) && r.blocks == 0 {
		return nil, ErrFormat
	}
	return nil, r.err
}

// marker returns the kind of the block that a line begins.
func marker(line string) (string, bool) {
	if len(line) > 4 && strings.HasPrefix(line, "__") && strings.HasSuffix(line, "__") {
		return line[2 : len(line)-2], true
	}
	return "", false
}

// take adds a line to the block and reports whether its format is known.
func (b *Block) take(line string) bool {
	if strings.TrimSpace(line) == "" {
		return true
	}
	if b == nil || len(b.Entries) >= maxEntries {
		return false
	}
	if line[0] != '\t' {
		name, ok := strings.CutSuffix(line, ":")
		if !ok || b.Part != "" || name == "" {
			return false
		}
		b.Part, b.PartAt = name, len(b.Entries)
		return true
	}
	key, value, ok := strings.Cut(line[1:], ":")
	if !ok || key == "" {
		return false
	}
	b.Add(key, strings.TrimPrefix(value, " "))
	return true
}

// readLine returns a line without its end, of a long line only the beginning.
func (r *Reader) readLine() (string, error) {
	line, err := r.in.ReadSlice('\n')
	text := string(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.in.ReadSlice('\n')
	}
	if err != nil && (text == "" || !errors.Is(err, io.EOF)) {
		return "", err
	}
	r.line++
	return strings.TrimRight(text, "\r\n"), nil
}

// ReadAll reads a whole dump without its unknown lines.
func ReadAll(in io.Reader) (all []Block, err error) {
	r := NewReader(in)
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, *b)
	}
}

// Append appends a block to a text in the format of the vendor's tools.
func (b *Block) Append(text []byte) []byte {
	text = append(text, "__"+b.Kind+"__\n"...)
	for i := range len(b.Entries) + 1 {
		if b.Part != "" && b.PartAt == i {
			text = append(text, b.Part+":\n"...)
		}
		if i < len(b.Entries) {
			text = append(append(append(append(append(text, '\t'), b.Entries[i].Key...), ": "...), b.Entries[i].Value...), '\n')
		}
	}
	return text
}
