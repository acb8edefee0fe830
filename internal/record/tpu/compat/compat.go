// Package compat writes what the chip vendor's own converter writes for a profile
// directory: the same files, columns and figures, so that they can be compared.
//
// Its arithmetic is followed where it is known to be wrong, because the aim is the same
// figures: two engines on clocks that do not agree, records that are cut by the rule of
// zeros, layers joined by numbers of different counters. Nothing of this package is used
// for the program's own reports.
package compat

import (
	"encoding/binary"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
)

// Input is what a directory says, before anything is made of it.
type Input struct {
	Chip *command.Chip
	// TIUMHz and DMAMHz are the clocks that the converter takes.
	TIUMHz, DMAMHz int
	// Net is the name of the model.
	Net string
	// Subnet is the number of the subnet whose records these are.
	Subnet int
	Cores  []Core
	// Embedded says that the streams stood in the records' file: then records without a
	// command are kept (BM1690).
	Embedded bool
	// Places are the objects of tensor_location.json, nil without the file; MLIR are the
	// lines of final.mlir.
	Places []Place
	MLIR   []string
	// Classic has what only the converter of BM1684 and BM1684X uses.
	Classic *Classic
}

// Core has the monitor's records as they were stored and the decoded streams.
type Core struct {
	// TIU, GDMA and SDMA are payloads of the monitor's blocks.
	TIU, GDMA, SDMA []byte
	// Streams of commands. Empty ones are unknown.
	TIUCommands, GDMACommands, SDMACommands []command.Command
}

// Place is one object of tensor_location.json.
type Place struct {
	Line, Subnet, Core int
	// Op is the operation without the dialect.
	Op    string
	Local bool
	// Ordinal is the object's number in the file, from 1.
	Ordinal int
	// The object owns the tensor commands Before[0]+1 to After[0] and the copies
	// Before[1]+1 to After[1].
	Before, After [2]int
	// In and Out are operands and results that are there.
	In, Out []Tensor
}

// File is one file that was written.
type File struct {
	Name string
	Data []byte
}

// words is one record of a monitor.
type words []uint32

// records splits a block into records of a number of words.
func records(block []byte, n int) []words {
	list := make([]words, 0, len(block)/(4*n))
	for ; len(block) >= 4*n; block = block[4*n:] {
		r := make(words, n)
		for i := range r {
			r[i] = binary.LittleEndian.Uint32(block[4*i:])
		}
		list = append(list, r)
	}
	return list
}

// The numbers of engines in the converter's output.
const (
	engineTIU  = 0
	engineGDMA = 1
	engineSDMA = 3
)

// instr is one executed command as the converter sees it.
type instr struct {
	engine int
	core   int
	id     int // number of the command, from 1
	global int
	// start and end in cycles of the engine's clock
	start, end int64
	cycles     int64
	c          *command.Command // nil where the converter does not know it
	work       command.Work
	copy       transfer
	name, kind string
	msg, count int
	layer      *Place
	raw        words
	average    int64
}

// transfer is what the converter makes of a copy's counters.
type transfer struct {
	direction, from, to string
	dtype               string
	ddrBytes, lmemBytes uint64
	ddrBW, lmemBW       float64
	ddrCount, lmemCount uint64
	size                uint64
	stall               uint64
	bandwidth           float64
	l2                  bool
}
