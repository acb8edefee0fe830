package onnxruntime

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/opmeter/opmeter/internal/external"
)

// level is an optimisation level, with its number in GraphOptimizationLevel.
type level struct {
	name   string
	number int
	since  int // minor version
}

var levels = []level{{"none", 0, 0}, {"basic", 1, 0}, {"extended", 2, 0}, {"layout", 3, 22}, {"all", 99, 0}}

func levelNames(minor int) string {
	var out []string
	for _, v := range levels {
		if minor >= v.since {
			out = append(out, v.name)
		}
	}
	return strings.Join(out, "|")
}

// options lists the accepted options.
func options(minor int) []external.OptionInfo {
	return []external.OptionInfo{
		{Key: "providers", Values: "NAME,...", Doc: "execution providers in the order in which they are asked; the processor is always the last one"},
		{Key: "optimization", Values: levelNames(minor), Doc: "level of graph optimisation; all where nothing is said"},
		{Key: "execution", Values: "sequential|parallel", Doc: "whether independent nodes may run at the same time; sequential where nothing is said"},
		{Key: "inter_op_threads", Values: "1 or more", Doc: "threads that nodes are spread over with execution=parallel; 1 where nothing is said"},
		{Key: "arena", Values: "on|off", Doc: "whether memory on the processor comes from an arena; on where nothing is said"},
		{Key: "memory_pattern", Values: "on|off", Doc: "whether memory is planned from the shapes of earlier runs; on where nothing is said"},
		{Key: "session.KEY", Values: "text", Doc: "an entry of the session's configuration by its whole name, such as session.intra_op.allow_spinning=0; those that begin with optimization., ep. and mlas. are taken, too"},
		{Key: "PROVIDER.KEY", Values: "text", Doc: "an option of a provider, such as CUDA.device_id=0"},
	}
}

// families are the prefixes of session configuration keys.
var families = []string{"session.", "optimization.", "ep.", "mlas."}

// settings are parsed options.
type settings struct {
	providers []string // whole names, the processor's left out
	level     level
	parallel  bool
	interOp   int
	arena     bool
	pattern   bool
	entries   []external.Option
	of        map[string][]external.Option // options of providers
}

// parse parses options.
func (l *library) parse(list []external.Option) (*settings, error) {
	s := &settings{level: levels[len(levels)-1], interOp: 1, arena: true, pattern: true, of: map[string][]external.Option{}}
	var later []external.Option
	for _, o := range list {
		var err error
		switch o.Key {
		case "providers":
			s.providers, err = l.named(o.Value)
		case "optimization":
			i := slices.IndexFunc(levels, func(v level) bool { return v.name == o.Value && l.minor >= v.since })
			if i < 0 {
				return nil, wrong(o, levelNames(l.minor))
			}
			s.level = levels[i]
		case "execution":
			if o.Value != "sequential" && o.Value != "parallel" {
				return nil, wrong(o, "sequential|parallel")
			}
			s.parallel = o.Value == "parallel"
		case "inter_op_threads":
			n, bad := strconv.Atoi(o.Value)
			if bad != nil || n < 1 || n > 1024 {
				return nil, wrong(o, "a number from 1 to 1024")
			}
			s.interOp = n
		case "arena":
			s.arena, err = onOff(o)
		case "memory_pattern":
			s.pattern, err = onOff(o)
		default:
			if slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(o.Key, f) && len(o.Key) > len(f) }) {
				s.entries = append(s.entries, o)
				continue
			}
			later = append(later, o)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, o := range later {
		if err := l.ofProvider(s, o); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func wrong(o external.Option, takes string) error {
	return external.Errorf(external.NoOption, "ONNX Runtime: %s=%s: it takes %s", o.Key, o.Value, takes)
}

func onOff(o external.Option) (bool, error) {
	if o.Value != "on" && o.Value != "off" {
		return false, wrong(o, "on|off")
	}
	return o.Value == "on", nil
}

// short returns a provider's name without the common suffix.
func short(provider string) string { return strings.TrimSuffix(provider, "ExecutionProvider") }

// provider finds a provider by its short or full name, ignoring case.
func (l *library) provider(name string) (string, bool) {
	i := slices.IndexFunc(l.providers, func(p string) bool { return strings.EqualFold(p, name) || strings.EqualFold(short(p), name) })
	if i < 0 {
		return "", false
	}
	return l.providers[i], true
}

// named parses a list of providers.
func (l *library) named(list string) (out []string, err error) {
	for _, name := range strings.Split(list, ",") {
		p, ok := l.provider(strings.TrimSpace(name))
		if !ok {
			return nil, external.Errorf(external.NoProvider, "ONNX Runtime %s has no provider %q; this library has %s", l.version, strings.TrimSpace(name), l.shorts())
		}
		if p != processor && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out, nil
}

func (l *library) shorts() string {
	var out []string
	for _, p := range l.providers {
		out = append(out, short(p))
	}
	return strings.Join(out, ", ")
}

// ofProvider parses an option of a provider.
func (l *library) ofProvider(s *settings, o external.Option) error {
	name, key, dotted := strings.Cut(o.Key, ".")
	p, ok := l.provider(name)
	switch {
	case dotted && ok && key != "" && slices.Contains(s.providers, p):
		s.of[p] = append(s.of[p], external.Option{Key: key, Value: o.Value})
		return nil
	case dotted && ok && p != processor:
		return external.Errorf(external.NoOption, "ONNX Runtime: %s is of a provider that is not asked for: add providers=%s", o.Key, short(p))
	}
	var known []string
	for _, k := range options(l.minor) {
		known = append(known, k.Key)
	}
	return external.Errorf(external.NoOption, "ONNX Runtime has no option %q; there are %s", o.Key, strings.Join(known, ", "))
}

// how is the configuration of one session.
type how struct {
	threads   int
	profile   string // prefix of the profiler's file, "" for none
	optimised string // file for the optimised model, "" for none
}

// options creates the library's options of a session. The caller releases them.
func (l *library) options(s *settings, h how) (uintptr, error) {
	var m mem
	defer m.free()
	o := new(uintptr)
	if err := l.call(l.f.CreateSessionOptions, uintptr(unsafe.Pointer(o))); err != nil {
		return 0, failed(external.Failed, "options", err)
	}
	if err := l.set(&m, *o, s, h); err != nil {
		invoke(l.f.ReleaseSessionOptions, *o)
		return 0, err
	}
	return *o, nil
}

func (l *library) set(m *mem, o uintptr, s *settings, h how) error {
	pick := func(on bool, yes, no uintptr) uintptr {
		if on {
			return yes
		}
		return no
	}
	mode := uintptr(0)
	if s.parallel {
		mode = 1
	}
	const fatal = 4
	err := errors.Join(
		l.call(l.f.SetSessionLogSeverityLevel, o, fatal),
		l.call(l.f.SetIntraOpNumThreads, o, uintptr(h.threads)),
		l.call(l.f.SetInterOpNumThreads, o, uintptr(s.interOp)),
		l.call(l.f.SetSessionExecutionMode, o, mode),
		l.call(l.f.SetSessionGraphOptimizationLevel, o, uintptr(s.level.number)),
		l.call(pick(s.arena, l.f.EnableCpuMemArena, l.f.DisableCpuMemArena), o),
		l.call(pick(s.pattern, l.f.EnableMemPattern, l.f.DisableMemPattern), o))
	if err == nil && h.profile != "" {
		err = l.call(l.f.EnableProfiling, o, m.bytes(path(h.profile)))
	}
	if err == nil && h.optimised != "" {
		err = l.call(l.f.SetOptimizedModelFilePath, o, m.bytes(path(h.optimised)))
	}
	if err != nil {
		return failed(external.Failed, "options", err)
	}
	for _, e := range s.entries {
		if err := l.call(l.f.AddSessionConfigEntry, o, m.text(e.Key), m.text(e.Value)); err != nil {
			return failed(external.NoOption, e.Key, err)
		}
	}
	for _, p := range s.providers {
		if err := l.append(m, o, p, s.of[p]); err != nil {
			return err
		}
	}
	return nil
}

// append adds a provider to a session's options. Some have functions of their own.
func (l *library) append(m *mem, o uintptr, provider string, options []external.Option) error {
	keep := new(uintptr)
	var names, texts []string
	for _, x := range options {
		names, texts = append(names, x.Key), append(texts, x.Value)
	}
	keys, values := m.texts(names), m.texts(texts)
	f := &l.f
	own := map[string][4]uintptr{
		"CUDAExecutionProvider":     {f.CreateCUDAProviderOptions, f.UpdateCUDAProviderOptions, f.AppendCUDA, f.ReleaseCUDAProviderOptions},
		"TensorrtExecutionProvider": {f.CreateTensorRTProviderOptions, f.UpdateTensorRTProviderOptions, f.AppendTensorRT, f.ReleaseTensorRTProviderOptions},
		"CANNExecutionProvider":     {f.CreateCANNProviderOptions, f.UpdateCANNProviderOptions, f.AppendCANN, f.ReleaseCANNProviderOptions},
		"DnnlExecutionProvider":     {f.CreateDnnlProviderOptions, f.UpdateDnnlProviderOptions, f.AppendDnnl, f.ReleaseDnnlProviderOptions},
	}
	n := uintptr(len(options))
	if w, ok := own[provider]; ok {
		err := l.call(w[0], uintptr(unsafe.Pointer(keep)))
		if err == nil {
			defer invoke(w[3], *keep)
			if n > 0 {
				err = l.call(w[1], *keep, keys, values, n)
			}
		}
		if err == nil {
			err = l.call(w[2], o, *keep)
		}
		return l.refused(provider, err)
	}
	// Other providers are added by name. Depending on the release it is short, in capitals, or
	// full.
	var why error
	for _, name := range []string{short(provider), strings.ToUpper(short(provider)), provider} {
		err := l.call(f.Append, o, m.text(name), keys, values, n)
		if err == nil {
			return nil
		}
		why = cmp.Or(why, err)
	}
	return l.refused(provider, why)
}

func (l *library) refused(provider string, err error) error {
	if err == nil {
		return nil
	}
	return external.Errorf(external.NoProvider, "ONNX Runtime %s: the provider %s cannot be used: %s", l.version, short(provider), strings.TrimSpace(err.Error()))
}
