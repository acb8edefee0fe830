// Package stedgeai reads reports of ST's tools for neural networks on microcontrollers
// (ST Edge AI, before X-CUBE-AI): the text of analyze, generate and validate with its
// tables, the report, graph and information files in JSON.
//
// The formats are derived from the tools' public outputs.
package stedgeai

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
	"github.com/opmeter/opmeter/internal/record/textscan"
	"github.com/opmeter/opmeter/profile"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:  "stedgeai",
		Title: "ST Edge AI / X-CUBE-AI report",
		Files: "<name>_analyze_report.txt, _generate_report.txt, _validate_report.txt, <name>_report.json, _c_graph.json, _c_info.json; files of one network become one run",
		Gives: []string{"latency_s", "cpu_cycles", "weights_bytes", "params", "memory", "shapes", "options"},
		Match: func(f *record.File) record.Sure { return record.Certain.If(kindOf(f) != none) },
		Read:  read,
	}
}

type kind int

// Kinds of files in the order in which they are read: the graph has most of the layers, and other
// files add to it.
const (
	none kind = iota
	graph
	info
	text
	report
)

func kindOf(f *record.File) kind {
	if h := f.JSONHead("{"); h != nil {
		switch {
		case h.Has(`"cli_parameters"`, `"tools_api_version"`), h.HasAny(`"rom_n_macc"`, `"cli_version_str"`):
			return report
		case h.HasAny(`"c_arrays"`, `"c_layers"`, `"activations_alignment"`):
			return graph
		case h.HasAny(`"STAI_FLAG_`, `"mpool_id"`):
			return info
		}
		return none
	}
	return record.FindLine(f, func(l string) kind {
		l = textscan.Strip(l)
		for _, begin := range []string{"ST Edge AI Core v", "Exec/report summary (", "ST.AI Profiling results", "Neural Network Tools for STM32"} {
			if strings.HasPrefix(l, begin) {
				return text
			}
		}
		if inspector.MatchString(l) || resultLine.MatchString(strings.TrimSpace(l)) {
			return text
		}
		return none
	}, "ST Edge AI Core", "Exec/report summary", "ST.AI Profiling", "Neural Network Tools", "c_id", "Clayer", "Results for ")
}

var ends = lazyregexp.New(`(?i)_?(c_info|c_graph|stedgeai_report|(analyze|generate|validate|validation)?_?report)$`)

func stem(f *record.File) string { return ends.ReplaceAllString(draft.Stem(f), "") }

// maxBytes limits the size of a file.
const maxBytes = 64 << 20

// network holds the files of one network.
type network struct {
	d      *draft.Draft
	at     map[string]int // layers of the generated code by their names
	byID   map[string]int // and by their numbers
	tflite bool
}

var (
	// macc is ST's measure of work; it counts more than multiply-accumulates.
	macc          = profile.Quantity{Key: "macc", Head: "MACC", Name: "MACC", Group: "Work", Adds: true, Whole: true, Doc: "Complexity as ST's tools count it: multiply-accumulates, with biases and what activations come to."}
	cpuCycles     = profile.Quantity{Key: "cpu_cycles"}
	recordedShare = profile.Quantity{Key: "recorded_share", Unit: "1", Head: "rec. share", Name: "Share as recorded", Group: "Record"}
)

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	files := slices.DeleteFunc(slices.Clone(in.Files), func(f *record.File) bool { return kindOf(f) == none })
	sorting.Stable(files, func(a, b *record.File) int { return cmp.Compare(kindOf(a), kindOf(b)) })
	networks, errs := record.Groups(ctx, files, stem, func(f *record.File) *network {
		return &network{d: draft.New("stedgeai", cmp.Or(stem(f), draft.Stem(f)), "ST Edge AI"), at: map[string]int{}, byID: map[string]int{}}
	}, (*network).file)
	drafts := make([]*draft.Draft, len(networks))
	for i, n := range networks {
		drafts[i] = n.d
	}
	return draft.RunsOf(in.Files, drafts, errs)
}

func (n *network) file(f *record.File) error {
	k := kindOf(f)
	if k == text {
		return n.text(f)
	}
	v, fault, err := f.ParseJSON(maxBytes)
	if err != nil {
		return err
	}
	n.d.Dropped.Add(draft.NotFinite, v.Odd())
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

// layer returns the index of a layer of the generated code. It adds the layer if it is new.
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

// source sets the operator of the model that a layer is: its position, which the tools give for
// .tflite models.
func (n *network) source(i int, id string) {
	if v, ok := textscan.Whole(id); ok && v >= 0 && n.tflite {
		n.d.Hint(i).Index = &v
	}
	n.option(i, "m_id", id)
}

// option adds an option that a layer lacks.
func (n *network) option(i int, key, value string) {
	if l := n.d.Layer(i); l != nil && l.Option(key) == "" {
		n.d.Option(i, key, value)
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

// name sets the name of the model unless it is empty.
func (n *network) name(s string) {
	if s != "" {
		n.d.P.Model.Name = draft.Text(s)
	}
}

// dtypes are ST's names of types.
var dtypes = map[string]string{"s8": "int8", "u8": "uint8", "s16": "int16", "u16": "uint16", "s32": "int32", "u32": "uint32", "float": "float32", "f32": "float32", "bool": "bool", "s1": "int1"}

func dtype(s string) string {
	s = strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(s, "const "), "STAI_FORMAT_"))
	return cmp.Or(dtypes[s], s)
}
