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
	// Source is the publication: measurements of one source stand and fall together.
	Source string
	// Family of runtime and its Era, Core and Chip.
	Family, Era, Core, Chip string
	// Clock in hertz.
	Clock float64
	// Model as the table names it, and Version of the runtime.
	Model, Version string
	// Cycles measured: the printed ones, or latency times clock.
	Cycles float64
	// Joules and Watts are measured energy and mean power, 0 when there are none.
	Joules, Seconds float64
	// Volts of the supply, 0 when it is not stated.
	Volts float64
	// Work done, by term.
	Work cortexm.Vector
	// Code is what the image took beside the model, in bytes, 0 when it is not known.
	Code int64
	// Layer is set for a measurement of one layer.
	Layer bool
}

// Group is what coefficients belong to.
type Group struct{ Family, Era, Core string }

// Group of the measurement.
func (m *Measurement) Group() Group { return Group{m.Family, m.Era, m.Core} }

// Table is a table of measurements with named columns.
type Table struct {
	// Head names the columns; Rows has the cells of each row by them.
	Head []string
	Rows []map[string]string
}

// maxTable bounds the file of a table, in bytes.
const maxTable = 64 << 20

// OpenTable reads the file of a table; the error begins with its name.
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

// readTable reads a table in CSV with a header.
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

// Work of a network in both countings: of all channels, and of those with weights.
type Work struct{ All, Live cortexm.Vector }

// Total adds layers up; layers whose work is not known count as one operator.
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
