// Package tensorrt reads what trtexec and the engine inspector of TensorRT export: times
// of layers (exportProfile), of inferences (exportTimes), what the layers are
// (exportLayerInfo), and the files that the engine explorer puts beside them.
//
// Source of the formats: samples/common (sampleReporting) and
// tools/experimental/trt-engine-explorer of the TensorRT project.
package tensorrt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/opmeter/opmeter/internal/base/jsonscan"
	"github.com/opmeter/opmeter/internal/base/jsontree"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/draft"
)

// Format is the reader.
func Format() *record.Format {
	return &record.Format{
		Name:  "tensorrt",
		Title: "TensorRT trtexec and engine explorer",
		Files: "JSON of trtexec --exportProfile, --exportTimes and --exportLayerInfo, metadata of the engine explorer; files of one engine with the same name become one run",
		Gives: []string{"latency_s", "share", "timeline", "shapes", "options", "samples", "params", "weights_bytes"},
		Match: match,
		Read:  read,
	}
}

// marks are keys that a kind of file has all of, in the order of sureness.
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

func match(f *record.File) record.Sure {
	head := bytes.TrimLeft(bytes.TrimPrefix(f.Head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return record.No
	}
	for _, m := range marks {
		if !slices.ContainsFunc(m.keys, func(k string) bool { return !bytes.Contains(head, []byte(k)) }) {
			return m.sure
		}
	}
	return record.No
}

// tails are words that tell the files of one engine apart; what stands before them is its name.
var tails = map[string]bool{
	"profile": true, "profiling": true, "graph": true, "layer": true, "layers": true, "layerinfo": true, "info": true, "timing": true, "timings": true,
	"time": true, "times": true, "metadata": true, "build": true, "engine": true, "json": true, "export": true, "exported": true, "trtexec": true,
}

// stem is what the names of an engine's files have in common.
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

// set is what the files of one engine hold.
type set struct {
	name     string
	files    []*record.File
	profiles []*profiled
	infos    []*jsontree.Value
	bindings []string
	times    *times
	metas    []*jsontree.Value
	bad      int64
	cut      bool
	large    int64
	kept     int64 // bytes of text that is kept as values
}

// maxKept bounds the text of an engine's files that is kept, in bytes.
const maxKept = 128 << 20

func read(ctx context.Context, in *record.Input) ([]*runlog.Run, error) {
	sets := map[string]*set{}
	var order []*set
	var errs []error
	for _, f := range in.Files {
		if err := ctx.Err(); err != nil {
			errs = append(errs, err)
			break
		}
		key := stem(f)
		s := sets[key]
		if s == nil {
			s = &set{name: cmp.Or(key, draft.Stem(f))}
			sets[key] = s
			order = append(order, s)
		}
		s.files = append(s.files, f)
		if err := s.file(f, in); err != nil {
			errs = append(errs, record.Fault(f, err))
		}
	}
	var runs []*runlog.Run
	for _, s := range order {
		rs := s.runs()
		if len(rs) == 0 {
			errs = append(errs, record.Fault(s.files[0], draft.ErrNothing))
		}
		runs = append(runs, rs...)
	}
	return runs, errors.Join(errs...)
}

// maxLayerInfo bounds what is said of one layer, maxLayers of how many.
const (
	maxLayerInfo = 4 << 20
	maxLayers    = draft.MaxLayers
)

// file takes the documents of a file, whichever they are.
func (s *set) file(f *record.File, in *record.Input) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	var meta *jsontree.Value
	res, err := jsonscan.Each(r, jsonscan.Options{MaxValue: maxLayerInfo, Line: s.line, Stream: func(key string) bool { return key == "Layers" || key == "Bindings" }},
		func(key string, value []byte) error {
			v, fault := jsontree.Parse(value)
			if s.kept > maxKept && !v.Has("latencyMs") && !v.Has("computeMs") {
				s.large++
				return nil
			}
			if fault != nil && key == "" && s.line(value) {
				return nil
			}
			if fault != nil {
				s.bad++
			}
			switch {
			case key == "Layers":
				s.kept += int64(len(value))
				if len(s.infos) < maxLayers {
					s.infos = append(s.infos, v)
				} else {
					s.bad++
				}
			case key == "Bindings":
				if b := v.Str(); b != "" && len(s.bindings) < maxLayers {
					s.bindings = append(s.bindings, b)
				}
			case key != "":
				s.kept += int64(len(value))
				if meta == nil {
					meta = &jsontree.Value{Kind: jsontree.Object}
					s.metas = append(s.metas, meta)
				}
				if len(meta.Keys) < 1000 {
					meta.Keys, meta.Items = append(meta.Keys, key), append(meta.Items, v)
				}
			default:
				if v.Has("name") || !v.Has("latencyMs") {
					s.kept += int64(len(value))
				}
				s.element(v)
			}
			return nil
		})
	s.bad += res.Bad
	s.cut = s.cut || res.Cut
	s.large += res.Large
	if errors.Is(err, jsonscan.ErrNone) {
		return fmt.Errorf("no TensorRT export: %w", err)
	}
	return err
}

// line takes a layer of a profile that is not JSON: names are written without escaping, so that
// one may hold quotes.
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

var unescaped = regexp.MustCompile(`^\s*,?\s*\{\s*"name"\s*:\s*"(.*)"\s*,\s*("timeMs"\s*:.*\})\s*,?\s*$`)

// element takes an element of a list: of a profile, of times, of devices.
func (s *set) element(v *jsontree.Value) {
	switch {
	case v.Has("count") && !v.Has("name"):
		n, _ := v.Get("count").Float()
		if len(s.profiles) < 1000 {
			s.profiles = append(s.profiles, &profiled{count: n})
		}
	case v.Has("name") && (v.Has("timeMs") || v.Has("averageMs")):
		if len(s.profiles) == 0 {
			s.profiles = append(s.profiles, &profiled{})
		}
		p := s.profiles[len(s.profiles)-1]
		if len(p.rows) < maxLayers {
			p.rows = append(p.rows, layerTime(v))
		} else {
			s.bad++
		}
	case v.Has("latencyMs") || v.Has("computeMs"):
		if s.times == nil {
			s.times = newTimes()
		}
		s.times.add(v)
	case v != nil && v.Kind == jsontree.Object && len(s.metas) < 100:
		s.metas = append(s.metas, v)
	default:
		s.bad++
	}
}
