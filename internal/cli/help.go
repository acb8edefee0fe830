package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/opmeter/opmeter/internal/report"
)

// helpWidth is the width of help, whatever the terminal: it is read in manuals, too.
const helpWidth = 80

// topic is a page of help about flags that belong together. The help of a verb shows the
// flags that most people want and names the others by topic, so that it fits a screen.
type topic struct {
	name, short string
	text        func() string
	example     string
	flags       []string // all that belong to it
	rare        []string // those of them that the help of a verb only names
}

// only are the verbs of topics that are for one.
var only = map[string]string{"changes": "compress", "losses": "compress", "plans": "compress", "deciding": "ab", "baselines": "gate", "outputs": "compare"}

// of reports whether a topic explains a flag of a verb: what a verb has a topic of its own for,
// others leave alone.
func (t *topic) of(verb, flag string) bool {
	its := only[t.name]
	if !slices.Contains(t.flags, flag) || its != "" && its != verb {
		return false
	}
	if verb == "compress" && t.name == "boards" || verb == "compare" && t.name == "tables" {
		return false // --speed names a profile there, and --sort has other keys
	}
	own := func(u topic) bool { return only[u.name] == verb && slices.Contains(u.flags, flag) }
	return its != "" || !slices.ContainsFunc(topics, own)
}

var topics = []topic{
	{
		"formats", "output formats of -o and --format", formatsText,
		`  opmeter profile model.tflite -o page.html -o layers.csv
  opmeter profile model.tflite --format json`,
		[]string{"format", "output", "open"},
		[]string{"open"},
	},
	{
		"tables", "columns, order and groups of the table", func() string {
			return `time is the share of the layer in undisturbed profiled runs, multiplied by the latency: the layers and
the time not in layers add up to it. ± is the 95 % confidence interval of the time. share is the part
of the time of all layers, cum. the sum of the shares so far. The line Slowest names the first layers:
"2nd or 3rd" says that the intervals of two layers overlap, so that their order is not settled.
A narrow terminal leaves columns out and names them below the table; -o layers.csv has all. --details
adds all figures of the model and the column place. NO_COLOR=1 turns colours off. COLUMNS=120 sets
the width, also for a pipe.`
		},
		`  opmeter profile model.tflite --by op
  opmeter profile model.tflite --top 10
  opmeter summary model.tflite --sort macs --memory`,
		[]string{"by", "sort", "top", "details", "memory", "all"},
		[]string{"sort", "memory", "all"},
	},
	{
		"inputs", "shapes and data of the inputs", func() string {
			return `By default a model runs with random data of a fixed seed, equal on every machine, in the shapes
that its file declares. Set open dimensions with --shape, --dim or --batch. Counts and estimates
take one iteration of a loop that depends on data, or what --iterations says. Inputs, results and
packed weights may take the memory that is free, less a reserve: of this computer, of the container
and of the process (ulimit -v, ulimit -d). --max-memory sets another limit.`
		},
		`  opmeter profile model.onnx --shape input=1x3x320x320
  opmeter profile model.onnx --input input=cat.npy`,
		[]string{"shape", "dim", "batch", "iterations", "input", "inputs", "seed", "zeros", "carry", "exact", "max-memory"},
		[]string{"batch", "iterations", "seed", "zeros", "carry", "exact", "max-memory", "inputs"},
	},
	{
		"measuring", "how a model is measured on this computer", func() string {
			return `Unprofiled runs give the latency; profiled runs, interleaved with them, give the time of each
operator. The profiling overhead is part of --details. The model warms up first, until its
latency is steady. Ctrl-C ends the runs and shows the result so far. With -o, a journal beside
the first file keeps the measurements if the process is killed: opmeter report opens it.

--streams N also measures N sessions at the same time: throughput, and latency under load. With
--rate, inferences are due at fixed times, and latency counts from the due time. --cold empties
the caches before each inference; --cold=start also prepares the model anew. docs/reference/load.md
has the rules.`
		},
		`  opmeter profile model.tflite --threads 2 --time 10s --pin
  opmeter profile model.tflite --streams 2 --rate 100/s
  opmeter profile model.tflite --cold`,
		[]string{"threads", "time", "runs", "streams", "rate", "cold", "warmup", "pin", "timeline", "strict", "max-loop", "signature"},
		[]string{"warmup", "streams", "rate", "cold", "pin", "timeline", "strict", "max-loop", "signature"},
	},
	{
		"llm", "prefill and decode of language models", func() string {
			return `Language models with caches of keys and values are measured in phases: prefill of --prompt tokens
with an empty cache, and decode of one token after --context positions in the cache. The phases are
interleaved, each for --time. The caches are filled with random numbers. --batch 1,4 measures each
with 1 and with 4 sequences. The table has the layers of decode after the most positions, and a
column of times for each other phase. Tokenizer and sampling are not included. --phases=false
measures one inference, as --dim, --shape and --input do. Files of an encoder and a decoder, or a
folder with a config.json or genai_config.json, are one model, and the encoder has a phase. opmeter
summary estimates phases without running them. docs/llm.md explains the figures.`
		},
		`  opmeter profile llm.onnx
  opmeter profile llm.onnx --prompt 128,512 --context 0,1024
  opmeter profile llm.onnx --batch 1,4
  opmeter summary llm.onnx --context 1024`,
		[]string{"phases", "prompt", "context"},
		[]string{"phases", "prompt", "context"},
	},
	{
		"deciding", "budget, margin and precision of ab", func() string {
			return `opmeter ab measures processes of all alternatives interleaved, in short blocks in random order. A
pilot finds the noise of this machine, divides the budget between processes and blocks, and prints
the smallest difference that can be shown. Equivalent means that the whole 95 % interval lies within
the margin, or within the floor if that is larger. The measurement ends when all comparisons are
decided and the interval is as narrow as the precision, or with the budget. While other programs use
the processors it waits, for at most a tenth of the budget. docs/reference/ab.md has the statistics.`
		},
		`  opmeter ab a.onnx b.onnx --budget 5m --margin 0.5%
  opmeter ab a.onnx b.onnx --fail-on worse`,
		[]string{"budget", "margin", "floor", "precision", "processes", "cpus", "fail-on"},
		[]string{"floor", "precision", "processes", "cpus"},
	},
	{
		"engine", "ONNX Runtime, LiteRT, OpenVINO and other engines", func() string {
			return `With --engine, a model runs in the engine that you ship, found where it is installed: onnxruntime,
litert, openvino; onnxruntime@1.20 selects a version, onnxruntime=FILE a library. Times of operators
are their shares, by the engine's own profiler, of unprofiled inferences. Several engines, separated by
commas, run interleaved and are compared: -o both.html has the comparison, both-opmeter.html and so on
the profile of each engine. opmeter engines lists those found; tflm=PROGRAM names a program with
TensorFlow Lite Micro, and --clock its ticks per second.`
		},
		`  opmeter profile model.onnx --engine onnxruntime
  opmeter profile model.onnx --engine opmeter,onnxruntime -o both.html
  opmeter profile model.onnx --engine onnxruntime --check`,
		[]string{"engine", "engine-option", "engine-timeout", "check"},
		[]string{"engine-option", "engine-timeout", "check"},
	},
	{
		"estimates", "estimates for chips and cores", func() string {
			return `With --on, estimate a model for a chip or core; opmeter targets lists them. Every figure has a band
that is calibrated to hold the true value in 9 of 10 cases. Figures without measurements behind them
are left out. Add boards of your own with a folder of target files, and fit one to measurements with
opmeter calibrate.`
		},
		`  opmeter profile model.tflite --on efr32xg24-mvp
  opmeter profile model.tflite --on host --on stm32l4r5 --on nrf52840
  opmeter fit model.tflite --latency 50ms --ram 256KiB`,
		[]string{"on", "runtime", "runtime-build", "option", "clock", "targets", "latency", "ram", "flash"},
		[]string{"targets", "runtime", "runtime-build", "option", "clock"},
	},
	{
		"boards", "measuring on a connected board",
		func() string {
			return `A port is a serial port (/dev/ttyACM0, COM3), tcp:HOST:PORT, exec:COMMAND for the output of a
program, - for standard input, or file:PATH for a recording. Speed and protocol are detected. If the
cable is pulled, the data received until then is kept; --record keeps every byte. docs/howto/measure-on-a-board.md
describes the protocols.`
		},
		`  opmeter devices
  opmeter profile model.tflite --on device:/dev/ttyACM0 --until 1%
  opmeter profile model.tflite --on device:file:board.log --clock 64MHz`,
		[]string{"until", "discard", "speed", "protocol", "record", "timeout", "reconnect"},
		[]string{"discard", "until", "speed", "protocol", "record", "timeout", "reconnect"},
	},
	{
		"changes", "pruning and precisions that compress tries", func() string {
			return `Structures say which weights are pruned together, levels how many of them: unstructured weights
(unstructured), blocks of rows and columns (1x4, 4x1, block4, block16), two of four (2:4), or whole
inputs and outputs (channel, filter). Precisions store weights as float16, or in 8 or 4 bits (w8, w4),
or compute in 8 bits: int8 with activation ranges from data, dynamic8 with the range of each run
(dynamic quantisation of MatMul and Gemm in ONNX, as quantize_dynamic writes it). Defaults:
unstructured, 4x1 and filter; float16, int8, dynamic8 for ONNX, and w4; for targets filter, int8 and
w4. --flops counts operations instead of measuring. --engine measures in another engine, such as
onnxruntime: gains differ between engines.`
		},
		`  opmeter compress perf model.onnx --structure 4x1 --levels 0.5,0.7,0.9
  opmeter compress perf model.onnx --structure none --precision int8,w4`,
		[]string{"levels", "structure", "precision", "flops", "time", "threads", "engine", "engine-option", "engine-timeout", "batch", "shape", "dim", "seed", "max-memory", "targets"},
		[]string{"levels", "structure", "precision", "flops", "time", "threads", "engine", "engine-option", "engine-timeout", "batch", "shape", "dim", "seed", "max-memory", "targets"},
	},
	{
		"losses", "data and metrics for compress", func() string {
			return `Data is a .npy or .npz file, a .csv file, an image, or a folder of images with a folder per class.
Three of ten samples are held out: only the chosen plan is run on them. With labels, the loss of a layer
is the drop of accuracy when that layer alone is changed; without labels, the change of the model's
outputs. --metric-command runs a program of yours: it gets a folder with the outputs (out_0.npy and so
on) and prints a number.`
		},
		`  opmeter compress loss model.onnx --data x.npy --labels y.npy
  opmeter compress loss model.onnx --data images/ --mean 0.5 --std 0.25
  opmeter compress loss model.onnx --data x.npy --metric-command ./score`,
		[]string{"data", "labels", "label-column", "mean", "std", "samples", "method", "metric", "metric-command", "choice"},
		[]string{"label-column", "mean", "std", "samples", "method", "metric", "metric-command", "choice"},
	},
	{
		"plans", "goals of a compression plan", func() string {
			return `A plan has one goal: a speed-up, a loss, a sparsity, a size, or a target that the weights must fit.
The default is a loss of at most 1 % of accuracy or the equivalent in other metrics; if only
sensitivity ranks are known, a speed-up of 1.5. The first layer and those that compute outputs stay
unchanged unless --ends is given or their loss on data is small.`
		},
		`  opmeter compress plan model.onnx --speedup 2 --exclude head --exclude int8
  opmeter compress plan model.onnx --compat sparsify --sparsity 0.85`,
		[]string{"speedup", "max-drop", "sparsity", "size", "fit", "cost", "exclude", "ends", "compat", "balance"},
		[]string{"sparsity", "size", "fit", "cost", "exclude", "ends", "compat", "balance"},
	},
	{
		"baselines", "base, baselines and policy of a gate", func() string {
			return `The base of opmeter gate is the merge base with the branch that the change is for; on that branch
it is the parent of HEAD. Models are taken from git at that commit. Baselines that were accepted in
the change (opmeter gate accept) have precedence. Without git the last accepted ones are the base.
The folder .opmeter holds the policy (gate.yaml), the baselines, their index and acknowledged
changes: commit it. --init writes the built-in policy as a file. docs/ci.md has all keys.`
		},
		`  opmeter gate --init
  opmeter gate model.tflite --base v1.2
  opmeter gate ignore macs --until 2030-12-31 --reason "known"`,
		[]string{"base", "policy", "baselines", "record", "init", "all", "budget", "emulate", "measure"},
		[]string{"policy", "baselines", "record", "init", "all", "budget"},
	},
	{
		"outputs", "at which layer the outputs of two models or engines part",
		func() string {
			return `compare --outputs runs two models, or one model in two engines, on the same inputs and compares the
outputs of all layers. Quantised outputs are compared as the real numbers that they stand for. The
first line names the layer at which they part: the first that adds an error which dominates. The
error that a layer adds is the difference between its output and what the layer of the other side
computes from the same inputs, so that a layer is not blamed for the errors of those before it.

SNR is the power of the signal over that of the error: 20 dB are an error of 10 %, 40 dB of 1 %.
Inputs and their options belong to the first model. --buffer bounds the memory: the models run as often as
needed. docs/reference/outputs.md has the rules.`
		},
		`  opmeter compare --outputs float.onnx int8.onnx
  opmeter compare --outputs model.onnx --engine opmeter,onnxruntime
  opmeter compare --outputs float.onnx int8.onnx --input input=cat.npy --top 5`,
		[]string{"outputs", "buffer", "engine", "engine-option", "engine-timeout", "threads", "input", "seed", "shape", "dim", "batch", "max-loop"},
		[]string{"buffer", "engine", "engine-option", "engine-timeout", "threads", "input", "seed", "shape", "dim", "batch", "max-loop"},
	},
	{
		"mltk", "compatibility with the Silicon Labs MLTK profiler", func() string {
			return `The formats mltk, mltk-json and mltk-csv have the layout of the MLTK profiler; -o DIR/ writes its
two report files. The name of a model finds NAME.tflite or NAME.mltk.zip in the current folder
and below the folders of MLTK_MODEL_PATHS. These layouts contain the figures of the vendor's simulator,
which has no band; the table of opmeter has estimates of its own. docs/howto/migrate-from-mltk.md explains the difference.`
		},
		`  opmeter profile model -a mvp --estimates --format mltk`,
		[]string{"accelerator", "estimates", "no-format", "full-summary"},
		[]string{"accelerator", "estimates", "no-format", "full-summary"},
	},
	{
		"glossary", "what the terms in reports mean", glossaryIndex,
		`  opmeter help glossary ridge point
  opmeter help glossary all`, nil, nil,
	},
	{
		"status", "exit status", func() string {
			return `    0  success; also for a run that Ctrl-C ended with results
    1  a check failed: measurement quality below --strict, no target
       fits, no such operator, import --check found an overlap,
       worse by gate, or by --fail-on of compare or ab
    2  wrong use of the command line
    3  bad input: a model, profile, target or data file
    4  the run failed, most of the model did not run, or a disk took
       no more
    5  undecided: gate, or --fail-on of compare or ab, cannot tell
  130  stopped by Ctrl-C before there was a result; 143 by SIGTERM`
		}, "", nil, nil,
	},
}

// formatsText lists the formats.
func formatsText() string {
	var b strings.Builder
	b.WriteString("The ending of the file name selects the format of -o:\n\n")
	for _, e := range report.Endings() {
		fmt.Fprintf(&b, "  %-17s %s\n", e[0], e[1])
	}
	b.WriteString("\n--format takes " + strings.Join(report.Formats(true), ", "))
	b.WriteString(".\n\n" + `Several models or targets print a line each. Files .txt, .md and .csv hold all; others one each,
x-MODEL-TARGET.html. Engines: opmeter help engine.`)
	return b.String()
}

// command is the page of a topic.
func (t *topic) command(root *cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: t.name, Short: t.short, Example: t.example}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		w := c.OutOrStdout()
		if words := behind(root, t.name); t.name == "glossary" && words != "" {
			fmt.Fprintf(w, "%s\n", glossaryTerms(words))
			return
		}
		fmt.Fprintf(w, "%s\n", flow(t.text()))
		if set := t.set(root); set.HasFlags() {
			fmt.Fprintf(w, "\nFlags:\n%s", usages(set))
		}
		if t.example != "" {
			fmt.Fprintf(w, "\nExamples:\n%s\n", t.example)
		}
	})
	return c
}

// behind returns the words that follow the name of a topic in "opmeter help NAME …".
func behind(root *cobra.Command, name string) string {
	i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == "help" })
	if i < 0 {
		return ""
	}
	args := root.Commands()[i].Flags().Args()
	if len(args) < 2 || args[0] != name {
		return ""
	}
	return strings.Join(args[1:], " ")
}

// set gathers the topic's flags from all verbs; profile explains those that it has, for others
// the first that has one.
func (t *topic) set(root *cobra.Command) *pflag.FlagSet {
	set := pflag.NewFlagSet(t.name, pflag.ContinueOnError)
	set.SortFlags = false
	verbs := slices.Clone(root.Commands())
	if i := slices.IndexFunc(verbs, func(c *cobra.Command) bool { return c.Name() == cmp.Or(only[t.name], "profile") }); i > 0 {
		verbs[0], verbs[i] = verbs[i], verbs[0]
	}
	for _, name := range t.flags {
		for _, c := range verbs {
			if f := c.Flags().Lookup(name); f != nil {
				shown := *f
				shown.Hidden = false
				set.AddFlag(&shown)
				break
			}
		}
	}
	return set
}

// help writes what a verb does, examples, and its flags.
func help(w io.Writer, c *cobra.Command) {
	what := c.Long
	if what == "" {
		what = c.Short
	}
	fmt.Fprintln(w, flow(what))
	if c.HasParent() {
		fmt.Fprintf(w, "\nUsage:\n  %s\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprint(w, "\nCommands:\n")
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-11s %s\n", s.Name(), s.Short)
			}
		}
	}
	set, more := shown(c)
	if set.HasFlags() && c.HasParent() {
		fmt.Fprintf(w, "\nFlags:\n%s", usages(set))
	}
	switch {
	case c.HasParent():
		if len(more) > 0 {
			fmt.Fprintf(w, "\nMore flags, by topic:\n%s", strings.Join(more, ""))
		}
	default:
		var names []string
		for _, t := range topics {
			if only[t.name] == "" {
				names = append(names, t.name)
			}
		}
		fmt.Fprintf(w, "\n%s\n", flow("Topics: "+strings.Join(names, ", ")+"."))
		fmt.Fprint(w, "\nopmeter help NAME explains a command or topic.\n")
	}
}

// shown are the flags that the help of a verb explains, those that people want first, and
// lines that name the others by topic.
func shown(c *cobra.Command) (set *pflag.FlagSet, more []string) {
	set = pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	set.SortFlags = false
	// Few flags need no topics.
	n := 0
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			n++
		}
	})
	const few = 16
	for _, t := range topics {
		var rare []string
		for _, name := range t.flags {
			f := c.Flags().Lookup(name)
			if f == nil || !t.of(verbOf(c), name) {
				continue
			}
			if slices.Contains(t.rare, name) && (f.Hidden || n > few) {
				rare = append(rare, "--"+name)
			} else if !f.Hidden {
				set.AddFlag(f)
			}
		}
		if len(rare) > 0 {
			// As many lines as it takes: the names stand in one column.
			lead := fmt.Sprintf("  opmeter help %-9s ", t.name)
			for _, l := range report.Wrap(strings.Join(rare, " "), helpWidth-len(lead)) {
				more = append(more, lead+l+"\n")
				lead = strings.Repeat(" ", len(lead))
			}
		}
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && set.Lookup(f.Name) == nil && !slices.ContainsFunc(topics, func(t topic) bool { return t.of(verbOf(c), f.Name) }) {
			set.AddFlag(f)
		}
	})
	return set, more
}

// verbOf is the verb that a command belongs to.
func verbOf(c *cobra.Command) string {
	for c.HasParent() && c.Parent().HasParent() {
		c = c.Parent()
	}
	return c.Name()
}

// flow fills the paragraphs of a text up to the width of help.
func flow(s string) string { return fill(s, helpWidth) }

// fill fills the paragraphs of a text up to a width. Lines that are set in stay as they
// are.
func fill(s string, width int) string {
	var out []string
	now := ""
	end := func() {
		if now != "" {
			out = append(out, now)
		}
		now = ""
	}
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == ' ' {
			end()
			out = append(out, line)
			continue
		}
		for _, word := range strings.Fields(line) {
			if now != "" && utf8.RuneCountInString(now)+1+utf8.RuneCountInString(word) > width {
				end()
			}
			if now != "" {
				now += " "
			}
			now += word
		}
	}
	end()
	return strings.Join(out, "\n")
}

// flagText is what a flag takes and what it does. What is taken several times ends in "…".
func flagText(f *pflag.Flag) (takes, text string) {
	takes, text = pflag.UnquoteUsage(f)
	text = strings.TrimPrefix(text, takes+": ")
	if f.Value.Type() == "stringArray" {
		takes += "…"
	}
	switch f.DefValue {
	case "", "0", "0s", "[]", "false":
	default:
		if !strings.Contains(text, "default") {
			text += " (default " + strings.Trim(f.DefValue, "[]") + ")"
		}
	}
	return takes, text
}

// usages lists flags, a line each where the width allows. What a flag takes stands before
// the colon of its text.
func usages(set *pflag.FlagSet) string {
	var names, texts []string
	width := 0
	set.VisitAll(func(f *pflag.Flag) {
		takes, text := flagText(f)
		name := "      --" + f.Name
		if f.Shorthand != "" {
			name = "  -" + f.Shorthand + ", --" + f.Name
		}
		switch {
		case takes != "" && f.NoOptDefVal != "" && f.Value.Type() != "bool": // a value follows "=" only
			name += "[=" + takes + "]"
		case takes != "":
			name += " " + takes
		}
		names, texts = append(names, name), append(texts, text)
		width = max(width, utf8.RuneCountInString(name))
	})
	var b strings.Builder
	for i, name := range names {
		for k, l := range strings.Split(fill(texts[i], helpWidth-width-2), "\n") {
			if k > 0 {
				name = ""
			}
			fmt.Fprintf(&b, "%s%s  %s\n", name, strings.Repeat(" ", width-utf8.RuneCountInString(name)), l)
		}
	}
	return b.String()
}
