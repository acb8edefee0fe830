package chip

import "strings"

// Runtime is a family of runtimes and kernels with the figures of its cycle model.
type Runtime struct {
	// Name such as "tflm-cmsis-nn".
	Name string `yaml:"name,required"`
	// Title is the display name.
	Title string `yaml:"title"`
	// Versions describes the versions that the figures apply to.
	Versions string `yaml:"versions"`
	// Arena is the family of TensorFlow Lite Micro kernels whose memory the runtime needs, "" for
	// another runtime: only the activations are then known.
	Arena string `yaml:"arena" enum:"reference,cmsis-nn,cmsis-nn-mve,mvp,mvp-first"`
	// Release is the release year that the figures apply to, 0 for the latest: later operators
	// and types are not supported.
	Release int64 `yaml:"release"`
	// Code is the smallest and largest program code size, without the model, in measured images;
	// nil if none were measured.
	Code *[2]Bytes `yaml:"code"`
	// Cortexm or MVP holds the figures of the cycle model of that name; the other is nil.
	Cortexm *Structural `yaml:"cortexm"`
	MVP     *Counted    `yaml:"mvp"`
	// Builds lists build configurations other than the default: optimised for speed, with all
	// units of the core.
	Builds []Build `yaml:"builds"`
	// Calibration describes the data that the figures were fitted to, and their error.
	Calibration *Calibration `yaml:"calibration"`
}

// Build is a build configuration of a runtime: factors on the cycles by kind of work, as measured
// on the board with its compiler, 0 for unchanged kinds.
type Build struct {
	// Name such as "small" (optimised for size) or "no-fpu".
	Name string `yaml:"name,required"`
	// Title is the display name, From the source of the factors.
	Title string `yaml:"title"`
	From  string `yaml:"from"`
	// Factors by class of element types; Integer also applies to 16 bits if Int16 is absent.
	Integer Terms `yaml:"integer"`
	Int16   Terms `yaml:"int16"`
	Float   Terms `yaml:"float"`
	// IntegerBound and FloatBound are the largest factors measured on other boards, of classes
	// whose effect was not measured on this one: the estimate stays that of the default build, and
	// the upper end of its band rises by them.
	IntegerBound Terms `yaml:"integer_bound"`
	FloatBound   Terms `yaml:"float_bound"`
	// Band is the half-width in logarithms that the use of the factors adds.
	Band float64 `yaml:"band"`
}

// Build finds a build configuration by name, nil if it is absent.
func (r *Runtime) Build(name string) *Build {
	for i := range r.Builds {
		if r.Builds[i].Name == name {
			return &r.Builds[i]
		}
	}
	return nil
}

// Model returns the name of the cycle model that the runtime has figures for.
func (r *Runtime) Model() string {
	if r.MVP != nil {
		return "mvp"
	}
	return "cortexm"
}

// Structural holds the figures of the cycle model for processors, package cortexm.
type Structural struct {
	// Family of kernels and Tier of cores; they determine which operators have optimised kernels.
	Family string `yaml:"family,required"`
	Tier   string `yaml:"tier,required"`
	// Pruned runtimes skip channels whose weights are all zero.
	Pruned bool `yaml:"pruned"`
	// Integer holds the figures of int8 kernels, Int16 of kernels with 16-bit activations and
	// 8-bit weights, Float of floating-point kernels; nil if nothing was measured.
	Integer Integer `yaml:"integer,required"`
	Int16   *Typed  `yaml:"int16"`
	Float   *Typed  `yaml:"float"`
	// Seen lists the mixes of the fitted networks: the share of each kind of work in the cycles.
	Seen []Terms `yaml:"seen"`
}

// Integer holds figures of int8 kernels. Bands are half-widths in logarithms.
type Integer struct {
	// Cycles of each kind of work. Plain C kinds may be omitted: operators without an optimised
	// kernel then have no estimate.
	Cycles Terms `yaml:"cycles,required" need:"move_element"`
	// Near is the band for networks like the fitted ones, Far for others, Layer for one layer.
	Near  float64 `yaml:"band_near"`
	Far   float64 `yaml:"band_far"`
	Layer float64 `yaml:"band_layer"`
	// Overhead is the additional half-width for call and operator overhead, weighted by its
	// share. It is 0 if the other half-widths include it, because they come from networks that
	// are mostly overhead.
	Overhead float64 `yaml:"band_overhead"`
	// Bands of kinds of work that differ from Layer.
	Bands Terms `yaml:"bands"`
}

// Typed holds figures of kernels for another element type than int8. Bands are half-widths in
// logarithms.
type Typed struct {
	// From is the source of the figures.
	From string `yaml:"from"`
	// Measured is the kind of layer that was measured, "both" for convolutions larger than 1x1
	// and dense layers. Near is its band, Far the band of kinds whose cost was extrapolated from
	// it.
	Measured string  `yaml:"measured,required" enum:"conv,dense,both"`
	Near     float64 `yaml:"band_near"`
	Far      float64 `yaml:"band_far"`
	// Overhead as in [Integer].
	Overhead float64 `yaml:"band_overhead"`
	// Cycles of each kind of work, 0 if unknown. If the overhead of calls and operators is 0, the
	// runtime's applies.
	Cycles Terms `yaml:"cycles,required"`
}

// Has reports whether a kind of work was measured.
func (t *Typed) Has(term string) bool {
	switch t.Measured {
	case "both":
		return strings.HasPrefix(term, "conv") || strings.HasPrefix(term, "dense")
	}
	return strings.HasPrefix(term, t.Measured)
}

// Terms has a figure for each kind of kernel work, in the order of [TermNames].
type Terms [len(TermNames)]float64

// TermNames are the kinds of work in target files; package cortexm defines them.
var TermNames = [...]string{
	"call", "op", "conv_mac", "conv_gather", "conv_window", "conv_output", "point_mac", "point_gather", "point_output",
	"depthwise_mac", "depthwise_output", "dense_mac", "dense_output",
	"pool_element", "element", "table_element", "move_element",
	"plain_mac", "plain_element", "plain_table", "plain_reduce", "plain_move",
}

// Counted holds the figures of the cycle model for the MVP accelerator, package mvp.
type Counted struct {
	// Library is the generation of the accelerator's kernels, "" for the second.
	Library string `yaml:"library" enum:"first,second"`
	// Processor is the target whose figures apply to operators without own figures.
	Processor string `yaml:"processor"`
	// Cycles of layers on the accelerator; package mvp defines the keys. Missing keys are 0: the
	// term does not exist.
	Cycles map[string]float64 `yaml:"cycles" keys:"counted"`
	// Operators has the cycles of layers on the processor, by operator and then by the first
	// input's element type, or [AnyType].
	Operators map[string]map[string]Operator `yaml:"operators"`
}

// AnyType stands for all element types.
const AnyType = "any"

// Operator has the cycles of one operator on the processor.
type Operator struct {
	Fixed   float64 `yaml:"fixed"`   // per layer
	Element float64 `yaml:"element"` // per element of the first output
	Input   float64 `yaml:"input"`   // per element of the first input
	Padded  float64 `yaml:"padded"`  // per element of the output beyond those of the input
	Byte    float64 `yaml:"byte"`    // per byte of the first output
	MAC     float64 `yaml:"mac"`     // per multiply-accumulate
	Tap     float64 `yaml:"tap"`     // per element that a pooling window reads
}

// tables lists the allowed keys of tables of figures.
var tables = map[string][]string{"counted": {
	"conv.double",                    // accelerator, per inner loop with two products
	"conv.single",                    // accelerator, per inner loop with one product
	"conv.double_store",              // accelerator, per result of programs with two products
	"conv.single_store",              // accelerator, per result of programs with one product
	"conv.stride_noop",               // accelerator, per no-op that walks the output
	"conv.program",                   // accelerator, per program
	"dense.output",                   // accelerator, per output
	"dense.program",                  // accelerator, per program
	"dense_each.output",              // accelerator, per output where each has its program
	"depthwise_pixel.pair",           // accelerator, per stored pair
	"depthwise_pixel.program",        // accelerator, per program
	"depthwise.output",               // accelerator, per result
	"depthwise.noop",                 // accelerator, per no-op
	"max_pool.program",               // accelerator, per program
	"average_pool.program",           // accelerator, per program
	"average_pool_pixel.program",     // accelerator, per program
	"add.pair",                       // accelerator, per pair
	"add.program",                    // accelerator, per program
	"mul.pair",                       // accelerator, per pair
	"mul.program",                    // accelerator, per program
	"cpu.conv.program",               // processor, per program
	"cpu.conv.fixed",                 // processor, per layer
	"cpu.dense.fixed",                // processor, per layer
	"cpu.dense_each.output",          // processor, per output where each has its program
	"cpu.dense_each.fixed",           // processor, per layer where each output has its program
	"cpu.depthwise_pixel.program",    // processor, per program
	"cpu.depthwise_pixel.fixed",      // processor, per layer
	"cpu.depthwise.program",          // processor, per program
	"cpu.depthwise.segment",          // processor, per part of the output with a filter of its own
	"cpu.depthwise.fixed",            // processor, per layer
	"cpu.max_pool.program",           // processor, per program
	"cpu.max_pool.fixed",             // processor, per layer
	"cpu.average_pool.pixel",         // processor, per output pixel (check whether the kernel fits)
	"cpu.average_pool.program",       // processor, per program
	"cpu.average_pool_pixel.program", // processor, per program
	"cpu.average_pool_pixel.fixed",   // processor, per layer
	"cpu.add.program",                // processor, per program
	"cpu.add.fixed",                  // processor, per layer
	"cpu.mul.program",                // processor, per program
	"cpu.mul.fixed",                  // processor, per layer
	"cpu.transpose_conv.program",     // processor, per program
	"overlap.program",                // elapsed, per program beside the accelerator's cycles
	// elapsed, least per program of the depthwise kernel with one per pixel, whatever accelerator
	// and processor do
	"overlap.depthwise_pixel.least",
	// share of the processor's cycles that do not overlap, of the depthwise kernel over runs of
	// outputs
	"overlap.depthwise.cpu",
}}
