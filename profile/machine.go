package profile

// Settings is what was asked for, enough to repeat the run.
type Settings struct {
	// Version of opmeter that made the profile.
	Version string `json:"version,omitzero"`
	// Engine and its version.
	Engine        string `json:"engine,omitzero"`
	EngineVersion string `json:"engine_version,omitzero"`
	// EngineLibrary is the file of another engine's library, EngineOptions its options in effect,
	// as that engine calls them.
	EngineLibrary string            `json:"engine_library,omitzero"`
	EngineOptions map[string]string `json:"engine_options,omitzero"`
	// KernelSet names the instruction sets that the kernels were allowed to use.
	KernelSet string `json:"kernel_set,omitzero"`
	// Libraries holds versions of other programs that took part, by name.
	Libraries map[string]string `json:"libraries,omitzero"`
	// Seed of the random inputs.
	Seed *uint64 `json:"seed,omitzero"`
	// InputKind is "random", "zeros", "file" or "made".
	InputKind string `json:"input_kind,omitzero"`
	// TargetSHA256 is the hash of the target's description and its calibration, for
	// estimates.
	TargetSHA256 string `json:"target_sha256,omitzero"`
	// Inputs tells where each input's data came from, by input name.
	Inputs map[string]InputSource `json:"inputs,omitzero"`
	// Carry maps outputs to the inputs that they become in the next inference.
	Carry map[string]string `json:"carry,omitzero"`
	// InPlace maps outputs to the inputs in whose memory they were computed, such as the caches of
	// language models.
	InPlace map[string]string `json:"in_place,omitzero"`
	// Exact says that quantise-dequantise patterns were computed in floating point,
	// as the file says, and not in integers, and that halves were rounded after each
	// operator.
	Exact bool `json:"exact,omitzero"`
	// Batch is the size of the batch dimension.
	Batch *int64 `json:"batch,omitzero"`
	// Threads is the number of threads that compute, the caller included.
	Threads *int64 `json:"threads,omitzero"`
	// Scenario says how the model was driven beside the passes that give latency and
	// shares, absent for nothing more.
	Scenario Scenario `json:"scenario,omitzero"`
	// Streams is the number of streams, each a session of its own with Threads threads;
	// absent where none were asked for.
	Streams *int64 `json:"streams,omitzero"`
	// RatePerS is the number of inferences a second that were due, of all streams together.
	RatePerS *float64 `json:"rate_per_s,omitzero"`
	// Cold says what was cold, absent where nothing was made so.
	Cold Cold `json:"cold,omitzero"`
	// Instances is the number of instances that ran the model at the same time and whose
	// figures the profile holds, absent for one.
	Instances *int64 `json:"instances,omitzero"`
	// PinnedCPUs lists the processors that the threads were bound to.
	PinnedCPUs []int64 `json:"pinned_cpus,omitzero"`
	// Runs is the number of measured inferences that was asked for.
	Runs *int64 `json:"runs,omitzero"`
	// TimeS is the time that was asked for instead.
	TimeS *float64 `json:"time_s,omitzero"`
	// WarmupS and WarmupRuns are the least warm-up that was asked for.
	WarmupS    *float64 `json:"warmup_s,omitzero"`
	WarmupRuns *int64   `json:"warmup_runs,omitzero"`
	// Passes says which passes were made and how: "abba" for plain and
	// instrumented groups in turn.
	Passes string `json:"passes,omitzero"`
	// ReferenceLoop names the work interleaved with the runs to tell the machine's
	// speed; normalised times compare where it is the same.
	ReferenceLoop string `json:"reference_loop,omitzero"`
	// GarbageCollector is "off" when it was kept out of timed regions.
	GarbageCollector string `json:"garbage_collector,omitzero"`
}

// Scenario says how a model is driven.
type Scenario string

// Scenarios.
const (
	// streams that begin the next inference when the last one ended
	Throughput Scenario = "throughput"
	FixedRate  Scenario = "fixed_rate" // inferences that are due at fixed times
)

// Cold says what an inference finds cold.
type Cold string

// What may be cold.
const (
	ColdCaches Cold = "caches" // the caches of the processor; the model is ready to run
	ColdStart  Cold = "start"  // and the model has just been opened, nothing is prepared
)

// InputSource tells where an input's data came from.
type InputSource struct {
	// Kind is "random", "zeros", "file", or "made" for elements that suit what the
	// model uses them for ([Tensor.Made]).
	Kind string `json:"kind"`
	// File is the path as the user named it.
	File string `json:"file,omitzero"`
	// SHA256 is the hash of the little-endian elements.
	SHA256 string `json:"sha256,omitzero"`
	// Shape of the data.
	Shape []int64 `json:"shape,omitzero"`
}

// Host is the machine that ran or estimated the model. What could not be read is
// absent.
type Host struct {
	// OS and Arch name the platform as Go does, such as "linux" and "amd64".
	OS   string `json:"os,omitzero"`
	Arch string `json:"arch,omitzero"`
	// Kernel is the operating system's version.
	Kernel string `json:"kernel,omitzero"`
	// GoVersion of the running binary.
	GoVersion string `json:"go_version,omitzero"`
	// CPUModel is the processor's name.
	CPUModel string `json:"cpu_model,omitzero"`
	// CPUVendor is the processor's maker.
	CPUVendor string `json:"cpu_vendor,omitzero"`
	// Cores is the number of physical cores, CPUs that of logical processors.
	Cores *int64 `json:"cores,omitzero"`
	CPUs  *int64 `json:"cpus,omitzero"`
	// SMT says whether several logical processors of a core are active.
	SMT *bool `json:"smt,omitzero"`
	// Features lists instruction-set extensions that matter for kernels.
	Features []string `json:"features,omitzero"`
	// Cache sizes: level 1 data, level 2, level 3.
	CacheL1DBytes *int64 `json:"cache_l1d_bytes,omitzero"`
	CacheL2Bytes  *int64 `json:"cache_l2_bytes,omitzero"`
	CacheL3Bytes  *int64 `json:"cache_l3_bytes,omitzero"`
	// MemoryBytes is the installed memory.
	MemoryBytes *int64 `json:"memory_bytes,omitzero"`
	// NominalHz and MaxHz are the processor's base and highest frequency.
	NominalHz *float64 `json:"nominal_hz,omitzero"`
	MaxHz     *float64 `json:"max_hz,omitzero"`
	// Governor is the frequency policy, such as "performance".
	Governor string `json:"governor,omitzero"`
	// Turbo says whether the processor may exceed its base frequency.
	Turbo *bool `json:"turbo,omitzero"`
	// Virtual names the hypervisor or container system, as far as it shows.
	Virtual string `json:"virtual,omitzero"`
	// CPUQuota is the processors that a control group grants, absent for no limit.
	CPUQuota *float64 `json:"cpu_quota,omitzero"`
	// AffinityCPUs lists the processors that the process may use.
	AffinityCPUs []int64 `json:"affinity_cpus,omitzero"`
	// OnBattery says whether the machine runs from its battery.
	OnBattery *bool `json:"on_battery,omitzero"`
	// ClockResolutionS is the smallest step of the clock, ClockCostS the time that
	// reading it takes.
	ClockResolutionS *float64 `json:"clock_resolution_s,omitzero"`
	ClockCostS       *float64 `json:"clock_cost_s,omitzero"`
	// Fingerprint is a hash of what must agree for two results to be compared:
	// platform, processor, cores, caches, features.
	Fingerprint string `json:"fingerprint,omitzero"`
	// Before and After are the changing state before and after the runs.
	Before *HostState `json:"before,omitzero"`
	After  *HostState `json:"after,omitzero"`
	// WatchedS is the time over which the counters below were watched: warming up, the runs and
	// what lay between them.
	WatchedS *float64 `json:"watched_s,omitzero"`
	// StolenS is processor time that the hypervisor took away during the runs.
	StolenS *float64 `json:"stolen_s,omitzero"`
	// Throttled is the number of thermal throttling events during the runs.
	Throttled *int64 `json:"throttled,omitzero"`
	// QuotaThrottledS is the time that the control group's quota stopped the
	// process during the runs.
	QuotaThrottledS *float64 `json:"quota_throttled_s,omitzero"`
	// InvoluntarySwitches is how often the process lost the processor against its
	// will during the runs.
	InvoluntarySwitches *int64 `json:"involuntary_switches,omitzero"`
	// GCDuringRuns is the number of garbage collections within timed regions.
	GCDuringRuns *int64 `json:"gc_during_runs,omitzero"`
}

// HostState is the changing part of a machine's state at one time.
type HostState struct {
	// FrequencyHz is the mean frequency of the processors in use.
	FrequencyHz *float64 `json:"frequency_hz,omitzero"`
	// TemperatureC is the processor's temperature in degrees Celsius.
	TemperatureC *float64 `json:"temperature_c,omitzero"`
	// LoadAverage is the mean number of runnable threads over the last minute.
	LoadAverage *float64 `json:"load_average,omitzero"`
}
