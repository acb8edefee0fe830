package profile

// table lists the known quantities. A quantity with typed fields names them; one
// without stands in the maps of figures of layers and totals under its key.
func table() []entry {
	return []entry{
		{
			Quantity{Key: "latency_s", Unit: "s", Head: "time", Name: "Time", Group: "Time", Adds: true, Better: -1, Doc: "Time in the layer itself in one inference, over all its calls and without the layers of its bodies, so that layers add up. From samples: the median share of an inference, times the median latency."},
			metrics(func(l *Layer) **Metric { return &l.Latency }), metricsTotal(func(t *Totals) **Metric { return &t.Latency }),
		},
		{
			Quantity{Key: "share", Unit: "1", Head: "share", Name: "Share of time", Group: "Time", Adds: true, Doc: "Time of the layer divided by the sum of all layers' times, 0 to 1. Without times, cycles, instructions or ticks are used. Empty for layers without any of them."},
			reals(func(l *Layer) **float64 { return &l.Share }, kindOfTime), nil,
		},
		{
			Quantity{Key: "total_s", Unit: "s", Head: "with bodies", Name: "Time with bodies", Group: "Time", Better: -1, Doc: "Time of a control-flow layer with the layers of its bodies."},
			metrics(func(l *Layer) **Metric { return &l.Total }), nil,
		},
		{Quantity{Key: "with_callees_s", Unit: "s", Head: "with callees", Name: "Time with callees", Group: "Time", Better: -1, Doc: "Time in a function and in everything it calls, each moment counted once. Only in profiles of programs, whose layers are functions."}, nil, nil},
		{
			Quantity{Key: "calls", Head: "calls", Name: "Calls", Group: "Time", Doc: "Mean number of calls in one inference, if it is not 1."},
			reals(func(l *Layer) **float64 { return &l.Calls }, always(Measured)), nil,
		},
		{
			Quantity{Key: "expected_s", Unit: "s", Head: "expected", Name: "Expected time", Group: "Time", Better: -1, Doc: "A second time to compare with: an estimate of the model's compiler, or the time in another profile of the same model."},
			metrics(func(l *Layer) **Metric { return &l.Expected }), nil,
		},
		{
			Quantity{Key: "against_expected", Unit: "1", Head: "÷ expected", Name: "Time over expected time", Group: "Time", Better: -1, Doc: "Time divided by the expected time: above 1 is slower than expected.", Of: []string{"latency_s"}, Per: []string{"expected_s"}},
			nil, nil,
		},
		{Quantity{Key: "checked_s", Unit: "s", Head: "by cutting", Name: "Time by cutting", Group: "Time", Better: -1, Doc: "A second measurement of the layer (--check): the extra time of a sub-model with the layer over one without it, as interleaved plain inferences. The 95 % interval is that of a repeated run. Only for layers that were checked."}, nil, nil},
		{Quantity{Key: "profiled_s", Unit: "s", Head: "profiled", Name: "Time by the engine's profiler", Group: "Time", Adds: true, Better: -1, Doc: "Time of the layer as the profiler of an external engine reports it, profiling overhead included. The layer's time is its share of these times, multiplied by the time of plain inferences."}, nil, nil},
		{Quantity{Key: "reference_latency_s", Unit: "s", Head: "normalised", Name: "Normalised latency", Group: "Time", Better: -1, Model: true, Doc: "Normalised latency: processor time of one inference multiplied by the machine's speed, which a loop of fixed work interleaved with the runs measures. The 95 % interval is that of a repeated run."}, nil, nil},
		{Quantity{Key: "undisturbed_latency_s", Unit: "s", Head: "undisturbed", Name: "Time of undisturbed runs", Group: "Time", Better: -1, Model: true, Doc: "Time of the plain inferences during which no other program used the processor."}, nil, nil},
		{Quantity{Key: "processor_s", Unit: "s", Head: "processor time", Name: "Processor time", Group: "Time", Better: -1, Model: true, Doc: "Processor time of one inference, summed over all threads, without waiting for other programs."}, nil, nil},
		{Quantity{Key: "inferences_per_s", Unit: "/s", Head: "inferences/s", Name: "Throughput", Group: "Load", Better: 1, Model: true, Doc: "Inferences per second of all streams together, over the window in which all of them ran. The 95 % interval is that of a repeated run. Multiplied by the batch size it is items per second."}, nil, nil},
		{Quantity{Key: "loaded_latency_s", Unit: "s", Head: "under load", Name: "Time under load", Group: "Load", Better: -1, Model: true, Doc: "Time of one inference, from its start to its end, while all streams run."}, nil, nil},
		{Quantity{Key: "response_s", Unit: "s", Head: "response", Name: "Response time", Group: "Load", Better: -1, Model: true, Doc: "Time from when an inference was due, at a fixed rate, to its end, including the wait for a free stream."}, nil, nil},
		{Quantity{Key: "waiting_s", Unit: "s", Head: "waiting", Name: "Waiting time", Group: "Load", Better: -1, Model: true, Doc: "Time from when an inference was due, at a fixed rate, to its start."}, nil, nil},
		{Quantity{Key: "stream_fairness", Unit: "1", Head: "fairness", Name: "Fairness of the streams", Group: "Load", Better: 1, Model: true, Doc: "Inferences of the slowest stream divided by those of the fastest; 1 if all are equal."}, nil, nil},
		{Quantity{Key: "loaded_processor_s", Unit: "s", Head: "processor time under load", Name: "Processor time under load", Group: "Load", Better: -1, Model: true, Doc: "Processor time of one inference while all streams run, summed over all threads."}, nil, nil},
		{Quantity{Key: "due_inferences", Head: "due", Name: "Inferences due", Group: "Load", Model: true, Whole: true, Doc: "Number of inferences that were due within the window, at a fixed rate."}, nil, nil},
		{Quantity{Key: "late_inferences", Head: "late", Name: "Late inferences", Group: "Load", Better: -1, Model: true, Whole: true, Doc: "Number of inferences that started late because no stream was free when they were due."}, nil, nil},
		{Quantity{Key: "unstarted_inferences", Head: "unstarted", Name: "Unstarted inferences", Group: "Load", Better: -1, Model: true, Whole: true, Doc: "Number of inferences that were due but had not started when the window closed. They have no response time."}, nil, nil},
		{Quantity{Key: "cold_latency_s", Unit: "s", Head: "cold", Name: "Time with cold caches", Group: "Load", Better: -1, Model: true, Doc: "Time of one inference of a prepared model after the processor's caches were emptied."}, nil, nil},
		{Quantity{Key: "cold_start_s", Unit: "s", Head: "cold start", Name: "Time of a cold start", Group: "Load", Better: -1, Model: true, Doc: "Time from creating a session to the end of its first inference, after the processor's caches were emptied. With opmeter's engine it starts with planning, the file being open. External engines read the model from its file, their library being loaded."}, nil, nil},
		{Quantity{Key: "prefill_tokens_per_s", Unit: "/s", Head: "prefill tokens/s", Name: "Prefill rate", Group: "Language model", Better: 1, Model: true, Doc: "Tokens of a prompt per second, of the longest prompt that was measured, all sequences of a batch together. Tokenizer and sampling are not included."}, nil, nil},
		{Quantity{Key: "decode_tokens_per_s", Unit: "/s", Head: "decode tokens/s", Name: "Decode rate", Group: "Language model", Better: 1, Model: true, Doc: "Tokens generated per second after the first one, with the deepest cache that was measured, all sequences of a batch together. Tokenizer and sampling are not included."}, nil, nil},
		{Quantity{Key: "ttft_s", Unit: "s", Head: "TTFT", Name: "Time to first token", Group: "Language model", Better: -1, Model: true, Doc: "Time from a prompt to the first token: the time of prefill, of the longest prompt that was measured. Results of servers include network and queue."}, nil, nil},
		{Quantity{Key: "tpot_s", Unit: "s", Head: "TPOT", Name: "Time per output token", Group: "Language model", Better: -1, Model: true, Doc: "Time for each token after the first one: the time of decode, with the deepest cache that was measured."}, nil, nil},
		{Quantity{Key: "machine_speed", Unit: "1", Head: "speed", Name: "Speed of the machine", Group: "Time", Better: 1, Model: true, Doc: "Speed of the machine during the runs, measured by a loop of fixed work. 1 is the reference speed, which is the same on all machines."}, nil, nil},
		{Quantity{Key: "device_s", Unit: "s", Head: "on device", Name: "Time on device", Group: "Time", Adds: true, Better: -1, Doc: "Time in which a device beside the processor worked for the layer in one inference. It may overlap with other layers."}, nil, nil},
		{
			Quantity{Key: "accelerator_cycles", Unit: "cycles", Head: "acc. cycles", Name: "Accelerator cycles", Group: "Target", Adds: true, Better: -1, Doc: "Cycles in which the accelerator runs."},
			metrics(func(l *Layer) **Metric { return &l.AcceleratorCycles }), metricsTotal(func(t *Totals) **Metric { return &t.AcceleratorCycles }),
		},
		{
			Quantity{Key: "simulator_cycles", Unit: "cycles", Head: "sim. cycles", Name: "Simulator cycles", Group: "Target", Adds: true, Better: -1, Doc: "Accelerator cycles according to the vendor's simulator, for comparison with its reports."},
			metrics(func(l *Layer) **Metric { return &l.SimulatorCycles }), metricsTotal(func(t *Totals) **Metric { return &t.SimulatorCycles }),
		},
		{
			Quantity{Key: "cpu_cycles", Unit: "cycles", Head: "CPU cycles", Name: "CPU cycles", Group: "Target", Adds: true, Better: -1, Doc: "Cycles in which the processor works for the layer."},
			metrics(func(l *Layer) **Metric { return &l.CPUCycles }), metricsTotal(func(t *Totals) **Metric { return &t.CPUCycles }),
		},
		{Quantity{Key: "instructions", Unit: "instr.", Head: "instr.", Name: "Instructions", Group: "Target", Adds: true, Better: -1, Doc: "Instructions that the processor executes for the layer in one inference, counted by an emulator or a hardware counter. They are not cycles."}, nil, nil},
		{Quantity{Key: "ticks", Unit: "ticks", Head: "ticks", Name: "Ticks", Group: "Target", Adds: true, Better: -1, Doc: "Ticks of a timer whose frequency is not known, such as microseconds or processor cycles."}, nil, nil},
		{Quantity{Key: "agent_s", Unit: "s", Head: "agent", Name: "Profiling overhead on the device", Group: "Time", Better: -1, Model: true, Doc: "Profiling overhead on a device per inference, for counting and sending. It is not part of the time."}, nil, nil},
		{
			Quantity{Key: "energy_j", Unit: "J", Head: "energy", Name: "Energy", Group: "Target", Adds: true, Better: -1, Doc: "Energy that the layer uses in one inference."},
			metrics(func(l *Layer) **Metric { return &l.Energy }), metricsTotal(func(t *Totals) **Metric { return &t.Energy }),
		},
		{
			Quantity{Key: "macs", Head: "MACs", Name: "Multiply-accumulates", Group: "Work", Adds: true, Whole: true, Doc: "Multiply-accumulates of one inference, including those with padding."},
			counted(func(l *Layer) **int64 { return &l.MACs }), countedTotal(func(t *Totals) **int64 { return &t.MACs }),
		},
		{
			Quantity{Key: "ops", Head: "ops", Name: "Operations", Group: "Work", Adds: true, Whole: true, Doc: "Arithmetic operations of one inference; a multiply-accumulate is two. Rules: docs/explanation/counting.md."},
			counted(func(l *Layer) **int64 { return &l.Ops }), countedTotal(func(t *Totals) **int64 { return &t.Ops }),
		},
		{Quantity{Key: "ops_per_s", Unit: "/s", Head: "op/s", Name: "Operations per second", Group: "Rates", Better: 1, Doc: "Operations divided by time.", Of: []string{"ops"}, Per: []string{"latency_s"}}, nil, nil},
		{Quantity{Key: "macs_per_s", Unit: "/s", Head: "MAC/s", Name: "Multiply-accumulates per second", Group: "Rates", Better: 1, Doc: "Multiply-accumulates divided by time.", Of: []string{"macs"}, Per: []string{"latency_s"}}, nil, nil},
		{Quantity{Key: "bytes_per_s", Unit: "B/s", Head: "B/s", Name: "Bytes per second", Group: "Rates", Doc: "Bytes read and written divided by time.", Of: []string{"bytes_read", "bytes_written"}, Per: []string{"latency_s"}}, nil, nil},
		{Quantity{Key: "ops_per_byte", Head: "ops/byte", Name: "Operations per byte", Group: "Rates", Doc: "Arithmetic intensity: operations divided by bytes read and written.", Of: []string{"ops"}, Per: []string{"bytes_read", "bytes_written"}}, nil, nil},
		{Quantity{Key: "energy_per_mac_j", Unit: "J", Head: "J/MAC", Name: "Energy per multiply-accumulate", Group: "Target", Better: -1, Doc: "Energy divided by multiply-accumulates.", Of: []string{"energy_j"}, Per: []string{"macs"}}, nil, nil},
		{Quantity{Key: "energy_per_op_j", Unit: "J", Head: "J/op", Name: "Energy per operation", Group: "Target", Better: -1, Doc: "Energy divided by operations.", Of: []string{"energy_j"}, Per: []string{"ops"}}, nil, nil},
		{Quantity{Key: "power_w", Unit: "W", Head: "power", Name: "Power", Group: "Target", Better: -1, Doc: "Energy divided by time: mean power.", Of: []string{"energy_j"}, Per: []string{"latency_s"}}, nil, nil},
		{
			Quantity{Key: "params", Head: "params", Name: "Parameters", Group: "Memory", Adds: true, Whole: true, Better: -1, Doc: "Number of constant elements that the layer reads as weights. Shapes, axes and similar constants are not counted. Weights behind layers that run at load count for the layer that reads the result. Layers may share weights; sums count each once."},
			counted(func(l *Layer) **int64 { return &l.Params }), countedTotal(func(t *Totals) **int64 { return &t.Params }),
		},
		{
			Quantity{Key: "weights_bytes", Unit: "B", Head: "weights", Name: "Weights", Group: "Memory", Adds: true, Whole: true, Better: -1, Doc: "Size of the weights as stored."},
			counted(func(l *Layer) **int64 { return &l.WeightsBytes }), countedTotal(func(t *Totals) **int64 { return &t.WeightsBytes }),
		},
		{Quantity{Key: "bits_per_weight", Unit: "bits", Head: "bits/weight", Name: "Bits per weight", Group: "Memory", Better: -1, Model: true, Doc: "Size of the weights in the file divided by their number, in bits. Scales and zero points of quantised weights are included."}, nil, nil},
		{Quantity{Key: "active_params", Head: "active params", Name: "Active parameters", Group: "Memory", Better: -1, Model: true, Whole: true, Doc: "Parameters that a token uses in a mixture of experts. The other experts are stored and not read."}, nil, nil},
		{Quantity{Key: "cache_bytes_per_token", Unit: "B", Head: "cache/token", Name: "Cache per token", Group: "Memory", Better: -1, Model: true, Whole: true, Doc: "Size that each token adds to the caches of keys and values of a language model, in float16."}, nil, nil},
		{
			Quantity{Key: "bytes_read", Unit: "B", Head: "read", Name: "Bytes read", Group: "Memory", Adds: true, Whole: true, Better: -1, Doc: "Size of all operands that the layer reads in one inference, each once per call, constants included."},
			counted(func(l *Layer) **int64 { return &l.BytesRead }), countedTotal(func(t *Totals) **int64 { return &t.BytesRead }),
		},
		{
			Quantity{Key: "bytes_written", Unit: "B", Head: "written", Name: "Bytes written", Group: "Memory", Adds: true, Whole: true, Better: -1, Doc: "Size of all results that the layer writes in one inference, each once per call."},
			counted(func(l *Layer) **int64 { return &l.BytesWritten }), countedTotal(func(t *Totals) **int64 { return &t.BytesWritten }),
		},
		{
			Quantity{Key: "live_bytes", Unit: "B", Head: "live", Name: "Memory alive", Group: "Memory", Whole: true, Better: -1, Doc: "Size of the activations that are live while the layer runs. The largest value is the least that any memory plan needs."},
			counted(func(l *Layer) **int64 { return &l.LiveBytes }), nil,
		},
		{
			Quantity{Key: "macs_executed", Head: "MACs in data", Name: "Multiply-accumulates without padding", Group: "Work", Adds: true, Whole: true, Doc: "Multiply-accumulates without those with padding."},
			counted(func(l *Layer) **int64 { return &l.MACsExecuted }), countedTotal(func(t *Totals) **int64 { return &t.MACsExecuted }),
		},
		{
			Quantity{Key: "mltk_ops", Head: "MLTK ops", Name: "MLTK operations", Group: "Work", Adds: true, Whole: true, Doc: "Operations as the Silicon Labs MLTK profiler counts them, its omissions included."},
			counted(func(l *Layer) **int64 { return &l.MLTKOps }), countedTotal(func(t *Totals) **int64 { return &t.MLTKOps }),
		},
		{
			Quantity{Key: "mltk_macs", Head: "MLTK MACs", Name: "MLTK multiply-accumulates", Group: "Work", Adds: true, Whole: true, Doc: "Multiply-accumulates as the Silicon Labs MLTK profiler counts them, its omissions included."},
			counted(func(l *Layer) **int64 { return &l.MLTKMACs }), countedTotal(func(t *Totals) **int64 { return &t.MLTKMACs }),
		},
		{
			Quantity{Key: "sparsity_weights", Unit: "1", Head: "zero weights", Name: "Zero weights", Group: "Sparsity", Doc: "Fraction of the weights that are zero."},
			sparsity(func(s *Sparsity) **float64 { return &s.Weights }, Counted), nil,
		},
		{
			Quantity{Key: "sparsity_activations", Unit: "1", Head: "zero outputs", Name: "Zero outputs", Group: "Sparsity", Doc: "Fraction of the output elements that are zero."},
			sparsity(func(s *Sparsity) **float64 { return &s.Activations }, Measured), nil,
		},
		{Quantity{Key: "accelerator_programs", Head: "acc. programs", Name: "Accelerator programs", Group: "Target", Adds: true, Whole: true, Doc: "Programs that the accelerator runs for the layer."}, nil, nil},
		{Quantity{Key: "accelerator_instructions", Head: "acc. instr.", Name: "Accelerator instructions", Group: "Target", Adds: true, Whole: true, Doc: "Instructions that the accelerator executes for the layer."}, nil, nil},
		{Quantity{Key: "accelerator_stalls", Unit: "cycles", Head: "acc. stalls", Name: "Accelerator stalls", Group: "Target", Adds: true, Whole: true, Better: -1, Doc: "Cycles in which the accelerator waits for memory."}, nil, nil},
		{Quantity{Key: "accelerator_no_ops", Head: "acc. no-ops", Name: "Accelerator no-operations", Group: "Target", Adds: true, Whole: true, Better: -1, Doc: "Instructions of the accelerator that do nothing."}, nil, nil},
	}
}

// kindOfTime is the kind of figures that follow from the layer's time.
func kindOfTime(l *Layer) Kind {
	if l.Latency == nil {
		return Counted
	}
	return l.Latency.Kind
}
