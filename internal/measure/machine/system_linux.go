package machine

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/opmeter/opmeter/profile"
)

// maxFile bounds what is read of one system file.
const maxFile = 1 << 20

// text returns a file's content without leading and trailing white space.
func (s system) text(path ...string) (string, bool) {
	f, err := os.Open(filepath.Join(append([]string{s.root}, path...)...))
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(bytes.TrimSpace(b)), err == nil
}

func (s system) integer(path ...string) (int64, bool) {
	t, ok := s.text(path...)
	n, err := strconv.ParseInt(t, 10, 64)
	return n, ok && err == nil
}

func (s system) glob(pattern string) []string {
	m, _ := filepath.Glob(filepath.Join(s.root, pattern))
	for i := range m {
		m[i], _ = filepath.Rel(s.root, m[i])
	}
	slices.Sort(m)
	return m
}

const cpuDir = "sys/devices/system/cpu"

// static sets what does not change while the machine runs.
func (s system) static(h *profile.Host) {
	if v, ok := s.text("proc/sys/kernel/osrelease"); ok {
		h.Kernel = v
	}
	if h.CPUModel == "" {
		h.CPUModel = s.field("proc/cpuinfo", "model name", "Hardware", "Model")
	}
	if kb, err := strconv.ParseInt(strings.TrimSuffix(s.field("proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		h.MemoryBytes = new(kb << 10)
	}
	if v, ok := s.text(cpuDir, "smt/active"); ok && (v == "0" || v == "1") {
		h.SMT = new(v == "1")
	}
	if governors := s.glob(cpuDir + "/cpu[0-9]*/cpufreq/scaling_governor"); len(governors) > 0 {
		var all []string
		for _, g := range governors {
			if v, ok := s.text(g); ok && !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
		h.Governor = strings.Join(all, ",")
	}
	if v, ok := s.integer(cpuDir, "cpu0/cpufreq/cpuinfo_max_freq"); ok {
		h.MaxHz = new(float64(v) * 1000)
	}
	if v, ok := s.integer(cpuDir, "intel_pstate/no_turbo"); ok {
		h.Turbo = new(v == 0)
	} else if v, ok := s.integer(cpuDir, "cpufreq/boost"); ok {
		h.Turbo = new(v != 0)
	}
	h.CPUQuota = s.quota()
	h.OnBattery = s.battery()
	if cores := s.cores(); cores > 0 {
		h.Cores = new(int64(cores))
	}
}

// field returns the value of the first line "name : value" for one of the names.
func (s system) field(file string, names ...string) string {
	t, _ := s.text(file)
	for line := range strings.Lines(t) {
		k, v, ok := strings.Cut(line, ":")
		if ok && slices.Contains(names, strings.TrimSpace(k)) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// core identifies the physical core of a processor; each is its own if the system does not
// provide it.
func (s system) core(cpu int) string {
	dir := fmt.Sprintf("%s/cpu%d/topology", cpuDir, cpu)
	id, ok1 := s.text(dir, "core_id")
	pkg, ok2 := s.text(dir, "physical_package_id")
	if !ok1 || !ok2 {
		return "cpu" + strconv.Itoa(cpu)
	}
	return pkg + "/" + id
}

func (s system) cores() int {
	seen := map[string]bool{}
	for _, d := range s.glob(cpuDir + "/cpu[0-9]*/topology/core_id") {
		var n int
		if _, err := fmt.Sscanf(d, cpuDir+"/cpu%d/", &n); err == nil {
			seen[s.core(n)] = true
		}
	}
	return len(seen)
}

// group finds the process's control group: the folder of version 2, or that of a controller of
// version 1.
func (s system) group(controller string) string {
	t, _ := s.text("proc/self/cgroup")
	for line := range strings.Lines(t) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[0] == "0" && parts[1] == "" {
			dir := filepath.Join("sys/fs/cgroup", parts[2])
			if _, ok := s.text(dir, "cgroup.controllers"); ok {
				return dir
			}
		}
		if slices.Contains(strings.Split(parts[1], ","), controller) {
			for _, d := range []string{filepath.Join("sys/fs/cgroup", controller, parts[2]), filepath.Join("sys/fs/cgroup", controller)} {
				if _, ok := s.text(d, "cpu.cfs_quota_us"); ok {
					return d
				}
			}
		}
	}
	return "sys/fs/cgroup"
}

// quota returns the number of processors that the control groups grant, the minimum along the
// path, nil for no limit.
func (s system) quota() *float64 {
	var least *float64
	for dir := s.group("cpu"); strings.HasPrefix(dir, "sys/fs/cgroup"); dir = filepath.Dir(dir) {
		var q, period float64
		if t, ok := s.text(dir, "cpu.max"); ok {
			if n, _ := fmt.Sscan(t, &q, &period); n != 2 {
				continue // "max 100000": no limit
			}
		} else {
			a, ok1 := s.integer(dir, "cpu.cfs_quota_us")
			b, ok2 := s.integer(dir, "cpu.cfs_period_us")
			if !ok1 || !ok2 {
				continue
			}
			q, period = float64(a), float64(b)
		}
		if q > 0 && period > 0 && (least == nil || q/period < *least) {
			least = new(q / period)
		}
	}
	return least
}

// battery reports whether the machine runs on battery, nil if it has none.
func (s system) battery() *bool {
	var found *bool
	for _, d := range s.glob("sys/class/power_supply/*") {
		switch t, _ := s.text(d, "type"); t {
		case "Mains":
			if v, ok := s.integer(d, "online"); ok {
				return new(v == 0)
			}
		case "Battery":
			if v, ok := s.text(d, "status"); ok {
				found = new(v == "Discharging")
			}
		}
	}
	return found
}

// state reads what changes.
func (s system) state() *profile.HostState {
	st := &profile.HostState{}
	sum, n := 0.0, 0
	for _, f := range s.glob(cpuDir + "/cpu[0-9]*/cpufreq/scaling_cur_freq") {
		if v, ok := s.integer(f); ok {
			sum += float64(v) * 1000
			n++
		}
	}
	if n == 0 { // virtual machines often have only this
		t, _ := s.text("proc/cpuinfo")
		for line := range strings.Lines(t) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "cpu MHz" {
				if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
					sum += f * 1e6
					n++
				}
			}
		}
	}
	if n > 0 {
		st.FrequencyHz = new(sum / float64(n))
	}
	st.TemperatureC = s.temperature()
	if t, ok := s.text("proc/loadavg"); ok {
		first, _, _ := strings.Cut(t, " ")
		if v, err := strconv.ParseFloat(first, 64); err == nil {
			st.LoadAverage = &v
		}
	}
	return st
}

// temperature returns the highest reading of the processor's sensors.
func (s system) temperature() *float64 {
	var best *float64
	take := func(f string) {
		if v, ok := s.integer(f); ok && v > -273000 && v < 200000 {
			if c := float64(v) / 1000; best == nil || c > *best {
				best = &c
			}
		}
	}
	for _, z := range s.glob("sys/class/thermal/thermal_zone*") {
		if t, _ := s.text(z, "type"); strings.Contains(t, "pkg") || strings.Contains(strings.ToLower(t), "cpu") || strings.Contains(t, "soc") {
			take(filepath.Join(z, "temp"))
		}
	}
	for _, m := range s.glob("sys/class/hwmon/hwmon*") {
		switch t, _ := s.text(m, "name"); t {
		case "coretemp", "k10temp", "zenpower", "cpu_thermal":
			for _, f := range s.glob(m + "/temp*_input") {
				take(f)
			}
		}
	}
	return best
}

// ticksPerSecond is the unit of times in /proc/stat on every platform that Go supports.
const ticksPerSecond = 100

func (s system) counters() counters {
	var c counters
	if t, ok := s.text("proc/stat"); ok {
		line, _, _ := strings.Cut(t, "\n")
		// cpu user nice system idle iowait irq softirq steal …
		if f := strings.Fields(line); len(f) > 8 && f[0] == "cpu" {
			if v, err := strconv.ParseFloat(f[8], 64); err == nil {
				c.stolenS = new(v / ticksPerSecond)
			}
		}
	}
	for _, f := range s.glob(cpuDir + "/cpu[0-9]*/thermal_throttle/*_throttle_count") {
		if v, ok := s.integer(f); ok {
			if c.throttled == nil {
				c.throttled = new(int64)
			}
			*c.throttled += v
		}
	}
	if t, ok := s.text(s.group("cpu"), "cpu.stat"); ok {
		for line := range strings.Lines(t) {
			var v float64
			if n, _ := fmt.Sscanf(line, "throttled_usec %f", &v); n == 1 {
				c.quotaThrottledS = new(v / 1e6)
			} else if n, _ := fmt.Sscanf(line, "throttled_time %f", &v); n == 1 {
				c.quotaThrottledS = new(v / 1e9)
			}
		}
	}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) == nil {
		c.involuntarySwitches = new(int64(u.Nivcsw)) //nolint:unconvert // 32 bits wide on some systems
	}
	return c
}

// ProcessPeakBytes returns the peak resident size of the process so far, nil if the system does
// not provide it.
func ProcessPeakBytes() *int64 { return statusBytes("VmHWM") }

// ResidentBytes returns the memory of the process that is resident now: its own, and pages of
// files. They are nil if the system does not provide them.
func ResidentBytes() (own, files *int64) { return statusBytes("RssAnon"), statusBytes("RssFile") }

// statusBytes returns a size that the kernel keeps of this process.
func statusBytes(name string) *int64 {
	v, ok := strings.CutSuffix(system{"/"}.field("proc/self/status", name), " kB")
	if n, err := strconv.ParseInt(v, 10, 64); ok && err == nil {
		return new(n << 10)
	}
	return nil
}
