// Package compat writes the files that the chip vendor's converter writes for a profile
// directory, with the same columns and figures, so that both can be compared.
//
// It repeats known errors of the converter's arithmetic: clocks of two engines that do not
// agree, records that are cut at commands with number 0, and layers that are joined by numbers
// of different counters. The program's own reports use nothing of this package.
package compat

import (
	_ "embed"
	"encoding/binary"
	"strings"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/record/tpu/compiler"
)

// Input is the content of a directory before conversion.
type Input struct {
	Chip *command.Chip
	// TIUMHz and DMAMHz are the clocks that the converter uses.
	TIUMHz, DMAMHz int
	Net            string // the name of the model
	Mode           string // quantisation of the model in lower case
	FLOPs          float64
	// Subnet is the number of the recorded subnet.
	Subnet int
	Cores  []Core
	// Embedded means that the file of records contained the command streams. Then records
	// without a command are kept (BM1690).
	Embedded bool
	// Places are the objects of tensor_location.json, nil without the file. MLIR contains the
	// lines of final.mlir.
	Places  []Place
	MLIR    []string
	Classic *Classic // the input of the converter for BM1684 and BM1684X only
}

// Core contains the monitor's records as they were stored and the decoded streams.
type Core struct {
	// TIU, GDMA and SDMA are payloads of the monitor's blocks.
	TIU, GDMA, SDMA []byte
	// Streams of commands, empty if unknown.
	TIUCommands, GDMACommands, SDMACommands []command.Command
}

// Classic is the input of the converter for BM1684 and BM1684X.
type Classic struct {
	Log      []byte             // text of global.profile
	Estimate *compiler.Estimate // nil if absent
	Firmware []byte             // the payload of the block of firmware records
	Dynamic  bool               // Dynamic means that the firmware created the commands
}

// Place is one object of tensor_location.json.
type Place struct {
	// Ordinal is the object's number in the file, from 1.
	Ordinal int `json:"-"`
	Line    int `json:"file-line"`
	Subnet  int `json:"subnet_id"`
	Core    int `json:"core_id"`
	// Op is the operation without the dialect.
	Op    string `json:"opcode"`
	Local bool   `json:"is_local"`
	// The object owns the tensor commands Before[0]+1 to After[0] and the copies
	// Before[1]+1 to After[1].
	Before [2]int `json:"tiu_dma_id(before)"`
	After  [2]int `json:"tiu_dma_id(after)"`
	// In and Out are the operands and results with a type.
	In  []Tensor `json:"operands"`
	Out []Tensor `json:"results"`
}

// Tensor is an operand or result of an object of tensor_location.json.
type Tensor struct {
	Shape []int  `json:"-"`
	Type  string `json:"memory_type"` // the compiler's name of the element type: f16, si8
}

// File is an output file.
type File struct {
	Name string
	Data []byte
}

// Write returns the converter's files for a directory: for BM1684 and BM1684X those of all
// formats of the classic converter, for other chips those of the newer converter.
func Write(in *Input) ([]File, error) {
	if in.Classic != nil {
		return Texts(in), nil
	}
	p := newPerfAI(in)
	book, err := p.workbook()
	if err != nil {
		return nil, err
	}
	return append(p.texts(), File{"PerfAI_output.xlsx", book}), nil
}

// Texts returns the files of [Write] without the workbook.
func Texts(in *Input) []File {
	if in.Classic != nil {
		return newClassic(in).texts()
	}
	return newPerfAI(in).texts()
}

//go:embed columns.txt
var columnText string

// columns contains the lists of columns.txt by name. A comma or an end of line separates elements.
var columns = func() map[string][]string {
	lists := map[string][]string{}
	for section := range strings.SplitSeq(columnText, "[") {
		name, body, _ := strings.Cut(section, "]\n")
		lists[name] = strings.Split(strings.ReplaceAll(strings.TrimSpace(body), "\n", ","), ",")
	}
	return lists
}()

// words is one record of a monitor.
type words []uint32

// records splits a block into records of n words.
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
