// Generated from docs/profile.schema.json by scripts/types.mjs.

/** A column of figures. */
export type Column = Float64Array | Float32Array | Int32Array;

/** Profile is the result of profiling one model on one target. */
export interface Profile {
  /** Blocks are the repeated blocks of layers, in reports that group by block. */
  blocks?: Block[];
  /** Bounds divides the time of the layers among what bounds them, empty where no layer has a bound. The shares add up to 1. */
  bounds?: BoundPart[];
  /** Created is the time of the run, RFC 3339 in UTC. */
  created?: string;
  /** Differences compares the model's outputs with those of another engine. */
  differences?: Difference[];
  /** Findings says in plain words what a reader should know first. */
  findings?: Finding[];
  /** Host is the machine that ran or estimated it. */
  host?: Host;
  /** Incomplete says what is missing and why: the run ended early, layers have no figure. Everything known is here all the same. Empty for complete profiles. */
  incomplete?: Missing[];
  /** Language describes a language model and its phases, where these were measured. */
  language_model?: LanguageModel;
  /** Layers lists the operators in the order in which they run, those of control-flow bodies after their owner. */
  layers: Layer[];
  /** Memory is the memory plan and what was observed. */
  memory?: Memory;
  /** Model is what was profiled. */
  model: Model;
  /** Other summarises what another engine takes for the model, where one was measured too. */
  other_engine?: OtherEngine;
  /** Phases separates loading, the first run and warming up from steady state. */
  phases?: Phases;
  /** Quantities describes figures that the table of known quantities lacks. */
  quantities?: Quantity[];
  /** Reconcile compares the sum of the layers with the wall clock. */
  reconcile?: Reconcile;
  /** Schema names the format of the data, [SchemaV1]. */
  schema: "opmeter/profile/v1";
  /** Settings is what was asked for, enough to repeat the run. */
  settings: Settings;
  /** Target is what it ran on, or was estimated for. */
  target: Target;
  /** Timeline says when things happened, for sources that recorded it. */
  timeline?: Timeline;
  /** Totals holds the figures of the whole model. */
  totals: Totals;
  /** Trust says how far the measured latency can be relied upon. */
  trust?: Trust;
}

/** Block is a group of layers that repeats, such as the layers of a transformer, or layers outside of such groups that belong together, such as those of the embedding. [blocks.Find] finds them. [blocks.Find]: https://pkg.go.dev/github.com/opmeter/opmeter/profile/blocks#Find */
export interface Block {
  /** Count is the number of equal blocks, 1 for layers that do not repeat. */
  count: number;
  /** Figures has the times of one block by their keys: median, mean, least and greatest over the blocks. Every layer of each block has the figure. */
  figures?: Record<string, Metric>;
  /** Layers are those of a block, in the order of the first one. */
  layers: BlockLayer[];
  /** Part is what the layers of a single block are for, absent for blocks that repeat. */
  part?: "embedding" | "norm" | "attention" | "state space" | "convolution" | "MLP" | "router" | "experts" | "head" | "other";
  /** Parts divides the layers by what they are for, absent where that is unknown. */
  parts?: BlockPart[];
}

/** BlockLayer is a layer of a block, with its equals in the other blocks. */
export interface BlockLayer {
  /** Figures is like that of [Block]. */
  figures?: Record<string, Metric>;
  /** Layers are the indices of the layers, one for each block. */
  layers: number[];
  /** Part is the part of the block that the layer belongs to. */
  part?: "embedding" | "norm" | "attention" | "state space" | "convolution" | "MLP" | "router" | "experts" | "head" | "other";
  /** With are the layers that have no time of their own and belong to these: fused into them, or computed for them while planning. */
  with?: number[];
}

/** BlockPart is layers of a block that belong together. */
export interface BlockPart {
  /** ActiveParams is the number of parameters of one block that a token uses, where that is less than all: those of the chosen experts. */
  active_params?: number;
  /** Figures is like that of [Block]. */
  figures?: Record<string, Metric>;
  /** Name says what they are for. */
  name: "embedding" | "norm" | "attention" | "state space" | "convolution" | "MLP" | "router" | "experts" | "head" | "other";
}

/** BoundPart is the part of the layers' time that one limit bounds. */
export interface BoundPart {
  /** Bound is the limit, and Level the level of memory of [BoundMemory]. */
  bound: "compute" | "memory" | "overhead" | "unknown";
  /** Bound is the limit, and Level the level of memory of [BoundMemory]. */
  level?: string;
  /** Share is the part of the time of all layers. */
  share: number;
  /** Use is the mean utilisation of the limit by these layers, weighted by their time. It is absent where the bound is unknown. */
  use?: number;
}

/** Buffer is one place of a memory plan. */
export interface Buffer {
  /** Bytes is the size asked for. */
  bytes: number;
  /** First and Last are the first and last step at which it is needed: nodes of the main graph for the engine's own plan, allocation scopes for "tflm". [Profile.LayerAt] returns their layers. */
  first: number;
  /** First and Last are the first and last step at which it is needed: nodes of the main graph for the engine's own plan, allocation scopes for "tflm". [Profile.LayerAt] returns their layers. */
  last: number;
  /** Name is the tensor's name, or says what the scratch is for. */
  name?: string;
  /** Offset from the start of the arena, in bytes. */
  offset_bytes: number;
  /** Scratch marks an operator's working memory. */
  scratch?: boolean;
}

/** Cause says why something is as it is. */
export interface Cause {
  /** Code names the cause. */
  code: "operator" | "type" | "limit" | "use" | "input" | "shape" | "data" | "memory" | "bodies" | "error" | "canceled" | "deadline" | "end" | "record" | "figures" | "resolution" | "loop" | "work";
  /** Text is the detail for readers: a limit, a type, an error. */
  text?: string;
}

/** Check says what came of measuring a layer's time in a second way: a short stretch of the model with the layer, and the stretch without it, are interleaved, and the difference is the figure checked_s. */
export interface Check {
  /** Outcome is what came of it. */
  outcome: "agrees" | "differs" | "open" | "other_nodes" | "unjoined" | "shared" | "body" | "not_cut" | "refused" | "stopped";
  /** Text says more, for people: what else is executed, why the model cannot be cut. */
  text?: string;
}

/** Clock is a clock of a unit that counts by itself. A time t of a lane on it is (t - offset_s) x rate on the timeline's own clock. */
export interface Clock {
  /** Method says how offset and rate were found. */
  method?: string;
  /** Name of the clock, by which lanes refer to it. */
  name: string;
  /** OffsetS is the clock's time at the timeline's origin, seconds; absent when it is not known, so that times of its lanes can be compared with each other only. */
  offset_s?: number;
  /** Rate is seconds of the timeline for a second of this clock, absent for 1. */
  rate?: number;
}

/** ContextMemory is what a decode needs with so many positions in the cache. The program itself, with the description of the model, needs some MiB more. */
export interface ContextMemory {
  /** CacheBytes is the size of the caches that a run reads. */
  cache_bytes: number;
  /** Context is the number of positions in the cache before the run. */
  context: number;
  /** PlanBytes is what the engine plans for a run: activations, copies of caches and scratch memory. */
  plan_bytes: number;
  /** WeightsBytes is that of [Memory], or the size in the file where the former is not known. */
  weights_bytes: number;
}

/** Counter is a figure over time. Each value holds until the next. */
export interface Counter {
  /** Clock names the clock of the times, empty for the timeline's own. */
  clock?: string;
  /** Group is the core, device or process that it belongs to. */
  group?: string;
  /** Name of the counter. */
  name: string;
  /** Times in ascending order, seconds. */
  times_s: Column;
  /** Unit of the values, such as "B/s" or "Hz"; empty for a count. */
  unit?: string;
  /** Values at these times. */
  values: Column;
}

/** Difference compares an output of the model with the one that another engine made of the same inputs. Figures are absent where they say nothing: of texts, or of outputs without elements. */
export interface Difference {
  /** Cause says why they cannot be compared. */
  cause?: Cause;
  /** Cosine is that of the angle between the two as vectors. */
  cosine?: number;
  /** DType is the element type. */
  dtype?: string;
  /** Elements is their number. */
  elements?: number;
  /** Limit is what State was judged by: the least SNR in decibels of [Rounding], or of integers the most steps. */
  limit?: number;
  /** MaxAbsolute is the largest difference, in units of the elements, over those that are finite in both. */
  max_absolute?: number;
  /** MaxRelative is the largest difference of an element as a part of the larger of the two. Elements below a thousandth of the root of the mean square of the other engine's count as that large: what is next to nothing has no relative error to speak of. */
  max_relative?: number;
  /** Output is the place among the model's outputs, from 0, Name its name. */
  name?: string;
  /** NotFinite is the number of elements that are infinite or no number in one engine and something else in the other. */
  not_finite?: number;
  /** Output is the place among the model's outputs, from 0, Name its name. */
  output: number;
  /** Same is the part of the elements that are equal, 0 to 1. */
  same?: number;
  /** SNR is the mean square of the other engine's elements over that of the differences, in decibels. Absent where nothing differs. */
  snr_db?: number;
  /** State says how they compare. */
  state: "equal" | "rounding" | "differs" | "not_comparable";
  /** Steps is the largest difference in steps of the elements' quantisation. */
  steps?: number;
  /** Top is, of an output that may be scores of classes, the part of the rows whose largest element stands at the same place, 0 to 1. */
  top?: number;
  /** With is the engine that it is compared with. */
  with: string;
}

/** Doubt is a reason not to rely on a latency. */
export interface Doubt {
  /** Code names it. */
  code: "few_runs" | "interval" | "spread" | "step" | "drift" | "two_modes" | "speed" | "earlier_speed" | "waiting" | "stolen" | "throttled" | "quota" | "busy" | "governor" | "battery" | "threads" | "collector" | "instruments" | "reconcile" | "incomplete" | "not_pinned" | "lost" | "tolerance" | "share_runs" | "shares";
  /** Value is the figure that gave rise to it, in the unit of its code, absent if unknown. Limit is what it was judged by. */
  limit?: number;
  /** Value is the figure that gave rise to it, in the unit of its code, absent if unknown. Limit is what it was judged by. */
  value?: number;
  /** Verdict is the best one that it leaves. */
  verdict: "good" | "fair" | "unreliable";
}

/** Finding is one remark on the result. */
export interface Finding {
  /** ID names the rule, in lower case with dots, such as "measure.unstable". */
  id: string;
  /** Layers are the indices of the layers that it is about. */
  layers?: number[];
  /** Severity orders findings. */
  severity: "info" | "warning" | "problem";
  /** Text is one or two plain sentences with the figures. */
  text: string;
}

/** Host is the machine that ran or estimated the model. What could not be read is absent. */
export interface Host {
  /** AffinityCPUs lists the processors that the process may use. */
  affinity_cpus?: number[];
  /** Before and After are the changing state before and after the runs. */
  after?: HostState;
  /** OS and Arch name the platform as Go does, such as "linux" and "amd64". */
  arch?: string;
  /** Before and After are the changing state before and after the runs. */
  before?: HostState;
  /** Cache sizes: level 1 data, level 2, level 3. */
  cache_l1d_bytes?: number;
  /** Cache sizes: level 1 data, level 2, level 3. */
  cache_l2_bytes?: number;
  /** Cache sizes: level 1 data, level 2, level 3. */
  cache_l3_bytes?: number;
  /** ClockResolutionS is the smallest step of the clock, ClockCostS the time that reading it takes. */
  clock_cost_s?: number;
  /** ClockResolutionS is the smallest step of the clock, ClockCostS the time that reading it takes. */
  clock_resolution_s?: number;
  /** Cores is the number of physical cores, CPUs that of logical processors. */
  cores?: number;
  /** CPUModel is the processor's name. */
  cpu_model?: string;
  /** CPUQuota is the processors that a control group grants, absent for no limit. */
  cpu_quota?: number;
  /** CPUVendor is the processor's maker. */
  cpu_vendor?: string;
  /** Cores is the number of physical cores, CPUs that of logical processors. */
  cpus?: number;
  /** Features lists instruction-set extensions that matter for kernels. */
  features?: string[];
  /** Fingerprint is a hash of what must agree for two results to be compared: platform, processor, cores, caches, features. */
  fingerprint?: string;
  /** GCDuringRuns is the number of garbage collections within timed regions. */
  gc_during_runs?: number;
  /** GoVersion of the running binary. */
  go_version?: string;
  /** Governor is the frequency policy, such as "performance". */
  governor?: string;
  /** InvoluntarySwitches is how often the process lost the processor against its will during the runs. */
  involuntary_switches?: number;
  /** Kernel is the operating system's version. */
  kernel?: string;
  /** NominalHz and MaxHz are the processor's base and highest frequency. */
  max_hz?: number;
  /** MemoryBytes is the installed memory. */
  memory_bytes?: number;
  /** NominalHz and MaxHz are the processor's base and highest frequency. */
  nominal_hz?: number;
  /** OnBattery says whether the machine runs from its battery. */
  on_battery?: boolean;
  /** OS and Arch name the platform as Go does, such as "linux" and "amd64". */
  os?: string;
  /** QuotaThrottledS is the time that the control group's quota stopped the process during the runs. */
  quota_throttled_s?: number;
  /** SMT says whether several logical processors of a core are active. */
  smt?: boolean;
  /** StolenS is processor time that the hypervisor took away during the runs. */
  stolen_s?: number;
  /** Throttled is the number of thermal throttling events during the runs. */
  throttled?: number;
  /** Turbo says whether the processor may exceed its base frequency. */
  turbo?: boolean;
  /** Virtual names the hypervisor or container system, as far as it shows. */
  virtual?: string;
  /** WatchedS is the time over which the counters below were watched: warming up, the runs and what lay between them. */
  watched_s?: number;
}

/** HostState is the changing part of a machine's state at one time. */
export interface HostState {
  /** FrequencyHz is the mean frequency of the processors in use. */
  frequency_hz?: number;
  /** LoadAverage is the mean number of runnable threads over the last minute. */
  load_average?: number;
  /** TemperatureC is the processor's temperature in degrees Celsius. */
  temperature_c?: number;
}

/** InputSource tells where an input's data came from. */
export interface InputSource {
  /** File is the path as the user named it. */
  file?: string;
  /** Kind is "random", "zeros", "file", or "made" for elements that suit what the model uses them for ([Tensor.Made]). */
  kind: string;
  /** SHA256 is the hash of the little-endian elements. */
  sha256?: string;
  /** Shape of the data. */
  shape?: number[];
}

/** KVCache describes the caches of keys and values. */
export interface KVCache {
  /** Shared says that the caches are buffers of Capacity positions. Others grow with each run. */
  capacity?: number;
  /** CrossBytes is the size of the keys and values of the encoder's positions, StateBytes that of states which no position adds to. Both are for one sequence, and absent without such caches. */
  cross_bytes?: number;
  /** DType is the element type. */
  dtype: string;
  /** Layers is the number of layers with a cache, Heads that of the heads of keys in each, HeadSize the elements of a head. The last two are absent if layers differ. */
  head_size?: number;
  /** Layers is the number of layers with a cache, Heads that of the heads of keys in each, HeadSize the elements of a head. The last two are absent if layers differ. */
  heads?: number;
  /** Layers is the number of layers with a cache, Heads that of the heads of keys in each, HeadSize the elements of a head. The last two are absent if layers differ. */
  layers: number;
  /** PositionBytes is the size of one position in all caches, for one sequence. */
  position_bytes: number;
  /** Shared says that the caches are buffers of Capacity positions. Others grow with each run. */
  shared?: boolean;
  /** CrossBytes is the size of the keys and values of the encoder's positions, StateBytes that of states which no position adds to. Both are for one sequence, and absent without such caches. */
  state_bytes?: number;
}

/** Lane is a row of bars, sorted by their starts. Bars of a lane may lie within one another (the outer one comes first); they never overlap in part. */
export interface Lane {
  /** Clock names the clock of the lane's times, empty for the timeline's own. */
  clock?: string;
  /** Directions holds the index in the timeline's names of what each transfer went from and to, such as "DDR to local", -1 for none. */
  directions?: Column;
  /** Durations holds the length of each bar, seconds. */
  durations_s: Column;
  /** Figures holds further figures of each bar by the key of their quantity, in its unit, -1 for not known: bank conflicts, identifiers of instructions. */
  figures?: Record<string, Column>;
  /** Group is the core, device or process that the lane belongs to. Lanes of one group stand together. */
  group?: string;
  /** Iterations holds the number of the inference of each bar, from 0, -1 for none. */
  iterations?: Column;
  /** Kind says what the bars are. */
  kind: "iteration" | "subnet" | "layer group" | "layer" | "engine" | "thread" | "stream" | "host";
  /** Labels holds the index in the timeline's names of each bar's name, -1 for the name of its layer. */
  labels?: Column;
  /** Layers holds the index in the profile's layers of each bar, -1 for none. */
  layers?: Column;
  /** Bytes holds what each bar moved, -1 for not known. */
  moved_bytes?: Column;
  /** Name of the lane. */
  name: string;
  /** Stalls holds how long each bar waited, from its start, seconds. */
  stalls_s?: Column;
  /** Starts holds the start of each bar, seconds. */
  starts_s: Column;
  /** Subnets holds the index in the timeline's subnets of each bar, -1 for none. */
  subnets?: Column;
  /** Types holds the index in the timeline's names of each bar's kind of work, -1 for that of its layer. */
  types?: Column;
  /** Utilisation holds each bar's rate as a fraction of the unit's peak, 0 to 1, -1 for not known. */
  utilisation?: Column;
}

/** LanguageModel describes a language model with caches of keys and values, and its phases. */
export interface LanguageModel {
  /** Cache describes the caches. */
  cache: KVCache;
  /** ContextLength is the largest number of positions, as the file says. */
  context_length?: number;
  /** EncoderLength is the number of positions that the decoder reads of an encoder, absent for models without one. */
  encoder_length?: number;
  /** Memory says what a decode needs by context: in the measured contexts, and in the longest one. */
  memory?: ContextMemory[];
  /** Phases are the measured ones: runs of an encoder, prefills, then decodes. */
  phases: Phase[];
}

/** Layer is one executed operator. */
export interface Layer {
  /** AcceleratorCycles is cycles in which the accelerator ran. */
  accelerator_cycles?: Metric;
  /** BytesRead and BytesWritten are the sizes of the operands, each once a call. */
  bytes_read?: number;
  /** BytesRead and BytesWritten are the sizes of the operands, each once a call. */
  bytes_written?: number;
  /** Calls is the mean number of calls in one inference, absent when it is one. */
  calls?: number;
  /** Cause says why the layer did not run or has no figure, absent where it did. */
  cause?: Cause;
  /** Check says what came of measuring the layer's time in a second way, absent where nobody did. */
  check?: Check;
  /** Computes is the element type of the operands that the implementation multiplied, where it is not that of the inputs: int8 of a float32 convolution between DequantizeLinear and QuantizeLinear that ran as one of 8-bit numbers. */
  computes?: string;
  /** Constant marks a layer whose results follow from constants and shapes alone. An engine may compute it once; it is not work of an inference, and totals leave it out whatever the engine does. */
  constant?: boolean;
  /** CPUCycles is processor cycles. */
  cpu_cycles?: Metric;
  /** Domain is the operator's domain: empty for ONNX's default and for TFLite builtin operators, "custom" for custom ones. */
  domain?: string;
  /** Energy used by the layer. */
  energy_j?: Metric;
  /** Expected is an estimate of latency_s made before or apart from it: by the model's compiler, or by another profile of the same model. */
  expected_s?: Metric;
  /** Figures holds figures without a field of their own by the key of their quantity, which is known or stands in [Profile.Quantities]. */
  figures?: {
    /** Instructions that the accelerator executes for the layer. */
    accelerator_instructions?: Metric;
    /** Instructions of the accelerator that do nothing. */
    accelerator_no_ops?: Metric;
    /** Programs that the accelerator runs for the layer. */
    accelerator_programs?: Metric;
    /** Cycles in which the accelerator waits for memory. */
    accelerator_stalls?: Metric;
    /** Parameters that a token uses in a mixture of experts. The other experts are stored and not read. */
    active_params?: Metric;
    /** Profiling overhead on a device per inference, for counting and sending. It is not part of the time. */
    agent_s?: Metric;
    /** Size of the weights in the file divided by their number, in bits. Scales and zero points of quantised weights are included. */
    bits_per_weight?: Metric;
    /** Size that each token adds to the caches of keys and values of a language model, in float16. */
    cache_bytes_per_token?: Metric;
    /** A second measurement of the layer (--check): the extra time of a sub-model with the layer over one without it, as interleaved plain inferences. The 95 % interval is that of a repeated run. Only for layers that were checked. */
    checked_s?: Metric;
    /** Time of one inference of a prepared model after the processor's caches were emptied. */
    cold_latency_s?: Metric;
    /** Time from creating a session to the end of its first inference, after the processor's caches were emptied. With opmeter's engine it starts with planning, the file being open. External engines read the model from its file, their library being loaded. */
    cold_start_s?: Metric;
    /** Tokens generated per second after the first one, with the deepest cache that was measured, all sequences of a batch together. Tokenizer and sampling are not included. */
    decode_tokens_per_s?: Metric;
    /** Time in which a device beside the processor worked for the layer in one inference. It may overlap with other layers. */
    device_s?: Metric;
    /** Number of inferences that were due within the window, at a fixed rate. */
    due_inferences?: Metric;
    /** Inferences per second of all streams together, over the window in which all of them ran. The 95 % interval is that of a repeated run. Multiplied by the batch size it is items per second. */
    inferences_per_s?: Metric;
    /** Instructions that the processor executes for the layer in one inference, counted by an emulator or a hardware counter. They are not cycles. */
    instructions?: Metric;
    /** Number of inferences that started late because no stream was free when they were due. */
    late_inferences?: Metric;
    /** Time of one inference, from its start to its end, while all streams run. */
    loaded_latency_s?: Metric;
    /** Processor time of one inference while all streams run, summed over all threads. */
    loaded_processor_s?: Metric;
    /** Speed of the machine during the runs, measured by a loop of fixed work. 1 is the reference speed, which is the same on all machines. */
    machine_speed?: Metric;
    /** Tokens of a prompt per second, of the longest prompt that was measured, all sequences of a batch together. Tokenizer and sampling are not included. */
    prefill_tokens_per_s?: Metric;
    /** Processor time of one inference, summed over all threads, without waiting for other programs. */
    processor_s?: Metric;
    /** Time of the layer as the profiler of an external engine reports it, profiling overhead included. The layer's time is its share of these times, multiplied by the time of plain inferences. */
    profiled_s?: Metric;
    /** Normalised latency: processor time of one inference multiplied by the machine's speed, which a loop of fixed work interleaved with the runs measures. The 95 % interval is that of a repeated run. */
    reference_latency_s?: Metric;
    /** Time from when an inference was due, at a fixed rate, to its end, including the wait for a free stream. */
    response_s?: Metric;
    /** Inferences of the slowest stream divided by those of the fastest; 1 if all are equal. */
    stream_fairness?: Metric;
    /** Ticks of a timer whose frequency is not known, such as microseconds or processor cycles. */
    ticks?: Metric;
    /** Time for each token after the first one: the time of decode, with the deepest cache that was measured. */
    tpot_s?: Metric;
    /** Time from a prompt to the first token: the time of prefill, of the longest prompt that was measured. Results of servers include network and queue. */
    ttft_s?: Metric;
    /** Time of the plain inferences during which no other program used the processor. */
    undisturbed_latency_s?: Metric;
    /** Number of inferences that were due but had not started when the window closed. They have no response time. */
    unstarted_inferences?: Metric;
    /** Time from when an inference was due, at a fixed rate, to its start. */
    waiting_s?: Metric;
    /** Time in a function and in everything it calls, each moment counted once. Only in profiles of programs, whose layers are functions. */
    with_callees_s?: Metric;
    [key: string]: Metric | undefined;
  };
  /** FusedInto is the index of the layer that does this one's work. */
  fused_into?: number;
  /** Graph names the control-flow body that the layer is in, empty in the main graph. */
  graph?: string;
  /** Index is the layer's position in [Profile.Layers], from 0. */
  index: number;
  /** Inputs lists the inputs in the operator's order, absent ones included. */
  inputs?: Tensor[];
  /** Kernel names the implementation that ran, such as "conv2d/im2col". */
  kernel?: string;
  /** Latency is the time in the layer itself in one inference, summed over its calls and without the layers of its bodies, so that layers add up. */
  latency_s?: Metric;
  /** LiveBytes is the size of the activations that are needed while the layer runs, its own results included, whatever the runtime. The largest of them is the least that any plan needs. */
  live_bytes?: number;
  /** MACs is the number of multiply-accumulates, padding taps included. */
  macs?: number;
  /** MACsExecuted is MACs without padding taps. */
  macs_executed?: number;
  /** MLTKOps and MLTKMACs are the counts by the convention of the Silicon Labs MLTK profiler, its omissions included. */
  mltk_macs?: number;
  /** MLTKOps and MLTKMACs are the counts by the convention of the Silicon Labs MLTK profiler, its omissions included. */
  mltk_ops?: number;
  /** Name is the node's name in the model, or made from its output. */
  name?: string;
  /** Op is the operator as the model names it, such as "CONV_2D" or "Conv". */
  op: string;
  /** Ops is the number of arithmetic operations of one inference by the convention of docs/explanation/counting.md. Like the other counts of work and traffic it is over all calls, and of one call where calls are not known. */
  ops?: number;
  /** OptionTable is the name of the option table in a TFLite file, such as ReshapeOptions, absent where the operator has none. */
  option_table?: string;
  /** Options is the operator's options, in the order of the format. Strides and filters are width x height. */
  options?: Option[];
  /** Outputs lists the outputs in the operator's order. */
  outputs?: Tensor[];
  /** Params is the number of constant elements that the layer reads as weights. */
  params?: number;
  /** Parent is the index of the control-flow layer whose body this one is in. */
  parent?: number;
  /** Placement says which unit of the target does the work, where it has several. */
  placement?: Placement;
  /** Provenance leads back to the model's own operators. */
  provenance?: Provenance;
  /** Rank is the first and last place that the layer may have by time, from 1 for the slowest: [2, 3] says that it is the second or third, since its interval overlaps that of another layer. Absent unless all times are measured and have intervals. */
  rank?: [number, number];
  /** Roof is the layer's place under the roofline of the target. */
  roof?: Roof;
  /** Samples holds times of the layer in instrumented inferences, seconds, in the order in which they were taken: all of them, or a random choice of some thousand where there were more (latency_s says of how many). */
  samples_s?: Column;
  /** Scope is the path of the block that the layer belongs to, parts separated by "/", as far as names or functions tell. */
  scope?: string;
  /** Share is the layer's fraction of the sum of all layers' times, 0 to 1. */
  share?: number;
  /** ShareCI95 is a 95 % confidence interval of the share, that of latency_s as a fraction of the same sum. Only measured times have one. */
  share_ci95?: [number, number];
  /** SharedParams and SharedWeightsBytes are the part of Params and WeightsBytes that another layer reads too and counts. Sums over layers leave them out. Absent for none. */
  shared_params?: number;
  /** SharedParams and SharedWeightsBytes are the part of Params and WeightsBytes that another layer reads too and counts. Sums over layers leave them out. Absent for none. */
  shared_weights_bytes?: number;
  /** SimulatorCycles is the same by the accelerator maker's simulator, for comparison with its reports. */
  simulator_cycles?: Metric;
  /** Sparsity of weights and activations. */
  sparsity?: Sparsity;
  /** State says what became of the layer. */
  state: "ran" | "folded" | "fused" | "unsupported" | "skipped" | "failed" | "not_reached" | "lost" | "no_estimate";
  /** Total is the same with the layers of its bodies. Only set for control flow. */
  total_s?: Metric;
  /** Version is the operator's version or operator-set version. */
  version?: number;
  /** Weights is the constant that the layer multiplies with, absent for layers without. */
  weights?: Weights;
  /** WeightsBytes is the size of these constants as stored. */
  weights_bytes?: number;
}

/** Level is a level of the memory, from the fastest to the slowest. */
export interface Level {
  /** Bytes is what fits, all threads together; absent for the last level. */
  bytes?: number;
  /** BytesPerSecond is the rate of the quickest round, read and written. On this computer it is the rate of a layer where one reached more, here or in a slower level. */
  bytes_per_second: number;
  /** MeasuredBytesPerSecond is the rate of the quickest round and ReachedBy the index of the layer that reached more, both absent without one. */
  measured_bytes_per_second?: number;
  /** Name is "L1", "L2", "L3" or "memory". */
  name: string;
  /** MeasuredBytesPerSecond is the rate of the quickest round and ReachedBy the index of the layer that reached more, both absent without one. */
  reached_by?: number;
  /** ReadBytesPerSecond is the rate of the quickest round that only reads, absent where it was not measured. */
  read_bytes_per_second?: number;
  /** Spread is how far the median of the rounds lies below the quickest one, as a part of it. */
  spread?: number;
}

/** Link says that one bar waited for another. */
export interface Link {
  /** FromLane and FromBar name the bar that came first, by position. */
  from_bar: number;
  /** FromLane and FromBar name the bar that came first, by position. */
  from_lane: number;
  /** ToLane and ToBar name the bar that waited. */
  to_bar: number;
  /** ToLane and ToBar name the bar that waited. */
  to_lane: number;
}

/** Made says how the elements of an input were made. */
export interface Made {
  /** Below bounds elements that were drawn from 0 on. */
  below?: number;
  /** Fill is the value of all elements where it is one. */
  fill?: number;
  /** Use is what the model uses them for. */
  use: "shape" | "bounds" | "paddings" | "axes" | "indices" | "mask" | "length" | "count" | "choice";
  /** Values are the elements where there are few. */
  values?: number[];
}

/** Memory is the memory plan and what was observed. */
export interface Memory {
  /** AlignBytes is the alignment of placed buffers. */
  align_bytes?: number;
  /** AllocatedPerRunBytes is heap memory taken by one inference in steady state. */
  allocated_per_run_bytes?: number;
  /** ArenaBytes is the size of the block that holds all activations. */
  arena_bytes?: number;
  /** PeakBytes is the largest sum of activations live at the same time, with the inputs and outputs of the model and the graphs of control flow: what a perfect plan would need. */
  peak_bytes?: number;
  /** PersistentBytes is memory held between inferences: variables, packed weights. */
  persistent_bytes?: number;
  /** Plan lists the placed buffers. */
  plan?: Buffer[];
  /** Planner names the method that placed the buffers. */
  planner?: string;
  /** ProcessPeakBytes is the largest resident size of the process. */
  process_peak_bytes?: number;
  /** ScratchBytes is working memory of operators beside their tensors: the sum where each keeps its own, the largest where they share it in the arena. */
  scratch_bytes?: number;
  /** StepLayers is the layer that runs at each step of the plan, -1 before the first one. Absent where steps are the indices of layers. */
  step_layers?: number[];
  /** TFLMArenaBytes is the planned part of the arena that TensorFlow Lite Micro would take with its reference kernels: tensors and scratch, without the persistent part, which depends on the build. */
  tflm_arena_bytes?: number;
  /** WeightsBytes is the memory of the weights as the engine has them: in the form that it computes with, and beside it what stays in memory of the form of the file. */
  weights_bytes?: number;
}

/** Metric is a figure with its kind and spread. All parts but kind are left out where they are not known; percentiles need a minimum of samples to exist (36 for p90, 368 for p99). The unit is that of the key under which the metric stands. */
export interface Metric {
  /** Band is the interval that holds the true value of an estimate in the stated share of cases (see method). */
  band?: [number, number];
  /** CI95 is a 95 % confidence interval of the median (of the mean where method says so). */
  ci95?: [number, number];
  /** Kind says how the figure came about. */
  kind: "counted" | "measured" | "simulated" | "estimated" | "imported";
  /** MAD is the median absolute deviation from the median, not scaled. */
  mad?: number;
  /** Min and Max are the extreme samples. */
  max?: number;
  /** Mean is the arithmetic mean. */
  mean?: number;
  /** Median is the middle sample, or the one value of a figure that has no spread. The median time of a layer is its share of the inference times the latency, so that the layers add up (see docs/reference/measurement-quality.md). */
  median?: number;
  /** Method names how the figure was made. */
  method?: string;
  /** Min and Max are the extreme samples. */
  min?: number;
  /** N is the number of samples. */
  n?: number;
  /** Outliers is the number of samples outside Tukey's inner fences. They are counted and never dropped. */
  outliers?: number;
  /** P90, P95 and P99 are percentiles. */
  p90?: number;
  /** P90, P95 and P99 are percentiles. */
  p95?: number;
  /** P90, P95 and P99 are percentiles. */
  p99?: number;
  /** StdDev is the sample standard deviation (divisor n-1). */
  stddev?: number;
}

/** Missing says what a profile lacks. */
export interface Missing {
  /** Cause says why. */
  cause: "operator" | "type" | "limit" | "use" | "input" | "shape" | "data" | "memory" | "bodies" | "error" | "canceled" | "deadline" | "end" | "record" | "figures" | "resolution" | "loop" | "work";
  /** Got and Want count what is there and what was expected, such as inferences, where that is known. */
  got?: number;
  /** Layers are the indices of the layers that it is about, absent for the whole. */
  layers?: number[];
  /** Text says more, for people: the error that ended a run. */
  text?: string;
  /** Got and Want count what is there and what was expected, such as inferences, where that is known. */
  want?: number;
}

/** Mode is a group of inferences of about the same duration, such as at one of the speeds that the machine ran at. */
export interface Mode {
  /** LatencyS is their median and CI95 its 95 % interval, in seconds. */
  ci95?: [number, number];
  /** Headline says that the latency of the profile is this one. */
  headline?: boolean;
  /** LatencyS is their median and CI95 its 95 % interval, in seconds. */
  latency_s: number;
  /** Part is the fraction of the inferences. */
  part: number;
  /** Speed is the machine's speed by the reference loop. */
  speed?: number;
}

/** Model describes a model file. */
export interface Model {
  /** Description is the file's own text about the model. */
  description?: string;
  /** FileBytes is the size of the model file and of its files with external data. It is absent if one of these is missing. */
  file_bytes?: number;
  /** Format is "tflite" or "onnx", or that of an imported record. */
  format?: string;
  /** FormatVersion is the ONNX IR version or the TFLite schema version. */
  format_version?: number;
  /** Inputs lists the inputs of the main graph with the shapes of this run. */
  inputs?: Tensor[];
  /** Name is the file's base name without its ending, or a name given by the user. */
  name: string;
  /** Opsets holds ONNX operator-set versions by domain, "ai.onnx" for the default. */
  opsets?: Record<string, number>;
  /** Outputs lists the outputs of the main graph with the shapes of this run. */
  outputs?: Tensor[];
  /** Path is the file as the user named it. */
  path?: string;
  /** Producer is the program that wrote the model, as the file says. */
  producer?: string;
  /** SHA256 is the hash of the model file, 64 lower-case hexadecimal digits. */
  sha256?: string;
  /** Signature is the signature of a TFLite file that the profile is of, of those in Signatures. Both are absent for files without, or with only one graph that has signatures. */
  signature?: string;
  /** Signature is the signature of a TFLite file that the profile is of, of those in Signatures. Both are absent for files without, or with only one graph that has signatures. */
  signatures?: string[];
  /** StructureSHA256 is a hash of the graphs: operators, options, connections, types and shapes, names and constants left out. Models with the same one differ in names and weights only. */
  structure_sha256?: string;
  /** Warnings is what the reader of the file got over, one sentence each. */
  warnings?: string[];
  /** WeightsSHA256 is a hash of all constants, those in files beside the model included. */
  weights_sha256?: string;
}

/** OperatorShare is the part of an inference that an operator takes in all its layers. */
export interface OperatorShare {
  /** Op is the operator, with its domain where that is not the format's own. */
  op: string;
  /** Share is its fraction of the sum of all layers' times, 0 to 1. */
  share: number;
}

/** Option is one option of an operator. */
export interface Option {
  /** Key names it in lower case, such as "padding". */
  key: string;
  /** Value is its value as text, such as "same" or "2x2". */
  value: string;
}

/** OtherEngine is a short measurement of the same model with another engine on the same computer, with the same inputs and threads. The profile itself holds nothing else of that engine. */
export interface OtherEngine {
  /** Cause says why there are no figures. */
  cause?: Cause;
  /** Engine is the engine's name on the command line, such as "onnxruntime", Title its display name, Version that of its library. */
  engine: string;
  /** Latency is the time of an inference. */
  latency_s?: Metric;
  /** Operators lists the shares of the operators, the greatest first, as far as the engine reports them. An operator has the name that it has in the model; what the engine inserted has the engine's. */
  operators?: OperatorShare[];
  /** Engine is the engine's name on the command line, such as "onnxruntime", Title its display name, Version that of its library. */
  title: string;
  /** Engine is the engine's name on the command line, such as "onnxruntime", Title its display name, Version that of its library. */
  version?: string;
}

/** Partition is a bank or an allocation of a memory. */
export interface Partition {
  /** Address and Bytes bound it. */
  address_bytes: number;
  /** Address and Bytes bound it. */
  bytes: number;
  /** Name of the bank or of what is stored there. */
  name: string;
}

/** Peak is the rate of arithmetic of one element type. */
export interface Peak {
  /** DType is the element type of the operands: "float32", "int8". */
  dtype: string;
  /** Kernel names the instruction set of the kernels that were measured, "go" for what the compiler makes of plain Go. */
  kernel?: string;
  /** MeasuredOpsPerSecond is the rate of the quickest round and ReachedBy the index of the layer that reached more, both absent without one. */
  measured_ops_per_second?: number;
  /** OpsPerSecond is the rate of the quickest round; a multiply-accumulate is two. On this computer it is the rate of a layer where one reached more. */
  ops_per_second: number;
  /** ProcessorOpsPerSecond is what the processor could do in theory: clock times lanes times units, with the best instruction set for the type, ProcessorSet. */
  processor_ops_per_second?: number;
  /** ProcessorSet names that instruction set. */
  processor_set?: string;
  /** MeasuredOpsPerSecond is the rate of the quickest round and ReachedBy the index of the layer that reached more, both absent without one. */
  reached_by?: number;
  /** Spread is how far the median of the rounds lies below the quickest one, as a part of it. */
  spread?: number;
}

/** Phase is a measured run of a language model. Figures are of a run, of the whole batch. */
export interface Phase {
  /** Batch is the number of sequences, Tokens that of the new tokens of each, or of the positions that an encoder makes, Context that of the positions in the cache before. */
  batch: number;
  /** CacheCopiedBytes is what the engine writes to the caches after the run beside the new ones: copies of those before, and zeros behind them in buffers. */
  cache_copied_bytes?: number;
  /** CacheReadBytes is the size of the keys, values and states before, CacheWrittenBytes of the new ones. */
  cache_read_bytes: number;
  /** CacheReadBytes is the size of the keys, values and states before, CacheWrittenBytes of the new ones. */
  cache_written_bytes: number;
  /** Batch is the number of sequences, Tokens that of the new tokens of each, or of the positions that an encoder makes, Context that of the positions in the cache before. */
  context: number;
  /** Kind names the phase. */
  kind: "encode" | "prefill" | "decode";
  /** Latency is the recommended figure, without tokenizer and sampling: time to first token of a prefill, beside the time of the encoder in models with one; time per output token of a decode. */
  latency_s?: Metric;
  /** Ops is the number of arithmetic operations, without those of TopK. */
  ops?: number;
  /** Quantity is the key of the layers' times in this phase: latency_s in the phase that the other figures of the profile are of. */
  quantity: string;
  /** RAMBytes is the memory that the engine plans for a run, like that of [Totals]. */
  ram_bytes?: number;
  /** Reconcile compares the sum of the layers in this phase with the wall clock. */
  reconcile?: Reconcile;
  /** Roof places the phase under the roofline: Ops at the rate of the type with the most multiply-accumulates, against weights and caches at the rate of memory. A phase that exceeds the rate of a level raises it, for all phases. */
  roof?: Roof;
  /** RoofTokensPerS is the number of tokens per second at the limits of Roof. */
  roof_tokens_per_s?: number;
  /** Batch is the number of sequences, Tokens that of the new tokens of each, or of the positions that an encoder makes, Context that of the positions in the cache before. */
  tokens: number;
  /** TokensPerS is the number of tokens of all sequences divided by Latency. */
  tokens_per_s?: Metric;
  /** Trust says how far Latency can be relied upon. */
  trust?: Trust;
  /** WeightsReadBytes is the size of the weights that the layers read: as stored, of embeddings and rotary tables only the rows of the tokens, of experts only as many as the tokens can choose. */
  weights_read_bytes?: number;
}

/** Phases separates what happens once from steady state. */
export interface Phases {
  /** FirstRunS is the time of the first inference. */
  first_run_s?: number;
  /** LoadS is the time to open and parse the model file. */
  load_s?: number;
  /** PeaksS is the time to measure the peaks of [Target], after the runs. */
  peaks_s?: number;
  /** PlanS is the time to infer shapes, prepare kernels and place memory. */
  plan_s?: number;
  /** Warmup tells how steady state was reached. */
  warmup?: Warmup;
}

/** Placement says which unit of the target does a layer's work. */
export interface Placement {
  /** Cause is why an accelerator does not take the layer. Where it does, another of its kernels refused the layer first, which some reports show. */
  cause?: "operator" | "type" | "limit" | "use" | "input" | "shape" | "data" | "memory" | "bodies" | "error" | "canceled" | "deadline" | "end" | "record" | "figures" | "resolution" | "loop" | "work";
  /** On names the unit: the accelerator's name, or "cpu". */
  on: string;
  /** Text says more about the cause, for people. */
  text?: string;
}

/** Provenance leads from an executed operator to the model's. */
export interface Provenance {
  /** Confidence says how they were found; a source node may have one of its own. */
  confidence: "exact" | "by tensor" | "by name" | "by order" | "unknown";
  /** Inserted marks an operator that the engine put in by itself, such as a change of layout. Its source nodes are those whose tensor it brings into another form; their work is not its work. */
  inserted?: boolean;
  /** SourceNodes are the nodes of the model, empty when none could be found. The first is the one that the layer is named after. */
  source_nodes?: SourceNode[];
}

/** Quantity describes a figure: what it is called, in which unit it stands, what it means. Columns of tables, headings of files, the schema and the page's columns are made from the table of quantities, so that a new figure is one entry of it. */
export interface Quantity {
  /** Adds says that the figures of layers add up to that of the model. */
  adds?: boolean;
  /** Better is 1 where more is better, -1 where less is, 0 where neither holds. */
  better?: number;
  /** Doc says in a sentence or two what it means. */
  doc?: string;
  /** Group gathers quantities for people: "Work", "Memory", "Time", "Rates", "Target", "Sparsity", or that of a source. */
  group?: string;
  /** Head is the heading of a narrow column. */
  head?: string;
  /** Key is its name in JSON and in files, ending in the base unit. */
  key: string;
  /** Model marks figures of the whole model alone, which layers have none of. */
  model?: boolean;
  /** Name is its name where there is room. */
  name: string;
  /** Of and Per make a quotient of other quantities: the sum of those in Of divided by the sum of those in Per. Such a figure is not stored. */
  of?: string[];
  /** Of and Per make a quotient of other quantities: the sum of those in Of divided by the sum of those in Per. Such a figure is not stored. */
  per?: string[];
  /** Unit is "s", "B", "J", "cycles" and the like, "1" for a fraction, "/s" for a rate of counts, empty for a count. */
  unit?: string;
  /** Whole marks figures that are integers. */
  whole?: boolean;
}

/** Reconcile compares sums with the wall clock. All times are of one inference; the first three divide the median latency by the parts of the instrumented pass and operators_s + gaps_s = wall_s, operators_s being the sum of the layers' times. */
export interface Reconcile {
  /** GapsS is the time between operators. */
  gaps_s?: number;
  /** OperatorsS is the sum of the layers' times. */
  operators_s?: number;
  /** OverheadPerOperatorS is the measured cost of recording one operator. */
  overhead_per_operator_s?: Metric;
  /** OverheadS is the cost of the instruments per inference: profiled minus plain, paired, with its interval. */
  overhead_s?: Metric;
  /** PlainS is the median of the plain pass. */
  plain_s?: number;
  /** ProfiledS is the median of the instrumented pass. */
  profiled_s?: number;
  /** Unassigned is the fraction of wall_s that neither operators nor gaps explain. */
  unassigned?: number;
  /** WallS is the latency that is divided; of a record, the duration of an inference. */
  wall_s?: number;
}

/** Roof is a layer's place under the roofline of the target: that of what it computes with all layers that are fused into it, whose work is its own, and without what these hand to each other, which is in no memory. */
export interface Roof {
  /** Bound says which limit is nearer, absent where one of the two is not known. */
  bound?: "compute" | "memory" | "overhead" | "unknown";
  /** OpsPerSecond and BytesPerSecond are these two limits. */
  bytes_per_second?: number;
  /** DType is the type of the peak of arithmetic, Level the name of the level of memory that it is judged by: the first that holds what the layer reads and writes in a call. */
  dtype?: string;
  /** DType is the type of the peak of arithmetic, Level the name of the level of memory that it is judged by: the first that holds what the layer reads and writes in a call. */
  level?: string;
  /** OpsPerSecond and BytesPerSecond are these two limits. */
  ops_per_second?: number;
  /** Use is the least time that the limits allow as a part of the time taken. Under peaks that were measured here it is at most 1. */
  use?: number;
}

/** Settings is what was asked for, enough to repeat the run. */
export interface Settings {
  /** Batch is the size of the batch dimension. */
  batch?: number;
  /** Carry maps outputs to the inputs that they become in the next inference. */
  carry?: Record<string, string>;
  /** Cold says what was cold, absent where nothing was made so. */
  cold?: "caches" | "start";
  /** Engine and its version. */
  engine?: string;
  /** EngineLibrary is the file of another engine's library, EngineOptions its options in effect, as that engine calls them. */
  engine_library?: string;
  /** EngineLibrary is the file of another engine's library, EngineOptions its options in effect, as that engine calls them. */
  engine_options?: Record<string, string>;
  /** Engine and its version. */
  engine_version?: string;
  /** Exact says that quantise-dequantise patterns were computed in floating point, as the file says, and not in integers, and that halves were rounded after each operator. */
  exact?: boolean;
  /** GarbageCollector is "off" when it was kept out of timed regions. */
  garbage_collector?: string;
  /** InPlace maps outputs to the inputs in whose memory they were computed, such as the caches of language models. */
  in_place?: Record<string, string>;
  /** InputKind is "random", "zeros", "file" or "made". */
  input_kind?: string;
  /** Inputs tells where each input's data came from, by input name. */
  inputs?: Record<string, InputSource>;
  /** Instances is the number of instances that ran the model at the same time and whose figures the profile holds, absent for one. */
  instances?: number;
  /** KernelSet names the instruction sets that the kernels were allowed to use. */
  kernel_set?: string;
  /** Libraries holds versions of other programs that took part, by name. */
  libraries?: Record<string, string>;
  /** Passes says which passes were made and how: "abba" for plain and instrumented groups in turn. */
  passes?: string;
  /** PinnedCPUs lists the processors that the threads were bound to. */
  pinned_cpus?: number[];
  /** RatePerS is the number of inferences a second that were due, of all streams together. */
  rate_per_s?: number;
  /** ReferenceLoop names the work interleaved with the runs to tell the machine's speed; normalised times compare where it is the same. */
  reference_loop?: string;
  /** Runs is the number of measured inferences that was asked for. */
  runs?: number;
  /** Scenario says how the model was driven beside the passes that give latency and shares, absent for nothing more. */
  scenario?: "throughput" | "fixed_rate";
  /** Seed of the random inputs. */
  seed?: number;
  /** Streams is the number of streams, each a session of its own with Threads threads; absent where none were asked for. */
  streams?: number;
  /** TargetSHA256 is the hash of the target's description and its calibration, for estimates. */
  target_sha256?: string;
  /** Threads is the number of threads that compute, the caller included. */
  threads?: number;
  /** TimeS is the time that was asked for instead. */
  time_s?: number;
  /** Version of opmeter that made the profile. */
  version?: string;
  /** WarmupS and WarmupRuns are the least warm-up that was asked for. */
  warmup_runs?: number;
  /** WarmupS and WarmupRuns are the least warm-up that was asked for. */
  warmup_s?: number;
}

/** SourceNode points at a node of the model file. */
export interface SourceNode {
  /** Confidence says how this node was found where that differs from the provenance's. */
  confidence?: "exact" | "by tensor" | "by name" | "by order" | "unknown";
  /** Graph and Node are positions in the file, from 0. */
  graph: number;
  /** Name of the node, as far as it has one. */
  name?: string;
  /** Graph and Node are positions in the file, from 0. */
  node: number;
  /** Op of the node. */
  op?: string;
  /** Share is the part of the layer's figures that is this node's, 0 to 1, where it is known. */
  share?: number;
}

/** Sparsity is the share of zeros. */
export interface Sparsity {
  /** Activations is the fraction of zeros among the output elements, 0 to 1. */
  activations?: number;
  /** Blocks holds, of weights that are one constant matrix, the fraction of its blocks that are all zero, 0 to 1, by the block's rows x columns as stored: "1x4", "4x1", "1x16", "4x16", and "rows" and "columns" for whole ones. Ragged edges are left out; a block that does not fit has no entry. "2:4" is the fraction of groups of four in a row with two zeros or more. Quantised weights count as zero where they stand for zero. */
  blocks?: Record<string, number>;
  /** Encoded says that the file stores the weights in a sparse encoding. */
  encoded?: boolean;
  /** Pattern names a regular pattern of zeros, such as "2:4" or "block 4x1". */
  pattern?: string;
  /** StoredBytes is the size of the encoded weights. */
  stored_bytes?: number;
  /** Weights is the fraction of zero weights, 0 to 1. */
  weights?: number;
}

/** Target is what the model ran on, or was estimated for. */
export interface Target {
  /** Accelerator names an accelerator beside the processor. */
  accelerator?: string;
  /** ClockHz is the clock that cycles are converted with. */
  clock_hz?: number;
  /** Description is the target's name for people. */
  description?: string;
  /** Engine names the program that executes the operators. */
  engine?: string;
  /** ID names the target, "host" for this computer. */
  id: string;
  /** Kind says what sort of thing the target is. */
  kind: "host" | "simulator" | "device" | "import";
  /** Levels holds the rates of the levels of memory, the fastest first; the last one is PeakBytesPerSecond. */
  levels?: Level[];
  /** PeakBytesPerSecond is the rate of the memory that layers read and write: the slope of the roofline. */
  peak_bytes_per_second?: number;
  /** PeakMethod says where the peaks come from. */
  peak_method?: string;
  /** PeakOpsPerSecond is the most arithmetic operations a second that the target can do: the flat part of the roofline. */
  peak_ops_per_second?: number;
  /** Peaks holds the rates of arithmetic by element type where they are known, the fastest of which is PeakOpsPerSecond. */
  peaks?: Peak[];
}

/** Tensor describes an input or output. */
export interface Tensor {
  /** Absent marks an optional input that was not given: a place holder. */
  absent?: boolean;
  /** Assumed lists the positions of open dimensions that no one gave: 1 was taken for them, or what follows from that. Only of the model's inputs. */
  assumed?: number[];
  /** Bytes is the size of the elements. */
  bytes?: number;
  /** ChannelScales are the smallest and the largest scale of tensors that have one for each channel, and ChannelAxis is the dimension of the channels, from 0. */
  channel_axis?: number;
  /** ChannelScales are the smallest and the largest scale of tensors that have one for each channel, and ChannelAxis is the dimension of the channels, from 0. */
  channel_scales?: [number, number];
  /** Constant marks weights and other constants of the file. */
  constant?: boolean;
  /** Declared is the shape that the file states where dimensions are open there and Shape is what was taken for them. Only of the model's inputs. */
  declared?: number[];
  /** DimNames are the names that the file gives to the dimensions of Declared, empty where it gives none; absent where none has one. */
  dim_names?: string[];
  /** DType is the element type in lower case, such as "float32" or "int8". */
  dtype?: string;
  /** Made says how the elements were made where the model uses them for something that drawn numbers would not do for. Only of the model's inputs. */
  made?: Made;
  /** Name is the tensor's name in the model. */
  name?: string;
  /** Scale and ZeroPoint are the affine quantisation real = scale*(q-zero_point) of tensors that have one for all channels. */
  scale?: number;
  /** Shape lists the dimensions, -1 for those that are not known. Empty for a scalar, absent when even the rank is not known. */
  shape?: number[];
  /** Scale and ZeroPoint are the affine quantisation real = scale*(q-zero_point) of tensors that have one for all channels. */
  zero_point?: number;
}

/** Timeline says when things happened. A column that a source has nothing for is absent. All times are seconds since one origin, unless a lane has a clock of its own. */
export interface Timeline {
  /** Clocks holds clocks of lanes that have one of their own. */
  clocks?: Clock[];
  /** Counters holds figures over time, such as bandwidth or frequency. */
  counters?: Counter[];
  /** Dropped is the number of records that the source lost or that did not fit. */
  dropped?: number;
  /** Iterations is the number of inferences that ran while the timeline was recorded; bars may exist for some of them only (see method). */
  iterations?: number;
  /** Lanes holds the bars, in the order in which they are to be shown. */
  lanes: Lane[];
  /** Links are dependencies between bars. */
  links?: Link[];
  /** Memories holds accesses to memories over time, with their banks or allocations. */
  memories?: TimelineMemory[];
  /** Method says how the times were taken and which part was kept. */
  method?: string;
  /** Names holds the texts that name columns refer to. */
  names?: string[];
  /** Origin says what time 0 is. */
  origin?: string;
  /** Representative is the number of the inference whose layers are nearest to their medians, absent if it was not looked for. The timeline has its bars. */
  representative?: number;
  /** Subnets names the parts of the model that subnet columns refer to. */
  subnets?: string[];
}

/** Memory is a memory whose accesses were recorded. */
export interface TimelineMemory {
  /** Addresses and Sizes bound each access in the memory, bytes. */
  address_bytes?: Column;
  /** Clock names the clock of the times, empty for the timeline's own. */
  clock?: string;
  /** Starts and Ends bound each access in time, seconds, sorted by starts. */
  ends_s?: Column;
  /** Group is the core or device that it belongs to, empty for a shared one. */
  group?: string;
  /** Layers holds the index in the profile's layers of each access, -1 for none. */
  layers?: Column;
  /** Name of the memory, such as "local" or "global". */
  name: string;
  /** Partitions are its banks or allocations in the order of their addresses. */
  partitions?: Partition[];
  /** Addresses and Sizes bound each access in the memory, bytes. */
  size_bytes?: Column;
  /** Starts and Ends bound each access in time, seconds, sorted by starts. */
  starts_s?: Column;
  /** Writes holds 1 for a write, 0 for a read. */
  writes?: Column;
}

/** Totals holds figures of the whole model, by one rule whatever the source. A count of work is the sum over the layers, each as often as it is called, those that follow from constants alone left out; layers fused into others or without support count. Parameters and weights count once, however many layers read them. The fields uncounted_layers and unsupported_layers say how many layers a count leaves out or could not run. */
export interface Totals {
  /** AcceleratorCycles is cycles in which the accelerator ran. */
  accelerator_cycles?: Metric;
  /** BytesRead and BytesWritten sum what the layers read and write, each operand once a layer. */
  bytes_read?: number;
  /** BytesRead and BytesWritten sum what the layers read and write, each operand once a layer. */
  bytes_written?: number;
  /** CodeBytes is the smallest and largest program code that comes on top of FlashBytes, in measured images. Absent if unknown. */
  code_bytes?: [number, number];
  /** ComputedParams is the number of elements that layers read as constants and that are not in the file: they are computed of other constants once, such as weights that the file fills with one value. Params, WeightsBytes and FlashBytes leave them out. Absent if absent. */
  computed_params?: number;
  /** CPUCycles is processor cycles of one inference. */
  cpu_cycles?: Metric;
  /** Energy of one inference. */
  energy_j?: Metric;
  /** Figures holds figures without a field of their own by the key of their quantity, which is known or stands in [Profile.Quantities]. */
  figures?: {
    /** Instructions that the accelerator executes for the layer. */
    accelerator_instructions?: Metric;
    /** Instructions of the accelerator that do nothing. */
    accelerator_no_ops?: Metric;
    /** Programs that the accelerator runs for the layer. */
    accelerator_programs?: Metric;
    /** Cycles in which the accelerator waits for memory. */
    accelerator_stalls?: Metric;
    /** Parameters that a token uses in a mixture of experts. The other experts are stored and not read. */
    active_params?: Metric;
    /** Profiling overhead on a device per inference, for counting and sending. It is not part of the time. */
    agent_s?: Metric;
    /** Size of the weights in the file divided by their number, in bits. Scales and zero points of quantised weights are included. */
    bits_per_weight?: Metric;
    /** Size that each token adds to the caches of keys and values of a language model, in float16. */
    cache_bytes_per_token?: Metric;
    /** A second measurement of the layer (--check): the extra time of a sub-model with the layer over one without it, as interleaved plain inferences. The 95 % interval is that of a repeated run. Only for layers that were checked. */
    checked_s?: Metric;
    /** Time of one inference of a prepared model after the processor's caches were emptied. */
    cold_latency_s?: Metric;
    /** Time from creating a session to the end of its first inference, after the processor's caches were emptied. With opmeter's engine it starts with planning, the file being open. External engines read the model from its file, their library being loaded. */
    cold_start_s?: Metric;
    /** Tokens generated per second after the first one, with the deepest cache that was measured, all sequences of a batch together. Tokenizer and sampling are not included. */
    decode_tokens_per_s?: Metric;
    /** Time in which a device beside the processor worked for the layer in one inference. It may overlap with other layers. */
    device_s?: Metric;
    /** Number of inferences that were due within the window, at a fixed rate. */
    due_inferences?: Metric;
    /** Inferences per second of all streams together, over the window in which all of them ran. The 95 % interval is that of a repeated run. Multiplied by the batch size it is items per second. */
    inferences_per_s?: Metric;
    /** Instructions that the processor executes for the layer in one inference, counted by an emulator or a hardware counter. They are not cycles. */
    instructions?: Metric;
    /** Number of inferences that started late because no stream was free when they were due. */
    late_inferences?: Metric;
    /** Time of one inference, from its start to its end, while all streams run. */
    loaded_latency_s?: Metric;
    /** Processor time of one inference while all streams run, summed over all threads. */
    loaded_processor_s?: Metric;
    /** Speed of the machine during the runs, measured by a loop of fixed work. 1 is the reference speed, which is the same on all machines. */
    machine_speed?: Metric;
    /** Tokens of a prompt per second, of the longest prompt that was measured, all sequences of a batch together. Tokenizer and sampling are not included. */
    prefill_tokens_per_s?: Metric;
    /** Processor time of one inference, summed over all threads, without waiting for other programs. */
    processor_s?: Metric;
    /** Time of the layer as the profiler of an external engine reports it, profiling overhead included. The layer's time is its share of these times, multiplied by the time of plain inferences. */
    profiled_s?: Metric;
    /** Normalised latency: processor time of one inference multiplied by the machine's speed, which a loop of fixed work interleaved with the runs measures. The 95 % interval is that of a repeated run. */
    reference_latency_s?: Metric;
    /** Time from when an inference was due, at a fixed rate, to its end, including the wait for a free stream. */
    response_s?: Metric;
    /** Inferences of the slowest stream divided by those of the fastest; 1 if all are equal. */
    stream_fairness?: Metric;
    /** Ticks of a timer whose frequency is not known, such as microseconds or processor cycles. */
    ticks?: Metric;
    /** Time for each token after the first one: the time of decode, with the deepest cache that was measured. */
    tpot_s?: Metric;
    /** Time from a prompt to the first token: the time of prefill, of the longest prompt that was measured. Results of servers include network and queue. */
    ttft_s?: Metric;
    /** Time of the plain inferences during which no other program used the processor. */
    undisturbed_latency_s?: Metric;
    /** Number of inferences that were due but had not started when the window closed. They have no response time. */
    unstarted_inferences?: Metric;
    /** Time from when an inference was due, at a fixed rate, to its start. */
    waiting_s?: Metric;
    /** Time in a function and in everything it calls, each moment counted once. Only in profiles of programs, whose layers are functions. */
    with_callees_s?: Metric;
    [key: string]: Metric | undefined;
  };
  /** FlashBytes is the storage that the model needs on the target. */
  flash_bytes?: number;
  /** Latency is the time of one inference, from the plain pass where there is one. */
  latency_s?: Metric;
  /** LatencySamples holds times of plain inferences, seconds, in the order in which they were taken: all of them, or a random choice of some thousand where there were more (latency_s says of how many). */
  latency_samples_s?: Column;
  /** Layers is the number of layers. */
  layers?: number;
  /** MACs is the number of multiply-accumulates, padding taps included. */
  macs?: number;
  /** MACsExecuted is MACs without padding taps. */
  macs_executed?: number;
  /** MLTKOps and MLTKMACs are the counts by the convention of the Silicon Labs MLTK profiler, its omissions included. */
  mltk_macs?: number;
  /** MLTKOps and MLTKMACs are the counts by the convention of the Silicon Labs MLTK profiler, its omissions included. */
  mltk_ops?: number;
  /** Ops is the number of arithmetic operations of one inference. */
  ops?: number;
  /** Params is the number of constant elements, each counted once. */
  params?: number;
  /** RAMBytes is the memory that the runtime plans for an inference beside the model: the arena of activations, scratch memory of operators, and what lasts between inferences, with the graphs of control flow. On this computer the caller owns the inputs, which are left out, except in models with control flow. */
  ram_bytes?: number;
  /** SimulatorCycles is the same by the accelerator maker's simulator, for comparison with its reports. */
  simulator_cycles?: Metric;
  /** UncountedLayers is the number of layers whose operations are not known, absent where the source does not say. */
  uncounted_layers?: number;
  /** UnsupportedLayers is the number of layers that the engine or accelerator cannot run. */
  unsupported_layers?: number;
  /** WeightsBytes is the size of the constants as stored. */
  weights_bytes?: number;
}

/** Trust says how far the measured latency can be relied upon, and why not further. */
export interface Trust {
  /** Blocks is the number of stretches of the run that the intervals come from. */
  blocks?: number;
  /** Undisturbed is the number of inferences during which the system reported no disturbance, Disturbed that of the others. Figures come from the first, unless there are too few. */
  disturbed?: number;
  /** Doubts are the reasons for it, the gravest first; some may be there beside the best verdict. */
  doubts?: Doubt[];
  /** Fit says what the measurement is good for. */
  fit?: "comparing" | "shares" | "nothing";
  /** Interval says what the 95 % interval of latency_s holds. */
  interval?: "repeats" | "run";
  /** Modes are the latencies of separate groups of inferences, the fastest first; absent where there is one group. */
  modes?: Mode[];
  /** ModesBySpeed says that the machine's speed by the reference loop explains the modes. */
  modes_by_speed?: boolean;
  /** Quote is the key of the figure of the totals to quote: "latency_s", or where the machine was disturbed "undisturbed_latency_s" or "processor_s". Absent where none can be quoted. */
  quote?: string;
  /** Tolerance is what the latency may differ by from that on the quiet machine, as a fraction of it: a probability of 95 %. Absent if unknown. */
  tolerance?: number;
  /** Undisturbed is the number of inferences during which the system reported no disturbance, Disturbed that of the others. Figures come from the first, unless there are too few. */
  undisturbed?: number;
  /** Verdict is that about the latency of the whole model. */
  verdict: "good" | "fair" | "unreliable";
}

/** Warmup tells how steady state was reached. */
export interface Warmup {
  /** Count is the number of inferences, the first one included. */
  count?: number;
  /** Reason says why it is not steady, or why nothing can be said. */
  reason?: string;
  /** Steady says whether the measured runs passed the checks for drift and change points. Absent when there were too few runs to tell. */
  steady?: boolean;
  /** TimeS is the time spent. */
  time_s?: number;
}

/** Weights is a constant that a layer multiplies with, as the file stores it: also where Transpose, DequantizeLinear and the like stand between the two. */
export interface Weights {
  /** DType is the type of its elements, such as "int8". */
  dtype: string;
  /** Input is the position of the operand of the model's operator that it becomes, from 0. */
  input: number;
  /** Min, Max, Mean and StdDev (of the population) are of the elements as stored: of quantised weights of the quantised values. Only models that are counted and not run have them. */
  max?: number;
  /** Min, Max, Mean and StdDev (of the population) are of the elements as stored: of quantised weights of the quantised values. Only models that are counted and not run have them. */
  mean?: number;
  /** Min, Max, Mean and StdDev (of the population) are of the elements as stored: of quantised weights of the quantised values. Only models that are counted and not run have them. */
  min?: number;
  /** Name is the constant's name. */
  name?: string;
  /** Shape is its shape. Where the layer reads it as a matrix it is that of the matrix, which [Sparsity.Blocks] is about. */
  shape: number[];
  /** Min, Max, Mean and StdDev (of the population) are of the elements as stored: of quantised weights of the quantised values. Only models that are counted and not run have them. */
  stddev?: number;
}
