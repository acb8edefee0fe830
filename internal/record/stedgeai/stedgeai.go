// Package stedgeai reads what ST's tools for neural networks on microcontrollers report
// (ST Edge AI, before X-CUBE-AI): the text of analyze, generate and validate with its
// tables, the report, graph and information files in JSON.
//
// The formats are told from the tools' public outputs.
package stedgeai

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"

	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:  "stedgeai",
		Title: "ST Edge AI / X-CUBE-AI report",
		Files: "<name>_analyze_report.txt, _generate_report.txt, _validate_report.txt, <name>_report.json, _c_graph.json, _c_info.json; files of one network become one run",
		Gives: []string{"latency_s", "cpu_cycles", "weights_bytes", "params", "memory", "shapes", "options"},
		Match: match,
		Read:  read,
	}
}

type kind int

const (
	none kind = iota
	text
	report
	graph
	info
)

func kindOf(f *record.File) kind {
	head := bytes.TrimLeft(bytes.TrimPrefix(f.Head, []byte("\xef\xbb\xbf")), " \t\r\n")
	has := func(keys ...string) bool {
		for _, k := range keys {
			if !bytes.Contains(head, []byte(k)) {
				return false
			}
		}
		return true
	}
	if bytes.HasPrefix(head, []byte("{")) {
		switch {
		case has(`"cli_parameters"`, `"tools_api_version"`), has(`"rom_n_macc"`), has(`"cli_version_str"`):
			return report
		case has(`"c_arrays"`), has(`"c_layers"`), has(`"activations_alignment"`):
			return graph
		case has(`"STAI_FLAG_`), has(`"mpool_id"`):
			return info
		}
		return none
	}
	if !textscan.Any(f.Head, "ST Edge AI Core", "Exec/report summary", "ST.AI Profiling", "Neural Network Tools", "c_id", "Clayer", "Results for ") {
		return none
	}
	for _, l := range textscan.Head(f.Head, f.Whole) {
		switch {
		case strings.HasPrefix(l, "ST Edge AI Core v"), strings.HasPrefix(l, "Exec/report summary ("), strings.HasPrefix(l, "ST.AI Profiling results"),
			strings.HasPrefix(l, "Neural Network Tools for STM32"), inspector.MatchString(l), resultLine.MatchString(strings.TrimSpace(l)):
			return text
		}
	}
	return none
}

func match(f *record.File) record.Sure {
	if kindOf(f) != none {
		return record.Certain
	}
	return record.No
}

var ends = regexp.MustCompile(`(?i)_?(c_info|c_graph|stedgeai_report|(analyze|generate|validate|validation)?_?report)$`)

func stem(f *record.File) string { return ends.ReplaceAllString(draft.Stem(f), "") }

// maxBytes bounds a file.
const maxBytes = 64 << 20

// network is what the files of one network hold.
type network struct {
	d      *draft.Draft
	at     map[string]int // layers of the generated code by their names
	byID   map[string]int // and by their numbers
	tflite bool
}

// macc is ST's measure of work; it counts more than multiply-accumulates.
var macc = profile.Quantity{Key: "macc", Head: "MACC", Name: "MACC", Group: "Work", Adds: true, Whole: true, Doc: "Complexity as ST's tools count it: multiply-accumulates, with biases and what activations come to."}

func newNetwork(name string) *network {
	return &network{d: draft.New("stedgeai", name, "ST Edge AI"), at: map[string]int{}, byID: map[string]int{}}
}

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	by := map[string]*network{}
	var order []*network
	var errs []error
	// The graph knows most of the layers: what other files say is added to it.
	for _, k := range []kind{graph, info, text, report} {
		for _, f := range in.Files {
			if kindOf(f) != k {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, errors.Join(append(errs, err)...)
			}
			n := by[stem(f)]
			if n == nil {
				n = newNetwork(cmp.Or(stem(f), draft.Stem(f)))
				by[stem(f)] = n
				order = append(order, n)
			}
			if err := n.file(f, in, k); err != nil {
				errs = append(errs, record.Fault(f, err))
			}
		}
	}
	var runs []*runlog.Run
	for _, n := range order {
		if !n.d.Empty() {
			runs = append(runs, n.d.Run())
		}
	}
	if len(runs) == 0 && len(errs) == 0 && len(in.Files) > 0 {
		errs = append(errs, record.Fault(in.Files[0], draft.ErrNothing))
	}
	return runs, errors.Join(errs...)
}

func (n *network) file(f *record.File, in *record.Input, k kind) error {
	if k == text {
		return n.text(f, in)
	}
	b, err := f.Read(maxBytes)
	if err != nil {
		return err
	}
	v, fault := jsontree.Parse(b)
	switch k {
	case graph:
		n.graph(v)
	case info:
		n.info(v)
	case report:
		n.report(v)
	}
	return fault
}

// layer returns the index of a layer of the generated code, which is made where it is new.
func (n *network) layer(id, name, op string) int {
	if i, ok := n.at[name]; ok && name != "" {
		return i
	}
	i := n.d.Add(profile.Layer{Name: name, Op: op}, runlog.Hint{})
	if i >= 0 {
		n.at[name] = i
		if id != "" {
			n.byID[id] = i
		}
	}
	return i
}

// source says which operator of the model a layer is: its position, which the tools give for
// .tflite models.
func (n *network) source(i int, id string) {
	if v, ok := textscan.Whole(id); ok && v >= 0 && n.tflite {
		n.d.Hint(i).Index = &v
	}
	if n.d.Layer(i) != nil && n.d.Layer(i).Option("m_id") == "" {
		n.d.Option(i, "m_id", id)
	}
}

// path sets the model file.
func (n *network) path(s, kind string) {
	if s = strings.TrimSpace(s); s != "" {
		n.d.P.Model.Path = draft.Text(s)
		base := s[strings.LastIndexAny(s, `/\`)+1:]
		if i := strings.LastIndexByte(base, '.'); i > 0 {
			base = base[:i]
		}
		n.d.P.Model.Name = draft.Text(base)
	}
	if kind != "" {
		n.tflite = kind == "tflite"
		n.d.Note("model type", kind)
	}
}

// dtypes are ST's names of types.
var dtypes = map[string]string{"s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16", "s32": "int32", "u32": "uint32", "float": "float32", "f32": "float32", "bool": "bool", "s1": "int1"}

func dtype(s string) string {
	s = strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(s, "const "), "STAI_FORMAT_"))
	if s == "float32" || s == "float" {
		return "float32"
	}
	return cmp.Or(dtypes[s], s)
}
