// Package tensorrt reads what trtexec and the engine inspector of TensorRT export: times
// of layers (exportProfile), of inferences (exportTimes), descriptions of layers
// (exportLayerInfo), and the metadata files of the engine explorer.
//
// Source of the formats: samples/common (sampleReporting) and
// tools/experimental/trt-engine-explorer of the TensorRT project.
package tensorrt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:   "tensorrt",
		Title:  "TensorRT trtexec and engine explorer",
		Files:  "JSON of trtexec --exportProfile, --exportTimes and --exportLayerInfo, its console output, metadata of the engine explorer; files of one engine with the same name become one run",
		Logged: true,
		Gives:  []string{"latency_s", "share", "timeline", "shapes", "options", "samples", "params", "weights_bytes"},
		Match:  match,
		Read:   read,
	}
}

// marks are keys that a kind of file has, by falling confidence.
var marks = []struct {
	sure record.Sure
	keys []string
}{
	{record.Certain, []string{`"averageMs"`, `"timeMs"`}},
	{record.Certain, []string{`"startComputeMs"`, `"latencyMs"`}},
	{record.Certain, []string{`"Layers"`, `"LayerType"`}},
	{record.Certain, []string{`"Layers"`, `"Bindings"`}},
	{record.Certain, []string{`"performance_summary"`, `"GPU Compute Time"`}},
	{record.Certain, []string{`"build_options"`, `"model_options"`}},
	{record.Certain, []string{`"ComputeCapability"`, `"CUDA_VERSION"`}},
	{record.Likely, []string{`"performance_summary"`, `"inference_options"`}},
	{record.Maybe, []string{`"Layers"`, `["`}},
}

func match(f *record.File) record.Sure { return max(matchJSON(f), matchConsole(f)) }

func matchJSON(f *record.File) record.Sure {
	if h := f.JSONHead("{["); h != nil {
		for _, m := range marks {
			if h.Has(m.keys...) {
				return m.sure
			}
		}
	}
	return record.No
}

// tails are words that distinguish the files of one engine; the name of the engine precedes them.
var tails = map[string]bool{
	"profile": true, "profiling": true, "graph": true, "layer": true, "layers": true, "layerinfo": true, "info": true, "timing": true, "timings": true,
	"time": true, "times": true, "metadata": true, "build": true, "engine": true, "json": true, "export": true, "exported": true, "trtexec": true,
}

// stem is the common part of the names of an engine's files.
func stem(f *record.File) string {
	s := f.Name
	for {
		i := strings.LastIndexAny(s, "._-")
		if !tails[strings.ToLower(s[i+1:])] {
			return s
		}
		if i < 0 {
			return ""
		}
		s = s[:i]
	}
}

// set holds the files of one engine. Their documents stand in the order of the files.
type set struct {
	name     string
	first    *record.File
	profiles []*profiled
	infos    []*described
	times    []*times
	metas    []*jsontree.Value
	doc      document
	bad      int64
	cut      bool
	large    int64
	kept     int64 // bytes of text that is kept as values
	lost     int64 // documents beyond the limit
	logs     []*consoleLog
}

// document is the JSON document that is being read: what it has begun so far.
type document struct {
	info *described
	time *times
	meta *jsontree.Value
}

// described is a document of exportLayerInfo.
type described struct {
	layers   []*jsontree.Value
	bindings []string
}

// add appends a document to a list of limited length; one that does not fit is counted, and
// forgotten.
func add[T any](s *set, list *[]*T, doc *T) *T {
	if len(*list) < draft.MaxRuns {
		*list = append(*list, doc)
	} else {
		s.lost++
	}
	return doc
}

// maxKept limits the text of an engine's files that is kept, in bytes.
const maxKept = 128 << 20

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	sets, errs := record.Groups(ctx, in.Files, stem, func(f *record.File) *set {
		return &set{name: cmp.Or(stem(f), draft.Stem(f)), first: f}
	}, func(s *set, f *record.File) error { return s.file(ctx, f) })
	var runs []*runlog.Run
	for _, s := range sets {
		rs, err := draft.NotEmpty(s.runs(), nil)
		if err != nil {
			errs = append(errs, record.Fault(s.first, err))
		}
		runs = append(runs, rs...)
	}
	return runs, errors.Join(errs...)
}

// maxLayerInfo limits the description of one layer in bytes.
const maxLayerInfo = 4 << 20

// file reads all documents of a file.
func (s *set) file(ctx context.Context, f *record.File) error {
	s.doc = document{}
	if matchConsole(f) > matchJSON(f) {
		return s.console(f)
	}
	o := jsonscan.Options{
		MaxValue: maxLayerInfo, Line: s.line, Stream: jsonscan.Keys("Layers", "Bindings"),
		Document: func() { s.doc = document{} },
	}
	res, err := f.ScanJSON(ctx, o, s.value)
	s.bad += res.Bad
	s.cut = s.cut || res.Cut
	s.large += res.Large
	if errors.Is(err, jsonscan.ErrNone) {
		return fmt.Errorf("no TensorRT export: %w", err)
	}
	return err
}

// value reads a member of a document, or an element of a list.
func (s *set) value(key string, value []byte) {
	v, fault := jsontree.Parse(value)
	if s.kept > maxKept && !v.Has("latencyMs") && !v.Has("computeMs") {
		s.large++
		return
	}
	if fault != nil && key == "" && s.line(value) {
		return
	}
	if fault != nil {
		s.bad++
	}
	if key != "Bindings" && (key != "" || v.Has("name") || !v.Has("latencyMs")) {
		s.kept += int64(len(value))
	}
	switch key {
	case "Layers":
		if i := s.info(); len(i.layers) < draft.MaxLayers {
			i.layers = append(i.layers, v)
		} else {
			s.bad++
		}
	case "Bindings":
		if i, b := s.info(), v.Str(); b != "" && len(i.bindings) < draft.MaxLayers {
			i.bindings = append(i.bindings, b)
		}
	case "":
		s.element(v)
	default:
		if s.doc.meta == nil {
			s.doc.meta = add(s, &s.metas, &jsontree.Value{Kind: jsontree.Object})
		}
		if m := s.doc.meta; len(m.Keys) < 1000 {
			m.Keys, m.Items = append(m.Keys, key), append(m.Items, v)
		}
	}
}

// info returns the description of layers that the document is.
func (s *set) info() *described {
	if s.doc.info == nil {
		s.doc.info = add(s, &s.infos, &described{})
	}
	return s.doc.info
}

// line reads a layer of a profile that is not JSON: names are written without escaping, so that
// one may have quotes.
func (s *set) line(l []byte) bool {
	m := unescaped.FindSubmatch(l)
	if m == nil {
		return false
	}
	v, err := jsontree.Parse(append([]byte("{"), m[2]...))
	if err != nil {
		return false
	}
	v.Keys = append([]string{"name"}, v.Keys...)
	v.Items = append([]*jsontree.Value{{Kind: jsontree.String, Text: string(m[1])}}, v.Items...)
	s.element(v)
	return true
}

var unescaped = lazyregexp.New(`^\s*,?\s*\{\s*"name"\s*:\s*"(.*)"\s*,\s*("timeMs"\s*:.*\})\s*,?\s*$`)

// element reads an element of a list: of a profile, of times, of devices.
func (s *set) element(v *jsontree.Value) {
	switch {
	case v.Has("count") && !v.Has("name"):
		n, _ := v.Get("count").Float()
		add(s, &s.profiles, &profiled{count: n})
	case v.Has("name") && (v.Has("timeMs") || v.Has("averageMs")):
		if len(s.profiles) == 0 {
			s.profiles = append(s.profiles, &profiled{})
		}
		p := s.profiles[len(s.profiles)-1]
		if len(p.rows) < draft.MaxLayers {
			p.rows = append(p.rows, v)
		} else {
			s.bad++
		}
	case v.Has("latencyMs") || v.Has("computeMs"):
		if s.doc.time == nil || s.doc.time.restarts(v) {
			s.doc.time = add(s, &s.times, newTimes())
		}
		s.doc.time.add(v)
	case v != nil && v.Kind == jsontree.Object && len(s.metas) < 100:
		s.metas = append(s.metas, v)
	default:
		s.bad++
	}
}
