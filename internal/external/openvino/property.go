//go:build (linux || darwin || windows) && (amd64 || arm64)

package openvino

import (
	"cmp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/opmeter/opmeter/internal/external"
)

// virtual are devices that delegate to other devices; the library does not list them.
var virtual = []string{"AUTO", "MULTI", "HETERO", "BATCH"}

// Options of this package.
const (
	optionDevice = "device"
	optionGraphs = "graphs"
)

// propertyPrefix may precede a property's name, for properties with the name of an option.
const propertyPrefix = "property."

func options() []external.OptionInfo {
	return []external.OptionInfo{
		{Key: optionDevice, Values: "CPU, GPU, GPU.1, NPU, AUTO, HETERO:GPU,CPU, ...", Doc: "device that runs the model; CPU without it"},
		{Key: "KEY", Values: "the property's values", Doc: "any property of OpenVINO that can be set for the device, such as INFERENCE_PRECISION_HINT=f32, EXECUTION_MODE_HINT=ACCURACY, ENABLE_CPU_PINNING=NO, PERFORMANCE_HINT=THROUGHPUT; " + propertyPrefix + "KEY is the same"},
		{Key: optionGraphs, Values: "yes, no", Doc: "write the graphs as read and as executed to find the model's operators; yes without it"},
	}
}

// config is the parsed options.
type config struct {
	device string
	graphs bool
	user   []external.Option // properties, in order
}

// parse parses options. Properties are checked when they are set.
func (l *library) parse(list []external.Option) (*config, error) {
	c := &config{device: "CPU", graphs: true}
	if !slices.Contains(l.devices, "CPU") && len(l.devices) > 0 {
		c.device = l.devices[0]
	}
	for _, o := range list {
		switch {
		case o.Key == optionDevice:
			if err := l.known(o.Value); err != nil {
				return nil, err
			}
			c.device = o.Value
		case o.Key == optionGraphs:
			if o.Value != "yes" && o.Value != "no" {
				return nil, external.Errorf(external.NoOption, "option %s=%s: expected yes or no", o.Key, o.Value)
			}
			c.graphs = o.Value == "yes"
		default:
			c.user = append(c.user, external.Option{Key: strings.TrimPrefix(o.Key, propertyPrefix), Value: o.Value})
		}
	}
	return c, nil
}

// known checks the name of a device: an available one with or without a number, or a virtual one
// over them.
func (l *library) known(device string) error {
	name, rest, _ := strings.Cut(device, ":")
	ok := slices.Contains(virtual, name) || slices.ContainsFunc(l.devices, func(d string) bool {
		base, _, _ := strings.Cut(d, ".")
		return d == name || base == name
	})
	if ok && rest != "" {
		for _, d := range strings.Split(rest, ",") {
			d, _, _ = strings.Cut(strings.TrimPrefix(d, "-"), "(")
			ok = ok && slices.ContainsFunc(l.devices, func(have string) bool {
				base, _, _ := strings.Cut(have, ".")
				return d == have || d == base
			})
		}
	}
	if !ok {
		return external.Errorf(external.NoProvider, "device %s is absent; OpenVINO %s found %s, and has %s over them", device, l.version, cmp.Or(strings.Join(l.devices, ", "), "none"), strings.Join(virtual, ", "))
	}
	return nil
}

// supported lists the properties of a device; writable ones are true.
func (l *library) supported(core uintptr, device string) map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(l.property(core, device, "SUPPORTED_PROPERTIES")) {
		out[name] = true
	}
	return out
}

// property reads a property of a device, "" if it is absent.
func (l *library) property(core uintptr, device, key string) string {
	var p pins
	defer p.Unpin()
	var v uintptr
	if invoke(l.c.coreGet, core, p.text(device), p.text(key), uintptr(unsafe.Pointer(&v))) != 0 {
		return ""
	}
	defer invoke(l.c.free, v)
	return text(v)
}

// set sets a property of a device.
//
// ov_core_set_properties takes an array of pairs {const char *key; const void *value}. Older
// releases have only the variadic ov_core_set_property. Its variable arguments are addresses. On
// amd64 (AL is 0, since none is a float; purego sets it) and on arm64 of Linux and Windows they
// are passed like other arguments. On Apple's arm64 they begin on the stack, behind the eight
// argument registers.
func (l *library) set(core uintptr, device, key, value string) int32 {
	var p pins
	defer p.Unpin()
	d, k, v := p.text(device), p.text(key), p.text(value)
	if l.c.coreSetMany != 0 {
		return invoke(l.c.coreSetMany, core, d, 1, p.words([]int64{int64(k), int64(v)}))
	}
	if runtime.GOOS == "darwin" && runtime.GOARCH == "arm64" {
		return invoke(l.c.coreSet, core, d, 0, 0, 0, 0, 0, 0, k, v)
	}
	return invoke(l.c.coreSet, core, d, k, v)
}

// Properties that a task determines.
const (
	keyThreads  = "INFERENCE_NUM_THREADS"
	keyStreams  = "NUM_STREAMS"
	keyHint     = "PERFORMANCE_HINT"
	keyCounters = "PERF_COUNT"
)

// configure sets the properties of the task (threads and streams, the latency hint, counters if
// requested), then the user's, which take precedence.
func (l *library) configure(core uintptr, t *external.Task, c *config, streams int) error {
	have := l.supported(core, c.device)
	own := []external.Option{
		{Key: keyHint, Value: "LATENCY"},
		{Key: keyStreams, Value: strconv.Itoa(streams)},
		{Key: keyThreads, Value: strconv.Itoa(max(t.Threads, 1) * streams)},
	}
	if t.Profiled {
		own = append(own, external.Option{Key: keyCounters, Value: "YES"})
	}
	for _, o := range own {
		if have[o.Key] {
			if s := l.set(core, c.device, o.Key, o.Value); s != 0 {
				return l.failed(external.NoProvider, s, "device "+c.device+" does not take "+o.Key+"="+o.Value)
			}
		}
	}
	// Virtual devices delegate to the CPU device, which has its own thread count.
	if c.device != "CPU" && slices.Contains(l.devices, "CPU") {
		s := l.set(core, "CPU", keyThreads, strconv.Itoa(max(t.Threads, 1)*streams))
		if s != 0 {
			return l.failed(external.NoProvider, s, "device CPU does not take "+keyThreads)
		}
	}
	for _, o := range c.user {
		if !have[o.Key] && len(have) > 0 {
			return external.Errorf(external.NoOption, "option %s is unknown: device %s of OpenVINO %s has %s; %s and %s are opmeter's own", o.Key, c.device, l.version, alike(sorted(have), o.Key), optionDevice, optionGraphs)
		}
		if s := l.set(core, c.device, o.Key, o.Value); s != 0 {
			return l.failed(external.NoOption, s, "option "+o.Key+"="+o.Value+" is not taken by device "+c.device)
		}
	}
	return nil
}

// usual are commonly used properties.
var usual = []string{"PERFORMANCE_HINT", "EXECUTION_MODE_HINT", "INFERENCE_PRECISION_HINT", "ENABLE_CPU_PINNING", "ENABLE_HYPER_THREADING"}

// alike lists the properties that share a word with a name, or the usual ones if none does, and
// says how many more exist.
func alike(have []string, name string) string {
	words := strings.Split(strings.ToUpper(name), "_")
	var near []string
	for _, k := range have {
		if slices.ContainsFunc(strings.Split(k, "_"), func(w string) bool { return slices.Contains(words, w) }) {
			near = append(near, k)
		}
	}
	if len(near) == 0 {
		for _, k := range usual {
			if slices.Contains(have, k) {
				near = append(near, k)
			}
		}
	}
	const most = 8
	near = near[:min(len(near), most)]
	out := strings.Join(near, ", ")
	if more := len(have) - len(near); more > 0 {
		out = strings.TrimPrefix(out+" and "+strconv.Itoa(more)+" more", " and ")
	}
	return out
}

func sorted(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
