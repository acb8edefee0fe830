package litert

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/external"
)

// Accelerators of LiteRtHwAccelerators.
const (
	onCPU = 1 << iota
	onGPU
	onNPU
)

var accelerators = []struct {
	name string
	bit  int
}{{"cpu", onCPU}, {"gpu", onGPU}, {"npu", onNPU}}

// options lists the options that [external.Task].Options accepts.
var options = []external.OptionInfo{
	{Key: "accelerator", Values: "cpu, gpu, npu, or several with commas", Doc: "What may compute, cpu where nothing is said. A model that gpu or npu takes in part needs cpu beside it."},
	{Key: "kernel", Values: "xnnpack, builtin, reference", Doc: "Which kernels compute on the CPU: those of XNNPACK as far as it has them (the library's default), TFLite's optimised ones, or its reference ones, in place of which releases up to 2.3 take the optimised ones, too."},
	{Key: "xnnpack", Values: "on, off", Doc: "off is kernel=builtin."},
	{Key: "xnnpack_flags", Values: "a number, or names with commas: " + strings.Join(slices.Sorted(maps.Keys(flags)), ", "), Doc: "Flags of the XNNPACK delegate, which replace the library's default ones."},
	{Key: "weight_cache", Values: "a file", Doc: "XNNPACK keeps packed weights in this file and maps it in the next session."},
	{Key: "clustering", Values: "on, off", Doc: "off: operators keep the order that they have in the file where a delegate takes only some of them."},
}

// flags are the bits of TfLiteXNNPackDelegateOptions.flags, as named in TensorFlow Lite's
// xnnpack_delegate.h.
var flags = map[string]uint32{
	"qs8": 1, "qu8": 2, "force_fp16": 4, "dynamic_fully_connected": 8, "variable_operators": 16, "transient_indirection_buffer": 32,
	"latest_operators": 64, "subgraph_reshaping": 128, "slow_consistent_arithmetic": 512,
}

// settings are the parsed options of a task.
type settings struct {
	accelerator []string
	bits        int
	kernel      string
	flags       *uint32
	cache       string
	scattered   bool // clustering=off
}

// parse parses the options of a task for a library with the given accelerators. If a key is
// repeated, the last value counts.
func parse(given []external.Option, has int) (settings, error) {
	s := settings{accelerator: []string{"cpu"}, bits: onCPU, kernel: "xnnpack"}
	for _, o := range given {
		if err := s.set(o, has); err != nil {
			return s, err
		}
	}
	if s.bits&onCPU == 0 {
		s.kernel = ""
	}
	if s.kernel != "xnnpack" && (s.flags != nil || s.cache != "") {
		return s, external.Errorf(external.NoOption, "xnnpack_flags and weight_cache are options of XNNPACK, which is off: leave them out or use kernel=xnnpack")
	}
	return s, nil
}

func (s *settings) set(o external.Option, has int) error {
	wrong := func() error {
		for _, x := range options {
			if x.Key == o.Key {
				return external.Errorf(external.NoOption, "%s=%s: expected %s", o.Key, o.Value, x.Values)
			}
		}
		keys := make([]string, len(options))
		for i, x := range options {
			keys[i] = x.Key
		}
		return external.Errorf(external.NoOption, "LiteRT has no option %q here; there are %s", o.Key, strings.Join(keys, ", "))
	}
	on := map[string]bool{"on": true, "off": false}
	switch o.Key {
	case "accelerator":
		return s.accelerators(o, has, wrong)
	case "kernel":
		if !slices.Contains([]string{"xnnpack", "builtin", "reference"}, o.Value) {
			return wrong()
		}
		s.kernel = o.Value
	case "xnnpack":
		yes, ok := on[o.Value]
		switch {
		case !ok:
			return wrong()
		case yes:
			s.kernel = "xnnpack"
		case s.kernel == "xnnpack":
			s.kernel = "builtin"
		}
	case "xnnpack_flags":
		f, ok := flagged(o.Value)
		if !ok {
			return wrong()
		}
		s.flags = &f
	case "weight_cache":
		// The TOML text has no escapes.
		if o.Value == "" || strings.ContainsAny(o.Value, "\"\n\r\x00#") {
			return wrong()
		}
		s.cache = o.Value
	case "clustering":
		yes, ok := on[o.Value]
		if !ok {
			return wrong()
		}
		s.scattered = !yes
	default:
		return wrong()
	}
	return nil
}

func (s *settings) accelerators(o external.Option, has int, wrong func() error) error {
	s.accelerator, s.bits = nil, 0
	for name := range strings.SplitSeq(o.Value, ",") {
		bit := 0
		for _, a := range accelerators {
			if a.name == name {
				bit = a.bit
			}
		}
		switch {
		case bit == 0:
			return wrong()
		case has&bit == 0:
			var there []string
			for _, a := range accelerators {
				if has&a.bit != 0 {
					there = append(there, a.name)
				}
			}
			return external.Errorf(external.NoProvider, "LiteRT finds no accelerator for %s. It has %s; others are libraries of their own, looked for beside libLiteRt.so.", name, strings.Join(there, ", "))
		case s.bits&bit == 0:
			s.accelerator, s.bits = append(s.accelerator, name), s.bits|bit
		}
	}
	return nil
}

// flagged parses flags as a number or as names.
func flagged(text string) (uint32, bool) {
	if n, err := strconv.ParseUint(text, 0, 32); err == nil {
		return uint32(n), true
	}
	var sum uint32
	for name := range strings.SplitSeq(text, ",") {
		bit, ok := flags[name]
		if !ok {
			return 0, false
		}
		sum |= bit
	}
	return sum, true
}

// Identifiers under which the library looks up options.
const (
	cpuOptions     = "xnnpack"
	runtimeOptions = "runtime_options_string"
)

// cpu returns the TOML text of the CPU options.
func (s *settings) cpu(threads int) string {
	b := fmt.Sprintf("num_threads = %d\n", threads)
	if s.kernel != "" && s.kernel != "xnnpack" {
		b += fmt.Sprintf("kernel_mode = \"%s\"\n", s.kernel)
	}
	if s.flags != nil {
		b += fmt.Sprintf("flags = %d\n", *s.flags)
	}
	if s.cache != "" {
		b += fmt.Sprintf("weight_cache_file_path = \"%s\"\n", s.cache)
	}
	return b
}

// runtime returns the TOML text of the runtime options. It is never empty, and differs only in
// the profiler setting: the library builds the graph differently when such options are present.
func (s *settings) runtime(profiled bool) string {
	b := fmt.Sprintf("enable_profiling = %t\nerror_reporter_mode = 1\n", profiled)
	if s.scattered {
		b += "disable_delegate_clustering = true\n"
	}
	return b
}

// facts returns the settings in effect.
func (s *settings) facts(threads int) map[string]string {
	m := map[string]string{"accelerator": strings.Join(s.accelerator, ","), "threads": strconv.Itoa(threads), "clustering": "on"}
	if s.scattered {
		m["clustering"] = "off"
	}
	if s.kernel != "" {
		m["kernel"] = s.kernel
	}
	if s.flags != nil {
		m["xnnpack_flags"] = fmt.Sprintf("%#x", *s.flags)
	}
	if s.cache != "" {
		m["weight_cache"] = s.cache
	}
	return m
}
