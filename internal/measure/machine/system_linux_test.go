package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/profile"
)

// tree makes a system of the given files.
func tree(t *testing.T, files map[string]string) system {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return system{root}
}

func TestStatic(t *testing.T) {
	t.Parallel()
	s := tree(t, map[string]string{
		"proc/sys/kernel/osrelease":                                 "6.1.0-test",
		"proc/meminfo":                                              "MemTotal:        2048 kB\nMemFree: 1 kB",
		"sys/devices/system/cpu/smt/active":                         "1",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":      "powersave",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor":      "powersave",
		"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor":      "performance",
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq":      "3000000",
		"sys/devices/system/cpu/intel_pstate/no_turbo":              "1",
		"sys/devices/system/cpu/cpu0/topology/core_id":              "0",
		"sys/devices/system/cpu/cpu0/topology/physical_package_id":  "0",
		"sys/devices/system/cpu/cpu1/topology/core_id":              "0",
		"sys/devices/system/cpu/cpu1/topology/physical_package_id":  "0",
		"sys/devices/system/cpu/cpu2/topology/core_id":              "1",
		"sys/devices/system/cpu/cpu2/topology/physical_package_id":  "0",
		"sys/devices/system/cpu/cpu10/topology/core_id":             "1",
		"sys/devices/system/cpu/cpu10/topology/physical_package_id": "0",
		"proc/self/cgroup":                     "0::/a/b",
		"sys/fs/cgroup/a/b/cgroup.controllers": "cpu",
		"sys/fs/cgroup/a/b/cpu.max":            "max 100000",
		"sys/fs/cgroup/a/cpu.max":              "150000 100000",
		"sys/class/power_supply/BAT0/type":     "Battery",
		"sys/class/power_supply/BAT0/status":   "Discharging",
	})
	var got profile.Host
	s.static(&got)
	want := profile.Host{
		Kernel: "6.1.0-test", MemoryBytes: new(int64(2 << 20)), SMT: new(true), Governor: "powersave,performance",
		MaxHz: new(3e9), Turbo: new(false), CPUQuota: new(1.5), OnBattery: new(true), Cores: new(int64(2)),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	for _, tt := range []struct {
		n    int
		want []int
	}{{1, []int{2}}, {2, []int{0, 2}}, {3, []int{0, 1, 2}}, {4, []int{0, 1, 2, 10}}, {5, nil}, {0, nil}} {
		if d := cmp.Diff(tt.want, s.pick([]int{0, 1, 2, 10}, tt.n)); d != "" {
			t.Errorf("%d processors (-want +got):\n%s", tt.n, d)
		}
	}
}

func TestNothingReadable(t *testing.T) {
	t.Parallel()
	s := tree(t, nil)
	var h profile.Host
	s.static(&h)
	if d := cmp.Diff(profile.Host{}, h); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff(&profile.HostState{}, s.state()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if c := s.counters(); c.stolenS != nil || c.throttled != nil || c.quotaThrottledS != nil {
		t.Errorf("counters of nothing: %+v", c)
	}
}

func TestOldControlGroups(t *testing.T) {
	t.Parallel()
	s := tree(t, map[string]string{
		"proc/self/cgroup":                      "4:memory:/x\n3:cpu,cpuacct:/x\n0::/x",
		"sys/fs/cgroup/cpu/x/cpu.cfs_quota_us":  "200000",
		"sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000",
		"sys/fs/cgroup/cpu/x/cpu.stat":          "nr_periods 5\nnr_throttled 2\nthrottled_time 3000000000",
	})
	if q := s.quota(); q == nil || *q != 2 {
		t.Errorf("quota %v", q)
	}
	if c := s.counters(); c.quotaThrottledS == nil || *c.quotaThrottledS != 3 {
		t.Errorf("throttled %v", c.quotaThrottledS)
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	s := tree(t, map[string]string{
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1000000",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "3000000",
		"proc/loadavg":                                                        "1.25 0.5 0.1 1/100 4242",
		"sys/class/thermal/thermal_zone0/type":                                "x86_pkg_temp",
		"sys/class/thermal/thermal_zone0/temp":                                "61000",
		"sys/class/hwmon/hwmon0/name":                                         "nvme",
		"sys/class/hwmon/hwmon0/temp1_input":                                  "99000",
		"sys/class/hwmon/hwmon1/name":                                         "coretemp",
		"sys/class/hwmon/hwmon1/temp2_input":                                  "63500",
		"proc/stat":                                                           "cpu  1 2 3 4 5 6 7 250 0 0\ncpu0 1 2 3 4 5 6 7 100 0 0",
		"sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count":    "3",
		"sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "4",
	})
	want := &profile.HostState{FrequencyHz: new(2e9), TemperatureC: new(63.5), LoadAverage: new(1.25)}
	if d := cmp.Diff(want, s.state()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	c := s.counters()
	if *c.stolenS != 2.5 || *c.throttled != 7 || c.involuntarySwitches == nil {
		t.Errorf("counters %+v", c)
	}
}

func TestFrequencyOfAVirtualMachine(t *testing.T) {
	t.Parallel()
	s := tree(t, map[string]string{"proc/cpuinfo": "processor : 0\ncpu MHz\t\t: 2000.000\n\nprocessor : 1\ncpu MHz : 3000.0"})
	if f := s.state().FrequencyHz; f == nil || *f != 2.5e9 {
		t.Errorf("frequency %v", f)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	w := NewWatch()
	w.Begin()
	h := w.End()
	if h.OS != "linux" || h.CPUs == nil || h.GoVersion == "" || len(h.Fingerprint) != 16 || h.Before == nil || h.After == nil {
		t.Errorf("%+v", h)
	}
	if n := len(Affinity()); n == 0 || n != len(h.AffinityCPUs) {
		t.Errorf("%d processors allowed", n)
	}
	if p := ProcessPeakBytes(); p == nil || *p < 1<<20 {
		t.Errorf("peak %v", p)
	} else if own, files := ResidentBytes(); own == nil || files == nil || *own < 1<<20 || *own+*files > 2**p {
		t.Errorf("resident %v and %v, peak %v", own, files, p)
	}
	p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "m"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}, Host: h}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := Affinity()
	cpu := PickCPUs(1)[0]
	restore, err := Bind(cpu)
	if err != nil {
		t.Fatal(err)
	}
	if got := Affinity(); len(got) != 1 || got[0] != cpu {
		t.Errorf("may use %v, want %d", got, cpu)
	}
	restore()
	if d := cmp.Diff(before, Affinity()); d != "" {
		t.Errorf("not restored (-want +got):\n%s", d)
	}
	if _, err := Bind(1 << 20); err == nil {
		t.Error("bound to a processor that is absent")
	}
	if d := cmp.Diff(before, Affinity()); d != "" {
		t.Errorf("changed by an attempt that failed (-want +got):\n%s", d)
	}
}
