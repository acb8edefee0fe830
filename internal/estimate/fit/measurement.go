package fit

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/opmeter/opmeter/internal/base/infile"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
)

// Measurement is one measured inference, or one measured layer.
type Measurement struct {
	// Source is the publication: errors of measurements from one source are correlated.
	Source string
	// Family of runtime and its Era, Core and Chip.
	Family, Era, Core, Chip string
	// Clock in hertz.
	Clock float64
	// Model as named in the table, and Version of the runtime.
	Model, Version string
	// Cycles measured: as printed, or latency times clock.
	Cycles float64
	// Joules and Seconds are measured energy and time; Joules is 0 if not measured.
	Joules, Seconds float64
	// Volts of the supply, 0 if not stated.
	Volts float64
	// Work done, by term.
	Work cortexm.Vector
	// Code is the image size without the model, in bytes, 0 if unknown.
	Code int64
	// Layer is set for a measurement of one layer, Board for one of a table of single boards.
	Layer, Board bool
	// Build is the option that the program was compiled with, "" for speed or if not stated.
	Build string
}

// Group identifies a set of coefficients.
type Group struct{ Family, Era, Core string }

// Group returns the group of the measurement.
func (m *Measurement) Group() Group { return Group{m.Family, m.Era, m.Core} }

// Table is a table of measurements with named columns.
type Table struct {
	// Head names the columns; Rows has the cells of each row by column name.
	Head []string
	Rows []map[string]string
}

// maxTable bounds the file of a table, in bytes.
const maxTable = 64 << 20

// OpenTable reads the file of a table; errors begin with its name.
func OpenTable(path string) (*Table, error) {
	b, err := infile.Read(path, maxTable)
	if err != nil {
		return nil, err
	}
	t, err := readTable(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// readTable reads a CSV table with a header.
func readTable(r io.Reader) (*Table, error) {
	c := csv.NewReader(r)
	c.FieldsPerRecord = -1
	head, err := c.Read()
	if err == io.EOF {
		return nil, fmt.Errorf("is empty; expected a line with the names of the columns")
	}
	if err != nil {
		return nil, fmt.Errorf("read header: %w", err)
	}
	for i := range head { // spreadsheets begin files with a byte order mark
		head[i] = strings.TrimSpace(strings.TrimPrefix(head[i], "\ufeff"))
	}
	t := &Table{Head: head}
	for {
		rec, err := c.Read()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read table: %w", err)
		}
		row := make(map[string]string, len(head))
		for i, v := range rec {
			if i < len(head) {
				row[head[i]] = v
			}
		}
		t.Rows = append(t.Rows, row)
	}
}

// Work of a network counted in two ways: over all channels, and over channels with nonzero
// weights.
type Work struct{ All, Live cortexm.Vector }

// Total adds up layers; layers whose work is unknown count as one operator.
func Total(layers []cortexm.Layer) *Work {
	n := &Work{}
	for i := range layers {
		if layers[i].Missing != nil {
			n.All[cortexm.Op]++
			n.Live[cortexm.Op]++
			continue
		}
		n.All = n.All.Plus(layers[i].Work)
		n.Live = n.Live.Plus(layers[i].Live)
	}
	n.All[cortexm.Call], n.Live[cortexm.Call] = 1, 1
	return n
}

// Sources lists the sources of measurements in order.
func Sources(ms []*Measurement) []string {
	seen := map[string]bool{}
	var out []string
	for _, m := range ms {
		if !seen[m.Source] {
			seen[m.Source] = true
			out = append(out, m.Source)
		}
	}
	sort.Strings(out)
	return out
}
