// Package reginfo reads and writes the text dumps of executed commands that Sophgo's simulators and
// converters print: tiuRegInfo_N.txt, tdmaRegInfo_N.txt, cdmaRegInfo_P.txt and cpuInfo_N.txt.
//
// A dump is a list of blocks. A line __NAME__ begins one; lines with a tab and
// "key: value" are its entries; a line "name:" without a tab names the part of the block
// that follows, the command's registers. The first block is usually
// __CHIP_ARCH_ARGS__, the constants of the chip; each later one is a command.
package reginfo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The kinds of blocks that are known; others are kept under their own name.
const (
	Chip = "CHIP_ARCH_ARGS"
	TIU  = "TIU_REG_INFO"
	TDMA = "TDMA_REG_INFO"
	CDMA = "CDMA_REG_INFO"
)

// Limits on what is kept of a file.
const (
	maxLine    = 1 << 16
	maxBlocks  = 1 << 24
	maxEntries = 4096 // of one block
)

// Entry is one line of a block. Keys may come twice.
type Entry struct{ Key, Value string }

// Block is what is said of the chip or of one command.
type Block struct {
	Kind    string  // the name between the underscores
	Entries []Entry // in the order of the file
	// Part names the entries from PartAt on, "" where the block has no such line.
	Part   string
	PartAt int
	Line   int // where the block begins, counted from 1
}

// Get returns the value of the first entry with a key.
func (b *Block) Get(key string) (string, bool) {
	for i := range b.Entries {
		if b.Entries[i].Key == key {
			return b.Entries[i].Value, true
		}
	}
	return "", false
}

// Int returns the value of a key as an integer; ok is false where it is none.
func (b *Block) Int(key string) (n int64, ok bool) {
	v, _ := b.Get(key)
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	return n, err == nil
}

// Float returns the value of a key as a number, without a percent sign behind it.
func (b *Block) Float(key string) (f float64, ok bool) {
	v, _ := b.Get(key)
	f, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), "%"), 64)
	return f, err == nil
}

// Add appends an entry.
func (b *Block) Add(key, value string) { b.Entries = append(b.Entries, Entry{key, value}) }

// ErrFormat says that a text is not a dump at all.
var ErrFormat = errors.New("no block of registers: want a line like __TIU_REG_INFO__")

// Reader reads a dump block by block.
type Reader struct {
	in      *bufio.Reader
	line    int
	next    string // the kind of the block whose first line was read already
	at      int
	blocks  int
	skipped int
	err     error
}

// NewReader returns a reader of the dump in r.
func NewReader(r io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(r, maxLine)} }

// Skipped counts lines that belong to no block or are not entry.
func (r *Reader) Skipped() int { return r.skipped }

// Next returns the next block, io.EOF behind the last one and ErrFormat where a text has none.
func (r *Reader) Next() (*Block, error) {
	var b *Block
	if r.next != "" {
		b, r.next = &Block{Kind: r.next, Line: r.at}, ""
	}
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
			if b != nil {
				r.next, r.at = kind, r.line
				return b, nil
			}
			b = &Block{Kind: kind, Line: r.line}
			continue
		}
		if !b.take(line) {
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

// marker returns the kind that a line begins.
func marker(line string) (string, bool) {
	if len(line) > 4 && strings.HasPrefix(line, "__") && strings.HasSuffix(line, "__") {
		return line[2 : len(line)-2], true
	}
	return "", false
}

// take adds a line to the block and reports whether it has a meaning.
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

// readLine returns a line without its end; of a longer one its beginning.
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

// ReadAll reads a whole dump. Lines that have no meaning are passed over.
func ReadAll(in io.Reader) ([]Block, error) {
	r := NewReader(in)
	var all []Block
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

// Append appends a block to a text as the vendor's tools write it.
func (b *Block) Append(text []byte) []byte {
	text = append(text, "__"+b.Kind+"__\n"...)
	for i, e := range b.Entries {
		if b.Part != "" && b.PartAt == i {
			text = append(text, b.Part+":\n"...)
		}
		text = append(text, '\t')
		text = append(text, e.Key...)
		text = append(text, ": "...)
		text = append(text, e.Value...)
		text = append(text, '\n')
	}
	if b.Part != "" && b.PartAt == len(b.Entries) {
		text = append(text, b.Part+":\n"...)
	}
	return text
}
