package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/profile"
)

// Watch describes this computer and its state around some runs:
//
//	w := machine.NewWatch()
//	w.Begin()
//	… runs …
//	host := w.End()
type Watch struct {
	sys    system
	host   profile.Host
	before counters
	began  time.Time
}

// system reads the files in which the operating system reports its state. root is "/" except in
// tests.
type system struct{ root string }

// counters only grow while the machine runs; nil if they cannot be read.
type counters struct {
	stolenS             *float64
	throttled           *int64
	quotaThrottledS     *float64
	involuntarySwitches *int64
}

// NewWatch reads what does not change.
func NewWatch() *Watch {
	w := &Watch{sys: system{"/"}}
	h := &w.host
	h.OS, h.Arch, h.GoVersion = runtime.GOOS, runtime.GOARCH, runtime.Version()
	processor(h)
	w.sys.static(h)
	for _, c := range Affinity() {
		h.AffinityCPUs = append(h.AffinityCPUs, int64(c))
	}
	h.Fingerprint = fingerprint(h)
	return w
}

// MemoryBytes returns the memory of this computer in bytes, nil if the system does not provide
// it.
func MemoryBytes() *int64 {
	var h profile.Host
	system{"/"}.static(&h)
	return h.MemoryBytes
}

// processor sets what CPUID reports about the processor.
func processor(h *profile.Host) {
	c := &cpuid.CPU
	h.CPUModel = strings.Join(strings.Fields(c.BrandName), " ")
	h.CPUVendor = c.VendorString
	if n := c.PhysicalCores; n > 0 {
		h.Cores = new(int64(n))
	}
	h.CPUs = new(int64(runtime.NumCPU()))
	size := func(n int) *int64 {
		if n <= 0 {
			return nil
		}
		return new(int64(n))
	}
	h.CacheL1DBytes, h.CacheL2Bytes, h.CacheL3Bytes = size(c.Cache.L1D), size(c.Cache.L2), size(c.Cache.L3)
	if c.Hz > 0 {
		h.NominalHz = new(float64(c.Hz))
	}
	if c.BoostFreq > 0 {
		h.MaxHz = new(float64(c.BoostFreq))
	}
	if c.Supports(cpuid.HYPERVISOR) {
		h.Virtual = "hypervisor"
		if v := strings.TrimSpace(c.HypervisorVendorString); v != "" {
			h.Virtual = v
		}
	}
	for _, f := range []cpuid.FeatureID{
		cpuid.SSE42, cpuid.AVX, cpuid.F16C, cpuid.FMA3, cpuid.AVX2, cpuid.AVXVNNI, cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512VL,
		cpuid.AVX512VNNI, cpuid.AVX512BF16, cpuid.AVX512FP16, cpuid.AVX512VP2INTERSECT, cpuid.AMXINT8, cpuid.AMXBF16,
		cpuid.ASIMD, cpuid.FPHP, cpuid.ASIMDHP, cpuid.ASIMDDP, cpuid.SVE,
	} {
		if c.Supports(f) {
			h.Features = append(h.Features, strings.ToLower(f.String()))
		}
	}
}

// Virtual reports whether this is a virtual machine, as far as the processor tells.
func Virtual() bool { return cpuid.CPU.Supports(cpuid.HYPERVISOR) }

// fingerprint hashes the properties that must agree for the times of two results to be
// comparable.
func fingerprint(h *profile.Host) string {
	num := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	text := fmt.Sprintln(h.OS, h.Arch, h.CPUVendor, h.CPUModel, num(h.Cores), num(h.CPUs), num(h.CacheL1DBytes), num(h.CacheL2Bytes), num(h.CacheL3Bytes), h.Features, h.Virtual)
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Begin records the state before the runs.
func (w *Watch) Begin() {
	w.host.Before = w.sys.state()
	w.before = w.sys.counters()
	w.began = time.Now()
}

// End records the state after the runs and returns the description, without the clock and the
// garbage collector, which the measurement adds. Without Begin the counters are absent. Each call
// returns a new value.
func (w *Watch) End() *profile.Host {
	h := w.host
	h.After = w.sys.state()
	now := w.sys.counters()
	if !w.began.IsZero() {
		h.WatchedS = new(time.Since(w.began).Seconds())
	}
	h.StolenS = since(w.before.stolenS, now.stolenS)
	h.Throttled = since(w.before.throttled, now.throttled)
	h.QuotaThrottledS = since(w.before.quotaThrottledS, now.quotaThrottledS)
	h.InvoluntarySwitches = since(w.before.involuntarySwitches, now.involuntarySwitches)
	return &h
}

func since[T int64 | float64](before, after *T) *T {
	if before == nil || after == nil || *after < *before {
		return nil
	}
	return new(*after - *before)
}

// PickCPUs selects n processors to bind threads to, among those that the process may use: one of
// every physical core first, then their siblings. It returns nil if there are fewer than n or the
// system does not provide them.
func PickCPUs(n int) []int {
	return system{"/"}.pick(Affinity(), n)
}

func (s system) pick(allowed []int, n int) []int {
	if n <= 0 || len(allowed) < n {
		return nil
	}
	seen := map[string]int{}
	rank := map[int]int{}
	for _, c := range allowed {
		core := s.core(c)
		rank[c] = seen[core]
		seen[core]++
	}
	out := slices.Clone(allowed)
	// The first processor usually handles the interrupts: it comes last within its rank if there
	// is another.
	sorting.Stable(out, func(a, b int) int {
		if d := rank[a] - rank[b]; d != 0 {
			return d
		}
		return lastIfZero(a) - lastIfZero(b)
	})
	out = out[:n]
	slices.Sort(out)
	return out
}

func lastIfZero(cpu int) int {
	if cpu == 0 {
		return 1
	}
	return 0
}
