package advise

import (
	"context"
	"errors"

	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/profile"
)

// Rule is a rule as data. docs/reference/advice-rules.md is generated from it.
type Rule struct {
	// Code names the rule, Title says what to do.
	Code, Title string
	// When is the condition on the figures, and Silent when the rule says nothing though the
	// condition seems to hold.
	When, Silent string
	// Quantity is the figure that becomes smaller.
	Quantity string
	// Source says where the band comes from.
	Source Source
	// Where says for which profiles the rule is.
	Where Where
	// Finding is the finding of the profile that the rule acts on, "" for none: the reason is its
	// text then, so that a finding and its advice cannot differ.
	Finding string
	// Command tries it: MODEL, ON and NAME stand for the file, the flags of the target and inputs,
	// and the name of a new file.
	Command string
	// Caveat is what the command does not check.
	Caveat string
	// Measured says on what bench/advise measured the promises of the rule, "" for estimates.
	Measured string
	// Blocking marks advice without which the model does not run on the chip.
	Blocking bool

	// find returns the advice, or why the rule is silent.
	find func(f *Facts) ([]*Advice, string)
	// change returns what --try measures, nil where only the command can try it.
	change func(ctx context.Context, f *Facts) (*Variant, error)
}

// Variant is a changed way to run a model.
type Variant struct {
	// Model is the changed model, nil for the same.
	Model *graph.Model
	// Threads and Batch replace those of the profile, 0 for the same.
	Threads, Batch int
	// Keep keeps a session for all inferences, compared with a new one for each.
	Keep bool
	// Shapes replaces shapes of inputs by name.
	Shapes map[string][]int
}

// errNoChange reports that nothing of a model could be changed.
var errNoChange = errors.New("nothing of the model can be changed so")

// Where says for which profiles a rule is.
type Where int

// Kinds of profiles.
const (
	OnHost   Where = iota // measured on this computer with opmeter's engine
	OnTarget              // estimated for a chip
	Anywhere              // measured with any engine, or imported
)

// String names it for documents.
func (w Where) String() string {
	return [...]string{"this computer, opmeter's engine", "chips (estimates)", "measured and imported profiles"}[w]
}

func (w Where) applies(p *profile.Profile) bool {
	switch kind := p.Target.Kind; w {
	case OnHost:
		return kind == profile.TargetHost && p.Settings.Engine == own
	case OnTarget:
		return kind == profile.TargetSimulator
	default:
		return kind != profile.TargetSimulator
	}
}

// own is the name of opmeter's own engine in profiles.
const own = "opmeter"

// Rules are all rules. docs/reference/advice-rules.md lists them.
var Rules []Rule

// The functions of the table look rules up, so that the table cannot initialise Rules itself.
func init() { Rules = table }

var table = []Rule{
	{
		Code: "int8-static", Title: "Quantise weights and activations to int8",
		When:     "Layers that multiply float32 by weights take 5 % of the time or more, and a short interleaved run of the int8 model is at least 10 % faster",
		Silent:   "the layers are so small that quantising their inputs and outputs costs what the kernels save; sparse kernels run",
		Quantity: latency, Source: FromProbe, Where: OnHost,
		Measured: "14 models: 13 as promised, 1 better; again on 1: as promised, and silent on 1",
		Command:  "opmeter advise MODEL ON --only int8-static --try -o NAME-int8.EXT",
		Caveat:   "ranges of activations are those of random inputs: opmeter compress MODEL --data x.npy --max-drop 1% chooses them on data and measures the loss",
		find:     (*Facts).staticInt8, change: changeFormat(int8Rule),
	},
	{
		Code: "int8-dynamic", Title: "Quantise matrix multiplications to int8, activations in each run",
		When:     "ONNX MatMul and Gemm with float32 weights take 5 % of the time or more, and a short interleaved run of the changed model is at least 10 % faster",
		Silent:   "the matrices are so small that finding the range of the input costs what the kernel saves",
		Quantity: latency, Source: FromProbe, Where: OnHost,
		Measured: "4 models: 4 as promised; silent on 1",
		Command:  "opmeter advise MODEL ON --only int8-dynamic --try -o NAME-dynamic.EXT",
		Caveat:   "no data is needed, but check the accuracy: opmeter compress loss MODEL --data x.npy --precision dynamic8",
		find:     (*Facts).dynamicInt8, change: changeFormat(dynamicRule),
	},
	{
		Code: "transposes", Title: "Remove transpositions that cancel",
		When:     "Pairs of Transpose undo each other, also across element-wise operators, and take part of the time",
		Silent:   "the engine has removed or fused them: they take no time",
		Quantity: latency, Source: FromProfile, Where: Anywhere,
		Measured: "1 made model: as promised",
		Command:  "opmeter advise MODEL ON --only transposes --try -o NAME-simple.EXT",
		find:     (*Facts).transposes, change: changeTransposes,
	},
	{
		Code: "batch-norm", Title: "Fold batch normalisation into the weights before it",
		When:     "BatchNormalization behind Conv, ConvTranspose, Gemm or MatMul runs as an operator of its own and takes part of the time",
		Silent:   "the engine folds it while planning: it takes no time",
		Quantity: latency, Source: FromProfile, Where: Anywhere,
		Measured: "1 made model: as promised",
		Command:  "opmeter advise MODEL ON --only batch-norm --try -o NAME-folded.EXT",
		find:     (*Facts).batchNorm, change: changeBatchNorm,
	},
	{
		Code: "threads", Title: "Use a thread on each processor",
		When:     "The run has one thread, the computer has more processors, and a short interleaved run with a thread on each is at least 10 % faster",
		Silent:   "the layers are too short to be divided, or other programs use the processors",
		Quantity: latency, Source: FromProbe, Where: OnHost,
		Measured: "silent on 2 models: no processor was free, and a second thread took 1.05 to 1.5 times the time",
		Command:  "opmeter profile MODEL ON --threads N",
		Caveat:   "the processors must be free when the model runs",
		find:     (*Facts).moreThreads,
	},
	{
		Code: "fewer-threads", Title: "Use fewer threads",
		When:     "The run has several threads, and a short interleaved run with one, or with one on each processor, is at least 10 % faster",
		Silent:   "the threads help, or do no harm",
		Quantity: latency, Source: FromProbe, Where: OnHost,
		Measured: "1 made model: as promised; silent on 1",
		Command:  "opmeter profile MODEL ON --threads 1",
		find:     (*Facts).fewerThreads,
	},
	{
		Code: "batch", Title: "Run several items in one inference",
		When:     "The inputs and outputs have a batch dimension, and a short interleaved run takes at least 10 % less time for an item of a batch of 8",
		Silent:   "the model has a fixed batch, arithmetic takes the time, or a batch of 8 takes more than 200 ms",
		Quantity: item, Source: FromProbe, Where: OnHost,
		Measured: "12 models: 11 as promised, 1 undecided; again on 1: as promised, and silent on 1",
		Command:  "opmeter sweep MODEL ON --batch 1,8",
		Caveat:   "an item waits for its batch: only the throughput gains",
		find:     (*Facts).batches, change: changeBatch,
	},
	{
		Code: "first-run", Title: "Prepare the model once and keep it",
		When:     "Planning and the first inference take more than ten times as long as a later one, and more than 1 ms, also in a short interleaved run of new sessions",
		Silent:   "the first inference is nearly as fast as later ones",
		Quantity: firstRun, Source: FromProbe, Where: OnHost,
		Measured: "1 model: as promised; 26 models before, with the phases of one run: 23 as promised, 3 less",
		Command:  "opmeter profile MODEL ON --cold=start",
		find:     (*Facts).first, change: func(context.Context, *Facts) (*Variant, error) { return &Variant{Keep: true}, nil },
	},
	{
		Code: "kv-cache", Title: "Keep keys and values of earlier tokens",
		When:     "A language model computes all tokens anew for each new one: causal attention, an output for each token, no cache among the inputs; a short interleaved run of one token is faster",
		Silent:   "the sequence is short, the model has a cache, or reading the weights takes the time",
		Quantity: token, Source: FromProbe, Where: OnHost,
		Measured: "1 made model: as promised; less before, when a step was not measured",
		Command:  "opmeter profile MODEL",
		Caveat:   "the command measures a step without reading the cache; export the model with past keys and values to use it",
		find:     (*Facts).cache, change: changeTokens,
	},
	{
		Code: "dynamic-shapes", Title: "Fix the shapes of the inputs",
		When:     "Inputs have open dimensions, and the engine computes shapes in each run",
		Silent:   "the engine computes shapes once, while planning, as opmeter's does",
		Quantity: latency, Source: FromProfile, Where: Anywhere,
		Measured: "1 made model with ONNX Runtime: as promised; silent on 1",
		Command:  "opmeter advise MODEL INPUTS --only dynamic-shapes -o NAME-fixed.EXT",
		find:     (*Facts).openShapes, change: changeShapes,
	},
	{
		Code: "other-engine", Title: "Run the model with another engine",
		When:     "Another engine on this computer was measured beside this one and was 5 % faster or more, and an interleaved run in several processes is at least 10 % faster",
		Silent:   "no other engine was measured, it is not faster, or the profile was saved",
		Quantity: latency, Source: FromProbe, Where: OnHost,
		Measured: "1 model with opmeter's kernels in Go: as promised; silent on 1. It lost once before, when it compared one process of each engine",
		Command:  "opmeter ab MODEL ON --engine opmeter,ENGINE",
		find:     (*Facts).otherEngine,
	},
	{
		Code: "channels", Title: "Remove the outputs that hardly fill a tile",
		When:     "Layers have a few outputs more than a multiple of what a tile of the kernels computes (8 for AVX2, 16 for AVX-512 and AMX), and a short interleaved run without them saves more than their part, and 10 % at least",
		Silent:   "more than an eighth of the outputs would go, other layers need them, the layer is a Conv of ONNX (its tiles lie along the pixels), or the tiles of the instruction set were not measured",
		Quantity: latency, Source: FromProbe, Where: OnHost,
		Measured: "1 made model: as promised; silent on 1",
		Command:  "opmeter advise MODEL ON --only channels --try -o NAME-trimmed.EXT",
		Caveat:   "the smallest filters are removed: check the accuracy, and train the model again if needed",
		find:     (*Facts).channels, change: changeChannels,
	},
	{
		Code: "sparse", Title: "Prune layers with many zeros until kernels for sparse weights run",
		When:     "Layers have 30 to 90 % zeros, kernels for dense weights compute them, and a short interleaved run with 90 % zeros is at least 10 % faster",
		Silent:   "kernels for sparse weights run already, or would not be faster",
		Quantity: latency, Source: FromProbe, Where: OnHost,
		Measured: "1 made model: as promised; silent on 1",
		Command:  "opmeter advise MODEL ON --only sparse --try -o NAME-sparse.EXT",
		Caveat:   "check the accuracy: opmeter compress MODEL --data x.npy --max-drop 1% chooses the level of each layer",
		find:     (*Facts).sparse, change: changeSparse,
	},
	{
		Code: "float16", Title: "Store the model in float32 for this computer",
		When:     "Layers with float16 operands take part of the time, and a short interleaved run of the model in float32 is at least 10 % faster",
		Silent:   "the kernels convert float16 at no cost, or reading the weights takes the time",
		Quantity: latency, Source: FromProbe, Where: OnHost,
		Measured: "1 model: as promised; silent on 1",
		Command:  "opmeter advise MODEL ON --only float16 --try -o NAME-float32.EXT",
		Caveat:   "inputs, outputs and the file have twice the size",
		find:     (*Facts).halves, change: changeHalves,
	},
	{
		Code: "int8-target", Title: "Quantise weights and activations to int8",
		When:     "The model computes in float32, and the estimate of the int8 model is faster by more than both bands",
		Silent:   "the model is int8 already, or the bands of the two estimates overlap",
		Quantity: latency, Source: FromEstimate, Where: OnTarget, Finding: "target.type",
		Measured: "1 model: as promised, by a second estimate; no chip was there",
		Command:  "opmeter advise MODEL ON --only int8-target --try -o NAME-int8.EXT",
		Caveat:   "ranges of activations are those of random inputs: opmeter compress MODEL --data x.npy --max-drop 1% chooses them on data and measures the loss",
		find:     (*Facts).targetInt8, change: changeFormat(int8Rule),
	},
	{
		Code: "accelerator", Title: "Change the operators that the accelerator leaves to the processor",
		When:     "The accelerator of the chip does not take operators because of their kind, size or options, and they take part of the time",
		Silent:   "the chip has no accelerator, or it takes all operators that matter; element types belong to int8-target",
		Quantity: latency, Source: FromProfile, Where: OnTarget,
		Measured: "1 made model: as promised, by the estimate of the other network; less before, when it knew bytes only",
		Command:  "opmeter profile MODEL ON",
		Caveat:   "replace the operators or keep their sizes within the limit, export the model again, and estimate that file: the command shows which unit runs each layer",
		find:     (*Facts).onProcessor,
	},
	{
		Code: "unsupported", Title: "Choose a target whose runtime has all operators",
		When:     "The runtime of the target has no kernel for operators of the model, so that it does not load",
		Silent:   "all operators are there, or no target has them",
		Quantity: missing, Source: FromEstimate, Where: OnTarget, Blocking: true,
		Measured: "not tried: the runtimes of all shipped chips have the same operators",
		Command:  "opmeter fit MODEL INPUTS",
		find:     (*Facts).unsupported,
	},
	{
		Code: "embedding-flash", Title: "Store lookup tables in 8 bits",
		When:     "Tables of float32 that operators gather rows from take a tenth of the flash of the model or more",
		Silent:   "there is no such table, or it is quantised already",
		Quantity: flash, Source: FromFormat, Where: OnTarget,
		Measured: "1 model: as promised, counted in the changed file",
		Command:  "opmeter advise MODEL ON --only embedding-flash --try -o NAME-tables.EXT",
		Caveat:   "check the accuracy: opmeter compress loss MODEL --data x.npy --precision w8",
		find:     (*Facts).tables, change: changeFormat(tableRule),
	},
	{
		Code: "ram", Title: "Reduce the working memory, or choose a chip that holds it",
		When:     "The working memory exceeds the RAM of the chip",
		Silent:   "the model fits",
		Quantity: ram, Source: FromEstimate, Where: OnTarget, Finding: "target.ram", Blocking: true,
		Measured: "2 models: as promised, counted by the memory plan",
		Command:  "opmeter fit MODEL INPUTS",
		find:     func(f *Facts) ([]*Advice, string) { return f.fits("ram") },
		change:   changeFormat(int8Rule),
	},
	{
		Code: "flash", Title: "Make the model smaller, or choose a chip that holds it",
		When:     "The model with the program code exceeds the flash of the chip",
		Silent:   "the model fits",
		Quantity: flash, Source: FromEstimate, Where: OnTarget, Finding: "target.flash", Blocking: true,
		Measured: "1 model: as promised, counted in the changed file",
		Command:  "opmeter fit MODEL INPUTS",
		find:     func(f *Facts) ([]*Advice, string) { return f.fits("flash") },
		change:   changeFormat(int8Rule),
	},
}

// RuleOf returns the rule with a code, nil for none.
func RuleOf(code string) *Rule {
	for i := range Rules {
		if Rules[i].Code == code {
			return &Rules[i]
		}
	}
	return nil
}
